"""The difference of two records: two sentences in one model, or two models on one sentence."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float32

from attnviz.attention import EXACT, POOLED, Attention, HeadChoice, LayerChoice, Place, Token, count
from attnviz.errors import SelectionError, SettingsError
from attnviz.heatmaps.figure import check_title, choose, draw
from attnviz.heatmaps.finding import Change
from attnviz.heatmaps.words import merge_words
from attnviz.render.figure.export import Picture
from attnviz.render.figure.style import StyleName, style_of
from attnviz.render.sheet import Scale, Sheet, resolve, with_values
from attnviz.render.theme import ThemeName, theme_of
from attnviz.storage.files import check_ending, write_whole
from attnviz.text.display import clip, visible
from attnviz.text.messages import Phrase, _, expect_language, in_language, join_phrases, ngettext
from attnviz.text.notes import proof, sentence

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from attnviz.pages import WebPage

LONGEST_TEXT = 120  # characters of each of two texts, so that a title has room for both
MOST_NAMED = 8  # tokens without partner that a note names
# What a part of a record says of the numbers of its tokens; tokens of a difference are counted from 0.
PLACES = {"part", "sinks_hidden", "row_generates_word", "row_generates_token"}


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Difference:
    """The attention of a second record minus that of a first one, where their tokens align.

    A positive number is a weight that is larger in `b`. The difference has no receipt of its own: each of the two
    records has one.
    """

    ENDINGS = (".png", ".svg", ".pdf", ".html")

    a: Attention  # the first record: the layers and heads that both have
    b: Attention  # the second record: the same layers and heads
    # The indices of tokens that align: in `a`, and in `b`.
    query_pairs: tuple[tuple[int, int], ...]
    key_pairs: tuple[tuple[int, int], ...]
    notes: tuple[Phrase, ...] = ()  # what is compared, and what is left out

    def __repr__(self) -> str:
        n_layers, n_heads, n_queries, n_keys = self.weights.shape
        changes = self.largest(1)
        change = changes[0].sentence if changes else "no weight differs"
        models = " minus ".join(dict.fromkeys((repr(self.b.model), repr(self.a.model))))
        return (
            f"<Difference of {models} ({self.b.kind}): {count(n_layers, 'layer')} x {count(n_heads, 'head')}, "
            f"{count(n_queries, 'query', 'queries')} x {count(n_keys, 'key')}; {change}>"
        )

    @property
    def layers(self) -> tuple[int, ...]:
        """The numbers of the layers."""
        return self.b.layers

    @property
    def heads(self) -> tuple[int, ...]:
        """The numbers of the heads."""
        return self.b.heads

    @property
    def query_tokens(self) -> tuple[Token, ...]:
        """The tokens of the rows, as the second record has them."""
        return tuple(self.b.query_tokens[index] for _, index in self.query_pairs)

    @property
    def key_tokens(self) -> tuple[Token, ...]:
        """The tokens of the columns, as the second record has them."""
        return tuple(self.b.key_tokens[index] for _, index in self.key_pairs)

    @property
    def weights(self) -> Float32[np.ndarray, "layer head query key"]:
        """The weights of `b` minus those of `a`, from -1 to 1.

        The rows of both records sum to 1, so a row sums to 0 if no key is left out.
        """
        return self[:]

    def _aligned(
        self, place: Place = slice(None)
    ) -> tuple[Float32[np.ndarray, "*axis query key"], Float32[np.ndarray, "*axis query key"]]:
        """Return the weights of `a` and of `b` between the tokens that align, in these layers and heads."""
        a_queries, b_queries = zip(*self.query_pairs, strict=True)
        a_keys, b_keys = zip(*self.key_pairs, strict=True)
        return (
            self.a[place][..., a_queries, :][..., a_keys],
            self.b[place][..., b_queries, :][..., b_keys],
        )

    @property
    def proof(self) -> Phrase:
        """The receipts of the two records in words; the difference has none of its own."""
        return _("no receipt of its own; first: {first}; second: {second}").format(
            first=proof(self.a.receipt), second=proof(self.b.receipt)
        )

    def __getitem__(self, place: Place) -> Float32[np.ndarray, "*axis query key"]:
        """Return the changes in layers and heads, which are named as those of a record are.

        ``difference[2, 4]`` is one head's matrix (query, key), and ``difference[2]`` one layer (head, query, key).
        Raises SelectionError: a layer or head is not in both records.
        """
        before, after = self._aligned(place)
        return np.asarray(after - before)

    def __iter__(self) -> Iterator[Float32[np.ndarray, "head query key"]]:
        """Return the changes in each layer, in the order of `layers`."""
        return iter(self.weights)

    def __len__(self) -> int:
        """Return the number of layers."""
        return len(self.layers)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """Return `weights`, for ``np.asarray(difference)``."""
        return np.array(self.weights, dtype=dtype, copy=copy)

    def largest(self, n: int = 10) -> list[Change]:
        """Return the n largest changes of a weight, the largest first; weights that are equal are no change.

        Special tokens, such as ``[CLS]``, are left out unless there are no others.
        """
        before, after = self._aligned()
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
        candidates = np.flatnonzero(sizes >= least)
        order = candidates[np.argsort(-sizes.ravel()[candidates], kind="stable")]
        changes = []
        for flat in order[:n]:
            place = np.unravel_index(flat, sizes.shape)
            layer, head, query, key = map(int, place)
            if sizes[place] > 0:
                changes.append(
                    Change(
                        layer=self.layers[layer],
                        head=self.heads[head],
                        query=query,
                        key=key,
                        before=float(before[place]),
                        after=float(after[place]),
                        words=(queries[query].text, keys[key].text),
                        averaged=tuple(self.b.averaged),
                    )
                )
        return changes

    def select(
        self, layers: Sequence[int] | None = None, heads: Sequence[int] | None = None
    ) -> Difference:
        """Return the difference in these layers and heads; None keeps all. Raises SelectionError, as for a record."""
        return replace(self, a=self.a.select(layers, heads), b=self.b.select(layers, heads))

    def numbers(
        self, layer: LayerChoice = None, head: HeadChoice = None
    ) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the numbers of the chosen layers and heads; the arguments are as for `attnviz.heatmap`.

        Raises SelectionError: there are none, or a mean is chosen.
        """
        if "mean" in (layer, head):
            raise SelectionError(
                "take the mean of both records first, as in difference(a.mean(), b.mean())"
            )
        _record, chosen = choose(self.b, layer, head)
        return chosen.layers, chosen.heads

    def sheet(self, scale: Scale = "shared", lang: str = "en") -> Sheet:
        """Return the content of a picture, on a diverging scale around 0. Raises SelectionError: an unknown scale."""
        weights = self.weights
        labels = self.b.derive(
            weights=self._aligned()[1],
            query_tokens=self.query_tokens,
            key_tokens=self.key_tokens,
            short_rows=tuple(dict.fromkeys((*self.b.short_rows, "dropped"))),
            notes=tuple(note for note in self.b.notes if note.code not in PLACES),
            vectors=None,
            exact=None,
        )
        sheet = resolve(labels, scale, lang)
        matrices = [*weights.reshape(-1, *weights.shape[2:])]
        names = dict.fromkeys(visible(record.model) for record in (self.a, self.b))
        kind = sheet.model.rpartition(" · ")[2]
        texts = dict.fromkeys(resolve(record).sentence for record in (self.a, self.b))
        longest = LONGEST_TEXT if len(texts) > 1 else max(map(len, texts))
        return replace(
            with_values(sheet, matrices, "difference", 0.0),
            sentence=" → ".join(clip(text, longest) for text in texts if text),
            model=f"{' → '.join(names)} · {kind}",
            notes=tuple(in_language(note, lang) for note in self.notes),
            proof=in_language(self.proof, lang),
            is_proved=False,
        )

    def figure(
        self,
        layer: LayerChoice = None,
        head: HeadChoice = None,
        *,
        scale: Scale = "shared",
        lang: str = "en",
        title: str | None = "auto",
        style: StyleName = "sheet",
        theme: ThemeName = "auto",
        width: str | None = None,
        dpi: int | None = None,
    ) -> Figure:
        """Draw the difference as a Matplotlib figure: all heads, or one; the arguments are as for `attnviz.heatmap`."""
        chosen = self.select(*self.numbers(layer, head))
        return chosen._picture(scale, lang, title, style, theme, width, dpi).figure

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        scale: Scale = "shared",
        lang: str = "en",
        title: str | None = "auto",
        style: StyleName = "sheet",
        theme: ThemeName = "auto",
        width: str | None = None,
        dpi: int | None = None,
    ) -> Path:
        """Write a picture (``.png``, ``.svg``, ``.pdf``) or a page (``.html``); the two records hold the numbers.

        Raises:
            OutputError: the path has another ending, or the file cannot be written.
            SelectionError: there is no such scale or language.
            SettingsError: there is no such style or theme, or the width is impossible.
        """
        if check_ending(path, self.ENDINGS, "a difference is") == ".html":
            return self.page(lang, scale=scale, theme=theme).save(path)
        picture = self._picture(scale, lang, title, style, theme, width, dpi)
        return write_whole(path, picture.fill)

    def page(
        self, lang: str = "en", *, scale: Scale = "shared", theme: ThemeName = "auto"
    ) -> WebPage:
        """Make one HTML page of the difference and both records."""
        from attnviz.heatmaps.html import difference_page

        return difference_page(self, lang=lang, scale=scale, theme=theme)

    def _repr_html_(self) -> str | None:
        """Return the page of a small difference in an HTML frame, for notebooks; None for a large one."""
        return self.page()._repr_html_() if self.weights.nbytes <= EXACT else None

    def _repr_png_(self) -> bytes:
        """Return the picture, for notebooks that show no page."""
        return self._picture("shared", "en", "auto", "sheet", "auto", None, None).png()

    def _picture(
        self,
        scale: Scale,
        lang: str,
        title: str | None,
        style: StyleName,
        theme: ThemeName,
        width: str | None,
        dpi: int | None,
    ) -> Picture:
        expect_language(lang)
        changes = self.largest(1)
        return draw(
            self.sheet(scale, lang),
            title=check_title(title),
            style=style_of(style, width, dpi),
            theme=theme_of(theme),
            change=changes[0] if changes else None,
        )


def difference(a: Attention, b: Attention) -> Difference:
    """Return the attention of `b` minus that of `a`, where the tokens, layers and heads of both align.

    Equal tokens align one to one; otherwise the longest common runs of tokens do (`difflib.SequenceMatcher`), of two
    models with different tokens after merging word pieces into words. A token without partner is left out, with its
    row and column, and a note says so.

    Args:
        a: the first record, such as that of the model before a change.
        b: the second record. A weight that is larger in `b` gives a positive number.

    Raises:
        SelectionError: the records have different kinds of attention, no token, layer or head in common, or one of them
            is pooled or a mean of other axes.
        SettingsError: one of the two is no record.
    """
    for record in (a, b):
        if not isinstance(record, Attention):
            raise SettingsError(
                f"a difference is of two records, such as attnviz.attend returns, not of {type(record).__name__}"
            )
        if record.cell > 1:
            raise SelectionError(
                f"{POOLED}: choose a part of its rows and keys, or give it more memory"
            )
    if a.kind != b.kind:
        raise SelectionError(
            f"the first record is {a.kind} attention and the second {b.kind}: a difference is of one kind"
        )
    if a.averaged.keys() != b.averaged.keys():
        raise SelectionError("take the mean of both records over the same axes, or of neither")
    layers, heads = (
        [number for number in getattr(a, axis) if number in getattr(b, axis)]
        for axis in ("layers", "heads")
    )
    if not layers or not heads:
        raise SelectionError("the two records have no layer or no head in common")
    notes: list[Phrase] = []
    if (a.layers, a.heads) != (b.layers, b.heads):
        compared = _("Compared by number: {layers}; {heads}, which both have")
        layer_words = ngettext("layer {numbers}", "layers {numbers}", len(layers))
        head_words = ngettext("head {numbers}", "heads {numbers}", len(heads))
        notes.append(
            compared.format(
                layers=layer_words.format(numbers=_span(layers)),
                heads=head_words.format(numbers=_span(heads)),
            )
        )
    a, b = a.select(layers, heads), b.select(layers, heads)
    has_equal_tokens = _pieces(a.key_tokens) == _pieces(b.key_tokens)
    # One tokenizer does not read one text in two ways, so these are two tokenizers.
    by_words = not has_equal_tokens and (a.model != b.model or a.text == b.text)
    if by_words:
        a, b = _in_words(a), _in_words(b)
        notes.append(_("The models have different tokens: words are compared"))
    query_pairs = _align(a.query_tokens, b.query_tokens, fold_case=by_words)
    key_pairs = _align(a.key_tokens, b.key_tokens, fold_case=by_words)
    if not query_pairs or not key_pairs:
        raise SelectionError(
            "the two records have no token in common, so no weights can be compared"
        )
    notes.append(_alignment(a, b, key_pairs))
    if len(key_pairs) < max(len(a.key_tokens), len(b.key_tokens)):
        notes.append(_("Keys are left out, so the rows of the difference need not sum to 0"))
    notes += dict.fromkeys(
        sentence(note) for note in (*a.notes, *b.notes) if note.code not in PLACES
    )
    return Difference(a=a, b=b, query_pairs=query_pairs, key_pairs=key_pairs, notes=tuple(notes))


def _pieces(tokens: Sequence[Token]) -> list[str]:
    return [token.piece for token in tokens]


def _in_words(record: Attention) -> Attention:
    """Return a record of words; one that does not know its words keeps its tokens."""
    tokens = (*record.query_tokens, *record.key_tokens)
    return record if all(token.word is None for token in tokens) else merge_words(record)


def _align(
    a: Sequence[Token], b: Sequence[Token], *, fold_case: bool
) -> tuple[tuple[int, int], ...]:
    """Return the pairs of indices of tokens that align, in ascending order.

    With `fold_case`, upper and lower case are equal: one of two models may know lower case only.
    """
    a_texts, b_texts = (
        [token.text.casefold() if fold_case else token.text for token in tokens]
        for tokens in (a, b)
    )
    matcher = SequenceMatcher(None, a_texts, b_texts, autojunk=False)
    return tuple(
        (block.a + index, block.b + index)
        for block in matcher.get_matching_blocks()
        for index in range(block.size)
    )


def _alignment(a: Attention, b: Attention, pairs: Sequence[tuple[int, int]]) -> Phrase:
    """Return in words which key tokens align, and which ones have no partner."""
    a_indices, b_indices = (set(indices) for indices in zip(*pairs, strict=True))
    lacking = [
        [token.text for index, token in enumerate(record.key_tokens) if index not in indices]
        for record, indices in ((a, a_indices), (b, b_indices))
    ]
    if not any(lacking):
        all_align = ngettext("The only token aligns", "All {n:,} tokens align", len(pairs))
        return all_align.format(n=len(pairs))
    counts = ngettext(
        "{n:,} token aligns, of {of_first:,} and {of_second:,}",
        "{n:,} tokens align, of {of_first:,} and {of_second:,}",
        len(pairs),
    ).format(n=len(pairs), of_first=len(a.key_tokens), of_second=len(b.key_tokens))
    parts = [counts]
    templates = (_("left out of the first: {tokens}"), _("left out of the second: {tokens}"))
    for template, tokens in zip(templates, lacking, strict=True):
        if tokens:
            named = ", ".join(f"“{clip(token, 24)}”" for token in tokens[:MOST_NAMED])
            parts.append(template.format(tokens=named + (" …" if len(tokens) > MOST_NAMED else "")))
    return join_phrases(parts, "; ")


def _span(numbers: Sequence[int]) -> str:
    """Return numbers in words, such as ``0 to 5`` or ``0, 2``."""
    if len(numbers) > 1 and list(numbers) == list(range(numbers[0], numbers[-1] + 1)):
        return f"{numbers[0]}–{numbers[-1]}"
    return ", ".join(map(str, numbers))
