"""Stories told with a model of one's own choice: its own numbers, whether they show the story or not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from attnviz.capture.source import open_source
from attnviz.errors import InputError, ModelError, SelectionError, TooLongError
from attnviz.models.language_models import TranslationTransformer
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
    at, groups = 0, []
    for word in words_of(text):
        start = text.index(word, at)
        spaced = text[:start].endswith(" ")  # a token may be the space before a word
        at = start + len(word)
        groups.append(
            [i for i, (first, last) in enumerate(spans) if first < at and last > start - spaced]
        )
    rows = np.stack([weights[:, :, group].mean(axis=2) for group in groups], axis=2)
    return np.stack([rows[..., group].sum(axis=-1) for group in groups], axis=-1)


@pytest.mark.parametrize("name", ["distilbert", "llama"])
def test_reference_shows_the_models_own_rows(zoo: Zoo, name: str) -> None:
    """The row of "it" in both sentences, word by word; a decoder has the same row twice."""
    source = zoo.source(name)
    story = reference.build_story(source)
    head = reference.best_head(common.top_keys(source, 12)[0], 12)
    assert story.title.endswith(f"{common.short_name(source)}, layer {head[0]}, head {head[1]}")
    table = tables(story)[0]
    for i, text in enumerate((reference.TIRED, reference.WIDE)):
        row = by_words(zoo, name, text)[(*head, reference.IT)]
        assert [cells[i + 1] for cells in table.rows] == pytest.approx(row, abs=1e-4)
        assert f"{words_of(text)[row.argmax()]} ({row.max():.2f})" in story.title
    is_decoder = name == "llama"
    assert ("reads from left to right" in told(story)) == is_decoder
    first, second = (np.array([row[i] for row in table.rows], dtype=float) for i in (1, 2))
    assert np.allclose(first, second, atol=1e-6) == is_decoder
    assert story.receipt.startswith("verified")


@pytest.mark.parametrize("name", ["roberta", "bart"])
def test_word_order_with_positions(zoo: Zoo, name: str) -> None:
    """The weight that moves, from the library's own weights."""
    source = zoo.source(name)
    story = word_order.build_story(source)
    first, second = (by_words(zoo, name, text) for text in word_order.LONG)
    places = word_order.same_words(*map(words_of, word_order.LONG))
    change = first - second[:, :, places][..., places]
    shares = (np.abs(change).sum(axis=-1) + np.abs(change.sum(axis=-1))) / 2
    assert story.title.endswith(f"words move {100 * shares.mean():.1f}% of a row's weight")
    *panels, bars = story.picture
    assert isinstance(bars, Bars)
    assert bars.series[0].values == pytest.approx(shares.mean(axis=(0, 1)), abs=1e-4)
    head = story.views[0].head
    assert head is not None
    for panel, weights in zip(panels, (first, second), strict=True):
        assert isinstance(panel, Matrix)
        assert panel.values == pytest.approx(weights[head], abs=1e-4)
    assert "shown with toy" in told(story)


def test_pairs_are_counted_in_the_models_own_weights(zoo: Zoo) -> None:
    """Heads chosen on validation sentences and counted on test sentences, as the library's weights say."""
    name = "distilbert"
    source = zoo.source(name)
    story = pairs.build_story(source)
    for row, (word, other) in zip(tables(story)[0].rows, pairs.WAYS, strict=True):
        layer, head = map(int, str(row[1]).split("."))
        hits = []
        for one in pairs.sentences("test", 12):
            weights = by_words(zoo, name, common.sentence_text(one))[layer, head]
            target = len(weights) - pairs.FROM_END[other]
            hits.append(weights[-pairs.FROM_END[word]].argmax() == target)
        assert row[2] == f"{100 * np.mean(hits):.1f}%"
        weights = by_words(zoo, name, pairs.SENTENCE)[layer, head]
        expected = weights[pairs.WORDS.index(word), pairs.WORDS.index(other)]
        assert row[6] == pytest.approx(expected, abs=1e-4)
    assert story.title.startswith(f"A head of {common.short_name(source)} links ")
    assert story.translated("ko").title != story.title


def test_models_that_cannot_tell_it(zoo: Zoo) -> None:
    """No self-attention, or too few positions."""
    with pytest.raises(ModelError, match="toy-seq2seq has no self-attention, which this story"):
        tell("reference", model="toy-seq2seq")
    with pytest.raises(TooLongError, match=r"has more tokens than .*gpt2 takes"):
        tell("word-order", model=zoo.source("gpt2"))


def test_unknown_words(zoo: Zoo) -> None:
    """All of them are refused; a few are named in a note."""
    source = zoo.source("distilbert")
    with pytest.raises(InputError, match="knows none of the words of “🙂 🙃”"):
        list(common.read_words(source, ["🙂 🙃"]))
    (half,) = common.read_words(source, ["🙂 love"])
    assert "Read as unknown words: 🙂" in " ".join(common.notes_of([half]))


def test_a_home_built_translator_translates_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its encoder's attention needs no translation, trained or not."""
    monkeypatch.delattr(TranslationTransformer, "translate")
    source = open_source("toy-transformer")
    for one in (source, source.untrained()):
        (record,) = common.read_words(one, ["She is eating a green apple"])
        assert [token.text for token in record.query_tokens][:2] == ["She", "is"]


def test_the_command(typed: Callable[..., Result], refused: Callable[..., tuple[int, str]]) -> None:
    """`-m` tells the story with that model, and is refused where it makes no sense."""
    result = typed("demo", "word-order", "-m", "toy-decoder")
    assert (result.status, result.errors) == (0, "wrote outputs/demo-word-order.png\n")
    assert result.output.startswith("toy-decoder: two orders of the same words move")
    own, toy = (typed("demo", "word-order", *more, "-o", "a.json") for more in (["-m", "toy"], []))
    assert own.output == toy.output
    status, line = refused("demo", "library", "-m", "toy")
    assert status == 2
    assert f"another model goes with {', '.join(WITH_A_MODEL)}" in line
    status, line = refused("demo", "reference", "-m", "toy-seq2seq")
    assert status == 1
    assert "toy-seq2seq has no self-attention" in line
    with pytest.raises(SelectionError, match="the demo mask is told with its own models"):
        tell("mask", model="toy")
