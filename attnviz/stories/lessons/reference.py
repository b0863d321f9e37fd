"""Reference: which word "it" attends to, if it is tired and if it is wide."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from attnviz.attention import Attention
from attnviz.capture.attend import attend_all
from attnviz.models.language.sentences import GoldSentence, Reference
from attnviz.models.registry import TOY
from attnviz.models.training import measure
from attnviz.models.training.measure import Head
from attnviz.stories import common
from attnviz.stories.record import Bars, Series, Story, StoryView, Table
from attnviz.text.display import percent
from attnviz.text.messages import _

TIRED = "The animal didn't cross the street because it was too tired."
WIDE = "The animal didn't cross the street because it was too wide."
IT = common.words_of(TIRED).index("it")
N_SENTENCES = measure.SAMPLES  # the number that the card of the model is based on

# Constructions that the grammar of toy's sentences does not have, with words that it knows.
FRAMES = (
    "because it was too {end} , the {living} didn't cross the {place} .",
    "yesterday the {living} didn't cross the {place} because it was very {end} .",
    "the {living} will not visit the {place} because it is too {end} .",
    "the {living} can't go to the {place} because it is very {end} .",
    "the {living} didn't like the {place} because it was so {end} .",
    "the {living} stayed near the {place} because it was too {end} .",
    "the {living} came to the {place} , and it was very {end} .",
    "when the {living} came to the {place} it was {end} .",
    "the {living} wanted to cross the {place} , but it was too {end} .",
    "in the {place} the {living} stands now because it is very {end} .",
    "the {living} left the {place} quickly because it was {end} .",
    "my {living} hates the {place} because it is so {end} .",
    "the {living} may not see the {place} again because it is too {end} .",
    "why did the {living} leave the {place} ? because it was too {end} .",
)
# Two nouns, and a quality of each.
NOUNS = (
    ("dog", "street", "hungry", "narrow"),
    ("monkey", "river", "lazy", "deep"),
    ("horse", "road", "angry", "muddy"),
)


class Resolution(NamedTuple):
    """How often a head or a baseline finds the noun that "it" stands for, in unseen sentences."""

    who: str  # the head or the baseline
    right: float  # share of sentences
    both: float  # share of sentences that are right before and after the last word is changed


def top_from_it(tops_of: common.TopKeys, sentences: Sequence[GoldSentence]) -> Tensor:
    """Return the key that "it" attends to most [layer, head, sentence]."""
    pronouns = measure.places(sentences)[0]
    return tops_of(sentences)[torch.arange(len(sentences)), :, :, pronouns].movedim(0, -1)


def best_head(tops_of: common.TopKeys, n: int) -> Head:
    """Return the head in which "it" attends to the right noun most often, on validation sentences."""
    sentences = measure.references("validation", n)
    hits = top_from_it(tops_of, sentences) == measure.places(sentences)[1]
    return measure.best(hits.double().mean(dim=-1))


def resolutions(
    name: str, tops_of: common.TopKeys, random_tops_of: common.TopKeys, head: Head, n: int
) -> list[Resolution]:
    """Compare a head with the best head of a random model and with trivial baselines, on test sentences.

    The last word of each sentence is also changed ("turned"), so that "it" stands for the other noun.
    """
    test = measure.references("test", n)
    turned_sentences = measure.swap_referents(test)
    it, noun = measure.places(test)
    other_noun = measure.places(turned_sentences)[1]
    random_head = best_head(random_tops_of, n)
    offset = measure.fixed_offset(measure.references("validation", n))
    first = torch.minimum(noun, other_noun)
    keys, keys_turned = (
        top_from_it(tops_of, sentences)[head] for sentences in (test, turned_sentences)
    )
    random_keys, random_keys_turned = (
        top_from_it(random_tops_of, sentences)[random_head]
        for sentences in (test, turned_sentences)
    )
    ways = [
        (_("{name} {head}").format(name=name, head=f"{head[0]}.{head[1]}"), keys, keys_turned),
        (
            _("best head of random weights, {head}").format(
                head=f"{random_head[0]}.{random_head[1]}"
            ),
            random_keys,
            random_keys_turned,
        ),
        (_("always {n} words before “it”").format(n=-offset), it + offset, it + offset),
        (_("always the first noun"), first, first),
    ]
    results = []
    for label, key, key_turned in ways:
        right = key == noun
        right_twice = right & (key_turned == other_noun)
        results.append(
            Resolution(label, float(right.double().mean()), float(right_twice.double().mean()))
        )
    return [*results, Resolution(_("a coin: either noun"), 1 / 2, 1 / 4)]


def other_constructions() -> tuple[list[GoldSentence], list[GoldSentence]]:
    """Return sentences of `FRAMES` in which "it" stands for the living noun, and the same ones for the place."""
    sentences: tuple[list[GoldSentence], list[GoldSentence]] = ([], [])
    for frame in FRAMES:
        for living, place, *ends in NOUNS:
            for turned, end in enumerate(ends):
                words = tuple(frame.format(living=living, place=place, end=end).split())
                nouns = [words.index(living), words.index(place)]
                reference = Reference(words.index("it"), nouns[turned], nouns[1 - turned])
                sentences[turned].append(
                    GoldSentence(words=words, kind="reference", reference=reference)
                )
    return sentences


def build_story() -> Story:
    """Show the row of "it" in two sentences that differ in one word, and test the head on other sentences."""
    records = attend_all((TIRED, WIDE), TOY)
    words = [common.words_of(text) for text in (TIRED, WIDE)]
    tops_of, random_tops_of = common.top_keys()
    n = N_SENTENCES
    head = best_head(tops_of, n)
    results = resolutions(TOY, tops_of, random_tops_of, head, n)
    right_twice = common.Estimate.of_share(results[0].both, n)
    elsewhere = other_constructions()
    hits = torch.stack(
        [top_from_it(tops_of, part)[head] == measure.places(part)[1] for part in elsewhere]
    )
    patterns = [record.pattern(*head) for record in records]
    rows = [pattern[IT] for pattern in patterns]
    tops = [int(row.argmax()) for row in rows]
    top = float(max(pattern.max() for pattern in patterns))
    labels = [
        word if word == other else f"{word} / {other}" for word, other in zip(*words, strict=True)
    ]

    return Story(
        title=_(
            "“it” attends to {first} ({weight}) if it was tired, to {second} "
            "({other_weight}) if it was wide: {name}, {head}"
        ).format(
            name=TOY,
            head=common.head_name(head),
            first=words[0][tops[0]],
            weight=percent(rows[0][tops[0]]),
            second=words[1][tops[1]],
            other_weight=percent(rows[1][tops[1]]),
        ),
        receipt=common.receipt_of(records[0]),
        parts=[
            _(
                "“{sentence}”: what was tired? The animal. With “wide” instead, it is the street. Of "
                "the heads of {name}, {head} attends from “it” to the right noun most often in {n} "
                "other sentences of this kind."
            ).format(sentence=TIRED, name=TOY, head=common.head_name(head), n=n),
            Table(
                _("The row of “it”"),
                [_("word"), *(f"... {sentence[-2]}" for sentence in words)],
                list(zip(labels, rows[0].tolist(), rows[1].tolist(), strict=True)),
                shade=(0.0, float(max(row.max() for row in rows))),
            ),
            Table(
                _("Who finds the right noun, in {n} unseen sentences").format(n=n),
                [_("who (layer.head)"), _("right"), _("right also when turned")],
                [
                    (result.who, common.percent(result.right), common.percent(result.both))
                    for result in results
                ],
            ),
            _(
                "Turned means that the last word changes, for example from tired to wide, so that “it” "
                "stands for the other noun. Whoever always attends to the same place cannot be right both times. "
                "This head is in {share} (95% interval {low} to {high}), the best head of random "
                "weights in {random}, a coin in 25.0%."
            ).format(
                share=common.percent(right_twice.mean),
                low=common.percent(right_twice.low),
                high=common.percent(right_twice.high),
                random=common.percent(results[1].both),
            ),
            _(
                "All these sentences are of the construction that toy was trained on. In {n} sentences "
                "of {n_constructions} other constructions, such as “{example}”, the head is right in "
                "{right}, and also when turned in {both}."
            ).format(
                n=hits.numel(),
                n_constructions=len(FRAMES),
                example=common.sentence_text(elsewhere[0][0]),
                right=common.percent(hits.double().mean()),
                both=common.percent(hits.all(dim=0).double().mean()),
            ),
        ],
        main=2,
        picture=[
            *(
                common.weights_panel(
                    _("It was too {end}").format(end=sentence[-2]), pattern, sentence, top
                )
                for pattern, sentence in zip(patterns, words, strict=True)
            ),
            Bars(
                _("The row of “it”"),
                labels,
                [Series(words[i][-2], rows[i].tolist()) for i in range(2)],
                _("weight"),
            ),
        ],
        views=_views(records, head),
    )


def _views(records: Sequence[Attention], head: Head) -> list[StoryView]:
    """Return views of the row of "it", of one of its scores, and of all heads."""
    views = [common.row_view(record, head, IT, i) for i, record in enumerate(records)]
    key = int(records[0].pattern(*head)[IT].argmax())
    text = _("How that weight is computed: query times key of “it” and “{word}”.").format(
        word=records[0].key_tokens[key].text
    )
    views.append(replace(views[0], text=text, key=key, step="score"))
    text = _("All heads: which others change with the last word?")
    return [*views, StoryView(text=text, sentence=TIRED)]
