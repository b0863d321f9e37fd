"""Choose the output, run all cuts, and judge them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from attnviz.attention import Note, Token, indices_of
from attnviz.attributions.capture import Study, Variant
from attnviz.attributions.record import Attribution, Output, OutputKind, Verdict
from attnviz.attributions.verdicts import (
    LEAST,
    LEAST_OF_HEAD,
    RATIO,
    Comparison,
    compare,
    name_of,
)
from attnviz.capture.sources import Outputs, Source
from attnviz.capture.targets import Target
from attnviz.errors import InputError, ModelError, SelectionError
from attnviz.text.display import visible
from attnviz.text.suggest import suggest

# A verdict is asked for the tokens with the largest cuts and those with the largest weights.
LARGEST_CUTS, LARGEST_WEIGHTS = 5, 3
THROUGH_OTHERS = 2  # and for those that change most everywhere, if that is much more than here
TOGETHER = 8  # heads that are cut together, in the order of their effect
# In a text of more tokens than `LONG`, only so many are cut, and judged.
LONG, CUT_OF_LONG, JUDGED_OF_LONG = 128, 32, 2
# Of so many heads that carry most from a token, the one whose cut alone changes most is judged.
HEADS = 8
SENTENCE: Final = "sentence"
NEXT: Final = "next"
HIDDEN: Final = "hidden"
CLASS: Final = "class"
# What the model must return for an output that is a distribution.
OUTPUTS: dict[OutputKind, Outputs] = {NEXT: "words", HIDDEN: "words", CLASS: "classes"}


def build(
    source: Source,
    text: str,
    *,
    of: str | None = None,
    word: str | None = None,
    label: str | None = None,
    head: tuple[int, int] | None = None,
    without_heads: bool = False,
    judged: int = LARGEST_CUTS,
    seed: int = 0,
    report: Callable[[int], None] | None = None,
) -> Attribution:
    """Return what an output of a model on a text does without the attention to each token.

    Args:
        source: the model.
        text: the text.
        of: the word whose vector is the output, its number, or ``sentence``, ``next`` or ``class``; None is the usual
            output of the model.
        word: the word whose prediction is the output.
        label: the class whose prediction is the output.
        head: the layer and head whose weights and lengths are shown; None for the mean of all.
        without_heads: whether to run the model without each head at all, too.
        judged: the number of tokens with the largest cuts that get a verdict, beside those with the largest weights.
        seed: of the random control cuts.
        report: is called with the number of variants that have run so far.

    Raises InputError: the word is not there, or there twice, or the text has one token; ModelError: nothing can be
    taken out of the model, or it predicts no words.
    """
    is_translation = source.generates
    kind = "cross" if is_translation else source.kinds[0]
    batch = source.encode([text], kind=kind if is_translation else None)
    sentence = batch.sentences[0]
    tokens = sentence.keys if sentence.keys is not None else sentence.tokens
    if len(tokens) < 2:
        raise InputError(
            "a text of one token attends to itself alone: there is nothing to take out"
        )
    if of is None and Source.mask in text and source.mask_id is None:
        raise InputError(f"{source.name} predicts no hidden words: leave out {Source.mask}")
    if of is None and Source.mask in text and source.mask != Source.mask:
        raise InputError(f"a hidden word of {source.name} is written {source.mask}")
    kind_of_output, rows = _output(source, sentence.tokens, of, word, label)
    study = Study(
        source, batch, Target(outputs=OUTPUTS.get(kind_of_output, "vectors"), rows=rows), report
    )
    if head is not None:
        indices_of([head[0]], study.layers, "layer")
        indices_of([head[1]], range(study.weights.shape[1]), "head")
    name, chance = "", None
    if kind_of_output in OUTPUTS:
        number = int(study.before.argmax())
        if is_translation:
            number = sentence.tokens[rows[0]].id or 0
        elif word is not None:
            number = source.word_id(word)
        elif label is not None:
            number = _class(source, label)
        study.predict(number)
        is_class = kind_of_output == CLASS
        name = source.classes[number] if is_class else source.word_names([number])[0]
        chance = float(study.before[number].exp())
    elif kind_of_output == "word":
        name = "".join(_texts(sentence.tokens, rows))
    # The tokens are those of the source: no row of theirs is a step of the translation.
    notes = tuple(note for note in sentence.notes if not note.code.startswith("row_generates"))
    output = Output(kind=kind_of_output, text=name, rows=rows, probability=chance)
    return _Judged(study, judged, seed).attribution(
        source, text, tokens, output, head, without_heads=without_heads, notes=notes
    )


class _Judged:
    """All cuts of one study, and their verdicts."""

    def __init__(self, study: Study, judged: int, seed: int) -> None:
        self._study, self._judged = study, judged
        self._random = np.random.default_rng(seed)
        # Of all rows at once, a cut here and a cut everywhere are the same but for a token's own row.
        self._is_whole = study.reads_all

    def attribution(
        self,
        source: Source,
        text: str,
        tokens: Sequence[Token],
        output: Output,
        head: tuple[int, int] | None,
        *,
        without_heads: bool,
        notes: tuple[Note, ...],
    ) -> Attribution:
        study, n = self._study, len(tokens)
        weight, carried = self._shown(head)
        mean, length = self._shown(None)  # which decides what is cut and judged, whatever is shown
        places, judged = np.arange(n), self._judged
        if n > LONG:
            # The tokens that are attended to most, or that most is written from.
            ranks = [np.argsort(np.argsort(np.nan_to_num(column))) for column in (mean, length)]
            order = np.argsort(-np.maximum(*ranks), kind="stable")
            places, judged = np.sort(order[:CUT_OF_LONG]), min(judged, JUDGED_OF_LONG)
            notes = (*notes, Note.of("cut_of_long", n=len(places), total=n))
        # The changes of each token and the probabilities after them; NaN of tokens that are not cut.
        here, everywhere, hidden = np.full((3, 2, n), np.nan)
        everywhere[:, places] = study.run(
            [Variant(edges=self._edges_everywhere(int(key))) for key in places], everywhere=True
        )
        if not self._is_whole:
            here[:, places] = study.run([Variant(edges=self._edges(int(key))) for key in places])
        if study.can_hide():
            hidden[:, places] = study.run([Variant(hidden=int(key)) for key in places])
        change = (everywhere if self._is_whole else here)[0]
        is_long = n > LONG
        # Those that can be used through other words; of a whole sentence here is NaN, and there are none.
        through = places[everywhere[0, places] >= RATIO * here[0, places]]
        tested = {
            *_largest(change, places, judged),
            *_largest(mean, places, min(judged, 1 if is_long else LARGEST_WEIGHTS)),
            *_largest(everywhere[0], through, 0 if is_long else min(judged, THROUGH_OTHERS)),
        }
        # It gets an even share of all attention, or more than half of a head's.
        is_attended = (mean * n >= 1) | (study.weights.amax(dim=(0, 1, 2)) > 0.5).numpy()
        # Nothing can be told where no cut moves the output by more than rounding does.
        moves = np.nanmax([change, everywhere[0]]) > max(LEAST, study.receipt.tolerance)
        chosen = int(np.nanargmax(change))
        heads = self._heads(chosen)
        verdicts = [
            None
            if key not in tested
            else self._verdict(key, change[key], everywhere[0, key], is_attended[key])
            if moves
            else Verdict(name="cannot tell")
            for key in range(n)
        ]
        order = np.argsort(-heads, axis=None, kind="stable")[:TOGETHER]
        together, _ = study.run(
            [Variant(edges=self._edges(chosen, order[: k + 1])) for k in range(len(order))]
        )
        return Attribution(
            model=source.name,
            text=text,
            kind="cross" if study.is_translation else source.kinds[0],
            output=output,
            tokens=tuple(tokens),
            head=head,
            weight=weight,
            carried=carried,
            here=here[0],
            everywhere=everywhere[0],
            hidden=hidden[0],
            after=np.stack([here[1], everywhere[1], hidden[1]]) if study.predicts else None,
            verdicts=tuple(verdicts),
            chosen=chosen,
            layers=study.layers,
            heads=heads,
            together=together,
            without_head=self._without_heads() if without_heads else None,
            receipt=study.receipt,
            notes=notes,
        )

    def _edges(
        self, key: int, heads: Sequence[int] | np.ndarray | None = None
    ) -> Int[Tensor, " edge"]:
        """Return the edges from the rows to a key: of all heads, or of some, counted through all layers."""
        edges = _edges_to(key, self._study.weights.shape)
        if self._is_whole:
            edges = edges[..., torch.arange(edges.shape[2]) != key]
        edges = edges.flatten(0, 1)
        return (edges if heads is None else edges[torch.as_tensor(heads)]).flatten()

    def _edges_everywhere(self, key: int) -> Int[Tensor, " edge"]:
        """Return the edges from all rows to a key but its own, of all heads, counted through all weights."""
        edges = _edges_to(key, self._study.all_weights.shape)
        is_own = self._study.is_self[:, None, None] & (torch.arange(edges.shape[2]) == key)
        return edges[~is_own.expand_as(edges)]

    def _shown(self, head: tuple[int, int] | None) -> tuple[np.ndarray, np.ndarray]:
        """Return the weight of each key, and its share of the lengths that are carried."""
        study = self._study
        weights, carried = study.weights, study.carried()
        if head is not None:
            place, by_heads = (study.layers.index(head[0]), head[1]), study.carried_by_heads()
            weights = weights[place][None, None]
            carried = None if by_heads is None else by_heads[place][None]
        weight = weights.double().mean(dim=(0, 1, 2)).numpy()
        if carried is None:
            return weight, np.full(len(weight), np.nan)
        length = carried.double().mean(dim=(0, 1)).numpy()
        return weight, length / max(length.sum(), np.finfo(np.float64).tiny)

    def _heads(self, key: int) -> np.ndarray:
        """Return the change without each head's edges to a key alone, [layer, head]."""
        shape = self._study.weights.shape[:2]
        variants = [Variant(edges=self._edges(key, [place])) for place in range(shape.numel())]
        changes: np.ndarray = self._study.run(variants)[0]
        return changes.reshape(shape)

    def _head_alone(
        self, key: int, counts: bool, change: float
    ) -> tuple[int, float, Comparison | None]:
        """Return the head whose cut alone changes most, of those that carry most, its change, and its comparison.

        It is compared where its change can decide: where the cut of all heads counts, or changes less than its own.
        """
        study = self._study
        carried = study.carried_by_heads()
        lengths = (study.weights if carried is None else carried)[..., key].sum(dim=2).flatten()
        places = lengths.argsort(descending=True, stable=True)[:HEADS]
        changes, _ = study.run([Variant(edges=self._edges(key, [int(place)])) for place in places])
        first, largest = int(places[changes.argmax()]), float(changes.max())
        if not counts and largest < RATIO * change:
            return first, largest, None
        edges = self._edges(key, [first])
        compared = compare(study, edges, largest, self._random, least_nats=LEAST_OF_HEAD)
        return first, largest, compared

    def _verdict(self, key: int, change: float, everywhere: float, is_attended: bool) -> Verdict:
        """Judge a key by its cuts, and by the cut of the head that changes most alone."""
        study = self._study
        here = compare(study, self._edges(key), float(change), self._random)
        counts = here is not None and here.counts
        place, largest, of_head = self._head_alone(key, counts, float(change))
        layer, head = divmod(place, study.weights.shape[1])
        through: Comparison | None = None
        is_more = everywhere >= RATIO * change
        if here is not None and not here.counts and is_more and not self._is_whole:
            edges = self._edges_everywhere(key)
            through = compare(study, edges, float(everywhere), self._random, everywhere=True)
        return Verdict(
            name=name_of(here, through, of_head, is_attended=is_attended),
            here=here,
            everywhere=through,
            head=(study.layers[layer], head),
            of_head=of_head,
            alone=largest,
        )

    def _without_heads(self) -> np.ndarray:
        """Return the change without each head at all, [layer, head]."""
        study, shape = self._study, self._study.all_weights.shape
        edges = torch.arange(shape.numel()).view(*shape[:2], -1)[study.shown]
        variants = [Variant(edges=of_head) for of_head in edges.flatten(0, 1)]
        changes: np.ndarray = study.run(variants, everywhere=True)[0]
        return changes.reshape(edges.shape[:2])


def _largest(column: np.ndarray, places: np.ndarray, n: int) -> list[int]:
    """Return the n places with the largest numbers of a column."""
    found: list[int] = places[np.argsort(-column[places], kind="stable")[:n]].tolist()
    return found


def _edges_to(key: int, shape: Sequence[int]) -> Int[Tensor, "layer head row"]:
    """Return the places of all edges to a key among weights of a shape [layer, head, row, key]."""
    return torch.arange(math.prod(shape[:3])).view(*shape[:3]) * shape[3] + key


def _output(
    source: Source, tokens: Sequence[Token], of: str | None, word: str | None, label: str | None
) -> tuple[OutputKind, tuple[int, ...]]:
    """Return the output that is asked for, or else the usual one of a model on a text, and its rows."""
    is_encoder = source.kinds[0] == "encoder"
    places = range(len(tokens))
    hides = is_encoder and source.mask_id is not None
    masks = [place for place in places if hides and tokens[place].id == source.mask_id]
    is_usual = of is None and word is None and label is None
    if source.generates:
        if of in (SENTENCE, CLASS) or label is not None:
            raise ModelError(f"the output of {source.name} is a word that it writes")
        name = word if of in (None, NEXT) else of
        if name is not None:  # of a word of several pieces, the first one
            return NEXT, _rows(tokens, name, "what the model writes")[:1]
        return NEXT, (next((place for place in places if not tokens[place].special), 0),)
    if label is not None or of == CLASS or (is_usual and source.classes and not masks):
        if not source.classes:
            raise ModelError(
                f"{source.name} has no classes of which one is right: models that have some are opened by "
                "transformers.AutoModelForSequenceClassification"
            )
        return CLASS, tuple(places)
    if of == SENTENCE or (is_usual and is_encoder and not masks):
        return SENTENCE, tuple(places)
    if of is None and is_encoder:
        if source.classes:
            raise ModelError(f"{source.name} predicts a class of the text, and no words")
        if len(masks) != 1:
            numbers = f"{len(masks)} words are hidden" if masks else "no word is hidden"
            raise InputError(f"{numbers}: write {source.mask} for one word")
        return HIDDEN, tuple(masks)
    if of == NEXT and is_encoder:
        raise ModelError(
            f"{source.name} predicts no next word, as it reads a text as a whole: hide a word with its mask"
        )
    if of in (None, NEXT):
        return NEXT, (len(tokens) - 1,)
    rows = _rows(tokens, of, "this text")
    hidden = tuple(place for place in rows if place in masks)
    return (HIDDEN, hidden[:1]) if hidden else ("word", rows)


def _class(source: Source, label: str) -> int:
    """Return the number of a class. Raises SelectionError: there is none of this name."""
    names = [name.casefold() for name in source.classes]
    if label.casefold() not in names:
        raise SelectionError(
            f"there is no class “{visible(label)}”{suggest(label, source.classes)}"
        )
    return names.index(label.casefold())


def _rows(tokens: Sequence[Token], name: str, where: str) -> tuple[int, ...]:
    """Return the tokens of a word, or the one of a number.

    Raises SelectionError: it is not there; InputError: it is there twice.
    """
    groups: dict[int, list[int]] = {}
    for place, token in enumerate(tokens):
        groups.setdefault(-place - 1 if token.word is None else token.word, []).append(place)
    words = {"".join(_texts(tokens, places)): places for places in groups.values()}
    for same in (str, str.casefold):
        found = [
            places
            for places in groups.values()
            if same("".join(_texts(tokens, places))) == same(name)
        ]
        if len(found) > 1:
            numbers = " or ".join(str(places[0]) for places in found)
            raise InputError(
                f"“{visible(name)}” is there {len(found)} times: give its number, {numbers}"
            )
        if found:
            return tuple(found[0])
    if name.isdecimal() and len(name) < 10 and int(name) < len(tokens):
        return (int(name),)
    raise SelectionError(f"there is no word “{visible(name)}” in {where}{suggest(name, words)}")


def _texts(tokens: Sequence[Token], places: Sequence[int]) -> list[str]:
    """Return the texts of the pieces of a word, without the marks that they have, such as "quokka→[UNK]"."""
    unknown = re.compile(r"(?<=.)→(\[UNK\]|<unk>)$")
    return [unknown.sub("", tokens[place].text).lstrip("·") for place in places]
