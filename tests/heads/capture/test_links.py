"""Which links heads find: by hand, on the real model against numpy, whatever the batches, and by chance."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from attnviz.capture.source import open_source
from attnviz.heads import relations
from attnviz.heads.capture.measure import LinkFinder
from attnviz.heads.relations import candidates
from attnviz.heads.settings import SurveySettings
from attnviz.heads.words import note_words
from attnviz.models.language.splits import corpus_lines
from attnviz.storage.corpora.corpus import read_corpus
from attnviz.text.corpus import Annotation, CorpusLine, Link
from tests.heads.surveys import survey_model

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.fixtures.zoo import Zoo

TREEBANK = Path(__file__).parents[3] / "sample_inputs" / "treebank.conllu"
QUICK = SurveySettings(controls=40)


def words_by_hand(weights: np.ndarray, owner: Sequence[int | None], n_words: int) -> np.ndarray:
    """Attention between words, from its definition: the sum over pieces looked at, the mean over pieces that look."""
    made = np.zeros((*weights.shape[:2], n_words, n_words))
    for one in range(n_words):
        rows = [i for i, word in enumerate(owner) if word == one]
        for other in range(n_words):
            keys = [j for j, word in enumerate(owner) if word == other]
            if rows and keys and one != other:
                made[:, :, one, other] = weights[:, :, rows][..., keys].sum(axis=-1).mean(axis=-1)
    return made


class TestRealModel:
    """On the real weights, links are those that numpy finds in the library's own attention."""

    def test_against_numpy(self, zoo: Zoo) -> None:
        lines = [line for line in read_corpus(TREEBANK) if isinstance(line, CorpusLine)][:24]
        given = [line.annotated for line in lines]
        texts = [line.text for line in lines]
        source = zoo.source("real")
        batch = source.encode(texts)
        observer = LinkFinder(given)
        source.stream(batch, [observer])
        n_checked = 0
        for text, one, found, weights in zip(
            texts, given, observer.result(), zoo.eager("real", *texts), strict=True
        ):
            assert one is not None
            owner, shared = owners(zoo.library("real")[0], text, one)
            words = words_by_hand(weights.astype(np.float64), owner, len(one.words))
            kept = [link for link in one.links if not {link.query, link.key} & shared]
            assert [link.relation for link in kept] == list(found.names)
            assert len(kept) + len(found.lost) == len(one.links)
            for number, link in enumerate(kept):
                for way, looks in enumerate((words, words.swapaxes(2, 3))):
                    row = looks[:, :, link.query]  # (layer, head, word)
                    ranked = np.sort(row, axis=-1)
                    clear = ranked[..., -1] - ranked[..., -2] > 1e-6
                    right = row.argmax(axis=-1) == link.key
                    assert np.array_equal(found.hits[number, way][clear], right[clear])
                    n_checked += int(clear.sum())
        assert n_checked > 20_000


def owners(tokenizer: Any, text: str, given: Annotation) -> tuple[list[int | None], set[int]]:
    """Of each token the first of the words that it shares, and the words that are not alone in their tokens."""
    offsets = tokenizer(text, return_offsets_mapping=True)["offset_mapping"]
    covers = [
        {w for w, (a, b) in enumerate(given.words) if any(a <= c < b for c in range(*span))}
        for span in offsets
    ]
    groups = [set(one) for one in covers if one]
    for _ in groups:  # until no more can join
        groups = [set().union(*(other for other in groups if one & other)) for one in groups]
    group_of = {word: group for group in groups for word in group}
    owner = [min(group_of[min(one)]) if one else None for one in covers]
    alone = {word for word, group in group_of.items() if len(group) == 1}
    return owner, set(range(len(given.words))) - alone


@pytest.mark.usefixtures("whole_corpora")
class TestHomeBuilt:
    """The heads of the trained models that are known to exist are found and named without being told."""

    def test_a_causal_model_finds_nothing_ahead(self) -> None:
        """Links to a later word cannot be found by looking, and count all the same."""
        found = survey_model(ahead(corpus_lines(60)), open_source("toy-decoder"), QUICK)
        assert found.relations is not None
        hits = np.array([one.hits[:, 0] for one in found.relations.by_name.values()])
        assert not hits[:, :, relations.FORWARD].any()
        assert hits[:, :, relations.REVERSE].any()

    def test_what_is_said_has_no_relations(self) -> None:
        """Attention to or from words that the model itself says is between others than those annotated."""
        found = survey_model(corpus_lines(6, kind="copula"), open_source("toy-transformer"), QUICK)
        assert found.kind == "cross"
        assert found.relations is not None
        assert candidates(found.relations, None, different=6) == {}
        (note,) = relations.notes(found.relations)
        assert note_words(note).endswith(": 6.")
        assert found.linked == {}


def ahead(lines: Sequence[CorpusLine]) -> list[CorpusLine]:
    """Turn links around: from the earlier word to the later one."""
    turned = []
    for line in lines:
        assert line.annotated is not None
        links = tuple(
            Link(query=link.key, key=link.query, relation=link.relation)
            for link in line.annotated.links
        )
        turned.append(replace(line, annotated=replace(line.annotated, links=links)))
    return turned
