"""Verdicts where the answer is known: a small sample of what `tests/benchmarks/attributions.py` counts."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any

import pytest
import torch

import attnviz
from attnviz.attributions.build import build
from attnviz.attributions.verdicts import USED, Comparison, name_of
from attnviz.models.language import splits
from tests.fixtures import induction

if TYPE_CHECKING:
    from attnviz.attributions.record import Attribution

TEXT = "The animal didn't cross the street because it was too tired"


def used(found: Attribution) -> list[str]:
    """The tokens that are used."""
    pairs = zip(found.tokens, found.verdicts, strict=True)
    return [token.text for token, verdict in pairs if verdict and verdict.name in USED]


def test_induction() -> None:
    """A model that copies what followed a letter before uses that letter, and nothing carries as much."""
    assert induction.accuracy(100) >= 0.99
    source = attnviz.open_source(str(induction.FILE))
    for case in induction.cases(6):
        found = build(source, case.text, of="next")
        assert found.output.text == case.word
        assert found.verdicts[case.place] is not None
        assert found.verdicts[case.place].name in {"used", "used together"}  # type: ignore[union-attr]
        assert found.chosen == case.place


@pytest.mark.parametrize(
    ("name", "kind"), [("toy", "reference"), ("toy-ko", "own"), ("toy-ko", "reference")]
)
def test_pronouns(name: str, kind: str) -> None:
    """A pronoun uses the noun that it stands for, in sentences that the model was not trained on."""
    source: Any = attnviz.open_source(name)
    for sentence in islice(splits.sentences("test", 0, kind, source.language), 4):
        known = sentence.reference
        assert known is not None
        found = build(source, splits.line_of(sentence).text, of=str(known.pronoun))
        assert found.tokens[known.noun].text in used(found)


def test_a_translation() -> None:
    """A translated word uses the word that it translates; a word that follows from those before it does not."""
    text = "there is a prince ."
    noun = attnviz.attribute(text, "toy-transformer", word="왕자가")
    assert noun.tokens[noun.chosen].text == "prince"
    assert "prince" in used(noun)
    verb = attnviz.attribute(text, "toy-transformer", word="있다")
    place = [token.text for token in verb.tokens].index("is")
    assert verb.after is not None
    assert verb.after[2][place] > 0.99  # as likely without the English word
    assert "is" not in used(verb)


@pytest.mark.parametrize("name", ["toy", "toy-ko", "toy-decoder", "toy-transformer"])
def test_random_weights(name: str) -> None:
    """With random weights attention goes somewhere, and no token is used."""
    source: Any = attnviz.open_source(name)
    text = "고양이가 방에서 자고 있어요" if name == "toy-ko" else TEXT
    found = build(source.untrained(1), text)
    assert sum(verdict is not None for verdict in found.verdicts) >= 4
    assert used(found) == []


def test_heads_of_a_translator_left_out() -> None:
    """The prediction without a head of the cross-attention is that of a projection that does not read it."""
    found = attnviz.attribute("the pig is big", "toy-transformer", word="1", without_heads=True)
    assert found.without_head is not None
    source: Any = attnviz.open_source("toy-transformer")
    inputs = source.encode(["the pig is big"], kind="cross").inputs
    layer = source._model.transformer.decoder.layers[1].cross_attention
    weight, width = layer.output_projection.weight, source._config.d_model // source._config.n_heads
    with torch.no_grad():
        logits = [source._model(inputs["source"], inputs["target"]).logits[0, 1]]
        kept = weight.clone()
        weight[:, 2 * width : 3 * width] = 0
        logits.append(source._model(inputs["source"], inputs["target"]).logits[0, 1])
        weight[:] = kept
    before, after = (one.double().log_softmax(-1) for one in logits)
    divergence = float((before.exp() * (before - after)).sum())
    assert found.without_head[1, 2] == pytest.approx(divergence, abs=1e-5)


def cut(
    change: float,
    controls: float = 0.1,
    spread: float = 0.01,
    least: float = 1e-5,
    least_ratio: float = 1.5,
) -> Comparison:
    """A change beside its controls."""
    return Comparison(
        change=change, controls=controls, spread=spread, least=least, least_ratio=least_ratio
    )


SMALL = cut(0.04, 0.01, 0.001, least=0.05)
FOUR_TIMES, THREE_TIMES = (
    Comparison(change=change, controls=0.1, spread=0.04, is_divergence=True)
    for change in (0.41, 0.3)
)


@pytest.mark.parametrize(
    ("here", "everywhere", "head", "name"),
    [
        (cut(0.3), None, cut(0.3), "used"),
        (cut(0.3), None, cut(0.1), "used together"),
        (cut(0.14), None, None, "not used"),
        (cut(0.17), None, None, "used together"),
        (cut(0.17, spread=0.02), None, None, "not used"),
        (cut(0.24, spread=0.04), None, None, "used together"),
        (cut(0.24, spread=0.05), None, None, "not used"),
        (SMALL, None, None, "not used"),
        (FOUR_TIMES, None, None, "used together"),
        (THREE_TIMES, None, None, "not used"),
        (cut(0.1), cut(0.21, least_ratio=2.0), None, "used through other words"),
        (cut(0.1), cut(0.19, least_ratio=2.0), None, "not used"),
        (cut(0.01), SMALL, None, "not used"),
        (cut(0.1), None, cut(0.3), "heads cancel"),
        (cut(0.001), None, SMALL, "not used"),
        (None, None, None, "cannot tell"),
    ],
)
def test_rule(
    here: Comparison | None, everywhere: Comparison | None, head: Comparison | None, name: str
) -> None:
    """Twice the controls and 3 deviations above, here also 1.5 times and 6 above; 4 times a divergence; the least."""
    assert name_of(here, everywhere, head, is_attended=False) == name


def test_strongly() -> None:
    """Far above the controls, unless these are much alike, because little else is left to cut."""
    assert cut(0.3).is_strong
    assert not cut(0.24, spread=0.04).is_strong
    assert not replace(cut(0.3), has_room=False).is_strong


def test_two_tokens() -> None:
    """Of the one other token only a change of three times tells something."""
    found = attnviz.attribute("I love", "toy", target="I")
    assert [verdict and verdict.name for verdict in found.verdicts] == ["cannot tell"] * 2
    translated = attnviz.attribute("I love", "toy-transformer", word="0")
    assert translated.verdicts[0] is not None
    assert translated.verdicts[0].counted is not None
    assert not any(note.code.startswith("row_generates") for note in translated.notes)
