"""The difference of two records: two sentences in one model, or two models on one sentence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import NamedTuple

import numpy as np
from jaxtyping import Float32

from attnviz.attention import (
    Attention,
    HeadChoice,
    LayerChoice,
    Note,
    OfHeads,
    Place,
    Token,
    count,
    list_heads,
    spans,
)
from attnviz.errors import SelectionError
from attnviz.heatmaps.finding import Change
from attnviz.heatmaps.words import expect_tokens, merge_words
from attnviz.look import Scale
from attnviz.render.sheet import Sheet, resolve, with_differences
from attnviz.text.display import clip, visible
from attnviz.text.messages import N_, _
from attnviz.text.notes import NOTES as OF_RECORDS
from attnviz.text.notes import Templates, proof, sentence

LONGEST_TEXT = 120  # characters of each of two texts, so that a title has room for both
MOST_REPLACED = 2  # words that stand for one another, and are named before the largest change
MOST_NAMED = 8  # tokens that a note names
MOST_CHANGES = 100  # that views choose from
# What a part of a record says of the numbers of its tokens; tokens of a difference are counted from 0.
PLACES = {"part", "sinks_hidden", "row_generates_word", "row_generates_token"}
NOTES: Templates = {
    **OF_RECORDS,
    "compared_by_number": N_("Compared by number, which both have: layer {layers}; head {heads}"),
    "words_compared": N_("The models have different tokens: words are compared"),
    "only_in_this": N_("Left out, since the other has no such word: {tokens}"),
    "only_in_other": N_("Left out, since only the other has it: {tokens}"),
    "rows_of_difference": N_("Keys are left out, so the rows of the difference need not sum to 0"),
}


class Pairs(NamedTuple):
    """The indices of tokens that align: in `x`, and in `y`."""

    x: tuple[int, ...]
    y: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Difference(OfHeads):
    """The attention of record `x` minus that of record `y`, where their tokens align.

    A positive number is a weight that is larger in `x`. The difference has no receipt of its own: each of the two
    records has one.
    """

    ENDINGS = (".png", ".svg", ".pdf", ".html")

    x: Attention  # the layers and heads that both have
    y: Attention  # the same layers and heads
    queries: Pairs  # the rows that align
    keys: Pairs  # the columns that align
    notes: tuple[Note, ...] = ()  # what is compared, and what is left out

    def __repr__(self) -> str:
        *_counts, n_queries, n_keys = self.weights.shape
        changes = self.largest(1)
        change = changes[0].sentence if changes else "no weight differs"
        models = " minus ".join(dict.fromkeys((repr(self.x.model), repr(self.y.model))))
        return (
            f"<Difference of {models} ({self.x.kind}): {self.x.extent}, "
            f"{count(n_queries, 'query', 'queries')} x {count(n_keys, 'key')}; {change}>"
        )

    @property
    def layers(self) -> tuple[int, ...]:
        """The numbers of the layers."""
        return self.x.layers

    @property
    def heads(self) -> tuple[int, ...]:
        """The numbers of the heads."""
        return self.x.heads

    @property
    def query_tokens(self) -> tuple[Token, ...]:
        """The tokens of the rows; one that stands for another has both texts, such as ``wide → tired``."""
        return _pair_tokens(self.x.query_tokens, self.y.query_tokens, self.queries)

    @property
    def key_tokens(self) -> tuple[Token, ...]:
        """The tokens of the columns, in the same form."""
        return _pair_tokens(self.x.key_tokens, self.y.key_tokens, self.keys)

    @property
    def weights(self) -> Float32[np.ndarray, "layer head query key"]:
        """The weights of `x` minus those of `y`, from -1 to 1.

        The rows of both records sum to 1, so a row sums to 0 if no key is left out.
        """
        return self[:]

    def _aligned(
        self, place: Place = slice(None)
    ) -> tuple[Float32[np.ndarray, "*axis query key"], Float32[np.ndarray, "*axis query key"]]:
        """Return the weights of `x` and of `y` between the tokens that align, in these layers and heads."""
        return (
            self.x[place][..., self.queries.x, :][..., self.keys.x],
            self.y[place][..., self.queries.y, :][..., self.keys.y],
        )

    @property
    def proof(self) -> str:
        """The receipts of the two records in words; the difference has none of its own."""
        return _("no receipt of its own; this: {x}; the other: {y}").format(
            x=proof(self.x.receipt), y=proof(self.y.receipt)
        )

    def __getitem__(self, place: Place) -> Float32[np.ndarray, "*axis query key"]:
        """Return the differences in layers and heads, which are named as those of a record are.

        ``difference[2, 4]`` is one head's matrix (query, key), and ``difference[2]`` one layer (head, query, key).
        Raises SelectionError: a layer or head is not in both records.
        """
        x, y = self._aligned(place)
        return np.asarray(x - y)

    def largest(self, n: int = 10) -> list[Change]:
        """Return the n largest changes of a weight, the largest first; weights that are equal are no change.

        Special tokens, such as ``[CLS]``, are left out unless there are no others. The first change also names the
        words that stand for one another in the two records.
        """
        after, before = self._aligned()
        sizes = np.abs(after - before)
        queries, keys = self.query_tokens, self.key_tokens
        is_named = np.outer(
            [not token.special for token in queries], [not token.special for token in keys]
        )
        if is_named.any():
            sizes = np.where(is_named, sizes, 0)
        # Sorting all weights of a long text would take seconds; of equal ones the first in order comes first.
        n_smaller = max(0, sizes.size - max(n, 1))
        least = np.partition(sizes, n_smaller, axis=None)[n_smaller]
        candidates = np.flatnonzero((sizes >= least) & (sizes > 0))
        order = candidates[np.argsort(-sizes.ravel()[candidates], kind="stable")]
        pairs = zip(keys, self.keys.x, strict=True)
        replaced = [key.text for key, i in pairs if key.text != self.x.key_tokens[i].text]
        changes: list[Change] = []
        for flat in order[:n]:
            place = np.unravel_index(flat, sizes.shape)
            layer, head, query, key = map(int, place)
            own_layer, own_head = self.x.places[layer * len(self.heads) + head]
            changes.append(
                Change(
                    layer=own_layer,
                    head=own_head,
                    query=query,
                    key=key,
                    before=float(before[place]),
                    after=float(after[place]),
                    words=(queries[query].text, keys[key].text),
                    averaged=tuple(self.x.averaged),
                    moved=self._moved(before[layer, head, query], after[layer, head, query], key),
                    replaced="" if changes else ", ".join(replaced[:MOST_REPLACED]),
                )
            )
        return changes

    def _moved(
        self, before: Float32[np.ndarray, " key"], after: Float32[np.ndarray, " key"], key: int
    ) -> tuple[tuple[str, float], tuple[str, float]] | None:
        """Return the largest key of a row in `y` and in `x`, with their weights.

        None if they are one key, or if neither is the `key` whose weight changes.
        """
        old, new = int(before.argmax()), int(after.argmax())
        if old == new or key not in (old, new):
            return None
        old_text = self.y.key_tokens[self.keys.y[old]].text
        new_text = self.x.key_tokens[self.keys.x[new]].text
        return (old_text, float(before[old])), (new_text, float(after[new]))

    def select(self, layers: Sequence[int] | None = None, heads: HeadChoice = None) -> Difference:
        """Return the difference in these layers and heads; None keeps all. Raises SelectionError, as for a record."""
        return replace(self, x=self.x.select(layers, heads), y=self.y.select(layers, heads))

    def choose(
        self, layer: LayerChoice = None, head: HeadChoice = None
    ) -> tuple[Difference, Difference]:
        """Return the difference, and its part with the chosen layer and head, as for a record.

        Raises SelectionError: there is no such layer or head, or a mean is chosen.
        """
        if "mean" in (layer, *list_heads(head)):
            raise SelectionError(
                "take the mean of both records first, as in difference(x.mean(), y.mean())"
            )
        _record, chosen = self.x.choose(layer, head)
        return self, self.select(heads=chosen.places)

    def sheet(self, scale: Scale = "shared") -> Sheet:
        """Return the content of a picture, on a diverging scale around 0. Raises SelectionError: it is logarithmic."""
        labels = self.x.derive(
            weights=self._aligned()[0],
            query_tokens=self.query_tokens,
            key_tokens=self.key_tokens,
            short_rows=tuple(dict.fromkeys((*self.x.short_rows, "dropped"))),
            notes=tuple(note for note in self.x.notes if note.code not in PLACES),
            vectors=None,
            exact=None,
            receipt=None,
        )
        sheet = resolve(labels, scale)
        names = dict.fromkeys(visible(record.model) for record in (self.y, self.x))
        kind = sheet.model.rpartition(" · ")[2]
        texts = dict.fromkeys(resolve(record).sentence for record in (self.y, self.x))
        longest = LONGEST_TEXT if len(texts) > 1 else max(map(len, texts))
        return replace(
            with_differences(sheet, [*self.weights.reshape(-1, *self.weights.shape[2:])]),
            sentence=" → ".join(clip(text, longest) for text in texts if text),
            model=f"{' → '.join(names)} · {kind}",
            notes=tuple(sentence(note, NOTES) for note in self.notes),
            proof=self.proof,
            changes=tuple(self.largest(MOST_CHANGES)),
        )


def sheet_of(result: Attention | Difference, scale: Scale = "shared") -> Sheet:
    """Return the content of a picture of a record or a difference."""
    return result.sheet(scale) if isinstance(result, Difference) else resolve(result, scale)


def difference(x: Attention, y: Attention) -> Difference:
    """Return the attention of `x` minus that of `y`, where the tokens, layers and heads of both align.

    Equal tokens align one to one, or by their longest common runs (`difflib.SequenceMatcher`); those of two models with
    different tokenizers after word pieces are merged into words. Between two such runs, equally many other tokens stand
    for one another. A token without partner is left out, with its row and column, and a note says so.

    Args:
        x: a record. A weight that is larger in `x` gives a positive number.
        y: the record to subtract, such as that of the model before a change.

    Raises:
        SelectionError: the records have different kinds of attention, no token, layer or head in common, or one of them
            is pooled or a mean of other axes.
        SettingsError: one of the two is no record.
    """
    for record in (x, y):
        expect_tokens(record)
    if x.kind != y.kind:
        raise SelectionError(
            f"the first record is {x.kind} attention and the second {y.kind}: a difference is of one kind"
        )
    if x.averaged.keys() != y.averaged.keys():
        raise SelectionError("take the mean of both records over the same axes, or of neither")
    places = [place for place in x.places if place in y.places]
    if not places:
        raise SelectionError("the two records have no layer or no head in common")
    notes: list[Note] = []
    if x.places != y.places:
        layers, heads = (spans([*dict.fromkeys(axis)]) for axis in zip(*places, strict=True))
        notes.append(Note.of("compared_by_number", layers=layers, heads=heads))
    x, y = x.select(heads=places), y.select(heads=places)
    has_equal_tokens = [token.piece for token in x.key_tokens] == [t.piece for t in y.key_tokens]
    # One tokenizer does not read one text in two ways, so these are two tokenizers.
    by_words = not has_equal_tokens and (x.model != y.model or x.text == y.text)
    if by_words:
        x, y = _in_words(x), _in_words(y)
        notes.append(Note.of("words_compared"))
    queries = _align(x.query_tokens, y.query_tokens, fold_case=by_words)
    keys = _align(x.key_tokens, y.key_tokens, fold_case=by_words)
    if not queries.x or not keys.x:
        raise SelectionError(
            "the two records have no token in common, so no weights can be compared"
        )
    notes += _left_out(x, y, keys)
    notes += dict.fromkeys(note for note in (*y.notes, *x.notes) if note.code not in PLACES)
    return Difference(x=x, y=y, queries=queries, keys=keys, notes=tuple(notes))


def _in_words(record: Attention) -> Attention:
    """Return a record of words; one that does not know its words keeps its tokens."""
    tokens = (*record.query_tokens, *record.key_tokens)
    return record if all(token.word is None for token in tokens) else merge_words(record)


def _align(x: Sequence[Token], y: Sequence[Token], *, fold_case: bool) -> Pairs:
    """Return the tokens that align, in ascending order; none if no token is in both.

    With `fold_case`, upper and lower case are equal: one of two models may know lower case only.
    """
    x_texts, y_texts = (
        [token.text.casefold() if fold_case else token.text for token in tokens]
        for tokens in (x, y)
    )
    blocks = SequenceMatcher(None, y_texts, x_texts, autojunk=False).get_opcodes()
    if not any(name == "equal" for name, *_places in blocks):
        return Pairs((), ())
    pairs = [
        (x_index, y_index)
        for name, y_first, y_last, x_first, x_last in blocks
        if name == "equal" or (name == "replace" and y_last - y_first == x_last - x_first)
        for x_index, y_index in zip(range(x_first, x_last), range(y_first, y_last), strict=True)
    ]
    x_indices, y_indices = zip(*pairs, strict=True)
    return Pairs(x_indices, y_indices)


def _pair_tokens(x: Sequence[Token], y: Sequence[Token], pairs: Pairs) -> tuple[Token, ...]:
    """Return the tokens of `x` that align; one that stands for another in `y` has both texts."""
    tokens = []
    for x_index, y_index in zip(*pairs, strict=True):
        token, other = x[x_index], y[y_index]
        if token.text.casefold() != other.text.casefold():
            token = replace(token, text=f"{other.text} → {token.text}")
        tokens.append(token)
    return tuple(tokens)


def _left_out(x: Attention, y: Attention, keys: Pairs) -> Iterator[Note]:
    """Yield notes about the keys that have no partner, if there are any."""
    codes = ("only_in_this", "only_in_other")
    lacking = []
    for record, aligned in ((x, keys.x), (y, keys.y)):
        indices = set(aligned)
        lacking.append([t.text for i, t in enumerate(record.key_tokens) if i not in indices])
    for code, tokens in zip(codes, lacking, strict=True):
        if tokens:
            named = ", ".join(f"“{clip(token, 24)}”" for token in tokens[:MOST_NAMED])
            yield Note.of(code, tokens=named + (" …" if len(tokens) > MOST_NAMED else ""))
    if any(lacking):
        yield Note.of("rows_of_difference")
