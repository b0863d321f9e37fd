"""Choose the output, run all cuts, and judge them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from jaxtyping import Bool
from torch import Tensor

from attnviz.attention import Note, Token, indices_of
from attnviz.attributions.capture import Study, Variant
from attnviz.attributions.record import Attribution, Output, Verdict
from attnviz.attributions.verdicts import LEAST_NATS, THROUGH, Comparison, compare, name_of
from attnviz.capture.sources import Source
from attnviz.capture.targets import Target
from attnviz.errors import InputError, SelectionError
from attnviz.text.display import visible
from attnviz.text.suggest import suggest

# A verdict is asked for the tokens with the largest cuts and those with the largest weights.
LARGEST_CUTS, LARGEST_WEIGHTS = 5, 3
TOGETHER = 8  # heads that are cut together, in the order of their effect
# In a text of more tokens than `LONG`, only so many are cut, and judged.
LONG, CUT_OF_LONG, JUDGED_OF_LONG = 128, 32, 3
SENTENCE, NEXT = "sentence", "next"


def build(
    source: Source,
    text: str,
    *,
    of: str | None = None,
    word: str | None = None,
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
        of: the word whose vector is the output, its number, or ``sentence`` or ``next``; None is the usual output of
            the model.
        word: the word whose prediction is the output.
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
    if of is None and word is None:
        of = NEXT if kind != "encoder" else SENTENCE
    predicts = word is not None or of == NEXT
    rows = _rows(sentence.tokens, of, word, is_translation=is_translation)
    target = Target(rows=rows, word=0 if predicts else None)
    study = Study(source, batch, target, report)
    if head is not None:
        for index, n, axis in zip(head, study.weights.shape, ("layer", "head"), strict=False):
            indices_of([index], range(n), axis)
    output = Output(kind=SENTENCE if of == SENTENCE else "word", text="", rows=rows)
    if predicts:
        ids = [token.id for token in sentence.tokens]
        number: int | None = ids[rows[0]] if is_translation else None
        if word is not None and not is_translation:
            number = source.word_id(word)
        if number is None:
            number = int(study.before.argmax())
        study.predict(number)
        name = source.word_names([number])[0]
        chance = float(study.before[number].exp())
        output = Output(kind=NEXT, text=name, rows=rows, probability=chance)
    elif of != SENTENCE:
        output = Output(kind="word", text="".join(_texts(sentence.tokens, rows)), rows=rows)
    return _Judged(study, judged, seed).attribution(
        source, text, tokens, output, head, without_heads=without_heads, notes=sentence.notes
    )


class _Judged:
    """All cuts of one study, and their verdicts."""

    def __init__(self, study: Study, judged: int, seed: int) -> None:
        self._study, self._judged = study, judged
        self._random = np.random.default_rng(seed)
        n_rows, n = study.weights.shape[2:]
        # Of all rows at once, a cut here and a cut everywhere are the same but for a token's own row.
        self._is_whole = n_rows == n and not study.is_translation

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
        places, judged = np.arange(n), self._judged
        if (
            n > LONG
        ):  # of a long text, those that are attended to most, or that most is written from
            ranks = np.maximum(
                *(np.argsort(np.argsort(np.nan_to_num(x))) for x in (weight, carried))
            )
            places, judged = (
                np.sort(np.argsort(-ranks, kind="stable")[:CUT_OF_LONG]),
                JUDGED_OF_LONG,
            )
            notes = (*notes, Note.of("cut_of_long", n=len(places), total=n))
        everywhere, after_everywhere = self._run(places, lambda key: Variant(column=key))
        here, after_here = np.full(n, np.nan), None
        if not self._is_whole:
            here, after_here = self._run(places, lambda key: Variant(edges=self._edges(key)))
        hidden, after_hidden = np.full(n, np.nan), None
        if study.can_hide():
            hidden, after_hidden = self._run(places, lambda key: Variant(hidden=key))
        change = everywhere if self._is_whole else here
        by_weight = places[np.argsort(-weight[places], kind="stable")]
        tested = {*places[np.argsort(-change[places], kind="stable")[:judged]].tolist()}
        tested |= {*by_weight[: min(judged, LARGEST_WEIGHTS)].tolist()}
        heads_of = {key: self._heads(key) for key in sorted(tested)}
        # It gets an even share of all attention, or more than half of a head's.
        is_attended = (weight * n >= 1) | (study.weights.amax(dim=(0, 1, 2)) > 0.5).numpy()
        chosen = int(np.nanargmax(change))
        verdicts = [
            self._verdict(key, change[key], everywhere[key], is_attended[key], heads_of[key])
            if key in tested
            else None
            for key in range(n)
        ]
        heads = heads_of[chosen] if chosen in heads_of else self._heads(chosen)
        order = np.argsort(-heads, axis=None, kind="stable")[:TOGETHER]
        together, _ = study.run(
            [Variant(edges=self._edges(chosen, order[: k + 1])) for k in range(len(order))]
        )
        afters = (after_here, after_everywhere, after_hidden)
        return Attribution(
            model=source.name,
            text=text,
            kind="cross" if study.is_translation else source.kinds[0],
            output=output,
            tokens=tuple(tokens),
            head=head,
            weight=weight,
            carried=carried,
            here=here,
            everywhere=everywhere,
            hidden=hidden,
            after=np.stack([np.full(n, np.nan) if a is None else a for a in afters])
            if output.probability is not None
            else None,
            verdicts=tuple(verdicts),
            chosen=chosen,
            heads=heads,
            together=together,
            without_head=self._without_heads() if without_heads else None,
            receipt=study.receipt,
            notes=notes,
        )

    def _run(
        self, places: np.ndarray, variant: Callable[[int], Variant]
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Run a variant for each of some tokens; return the changes and probabilities, NaN for all other tokens."""
        found = self._study.run([variant(int(place)) for place in places])
        n = self._study.n_keys
        spread = [None if values is None else np.full(n, np.nan) for values in found]
        for whole, values in zip(spread, found, strict=True):
            if whole is not None:
                whole[places] = values
        assert spread[0] is not None
        return spread[0], spread[1]

    def _edges(
        self, key: int, heads: np.ndarray | Sequence[int] | None = None
    ) -> Bool[Tensor, "layer head row key"]:
        """Return the edges from the rows to a key: of all heads, or of some, counted through all layers."""
        edges = self._study.none()
        if heads is None:
            edges[..., key] = True
        else:
            edges.flatten(0, 1)[torch.as_tensor(heads), :, key] = True
        if self._is_whole:
            edges[:, :, key, key] = False
        return edges

    def _shown(self, head: tuple[int, int] | None) -> tuple[np.ndarray, np.ndarray]:
        """Return the weight of each key, and its share of the lengths that are carried."""
        study = self._study
        weights, carried = study.weights, study.carried(head)
        if head is not None:
            weights = weights[head[0], head[1]][None, None]
        weight = weights.double().mean(dim=(0, 1, 2)).numpy()
        if carried is None:
            return weight, np.full(len(weight), np.nan)
        length = carried.double().mean(dim=(0, 1)).numpy()
        return weight, length / length.sum()

    def _heads(self, key: int) -> np.ndarray:
        """Return the change without each head's edges to a key alone, [layer, head]."""
        shape = self._study.weights.shape[:2]
        variants = [Variant(edges=self._edges(key, [place])) for place in range(shape.numel())]
        return self._study.run(variants)[0].reshape(shape)

    def _verdict(
        self, key: int, change: float, everywhere: float, is_attended: bool, heads: np.ndarray
    ) -> Verdict:
        """Judge a key by its cuts, and by the cut of the head that changes most alone."""
        study = self._study
        by_key = self._is_whole
        here = compare(study, self._edges(key), float(change), self._random, by_key=by_key)
        place = int(heads.argmax())
        layer, head = divmod(place, heads.shape[1])
        largest = float(heads[layer, head])
        of_head = compare(study, self._edges(key, [place]), largest, self._random, by_key=by_key)
        through: Comparison | None = None
        is_more = everywhere >= THROUGH * change
        if here is not None and not here.counts and is_more and not self._is_whole:
            weights = study.of_all_rows()
            edges = torch.zeros(weights.shape, dtype=torch.bool)
            edges[..., key] = True
            edges[study.is_self, :, key, key] = False
            rows = torch.arange(weights.shape[2])
            through = compare(study, edges, float(everywhere), self._random, weights, rows)
        return Verdict(
            name=name_of(
                here,
                through,
                of_head,
                is_attended=is_attended,
                is_whole=self._is_whole,
                least=LEAST_NATS if study.predicts else 0.0,
            ),
            here=here,
            everywhere=through,
            head=(layer, head),
            of_head=of_head,
        )

    def _without_heads(self) -> np.ndarray:
        """Return the change without each head at all, [layer, head]."""
        study, shape = self._study, self._study.of_all_rows().shape
        variants = []
        for layer in study.shown:
            for head in range(shape[1]):
                edges = torch.zeros(shape, dtype=torch.bool)
                edges[layer, head] = True
                variants.append(Variant(edges=edges))
        changes, _ = study.run(variants, torch.arange(shape[2]))
        return changes.reshape(len(study.shown), shape[1])


def _rows(
    tokens: Sequence[Token], of: str | None, word: str | None, *, is_translation: bool
) -> tuple[int, ...]:
    """Return the rows of an output: of a word, of all tokens, or the one whose next word is predicted."""
    if is_translation and word is None and of == NEXT:
        return (0,)
    if of == SENTENCE:
        return tuple(range(len(tokens)))
    if of == NEXT or (word is not None and not is_translation):
        return (len(tokens) - 1,)
    name = word if of is None else of
    assert name is not None
    if name.isdecimal() and int(name) < len(tokens):
        return (int(name),)
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
    raise SelectionError(f"there is no word “{visible(name)}” in this text{suggest(name, words)}")


def _texts(tokens: Sequence[Token], places: Sequence[int]) -> list[str]:
    """Return the texts of the pieces of a word, without the marks that they have."""
    return [tokens[place].text.lstrip("·") for place in places]
