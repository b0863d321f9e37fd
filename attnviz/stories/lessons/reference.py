"""Reference: what "it" looks at, when it is tired and when it is wide."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from attnviz.capture.source import Model
from attnviz.models.language.sentences import GoldSentence
from attnviz.models.registry import TOY
from attnviz.models.training import measure
from attnviz.models.training.measure import Head
from attnviz.models.wholes import LanguageEncoder
from attnviz.stories import common
from attnviz.stories.common import Estimate, Look, head_name, percent, receipt_of, words_of
from attnviz.stories.record import Bars, Panel, Series, Story, StoryView, Table
from attnviz.text.messages import Phrase, _, join_phrases

TIRED = "The animal didn't cross the street because it was too tired."
WIDE = "The animal didn't cross the street because it was too wide."
IT = "it"
# how many unseen sentences each share of toy is measured on: as many as what the card says
SENTENCES = measure.SAMPLES

TITLE_SAME = _("{who}“it” looks at {first} ({here:.2f}), and with {wide} too ({there:.2f})")
TITLE = _("{who}“it” looks at {first} ({here:.2f}); with {wide} at {second} ({there:.2f})")
TOLD = _("toy was trained to name the noun that “it” stands for, but nobody told it where to look.")
INTRODUCTION = _(
    "“{tired}”: what is tired? The animal. With “wide” instead it is the street. {told} Of the "
    "heads of {name} the one shown here, {head}, looked from “it” at the right noun most often in "
    "{n} other sentences of this kind."
)
AHEAD = _(
    "{name} reads from left to right: at “it” it has not read “tired” or “wide”, so the row of "
    "“it” is the same in both sentences, and no head of it can turn with the last word."
)
WHOLE = _(
    "The model names the right noun in {share} of them; this head alone looks at it in {looks}. "
    "{more}"
)
NO_MORE = _(
    "no more than the best head of random weights ({random}) or a coin ({coin}): {name} does not "
    "show it."
)
MORE_THAN_CHANCE = _(
    "more than the best head of random weights ({random}) and a coin ({coin}): it reads the last "
    "word too."
)
TURNED = _(
    "Turned: tired becomes wide, or another such word, so that “it” stands for the other noun. "
    "What always looks at the same place cannot be right both times; this head is in {turns}, "
    "{verdict} {rows}"
)
LOOK_IN_BOTH = _("{looks}. One word at the end of the sentence has changed.")
LOOKS = _("with “{end}” its row puts the largest weight, {weight:.2f}, on “{word}”")
LOOKS_AND_NAMES = _(
    "with “{end}” its row puts the largest weight, {weight:.2f}, on “{word}”, and the model names "
    "the {noun} for “it”"
)
VIEW = _("With “{end}”, “it” gives {weight:.2f} of its weight to “{word}”.")
VIEW_STEP = _("How “it” comes to that: q and k of “it” and “{word}”, number by number.")


class Resolution(NamedTuple):
    """The share of unseen test sentences in which a head looks from "it" at the right noun."""

    who: Phrase
    right: float  # as the sentences are
    turned: float  # both so and with their last word turned


def looks_from_it(look: Look, sentences: Sequence[GoldSentence]) -> Tensor:
    """Return the key with the largest weight from "it" [layer, head, sentence]."""
    pronouns = measure.places(sentences)[0]
    return look(sentences)[torch.arange(len(sentences)), :, :, pronouns].movedim(0, -1)


def best_head(look: Look, n: int) -> Head:
    """The head that looks at the right noun most often, chosen on validation sentences."""
    found = measure.references("validation", n)
    return measure.best(
        (looks_from_it(look, found) == measure.places(found)[1]).double().mean(dim=-1)
    )


def measure_shares(
    name: str, looks: Sequence[Look], heads: Sequence[Head], n: int
) -> list[Resolution]:
    """A model's head and that of random weights on so many unseen sentences; then what needs neither head nor model."""
    test = measure.references("test", n)
    others = measure.turn_all(test)
    offset = measure.fixed_offset(measure.references("validation", n))
    (mine, mine_turned), (random, random_turned) = (
        [looks_from_it(look, some)[head] for some in (test, others)]
        for look, head in zip(looks, heads, strict=True)
    )
    (it, nouns), (_its, other_nouns) = map(measure.places, (test, others))
    first = torch.minimum(nouns, other_nouns)
    own, untrained = ("{}.{}".format(*head) for head in heads)
    ways = (
        (_("{name} {head}").format(name=name, head=own), mine, mine_turned),
        (_("random weights, their best: {head}").format(head=untrained), random, random_turned),
        (_("always {n} words before “it”").format(n=-offset), it + offset, it + offset),
        (_("always the first noun"), first, first),
    )
    found = []
    for who, here, there in ways:
        right = here == nouns
        both = right & (there == other_nouns)
        found.append(Resolution(who, *(float(one.double().mean()) for one in (right, both))))
    return [*found, Resolution(_("a coin: either noun"), 1 / 2, 1 / 4)]


def tell(model: Model = None) -> Story:
    """The demo: one row of attention in two sentences that differ in their last word."""
    source = common.open_own(model or TOY)
    records, name, is_toy = (
        list(common.read_words(source, (TIRED, WIDE))),
        common.name_of(source),
        source.name == TOY,
    )
    words = [words_of(text) for text in (TIRED, WIDE)]
    it, named = words[0].index(IT), 0.0
    nouns: Sequence[str] = ("", "")
    *looks, n = common.looks_of(source, SENTENCES)
    heads = [best_head(look, n) for look in looks]
    if is_toy:
        card, toy = common.open_model(TOY, LanguageEncoder)
        with torch.inference_mode():
            places = toy(common.numbers(card.source, words)).referents[:, it].argmax(dim=-1)
        nouns, named = card.source.decode(places.tolist()), measure.named_referents(toy, n=n)
    head, found = heads[0], measure_shares(name, looks, heads, n)
    patterns = [record.pattern(*head) for record in records]
    rows = [pattern[it] for pattern in patterns]
    (first, here), (second, there) = looks_most = [
        (w[row.argmax()], row.max()) for w, row in zip(words, rows, strict=True)
    ]
    seen = [
        {"end": sentence[-2], "word": word, "weight": weight}
        for sentence, (word, weight) in zip(words, looks_most, strict=True)
    ]
    mine, random, coin = found[0], found[1], found[-1]
    who = "" if is_toy else f"{name} {head[0]}.{head[1]}: "
    turns = percent(mine.turned)
    more = (
        _("What one head looks at is not all that the model knows.") if named > mine.right else ""
    )
    mine_turned, random_turned = (Estimate.of_share(one.turned, n) for one in (mine, random))
    clear = mine_turned.low > max(random_turned.high, coin.turned)
    shares = ((one.who, percent(one.right), percent(one.turned)) for one in found)
    parts: list[Phrase | Table] = [
        INTRODUCTION.format(
            tired=TIRED[:-1], told=TOLD if is_toy else "", name=name, head=head_name(head), n=n
        ),
        _looks(seen, nouns),
        *([AHEAD.format(name=name)] if records[0].kind == "decoder" else []),
        _row(words, rows),
        common.table(
            _("who finds the right noun, on {n} unseen test sentences").format(n=n),
            (_("who (layer.head)"), _("right"), _("right also when turned")),
            shares,
        ),
        *(
            [WHOLE.format(share=percent(named), looks=percent(mine.right), more=more)]
            if is_toy
            else []
        ),
        TURNED.format(
            turns=turns,
            verdict=(MORE_THAN_CHANCE if clear else NO_MORE).format(
                random=percent(random.turned), coin=percent(coin.turned), name=name
            ),
            rows=common.ROWS,
        ),
        *common.notes_of(records),
    ]
    return common.story(
        title=(TITLE_SAME if first == second else TITLE).format(
            who=who, first=first, here=here, wide=words[1][-2], second=second, there=there
        ),
        receipt=receipt_of(records[0]),
        parts=parts,
        picture=_picture(patterns, head, words, rows),
        views=_views(seen, head, it, int(rows[0].argmax()) if is_toy else None),
        records=() if is_toy else records,
    )


def _looks(seen: Sequence[Mapping[str, object]], nouns: Sequence[str]) -> Phrase:
    looks = (
        (LOOKS_AND_NAMES if noun else LOOKS).format(noun=noun, **values)
        for values, noun in zip(seen, nouns, strict=True)
    )
    return LOOK_IN_BOTH.format(looks=join_phrases(looks, "; ", " ").capitalize())


def _views(
    seen: Sequence[Mapping[str, object]], head: Head, it: int, key: int | None
) -> list[StoryView]:
    """The row in both sentences; how its weight on a key comes about, where there is one; all heads."""
    views = [
        StoryView(text=VIEW.format(**values), sentence=text, record=number, head=head, query=it)
        for number, (values, text) in enumerate(zip(seen, (TIRED, WIDE), strict=True))
    ]
    if key is not None:
        text = VIEW_STEP.format(**seen[0])
        views.append(replace(views[0], text=text, key=key, step="score"))
    all_heads = _("All heads at once: which others turn with the last word?")
    return [*views, StoryView(text=all_heads, sentence=TIRED)]


def _row(words: list[list[str]], rows: list[np.ndarray]) -> Table:
    ends = (f"... {sentence[-2]}" for sentence in words)
    cells = tuple(zip(_labels(words, " / "), *(row.tolist() for row in rows), strict=True))
    top = float(max(row.max() for row in rows))
    return Table(_("the row of “it”: where it looks"), (_("word"), *ends), cells, shade=(0.0, top))


def _labels(words: list[list[str]], between: str) -> tuple[str, ...]:
    """The words of both sentences, each once where it is the same in both."""
    return tuple(between.join(dict.fromkeys(pair)) for pair in zip(*words, strict=True))


def _picture(
    patterns: list[np.ndarray], head: Head, words: list[list[str]], rows: list[np.ndarray]
) -> Iterator[Panel]:
    name, top = head_name(head), float(max(pattern.max() for pattern in patterns))
    for pattern, sentence in zip(patterns, words, strict=True):
        yield common.square(
            _("{name}: ... {end}").format(name=name, end=sentence[-2]), pattern, sentence, top
        )
    series = Series.each({sentence[-2]: row for sentence, row in zip(words, rows, strict=True)})
    yield Bars(
        _("{name}: the row of “it”").format(name=name), _labels(words, "/"), series, _("weight")
    )
