"""Stories told with a model of one's own choice: its own numbers, and plainly where they do not show the story."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import pytest

from attnviz.capture.source import open_source
from attnviz.errors import InputError, ModelError, SelectionError, TooLongError
from attnviz.models.training import measure
from attnviz.models.wholes import TranslationTransformer
from attnviz.stories import WITH_A_MODEL, common, tell
from attnviz.stories.common import words_of
from attnviz.stories.lessons import pairs, reference, word_order
from attnviz.stories.record import Bars, Matrix
from tests.stories.parts import tables, told

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.fixtures.command_line import Result
    from tests.fixtures.zoo import Zoo


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few other sentences, so that tests are quick."""
    monkeypatch.setattr(common, "OWN_SENTENCES", 12)


def by_words(zoo: Zoo, name: str, text: str) -> np.ndarray:
    """The library's own weights, added up for each word by the characters that its tokens stand for."""
    tokenizer, _ = zoo.library(name)
    spans = tokenizer(text, return_offsets_mapping=True)["offset_mapping"]
    (weights,) = zoo.eager(name, text)
    words, at = words_of(text), 0
    groups = []
    for word in words:
        start = text.index(word, at)
        at, spaced = (
            start + len(word),
            text[:start].endswith(" "),
        )  # a token may be the space before a word
        groups.append(
            [i for i, (first, last) in enumerate(spans) if first < at and last > start - spaced]
        )
    rows = np.stack([weights[:, :, group].mean(axis=2) for group in groups], axis=2)
    return np.stack([rows[..., group].sum(axis=-1) for group in groups], axis=-1)


@pytest.mark.parametrize("name", ["distilbert", "llama", "t5", "roberta"])
def test_reference_shows_the_models_own_rows(zoo: Zoo, name: str) -> None:
    """The row of "it" in both sentences, word by word, in a head that other sentences chose."""
    source = zoo.source(name)
    story = reference.tell(source)
    found = re.search(r"(\d+)\.(\d+): “it” looks at", story.title)
    assert found is not None
    head = int(found[1]), int(found[2])
    assert head == reference.best_head(common.looks_of(source, 12)[0], 12)
    table = tables(story)[0]
    for number, text in enumerate((reference.TIRED, reference.WIDE)):
        words = words_of(text)
        row = by_words(zoo, name, text)[(*head, words.index("it"))]
        assert [cells[number + 1] for cells in table.rows] == pytest.approx(row, abs=1e-4)
        assert f"{words[row.argmax()]} ({row.max():.2f})" in story.title or "too (" in story.title
    assert f"Of the heads of {common.name_of(source)}" in told(story)
    assert story.receipt.startswith("verified")


def test_the_shares_are_counted_on_other_sentences(zoo: Zoo) -> None:
    """The head's looks, sentence by sentence, as they are and turned."""
    source = zoo.source("distilbert")
    test = measure.references("test", 12)
    look, *_ = common.looks_of(source, 12)
    looks = reference.looks_from_it(look, test).numpy()
    for number, one in enumerate(test[:3]):
        assert one.reference is not None
        weights = by_words(zoo, "distilbert", common.sentence_text(one))
        assert (looks[..., number] == weights[:, :, one.reference.pronoun].argmax(axis=-1)).all()
    story = reference.tell(source)
    table = tables(story)[1]
    layer, head = map(int, str(table.rows[0][0]).rpartition(" ")[2].split("."))
    nouns = [one.reference.noun for one in test if one.reference]
    others = measure.turn_all(test)
    right = looks[layer, head] == nouns
    turned = reference.looks_from_it(look, others).numpy()[layer, head]
    both = right & (turned == [one.reference.noun for one in others if one.reference])
    assert table.rows[0][1:] == (f"{100 * right.mean():.1f} %", f"{100 * both.mean():.1f} %")
    assert "no more than the best head of random weights" in told(story)
    assert f"{common.name_of(source)} does not show it" in told(story)


@pytest.mark.parametrize("name", ["llama", "toy-decoder"])
def test_a_decoder_cannot_know(zoo: Zoo, name: str) -> None:
    """At "it" it has not read the last word: the same row twice, and the story says so."""
    story = reference.tell(name if name.startswith("toy") else zoo.source(name))
    table = tables(story)[0]
    assert [row[1] for row in table.rows] == pytest.approx([row[2] for row in table.rows], abs=1e-6)
    assert ", and with wide too (" in story.title
    assert "reads from left to right: at “it” it has not read “tired” or “wide”" in told(story)


@pytest.mark.parametrize(
    ("name", "left"), [("distilbert", "rounding"), ("roberta", "rounding"), ("llama", "mask")]
)
def test_word_order_with_positions_and_without(zoo: Zoo, name: str, left: str) -> None:
    """What moves with positions is what the library's weights say; without them a bag of words, but for a mask."""
    story = word_order.tell(zoo.source(name))
    first, second = (by_words(zoo, name, text) for text in word_order.LONG)
    places = word_order.same_words(*map(words_of, word_order.LONG))
    change = first - second[:, :, list(places)][..., list(places)]
    shares = (np.abs(change).sum(axis=-1) + np.abs(change.sum(axis=-1))) / 2
    mean = f"{100 * shares.mean():.1f} %"
    assert f"move {mean} of a row's weight; without positions" in story.title
    *panels, bars = story.picture
    assert isinstance(bars, Bars)
    assert bars.series[1].values == pytest.approx(shares.mean(axis=(0, 1)), abs=1e-4)
    assert ("the model sees a bag of words" in told(story)) == (left == "rounding")
    assert ("its mask tells the order too" in told(story)) == (left == "mask")
    assert ("another token where it stands first" in told(story)) == (name == "roberta")
    assert (max(bars.series[0].values) < 1e-5) == (left == "rounding")
    table = tables(story)[0]
    assert table.rows[1][2] == mean
    for panel, weights in zip(panels, (first, second), strict=True):
        assert isinstance(panel, Matrix)
        layer, head = map(int, panel.title.split()[1].rstrip(":").split("."))
        assert panel.values == pytest.approx(weights[layer, head], abs=1e-4)


@pytest.mark.parametrize("name", ["t5", "bart", "toy-decoder", "toy-transformer"])
def test_positions_that_cannot_be_taken_away(zoo: Zoo, name: str) -> None:
    """Then the story says so, and shows what moves with them."""
    story = word_order.tell(name if name.startswith("toy") else zoo.source(name))
    assert "cannot be taken away from outside" in told(story)
    assert "without" not in story.title
    bars = story.picture[-1]
    assert isinstance(bars, Bars)
    assert [series.name for series in bars.series] == ["positions on"]
    assert story.translated("ko").title.startswith(
        common.name_of(open_source(name)) if "toy" in name else name
    )


def test_other_pairs_are_the_same_words() -> None:
    """What a head is chosen on: never the pair shown, each of the same words, with "not" in the other clause."""
    texts = word_order.other_pairs(10)
    assert len(texts) == 20
    for first, second in zip(texts[::2], texts[1::2], strict=True):
        words = words_of(first), words_of(second)
        assert sorted(words[0]) == sorted(words[1])
        assert words[0] != words[1]
        assert {first, second}.isdisjoint(word_order.LONG)
        for sentence in words:
            place = sentence.index("not")
            assert sentence[place - 1] in {"did", "could"}


@pytest.mark.parametrize("story", ["reference", "word-order"])
def test_models_that_cannot_tell_it(zoo: Zoo, story: str) -> None:
    """No self-attention, none of its words, too few positions: refused by name."""
    with pytest.raises(
        ModelError,
        match="toy-seq2seq has no self-attention, which this story is about: it has cross",
    ):
        tell(story, model="toy-seq2seq")
    if story == "word-order":
        with pytest.raises(
            TooLongError, match=r"a sentence of this story has more tokens than .*gpt2 takes"
        ):
            tell(story, model=zoo.source("gpt2"))


def test_a_model_that_knows_no_word(zoo: Zoo) -> None:
    """Its vocabulary makes one unknown token of every word."""
    source = zoo.source("distilbert")
    with pytest.raises(InputError, match="knows none of the words of “🙂 🙃”"):
        list(common.read_words(source, ["🙂 🙃"]))
    (half,) = common.read_words(source, ["🙂 love"])
    assert "read as unknown words: 🙂" in " ".join(common.notes_of([half]))


def test_a_home_built_translator_translates_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its encoder's attention needs no translation: not of the model, of its random weights, or at one place."""
    monkeypatch.delattr(TranslationTransformer, "translate")
    source = open_source("toy-transformer")
    for one in (source, source.untrained(), common.AtOnePlace(source)):
        (record,) = common.read_words(one, ["She is eating a green apple"])
        assert [token.text for token in record.query_tokens][:2] == ["She", "is"]


def test_the_command(typed: Callable[..., Result], refused: Callable[..., tuple[int, str]]) -> None:
    """`-m` tells the story with that model, names the picture after it, and is refused where it makes no sense."""
    result = typed("demo", "word-order", "-m", "toy-decoder")
    assert (result.status, result.errors) == (0, "wrote outputs/demo-word-order.png\n")
    assert result.output.startswith("toy-decoder: two orders of the same words move")
    assert (
        typed("demo", "word-order", "-m", "toy", "-o", "a.json").output
        == typed("demo", "word-order", "-o", "a.json").output
    )
    status, line = refused("demo", "library", "-m", "toy")
    assert status == 2
    assert (
        f"the demo library is told with its own models: another model goes with {', '.join(WITH_A_MODEL)}"
        in line
    )
    status, line = refused("demo", "-m", "toy")
    assert "give the name of a demo" in line
    status, line = refused("demo", "reference", "-m", "toy-seq2seq")
    assert status == 1
    assert "toy-seq2seq has no self-attention" in line
    with pytest.raises(SelectionError, match="the demo mask is told with its own models"):
        tell("mask", model="toy")


@pytest.mark.parametrize("name", ["distilbert", "llama"])
def test_pairs_are_counted_in_the_models_own_weights(zoo: Zoo, name: str) -> None:
    """Heads chosen on validation sentences and counted on test sentences, as the library's weights say."""
    source = zoo.source(name)
    story = pairs.tell(source)
    table = tables(story)[0]
    ends = pairs.FROM_END
    for row, (looker, other) in zip(table.rows, pairs.WAYS, strict=True):
        layer, head = map(int, str(row[1]).split("."))
        hits = []
        for one in pairs.sentences("test", 12):
            weights = by_words(zoo, name, common.sentence_text(one))[layer, head]
            hits.append(weights[-ends[looker]].argmax() == len(weights) - ends[other])
        assert row[2] == f"{100 * np.mean(hits):.1f} %"
        weights = by_words(zoo, name, pairs.SENTENCE)[layer, head]
        words = words_of(pairs.SENTENCE)
        assert row[5] == pytest.approx(weights[words.index(looker), words.index(other)], abs=1e-4)
    assert ("three of the six ways are closed" in told(story)) == (name == "llama")
    assert "95 % intervals" in told(story)
    assert story.title.startswith(
        f"{common.name_of(source)}, how often a head links them: eating-apple"
    )
    assert len(story.title) <= 120
    assert story.translated("ko").title != story.title
