"""Word order: without positions attention reads a bag of words, with positions a sentence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice

import numpy as np
import torch
from torch import Tensor

from attnviz.attention import Attention
from attnviz.capture.attend import attend_all
from attnviz.models.language import splits
from attnviz.models.language_models import LanguageEncoder
from attnviz.models.registry import TOY
from attnviz.stories import common
from attnviz.stories.record import Bars, Series, Story, Table
from attnviz.text.messages import _

SHORT = ("There is a prince", "Is there a prince")
LONG = (
    "Although I did not get 95 in last TOEFL, I could get in the Ph.D program.",
    "Although I did get 95 in last TOEFL, I could not get in the Ph.D program.",
)
N_PAIRS = 25  # other pairs like the long one, for choosing the head in the picture


def same_words(first: Sequence[str], second: Sequence[str]) -> list[int]:
    """Return the position in the second sentence of each word of the first; repeated words are paired in order."""
    places: dict[str, list[int]] = {}
    for place, word in enumerate(second):
        places.setdefault(word.lower(), []).append(place)
    return [places[word.lower()].pop(0) for word in first]


@torch.inference_mode()
def vector_changes(
    model: LanguageEncoder, ids: Tensor, places: Sequence[int], *, positions: bool
) -> tuple[float, list[float]]:
    """Compare the vectors of each word in two sentences [2, word] that have the same words in another order.

    Returns the largest difference of a number, and for each word the norm of the difference divided by that of the
    vector.
    """
    vectors = model(ids, positions=positions).vectors
    difference = vectors[0] - vectors[1, places]
    shares = difference.norm(dim=-1) / vectors[0].norm(dim=-1)
    return float(difference.abs().max()), shares.tolist()


def moved_shares(records: Iterable[Attention]) -> list[np.ndarray]:
    """Return, for each pair of records, the share of each row's weight that moves to other words [layer, head, query].

    If a row sums to less than 1, the rest is on special tokens, which count as one more word.
    """
    in_order, shares = list(records), []
    for first, second in zip(in_order[::2], in_order[1::2], strict=True):
        places = same_words(common.words_of(first.text), common.words_of(second.text))
        change = first.weights - second.weights[:, :, places][..., places]
        # The total variation distance: what one word loses, another gains, so the sum is halved.
        shares.append((np.abs(change).sum(axis=-1) + np.abs(change.sum(axis=-1))) / 2)
    return shares


def other_pairs(n: int = N_PAIRS) -> list[str]:
    """Return other sentences like the long pair, each followed by a copy with "not" in the other clause."""
    texts: list[str] = []
    for gold in islice(splits.sentences("validation", kind="although"), n):
        words = [word for word in gold.words if word != "not"]
        is_first = "not" in gold.words[: gold.words.index(",")]
        place = words.index("could" if is_first else "did") + 1
        swapped = replace(gold, words=(*words[:place], "not", *words[place:]))
        texts += [common.sentence_text(gold), common.sentence_text(swapped)]
    return texts


def build_story() -> Story:
    """Read two pairs of sentences; both sentences of a pair have the same words in different orders."""
    records = attend_all([*SHORT, *LONG], TOY)
    _short_shares, shares = moved_shares(records)
    other_shares = moved_shares(attend_all(other_pairs(), TOY))
    head = common.largest(
        np.mean([share.mean(axis=-1, keepdims=True) for share in other_shares], axis=0)
    )
    patterns = [record.weights for record in records[-2:]]
    words = [common.words_of(text) for text in LONG]
    largest = float(max(pattern[head].max() for pattern in patterns))
    title, parts, bars = _vectors_of_toy()
    return Story(
        title=title,
        receipt=common.receipt_of(records[-2]),
        parts=[
            _(
                "Attention compares every word with every other, and nothing in softmax(QK^T / "
                "sqrt(d_k)) V says which came first. Only the positions, added to the words' vectors, "
                "do. Here {name} reads the same words in two orders: “{short}” and “{short_turned}”, "
                "then “{long}” and “{long_turned}”"
            ).format(
                name=TOY, short=SHORT[0], short_turned=SHORT[1], long=LONG[0], long_turned=LONG[1]
            ),
            *parts,
            _(
                "On average {share} of a row's weight moves to other words in the long pair. The "
                "picture shows {head}, whose rows moved most in {n} other pairs of this kind."
            ).format(share=common.percent(shares.mean()), head=common.head_name(head), n=N_PAIRS),
        ],
        main=2,
        picture=[
            common.weights_panel(
                _("First sentence: did not get"), patterns[0][head], words[0], largest
            ),
            common.weights_panel(
                _("Second sentence: could not get"), patterns[1][head], words[1], largest
            ),
            bars,
        ],
        views=[
            common.row_view(record, head, words[i].index("not"), i)
            for i, record in enumerate(records[-2:])
        ],
    )


def _vectors_of_toy() -> tuple[str, list[str | Table], Bars]:
    """Compare the vectors of toy with and without positions.

    Returns the title of the story, its parts about the vectors, and a chart of how far each vector moves.
    """
    card, model = common.open_model(TOY, LanguageEncoder)
    model = model.double()  # so that rounding is far below the differences
    rows = []
    for name, pair in ((_("short pair"), SHORT), (_("long pair"), LONG)):
        words = [common.words_of(text) for text in pair]
        ids, places = common.encode(card.source, words), same_words(*words)
        change_without, shares_without = vector_changes(model, ids, places, positions=False)
        change_with, shares = vector_changes(model, ids, places, positions=True)
        rows.append((name, change_without, change_with))
    keeps_place = np.array([i == place for i, place in enumerate(places)])
    title = _(
        "Without positions, word order makes no difference to a word's vector: "
        "{without} in two orders; with them, {with_positions:.3f}"
    ).format(
        without=common.small(max(row[1] for row in rows)),
        with_positions=max(row[2] for row in rows),
    )
    parts: list[str | Table] = [
        Table(
            _("Largest difference between a word's vectors in the two sentences"),
            [_("sentences"), _("without positions"), _("with positions")],
            [
                (name, common.small(change_without), common.small(change_with))
                for name, change_without, change_with in rows
            ],
        ),
        _(
            "Without positions each word has the same vector in both orders, up to rounding (float64 "
            "keeps about 16 digits): the model sees a bag of words. With positions, the words of the "
            "long pair that change their place move by {moved} of their vector's length on average. "
            "Those that keep it move by {stayed}, only because of the words around them."
        ).format(
            moved=common.percent(np.mean(np.array(shares)[~keeps_place])),
            stayed=common.percent(np.mean(np.array(shares)[keeps_place])),
        ),
    ]
    bars = Bars(
        _("How far each word's vector moves between the two sentences"),
        words[0],
        [Series(_("without positions"), shares_without), Series(_("with positions"), shares)],
        _("share of the vector's length"),
    )
    return title, parts, bars
