"""English to Korean: which English word each decoding step looks at, and how often that is the right one."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import torch
from jaxtyping import Float32

from attnviz.attention import Attention
from attnviz.capture.attend import attend
from attnviz.capture.source import open_source
from attnviz.models.language import splits
from attnviz.models.language.sentences import Pair
from attnviz.models.seq2seq import RecurrentTranslator
from attnviz.models.training import measure
from attnviz.models.wholes import TranslationTransformer
from attnviz.stories.common import (
    ROWS,
    head_name,
    open_model,
    receipt_of,
    row_view,
    steps_panel,
    story,
    table,
)
from attnviz.stories.record import Cell, Story, StoryView, Table
from attnviz.text.messages import Phrase, _, join_phrases

RECURRENT, TRANSFORMER = NAMES = "toy-seq2seq", "toy-transformer"
SENTENCES = (
    "She is eating a green apple",
    "The animal didn't cross the street because it was too wide",
)
RIGHT = ("그녀는 초록색 사과를 먹고 있다", "길이 너무 넓었기 때문에 동물은 건너지 않았다")
"""Their translations in the small language; both models generate them under teacher forcing."""
N_PAIRS = 200  # test pairs that the alignment error rate is measured on
GOLD_WORDS = range(9, 14)
"""English words of the test pair that is shown with its gold alignment: enough to cross, few enough to read."""
TITLE = _(
    "alignment error on unseen pairs: {recurrent} {one:.3f}, {transformer} {two:.3f}, the "
    "diagonal {diagonal:.3f}"
)
LENGTHS = _(
    "Rows and columns need not be equally many; keys and values must: K has {keys} rows for the "
    "second sentence, V has {values}."
)
SEEN = _(
    "{recurrent} reads an English sentence and generates it in Korean, a word a step. At each "
    "step the decoder's state is the query; the encoder's states, one for each English word, are "
    "the keys and the values. So there is a row for each step and a column for each English word: "
    "{sizes} (queries x keys) for the two sentences below. {lengths} Both models are given the "
    "right Korean (teacher forcing), so that their steps can be compared."
)
BY_THEMSELVES = _("By themselves both models generate these very words for both sentences.")
PATH = _(
    "In the {which} sentence {recurrent} looks most at words {path} (counted from 0): {back} of "
    "{moves} moves go back to the left."
)
CROSSING = _(
    "Korean puts the verb last, so the steps do not walk through the English sentence from left "
    "to right. {paths} The weights of {transformer} are those of its cross attention."
)
GOLD = _("an unseen test sentence with its gold alignment, {recurrent}: “{english}”")
ERRORS = _(
    "The test sentences were made with their alignment, which no model was ever shown. The "
    "alignment error rate (Och and Ney 2003) is 0 where the largest weights agree with it, and 1 "
    "where none does. Over {n} unseen pairs, with the right words forced, {compared} than the "
    "diagonal, which looks as far along in English as the step is in Korean ({diagonal:.3f}). A "
    "head need not look at the very word that is generated next: the weights show where the model "
    "fetched something, and the encoder may have carried it there. {rows}"
)
RATES = _("alignment error rate on {n} unseen test pairs; heads chosen on validation pairs")
VIEW = _("{name}, before it generates “{word}”: it looks most at “{at}” ({weight:.2f}).")
WRONG = _("by itself {name} generates “{words}” for “{sentence}”, which is not right")
LESS = _("{name} errs less ({error:.3f})")
NO_LESS = _("{name} errs no less ({error:.3f})")


@dataclass(frozen=True, slots=True)
class AlignmentHead:
    """One head's look at one sentence: the record it is taken from, and the layer and the head."""

    record: Attention
    head: measure.Head

    @property
    def pattern(self) -> Float32[np.ndarray, "step source"]:
        """The weights: a row for each step, a column for each English word."""
        return self.record.pattern(*self.head)

    @property
    def looks(self) -> list[int]:
        """The English word that each step looks at most, counted from 0."""
        looks: list[int] = self.pattern.argmax(axis=-1).tolist()
        return looks

    @property
    def path(self) -> list[int]:
        """The looks of the Korean words only; the end token stands for no English word."""
        steps = zip(self.looks, self.record.query_tokens, strict=True)
        return [look for look, token in steps if not token.special]

    def look(self, step: int) -> tuple[Cell, ...]:
        """The English word that a step looks at most, with its place, and its weight."""
        place = self.looks[step]
        return f"{self.record.key_tokens[place].text} ({place})", float(self.pattern[step, place])


def backward(path: Sequence[int]) -> int:
    """Count the steps that look further to the left than the step before."""
    return sum(there < here for here, there in itertools.pairwise(path))


def crossing_pair() -> Pair:
    """The first unseen test pair, of a length to be read, whose gold alignment goes back to the left twice or more."""
    pairs = (pair for pair in splits.pairs("test") if len(pair.english) in GOLD_WORDS)
    return next(pair for pair in pairs if backward([min(gold) for gold in golds(pair) if gold]) > 1)


def golds(pair: Pair) -> list[list[int]]:
    """For each Korean word the English ones that surely mean it, by their places."""
    return [
        sorted(place for step, place in pair.sure if step == index)
        for index in range(len(pair.korean))
    ]


def tell() -> Story:
    """The demo: two sentences whose order Korean turns around, one unseen pair with its gold, the error rate."""
    pair = crossing_pair()
    card, recurrent = open_model(RECURRENT, RecurrentTranslator)
    other_card, transformer = open_model(TRANSFORMER, TranslationTransformer)
    heads = [  # those that were found to align best on validation pairs
        (int(one.quality["alignment layer"]), int(one.quality["alignment head"]))
        for one in (card, other_card)
    ]
    sources = [open_source(name) for name in NAMES]
    first, second = (
        [
            AlignmentHead(attend(text, source, target=right), head)
            for text, right in zip(SENTENCES, RIGHT, strict=True)
        ]
        for source, head in zip(sources, heads, strict=True)
    )
    own = [tuple(attend(sentence, source).target for source in sources) for sentence in SENTENCES]
    gold = AlignmentHead(
        attend(" ".join(pair.english), sources[0], target=" ".join(pair.korean)), heads[0]
    )
    pairs = list(islice(splits.pairs("test"), N_PAIRS))
    models: tuple[measure.Translator, ...] = (recurrent, transformer)
    errors = [
        float(measure.alignment_errors(one, pairs)[head])
        for one, head in zip(models, heads, strict=True)
    ]
    diagonal = measure.diagonal_error(pairs)
    n = len(pairs)
    compared = _compared(errors, diagonal)
    names = (
        _("{name}, {head}").format(name=name, head=head_name(head))
        for name, head in zip(NAMES, heads, strict=True)
    )
    rates = (*zip(names, errors, strict=True), (_("the diagonal"), diagonal))
    shown = [*first, *second]
    parts: list[Phrase | Table] = [
        _what_is_seen(first, recurrent),
        *map(_steps, first, second),
        _by_themselves(own),
        _crossing(first),
        _against_gold(gold, pair),
        ERRORS.format(n=n, compared=compared, diagonal=diagonal, rows=ROWS),
        table(RATES.format(n=n), (_("what looks"), _("error rate")), rates),
    ]
    panels = (
        steps_panel(
            _("{model}, {name}: “{sentence}”").format(
                model=one.record.model, name=head_name(one.head), sentence=one.record.text
            ),
            one.record,
            one.head,
        )
        for one in shown
    )
    return story(
        title=TITLE.format(
            recurrent=RECURRENT,
            one=errors[0],
            transformer=TRANSFORMER,
            two=errors[1],
            diagonal=diagonal,
        ),
        receipt=_least_proved({RECURRENT: [*first, gold], TRANSFORMER: second}),
        parts=parts,
        picture=panels,
        views=_views(shown),
        records=[one.record for one in shown],
    )


def _views(shown: Sequence[AlignmentHead]) -> tuple[StoryView, ...]:
    """Of each record the step that goes back to the left farthest; then all heads of the transformer."""
    views = []
    for number, one in enumerate(shown):
        moves = [there - here for here, there in itertools.pairwise(one.path)]
        step = 1 + moves.index(min(moves))
        views.append(row_view(VIEW, one.record, one.head, step, number))
    return *views, StoryView(
        text=_("All heads of {transformer}, on the first sentence.").format(
            transformer=TRANSFORMER
        ),
        record=len(SENTENCES),
    )


def _least_proved(shown: Mapping[str, Sequence[AlignmentHead]]) -> Phrase:
    """The proof of each model's record with the largest difference; one without a receipt has the largest of all."""
    found = []
    for name, ones in shown.items():
        records = [one.record for one in ones]
        least = receipt_of(
            max(records, key=lambda one: one.receipt.max_difference if one.receipt else np.inf)
        )
        found.append(
            _("{name}: {least}, the largest of {n} sentences").format(
                name=name, least=least, n=len(ones)
            )
        )
    return join_phrases(found, "; ")


@torch.inference_mode()
def _what_is_seen(shown: Sequence[AlignmentHead], model: RecurrentTranslator) -> Phrase:
    sizes = ["{} x {}".format(*one.pattern.shape) for one in shown]
    encoded = model.encode(torch.tensor([[token.id or 0 for token in shown[-1].record.key_tokens]]))
    keys, values = (
        states.shape[1] for states in (encoded.key, encoded.value) if states is not None
    )
    lengths = LENGTHS.format(keys=keys, values=values)
    return SEEN.format(
        recurrent=RECURRENT, sizes=join_phrases(sizes, " and ", ", "), lengths=lengths
    )


def _steps(one: AlignmentHead, other: AlignmentHead) -> Table:
    columns = [_("step"), _("forced word")]
    for name in NAMES:
        columns += [_("{name} looks at").format(name=name), _("weight")]
    steps = enumerate(one.record.query_tokens)
    rows = ((step, token.text, *one.look(step), *other.look(step)) for step, token in steps)
    title = _("“{sentence}”, step by step").format(sentence=one.record.text)
    return table(title, columns, rows)


def _by_themselves(own: Sequence[tuple[str | None, ...]]) -> Phrase:
    """Say what each model generates freely, where that is not the right Korean."""
    wrong = [
        WRONG.format(name=name, words=words, sentence=sentence)
        for sentence, right, generated in zip(SENTENCES, RIGHT, own, strict=True)
        for name, words in zip(NAMES, generated, strict=True)
        if words != right
    ]
    if not wrong:
        return BY_THEMSELVES
    return _("{sentence}.").format(sentence=join_phrases(wrong, "; ").capitalize())


def _crossing(shown: Sequence[AlignmentHead]) -> Phrase:
    paths = (
        PATH.format(
            which=which,
            recurrent=RECURRENT,
            path=", ".join(map(str, one.path)),
            back=backward(one.path),
            moves=len(one.path) - 1,
        )
        for one, which in zip(shown, (_("first"), _("second")), strict=True)
    )
    return CROSSING.format(paths=join_phrases(paths), transformer=TRANSFORMER)


def _against_gold(one: AlignmentHead, pair: Pair) -> Table:
    rows = []
    for step, (word, gold) in enumerate(zip(pair.korean, golds(pair), strict=True)):
        hit = _("yes") if (step, one.looks[step]) in pair.possible else _("no")
        meant = ", ".join(f"{pair.english[place]} ({place})" for place in gold)
        rows.append((step, word, *one.look(step), meant, hit))
    return table(
        GOLD.format(recurrent=RECURRENT, english=" ".join(pair.english)),
        (_("step"), _("forced word"), _("looks at"), _("weight"), _("means"), _("right")),
        rows,
    )


def _compared(errors: Sequence[float], diagonal: float) -> Phrase:
    shown = (
        (LESS if error < diagonal else NO_LESS).format(name=name, error=error)
        for name, error in zip(NAMES, errors, strict=True)
    )
    return join_phrases(shown, " and ", ", ")
