"""Observers: all weights, pooled pictures, strongest links, running sums."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch

from attnviz.capture import observers, stream
from attnviz.capture.attend import attend, attend_all
from attnviz.capture.observers import Block, Observer
from attnviz.capture.sources import huggingface
from attnviz.errors import InputError, SelectionError, SettingsError
from attnviz.heatmaps.words import hide_special, merge_words
from attnviz.text.notes import sentence

if TYPE_CHECKING:
    from tests.fixtures.zoo import Zoo

TEXT = "The animal didn't cross the street because it was too tired"
"""15 tokens for DistilBERT's vocabulary: 3 blocks of 7 rows, the last of which is not full."""


def test_their_errors_are_theirs(zoo: Zoo) -> None:
    """An error that an observer raises arrives as it was raised; the next run is as any other."""

    class Faulty(Observer):
        def observe(self, block: Block) -> None:
            raise ValueError(f"layer {block.layer} is one too many")

    source = zoo.source("distilbert")
    with pytest.raises(ValueError, match=r"^layer 0 is one too many$"):
        source.stream(source.encode([TEXT]), [Faulty()])
    assert attend("Yes!", source).weights.shape == (5, 3, 4, 4)


def test_memory_counts_what_is_kept() -> None:
    """Weights that do not fit are pooled; layers and heads that are not kept take no room."""
    memory = attend(TEXT, "toy-random").weights.nbytes // 2
    assert attend(TEXT, "toy-random", memory=memory).cell == 2
    assert attend(TEXT, "toy-random", layers=[1], memory=memory).cell == 1
    assert attend(TEXT, "toy-random", heads=[0, 2], memory=memory).cell == 1
    with pytest.raises(
        InputError, match=r"^20 bytes of memory cannot hold 4 heads of 2 layers: give at least 32"
    ):
        attend(TEXT, "toy-random", memory=20)
    with pytest.raises(InputError, match="4 heads of 1 layer:"):
        attend(TEXT, "toy-random", memory=0)


def pooled(weights: np.ndarray, size: int) -> np.ndarray:
    """Groups of so many tokens, worked out from all weights: to one the sum over its keys, from it the mean."""
    starts = [*range(0, weights.shape[2], size)], [*range(0, weights.shape[3], size)]
    sums = np.add.reduceat(
        np.add.reduceat(weights.astype(np.float64), starts[0], axis=2), starts[1], axis=3
    )
    return sums / np.diff([*starts[0], weights.shape[2]])[:, None]


@pytest.mark.parametrize("name", ["distilbert", "gpt2", "gpt_oss", "gemma2", "t5"])
@pytest.mark.parametrize(("fused", "block_bytes"), [(False, 2**26), (True, 700)])
def test_pooled_records_are_those_of_all_weights(
    zoo: Zoo, name: str, fused: bool, block_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the blocks, however it is padded: a cell is what all its weights come to, and the record says so."""
    source = zoo.source(name)
    if fused:  # as it is for long inputs
        monkeypatch.setattr(huggingface, "EAGER_UP_TO", 0)
    wholes = attend_all(zoo.sentences, source)
    monkeypatch.setattr(stream, "BLOCK_BYTES", block_bytes)
    records = attend_all(zoo.sentences, source, memory=wholes[0].weights.nbytes // 4)
    for whole, record in zip(wholes, records, strict=True):
        size = records[0].cell
        assert record.cell == size > 1
        np.testing.assert_allclose(record.weights, pooled(whole.weights, size), rtol=0, atol=1e-6)
        assert (record.kind, record.receipt, record.layers) == (
            whole.kind,
            record.receipt,
            whole.layers,
        )
        first, *_, last = (token.text for token in whole.key_tokens[:size])
        assert record.key_tokens[0].text == f"{first}…{last}"


@pytest.mark.parametrize("name", ["distilbert", "gpt2", "gpt_oss", "t5"])
@pytest.mark.parametrize("block_bytes", [5000, 2**26])
def test_what_stays_exact_of_pooled_records(
    zoo: Zoo, name: str, block_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The strongest links of each row and the statistics of each head are those of all weights; so are the tokens."""
    monkeypatch.setattr(observers, "GROUP", 8)
    source = zoo.source(name)
    wholes = attend_all([TEXT * 4, TEXT], source)
    monkeypatch.setattr(stream, "BLOCK_BYTES", block_bytes)
    for whole, record in zip(
        wholes,
        attend_all([TEXT * 4, TEXT], source, memory=wholes[0].weights.nbytes // 2),
        strict=True,
    ):
        found, weights = record.exact, whole.weights.astype(np.float64)
        assert found is not None
        assert (found.query_tokens, found.key_tokens) == (whole.query_tokens, whole.key_tokens)
        n_links = found.link_keys.shape[-1]
        assert 1 <= n_links <= 8
        np.testing.assert_allclose(
            found.link_weights, -np.sort(-weights, axis=-1)[..., :n_links], rtol=0, atol=1e-6
        )
        linked = np.take_along_axis(weights, found.link_keys.astype(np.int64), axis=-1)
        np.testing.assert_allclose(linked, found.link_weights, rtol=0, atol=1e-6)
        queries, keys = np.indices(weights.shape[2:])
        logs = np.log(weights, where=weights > 0, out=np.zeros_like(weights))
        wanted = {
            "entropy": -weights * logs,
            "first": weights * (keys == 0),
            "self": weights * (keys == queries),
            "previous": weights * (keys == queries - 1),
            "next": weights * (keys == queries + 1),
            "distance": weights * abs(queries - keys),
        }
        if record.kind == "cross":
            wanted = {one: wanted[one] for one in ("entropy", "first")}
        assert tuple(found.statistics) == tuple(wanted)
        for statistic, values in wanted.items():
            means = values.sum(axis=-1).mean(axis=-1)
            np.testing.assert_allclose(found.statistics[statistic], means, rtol=1e-5, atol=1e-6)
        for layer, head in np.ndindex(weights.shape[:2]):
            links = record.links(layer, head)
            best = whole.links(layer, head, len(links))
            np.testing.assert_allclose(
                [one[2] for one in links], [one[2] for one in best], atol=1e-6
            )
        part = record.select(heads=[1]).exact
        assert part is not None
        np.testing.assert_array_equal(part.link_keys[:, 0], found.link_keys[:, 1])
        assert part.statistics["entropy"][0] == found.statistics["entropy"][0][1:2]


def test_links_are_the_strongest(zoo: Zoo) -> None:
    """Each to another key, from the strongest; none from, to or between special tokens, none to itself."""
    record = attend(TEXT, zoo.source("distilbert"))
    weights = record[1, 2].copy()
    np.fill_diagonal(weights, 0)
    weights[[0, -1]] = weights[:, [0, -1]] = 0
    keys = np.argsort(-weights.max(axis=0))[:4]
    assert record.links(1, 2, 4) == [
        (int(weights[:, key].argmax()), int(key), weights[:, key].max()) for key in keys
    ]
    part = attend(TEXT, zoo.source("distilbert"), rows=slice(3, 9), memory=2000)
    assert part.cell > 1
    assert part.exact is not None
    assert len(part.exact.query_tokens) == 6
    few = attend(TEXT, zoo.source("distilbert"), keys=slice(1, 9), memory=2000).exact
    assert few is not None
    assert not few.statistics  # of a part of each row there is no entropy


@pytest.mark.parametrize("name", ["distilbert", "gpt2", "t5"])
def test_a_part_is_that_of_the_whole(zoo: Zoo, name: str) -> None:
    """Rows and keys that are chosen are kept as they are, as those of the whole record are; the note says which."""
    source = zoo.source(name)
    rows, keys = slice(2, 5), slice(-4, None)
    whole, part = attend(TEXT, source), attend(TEXT, source, rows=rows, keys=keys)
    assert part == whole.part(rows, keys)
    assert part.weights.shape[2:] == (3, 4)
    assert "queries 2 to 4 of" in sentence(part.notes[-1])
    assert part.short_rows[-1] == "truncated"
    assert (
        attend(TEXT, source, rows=rows).part(None, keys).weights.tolist() == part.weights.tolist()
    )
    with pytest.raises(
        SelectionError, match=r"^there is no query token there: there are [0-9]+, counted from 0$"
    ):
        attend(TEXT, source, rows=slice(900, 1000))


def test_nothing_is_taken_from_groups_of_tokens(zoo: Zoo) -> None:
    """Of a pooled record no words are merged, no special tokens are hidden and no part is taken: it says why."""
    record = attend(TEXT, zoo.source("distilbert"), memory=1000)
    for take in (merge_words, hide_special, lambda one: one.part(slice(1), None)):
        with pytest.raises(
            SelectionError, match=r"^this record is pooled: it holds groups of tokens, and no token"
        ):
            take(record)
    assert "each" in repr(record)


@pytest.mark.parametrize(
    ("name", "plain"), [("llama", True), ("distilbert", True), ("bart", True), ("gemma2", False)]
)
def test_vectors_give_the_weights(zoo: Zoo, name: str, *, plain: bool) -> None:
    """softmax(query key^T * scaling) is the weights, in a batch with padding too; a soft cap makes other ones."""
    source = zoo.source(name)
    alone = attend("I love all you", source)
    for record in (alone, attend_all([TEXT, "I love all you"], source)[1]):
        vectors = record.vectors
        assert vectors is not None
        scores = (
            vectors.query
            @ vectors.key.swapaxes(2, 3)
            * np.reshape(vectors.scaling, (*record.weights.shape[:2], 1, 1))
        )
        if record.kind == "decoder":
            scores[..., np.triu(np.ones(scores.shape[2:], dtype=bool), 1)] = -np.inf
        weights = torch.softmax(torch.from_numpy(scores), dim=-1).numpy()
        assert np.allclose(weights, record.weights, rtol=0, atol=1e-5) == plain
        assert vectors.value.shape[:3] == (*record.weights.shape[:2], len(record.key_tokens))
    large = attend(TEXT, source, vectors=True).vectors
    assert large is not None
    np.testing.assert_array_equal(large.query, attend(TEXT, source).vectors.query)  # type: ignore[union-attr]
    kept = attend("I love all you", source, heads=[1]).vectors
    assert kept is not None
    np.testing.assert_allclose(kept.key[:, 0], alone.select(heads=[1]).vectors.key[:, 0], atol=1e-6)  # type: ignore[union-attr]


def test_vectors_of_any_size() -> None:
    """Kept on request, of one text or several, and counted against the memory together with the weights."""
    text = "the animal crossed the street " * 20
    assert attend(text, "toy").vectors is None
    record = attend(text, "toy", vectors=True)
    assert record.vectors is not None
    arrays = (record.weights, record.vectors.query, record.vectors.key, record.vectors.value)
    needed = sum(array.nbytes for array in arrays)
    assert attend(text, "toy", vectors=True, memory=needed).vectors is not None
    with pytest.raises(
        InputError, match=f"take {needed:,} bytes, and the memory is {needed - 1:,}"
    ):
        attend(text, "toy", vectors=True, memory=needed - 1)
    with pytest.raises(InputError, match=f"take {needed:,} bytes"):
        attend(text, "toy", vectors=True, memory=50_000)  # the weights alone would be pooled
    both = attend_all([text, "I love all you"], "toy", vectors=True)
    np.testing.assert_allclose(both[0].vectors.query, record.vectors.query, atol=1e-5)  # type: ignore[union-attr]
    assert both[1].vectors.key.shape == (3, 6, 4, 8)  # type: ignore[union-attr]
    assert attend(text, "toy", vectors=True, layers=[-1]).vectors.value.shape[0] == 1  # type: ignore[union-attr]
    with pytest.raises(SettingsError, match="whole sentences"):
        attend(text, "toy", vectors=True, rows=slice(0, 3))
    record.page()  # without the large vectors
