"""Word order: without positions attention sees a bag of words, with them a sentence."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice

import numpy as np
import torch
from torch import Tensor, nn

from attnviz.attention import Attention
from attnviz.capture.attend import attend_all
from attnviz.capture.source import Model, open_source
from attnviz.capture.sources import Source
from attnviz.models.language import splits
from attnviz.models.wholes import LanguageEncoder
from attnviz.stories import common
from attnviz.stories.common import LEAST, percent, read_words, receipt_of, small, words_of
from attnviz.stories.record import Bars, Series, Story, StoryView, Table
from attnviz.text.messages import Phrase, _

SHORT = ("There is a prince", "Is there a prince")
LONG = (
    "Although I did not get 95 in last TOEFL, I could get in the Ph.D program.",
    "Although I did get 95 in last TOEFL, I could not get in the Ph.D program.",
)
TOY = "toy"
OTHERS = 25  # other pairs as the long one, on which the head that is shown is chosen
SHOWN = 5  # how many rows a table of the largest differences has
TITLE_OF_ANOTHER = _("{name}: two orders of the same words move {mean} of a row's weight{rest}")
CANNOT = _(
    "The positions of {name} cannot be taken away from outside; `attnviz demo word-order` shows "
    "toy without."
)
OTHER_TOKEN = _(
    "(In the short pair a word is another token where it stands first, with a capital, so its "
    "rows differ for that reason too.)"
)
BAG_OF_WORDS = _(
    "With every word at position 0 the rows are the same in both orders (largest share moved "
    "{most}: rounding): the model sees a bag of words. {other}"
)
MASK = _("its mask tells the order too, since a word sees only those before it.")
STILL_MOVES = _(
    "With every word at position 0 rows still move, by up to {most} of their weight: {why}"
)
MOVES = _("share of a row's weight that moves to other words, mean over heads and rows")
TITLE = _(
    "the same words in two orders: their vectors differ by {off} without positions, by {on} with "
    "them"
)
RECEIPT = _(
    "the patterns: {seen}; the vectors: the model called directly in float64, with positions and "
    "without, for which there is no receipt"
)
INTRODUCTION = _(
    "Attention compares every word with every other, and nothing in softmax(QK^T / sqrt(d_k)) V "
    "says which came first. Only the positions, added to the words' vectors, can tell. So {name} "
    "reads the same words in two orders, with its positions and without. The short pair is "
    "“{short}” and “{short_turned}”; the long pair is “{long}” and “{long_turned}”"
)
DIFFERENCES = _(
    "largest difference between a word's vectors in the first and the second sentence of a pair"
)
EXACTNESS = _(
    "Without positions each word has the same vector in both orders, to within {without}: the "
    "same numbers, added in another order and rounded on the way (float64 holds about 16 digits). "
    "Computed so that rounding cannot depend on a word's place (each projection number by number, "
    "each sum over the words rounded only once), {left}"
)
POSITIONS = _(
    "The sentences of the long pair mean the opposite with the same {n} words. The bars show how "
    "far each word's vector moves between them, as a share of its length. With positions on, "
    "“{most_word}” (word {most_place}) moves most, by {most_share}, and “{least_word}” (word "
    "{least_place}) least, by {least_share}. The {n_go} words that stand at another place move by "
    "{gone} on average; the {n_stay} that stay where they are, by {stayed}, only because of what "
    "stands around them."
)
ROWS_TEXT = _("the attention rows that differ most, with positions (places count from 0)")
MOST_MOVED = _(
    "On average {mean} of a row's weight moves to other words. The picture shows {head} in both "
    "sentences, here {most}: in {others} other such pairs its rows moved most. {rows}"
)
VIEWS = _("In head {head}, “{word}” at place {place} looks most at “{at}” (places count from 0).")
PAIRS = (_("short pair: first / second sentence"), _("long pair: first / second sentence"))


def same_words(first: Sequence[str], second: Sequence[str]) -> tuple[int, ...]:
    """Where each word of the first sentence stands in the second; a word that comes twice is paired in order."""
    left: dict[str, list[int]] = {}
    for place, word in enumerate(second):
        left.setdefault(word.lower(), []).append(place)
    return tuple(left[word.lower()].pop(0) for word in first)


def summed_once(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None
) -> tuple[Tensor, None]:
    """Attention whose sums over the keys are rounded only once (`math.fsum`), whatever the order of the keys.

    It is for sentences without padding: the mask hides nothing.
    """
    del mask
    # (B, H, Q, K)
    scores = (query[..., None, :] * key[..., None, :, :]).sum(dim=-1) / query.shape[-1] ** 0.5
    exponentials = (scores - scores.amax(dim=-1, keepdim=True)).exp()  # (B, H, Q, K)
    total = _fsum(exponentials)  # (B, H, Q)
    # (B, H, Q, d, K)
    products = exponentials[..., None, :] * value.transpose(-2, -1)[..., None, :, :]
    return _fsum(products) / total[..., None], None  # (B, H, Q, d)


@contextmanager
def placeless(model: nn.Module) -> Iterator[None]:
    """Within it every projection is computed number by number: fast matrix products round by the place of a row."""

    def alone(module: nn.Module, given: tuple[Tensor], _out: Tensor) -> Tensor:
        weight, bias = module.get_parameter("weight"), module.get_parameter("bias")
        # (B, T, 1, in) x (out, in) -> (B, T, out)
        return (given[0][..., None, :] * weight).sum(dim=-1) + bias

    hooks = [
        part.register_forward_hook(alone) for part in model.modules() if isinstance(part, nn.Linear)
    ]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def _fsum(x: Tensor) -> Tensor:
    """The sums over the last axis, each rounded once."""
    rows = x.flatten(end_dim=-2).tolist()
    return torch.tensor([math.fsum(row) for row in rows], dtype=x.dtype).reshape(x.shape[:-1])


def compare(
    model: LanguageEncoder, ids: Tensor, places: Sequence[int]
) -> tuple[list[float], list[list[float]]]:
    """Read two sentences of the same words [2, tokens], with positions and without, in float64.

    Returns the largest difference between a word's two vectors: positions off; off, and computed so that rounding
    cannot depend on a word's place; on. Then each word's difference as a share of its vector's length: off, on.
    """
    without, with_them = model(ids, positions=False).vectors, model(ids).vectors
    with placeless(model):
        once = model(ids, positions=False, attend=summed_once).vectors
    apart = [x[0] - x[1, list(places)] for x in (without, once, with_them)]
    shares = ((apart[0], without), (apart[2], with_them))
    return (
        [float(difference.abs().max()) for difference in apart],
        [(difference.norm(dim=-1) / x[0].norm(dim=-1)).tolist() for difference, x in shares],
    )


def moved_shares(records: Iterable[Attention]) -> list[np.ndarray]:
    """Of each two records of the same words the share of each row's weight that moves to others [layer, head, query].

    What a row lacks lies on special tokens, which are one more word here.
    """
    found, shares = list(records), []
    for one, other in zip(found[::2], found[1::2], strict=True):
        places = list(same_words(words_of(one.text), words_of(other.text)))
        change = one.weights - other.weights[:, :, places][..., places]
        shares.append((np.abs(change).sum(axis=-1) + np.abs(change.sum(axis=-1))) / 2)
    return shares


def other_pairs(n: int = OTHERS) -> list[str]:
    """Other sentences as the long pair, and after each the same with its “not” in the other clause."""
    texts: list[str] = []
    for one in islice(splits.sentences("validation", kind="although"), n):
        words = [word for word in one.words if word != "not"]
        at = words.index("could" if "not" in one.words[: one.words.index(",")] else "did") + 1
        texts += map(
            common.sentence_text, (one, replace(one, words=(*words[:at], "not", *words[at:])))
        )
    return texts


def tell(model: Model = None) -> Story:
    """The demo: two pairs of sentences, each of the same words, with positions and without."""
    source = common.open_own(model or TOY)
    others = [
        shares.mean(axis=-1, keepdims=True)
        for shares in moved_shares(read_words(source, other_pairs()))
    ]
    head, is_toy = common.largest(np.mean(others, axis=0)), source.name == TOY
    records = (
        attend_all(LONG, open_source(TOY)) if is_toy else list(read_words(source, (*SHORT, *LONG)))
    )
    patterns, shares = [record.weights for record in records[-2:]], moved_shares(records)[-1]
    name = common.name_of(source)
    mean = percent(shares.mean())
    seen = receipt_of(records[-2])
    most = percent(shares[head].mean())
    title, parts, bars = _of_toy() if is_toy else _of_another(source, records)
    top = float(max(pattern[head].max() for pattern in patterns))
    panels = (
        common.square(
            _("{head}: {what}").format(head=common.head_name(head), what=what),
            pattern[head],
            words_of(text),
            top,
        )
        for what, pattern, text in zip(
            (_("first (did not get)"), _("second (could not get)")), patterns, LONG, strict=True
        )
    )
    return common.story(
        title=title,
        receipt=RECEIPT.format(seen=seen) if is_toy else receipt_of(records[-2]),
        parts=(
            INTRODUCTION.format(
                name=name, short=SHORT[0], short_turned=SHORT[1], long=LONG[0], long_turned=LONG[1]
            ),
            *parts,
            _rows_moved(shares, *patterns),
            MOST_MOVED.format(
                mean=mean, head=common.head_name(head), most=most, others=OTHERS, rows=common.ROWS
            ),
            *common.notes_of(records),
        ),
        picture=(*panels, bars),
        views=_views(shares, patterns),
        records=() if is_toy else records,
    )


def _of_another(
    source: Source, records: Sequence[Attention]
) -> tuple[Phrase, list[Phrase | Table], Bars]:
    """With the weights of any model: what moves, with positions and without where they can be taken away."""
    on, bare = moved_shares(records), common.without_positions(source, (*SHORT, *LONG))
    off = moved_shares(bare) if bare else None
    rest = _("; without positions {without}").format(without=percent(off[1].mean())) if off else ""
    ways = {
        way: shares
        for way, shares in zip((_("positions off"), _("positions on")), (off, on), strict=True)
        if shares
    }
    rows = tuple(
        (pair, *(percent(way[i].mean()) for way in ways.values())) for i, pair in enumerate(PAIRS)
    )
    series = Series.each({way: shares[1].mean(axis=(0, 1)) for way, shares in ways.items()})
    moves = Table(MOVES, (_("sentences"), *ways), rows)
    bars = Bars(
        _("weight moved between the two sentences"),
        tuple(words_of(LONG[0])),
        series,
        _("share of the row, mean over heads"),
    )
    name, mean = common.name_of(source), percent(moved_shares(records)[-1].mean())
    title = TITLE_OF_ANOTHER.format(name=name, mean=mean, rest=rest)
    return title, [_without(name, off, records), moves], bars


def _without(name: str, off: list[np.ndarray] | None, records: Sequence[Attention]) -> Phrase:
    """Say how far patterns follow the order of words when no word has a position."""
    if off is None:
        return CANNOT.format(name=name)
    pieces = [sorted(token.piece for token in record.query_tokens) for record in records]
    same = [one == other for one, other in zip(pieces[::2], pieces[1::2], strict=True)]
    most = float(max(shares.max() for shares, alike in zip(off, same, strict=True) if alike))
    if most < LEAST:
        return BAG_OF_WORDS.format(most=small(most), other="" if all(same) else OTHER_TOKEN)
    return STILL_MOVES.format(
        most=small(most),
        why=(MASK if records[0].kind == "decoder" else _("something else in it tells the order.")),
    )


@torch.inference_mode()
def _of_toy() -> tuple[Phrase, list[Phrase | Table], Bars]:
    """With toy, whose vectors can be had with positions and without."""
    card, model = common.open_model(TOY, LanguageEncoder)
    model = model.double()  # so that rounding is far below what is to be seen
    found = []
    for pair in (SHORT, LONG):
        words = [words_of(sentence) for sentence in pair]
        found.append(compare(model, common.numbers(card.source, words), same_words(*words)))
    without, once, largest = (
        max(each) for each in zip(*(differences for differences, _shares in found), strict=True)
    )
    rows = (
        (pair, *map(small, differences))
        for pair, (differences, _shares) in zip(PAIRS, found, strict=True)
    )
    title = TITLE.format(off=small(without), on=small(largest))
    long, shares = words_of(LONG[0]), found[1][1]
    series = Series.each(dict(zip((_("positions off"), _("positions on")), shares, strict=True)))
    bars = Bars(
        _("how far each word's vector moves between the two sentences"),
        tuple(long),
        series,
        _("share of the vector's length"),
    )
    parts = (
        common.table(
            DIFFERENCES,
            (_("sentences"), _("positions off"), _("off, no rounding by place"), _("positions on")),
            rows,
        ),
        _exactness(without, once),
        _what_positions_do(long, shares[1]),
    )
    return title, [*parts], bars


def _exactness(without: float, once: float) -> Phrase:
    left = (
        _("{once} is left.").format(once=small(once))
        if once
        else _("the difference is exactly 0: the model sees a bag of words.")
    )
    return EXACTNESS.format(without=small(without), left=left)


def _what_positions_do(words: Sequence[str], moved: Sequence[float]) -> Phrase:
    order = sorted(range(len(words)), key=lambda place: -moved[place])
    most, least = ((place, words[place], percent(moved[place])) for place in (order[0], order[-1]))
    stay, go = list[float](), list[float]()
    for place, there in enumerate(same_words(words, words_of(LONG[1]))):
        (stay if place == there else go).append(moved[place])
    gone, stayed = (percent(sum(shares) / len(shares)) for shares in (go, stay))
    return POSITIONS.format(
        n=len(words),
        most_word=most[1],
        most_place=most[0],
        most_share=most[2],
        least_word=least[1],
        least_place=least[0],
        least_share=least[2],
        n_go=len(go),
        gone=gone,
        n_stay=len(stay),
        stayed=stayed,
    )


def _rows_moved(shares: np.ndarray, first: np.ndarray, second: np.ndarray) -> Table:
    words, others = map(words_of, LONG)
    there = same_words(words, others)
    rows = []
    for place in np.argsort(-shares, axis=None, kind="stable")[:SHOWN]:
        layer, head, query = (int(i) for i in np.unravel_index(place, shares.shape))
        here, then = (
            int(first[layer, head, query].argmax()),
            int(second[layer, head, there[query]].argmax()),
        )
        share, word = percent(float(shares[layer, head, query])), f"{words[query]} ({query})"
        rows.append(
            (f"{layer}.{head}", word, share, f"{words[here]} ({here})", f"{others[then]} ({then})")
        )
    return common.table(
        ROWS_TEXT,
        (
            _("layer.head"),
            _("word (place)"),
            _("weight moved"),
            _("looks most at"),
            _("in the second sentence, at"),
        ),
        rows,
    )


def _views(shares: np.ndarray, patterns: Sequence[np.ndarray]) -> Iterator[StoryView]:
    """The row that differs most, in both sentences; then all heads."""
    words = [words_of(text) for text in LONG]
    layer, head, query = (int(i) for i in np.unravel_index(int(shares.argmax()), shares.shape))
    for number, place in enumerate((query, same_words(*words)[query])):
        at = words[number][int(patterns[number][layer, head, place].argmax())]
        text = VIEWS.format(head=f"{layer}.{head}", word=words[number][place], place=place, at=at)
        record = len(SHORT) + number  # those of the short pair come first
        yield StoryView(
            text=text, sentence=LONG[number], record=record, head=(layer, head), query=place
        )
    for number, pair in enumerate(SHORT):
        yield StoryView(
            text=_("All heads on “{pair}”.").format(pair=pair), sentence=pair, record=number
        )
