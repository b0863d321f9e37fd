"""Heatmaps from Python: ``attnviz.heatmap``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from numbers import Real
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from attnviz.attention import Attention, HeadChoice, LayerChoice, Token, count
from attnviz.errors import RecordError, SelectionError, SettingsError
from attnviz.heatmaps.difference import Difference, sheet_of
from attnviz.heatmaps.figure import check_title, draw, draw_on
from attnviz.look import Look, Palette, Scale, Style, Theme
from attnviz.render.pyplot import current_axes, register
from attnviz.render.sheet import TickLabels, with_labels, with_limits
from attnviz.storage.record_files import adopt
from attnviz.text.display import readable_pieces
from attnviz.text.messages import language

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Labels: TypeAlias = Sequence[Any] | tuple[Sequence[Any] | None, Sequence[Any] | None]


def heatmap(
    attention: Attention | Difference | Any,
    *place: Labels | LayerChoice | HeadChoice,
    tokens: Labels | None = None,
    layer: LayerChoice = None,
    head: HeadChoice = None,
    ax: Axes | None = None,
    palette: Palette | None = None,
    cmap: Palette | None = None,
    scale: Scale = "shared",
    vmin: float | None = None,
    vmax: float | None = None,
    cbar: bool | None = None,
    annot: bool | None = None,
    xticklabels: TickLabels = True,
    yticklabels: TickLabels = True,
    title: str | None = "auto",
    lang: str | None = None,
    style: Style = "sheet",
    theme: Theme = "auto",
    figsize: tuple[float, float] | None = None,
    dpi: int | None = None,
) -> Axes:
    """Draw attention: one head's pattern where layer and head are given, else all heads on one sheet.

    Where pyplot is imported, and in a notebook, the drawing is on pyplot's current figure, so that ``plt.savefig`` and
    ``plt.show`` find it, and a notebook shows it. One pattern is drawn on the current axes, as ``sns.heatmap`` does, if
    they are empty; everything else, and what has a style, theme, size or dpi, becomes a new figure.

    Args:
        attention: a record; weights as an array or a pandas frame of shape (key,), (query, key), (head, query, key) or
            (layer, head, query, key), each row a distribution over keys; or the tuple that ``output_attentions=True``
            returned for one sentence: per layer an array or tensor of shape (1, head, query, key); or the `Difference`
            of two records. Only a record has a receipt; the others are marked as not verified.
        place: the layer and the head, as in ``heatmap(record, 1, 2)``; or the tokens of an array, and then its layer
            and head.
        tokens: the labels of an array: one list for queries and keys, or a pair of lists; None, also in the pair,
            numbers them, or takes the labels of a frame. One row has labels of its keys only.
        layer: its number, counted from 0, negative from the end; ``"mean"`` for the mean over layers; None draws all
            layers.
        head: its number, counted like the layer; or a head with its layer, ``"2.3"``; ``"mean"`` for the mean of the
            heads; a list of any heads, ``["0.1", "1.2"]``, whose mean ``"mean"`` in the list is; None draws all heads.
        ax: the axes for one pattern with a short title; None takes pyplot's current axes if they are empty, or makes a
            figure with the sentence and the receipt.
        palette: the name of a colormap of Matplotlib or seaborn, the colormap itself, or a list of colours; weight 0
            has the end nearest to white, unless the name ends in ``_r``.
        cmap: another name of `palette`.
        scale: the weight with the strongest colour: ``shared``, the largest weight of all heads of the record;
            ``panel``, the largest of each head. ``log`` is ``shared`` with a logarithmic scale, which
            begins at 0.0001.
        vmin: the weight with the weakest colour, on the shared scale; None is 0. Of a difference, the larger distance
            of `vmin` and `vmax` from 0 holds for both sides.
        vmax: the weight with the strongest colour, on the shared scale; None is the largest weight.
        cbar: whether there is a colour bar; None draws one on a new figure only.
        annot: whether weights are printed in the cells; None prints them if they are large enough to read.
        xticklabels: labels of the keys, one for each, instead of the tokens; False for none.
        yticklabels: labels of the queries, given in the same way.
        title: another title, or None for none.
        lang: ``en`` or ``ko``; None is the language of `attnviz.text.messages.language`, English by default.
        style: what a new figure is for: ``sheet``, ``slides`` or ``paper``.
        theme: ``light`` or ``dark``; ``auto`` is light on a new figure, and follows the background of the figure of
            an `ax`.
        figsize: width and height of a new figure, in inches.
        dpi: the resolution of a new figure, in dots per inch.

    Returns:
        The axes with the drawing; its `figure` can be saved.

    Raises:
        RecordError: the array is no attention: it has other axes, its rows do not sum to 1, or tokens do not fit it.
        SelectionError: the layer, head, scale, colormap or language is unknown, the ends of the scale or the tick
            labels do not fit, or `ax` is given for several patterns.
        SettingsError: the style, theme, size or title is invalid, or one of a new figure is given with an `ax`.
    """
    tokens, layer, head = _by_position(place, tokens, layer, head)
    if isinstance(attention, Attention | Difference) and tokens is not None:
        raise RecordError("tokens are the labels of an array: a record has its own")
    if isinstance(attention, Difference) and (palette is not None or cmap is not None):
        raise SelectionError("a difference is red above 0 and blue below: give no palette")
    title = check_title(title)
    if cmap is not None:
        if palette is not None:
            raise SelectionError("cmap is another name of palette: give one of them")
        palette = cmap
    look = Look(palette=palette, scale=scale, style=style, theme=theme, dpi=dpi, figsize=figsize)
    with language(lang):
        if not isinstance(attention, Attention | Difference):
            attention = record_of(attention, tokens)
        whole, part = attention.choose(layer, head)
        sheet = sheet_of(part, scale)
        is_plain = (style, theme, figsize, dpi) == ("sheet", "auto", None, None)
        if ax is None and is_plain and len(sheet.panels) == 1:
            ax = current_axes()
        if ax is not None:
            # The scale of all panels, so that axes of a grid can be compared.
            places = {panel.place for panel in sheet.panels}
            of_all = sheet_of(whole, scale).panels
            sheet = replace(sheet, panels=tuple(one for one in of_all if one.place in places))
        sheet = with_labels(with_limits(sheet, vmin, vmax), yticklabels, xticklabels)
        if ax is None:
            figure = draw(sheet, look, title=title, cbar=cbar is not False, annot=annot).figure
            figure.sca(figure.axes[0])
            register(figure)
            return figure.axes[0]
        if not is_plain:
            raise SettingsError(
                "style, theme, figsize and dpi are of a new figure; an ax has its size and its background"
            )
        draw_on(ax, sheet, look.palette, title=title, cbar=bool(cbar), annot=annot)
        return ax


def _by_position(
    place: tuple[Any, ...], tokens: Labels | None, layer: LayerChoice, head: HeadChoice
) -> tuple[Labels | None, LayerChoice, HeadChoice]:
    """Return tokens, layer and head of ``heatmap(a, layer, head)`` or ``heatmap(a, tokens, layer, head)``.

    Raises SelectionError: an argument is given twice, or there are too many.
    """
    chosen: dict[str, Any] = {"tokens": tokens, "layer": layer, "head": head}
    names = ["tokens", "layer", "head"]
    if place and isinstance(place[0], (Real, str)):
        names = ["layer", "head"]
    if len(place) > len(names):
        raise SelectionError(
            f"at most {' and '.join(names)} are given by position, not {len(place)}"
        )
    for name, value in zip(names, place, strict=False):
        if chosen[name] is not None:
            raise SelectionError(f"{name} is given twice")
        chosen[name] = value
    return chosen["tokens"], chosen["layer"], chosen["head"]


def record_of(attention: np.ndarray | Sequence[Any], tokens: Labels | None = None) -> Attention:
    """Return a record of weights that another program computed; it has no receipt.

    The arguments are as for `heatmap`. Raises RecordError: the weights are not attention.
    """
    is_layers = (
        isinstance(attention, (tuple, list))
        and bool(attention)
        and all(len(getattr(layer, "shape", ())) > 1 for layer in attention)
    )
    weights = _stack_layers(tuple(attention)) if is_layers else _as_array(attention)
    if weights.dtype.kind not in "fiu" or not 1 <= weights.ndim <= 4 or not weights.size:
        raise RecordError(
            "expected numbers of shape (key,), (query, key), (head, query, key) or (layer, head, query, key), not "
            f"{weights.dtype} of shape {weights.shape}"
        )
    if tokens is None and hasattr(attention, "to_numpy"):  # pandas names rows and columns
        tokens = getattr(attention, "index", None)
        if weights.ndim == 2:
            tokens = tokens, getattr(attention, "columns", None)
    if weights.ndim == 1:
        weights = weights[None]
        if tokens is not None and _is_one_list(tokens):
            tokens = None, tokens
    queries, keys = _labels(tokens, weights.shape)
    name = "output_attentions" if is_layers else "an array"
    try:
        return adopt({"weights": weights, "query_tokens": queries, "key_tokens": keys}, name)
    except RecordError as error:
        raise RecordError(
            f"{error}; if the model was in training mode, call model.eval() before it runs; numbers that are no "
            "attention are drawn by seaborn.heatmap"
        ) from None


def _stack_layers(layers: Sequence[Any]) -> np.ndarray:
    """Return the weights (layer, head, query, key) of the tuple that ``output_attentions=True`` returns."""
    batches = [_to_numpy(layer) for layer in layers]
    for batch in batches:
        if batch.ndim != 4 or batch.shape[0] != 1:
            raise RecordError(
                f"each layer must have the shape (1, head, query, key), of one sentence, but one has {batch.shape}: "
                "choose a sentence as in tuple(layer[:1] for layer in attentions)"
            )
    if len({batch.shape for batch in batches}) > 1:
        raise RecordError(
            "the layers have other shapes: all must have the same heads, queries and keys"
        )
    return np.concatenate(batches)


def _as_array(attention: Any) -> np.ndarray:
    """Return an array, a tensor or nested lists of weights as an array.

    Raises RecordError: it is none of these, but for example what models return in the place of weights.
    """
    # The fused functions of transformers leave the tuple of layers empty, or full of None.
    first = next(iter(attention), None) if isinstance(attention, tuple) else attention
    if first is None:
        raise RecordError(
            'the model returned no weights: load it with attn_implementation="eager", or let attnviz run it, with '
            "attnviz.attend(text, model=model, tokenizer=tokenizer)"
        )
    if isinstance(attention, tuple) and isinstance(first, tuple):
        raise RecordError(
            "these are the weights of each step of generate(): let attnviz.generate(text, model=model, "
            "tokenizer=tokenizer) run the model, or choose one step, as in attentions[-1]"
        )
    if isinstance(attention, (list, tuple)):
        try:
            return np.array([*map(_to_numpy, attention)], dtype=np.float64)
        except (TypeError, ValueError):
            raise RecordError(
                "the rows given are no weights: each must have a number for each key"
            ) from None
    if not hasattr(attention, "__array__"):
        raise RecordError(
            f"attention is a record, an array, a tensor or a tuple of these, not {type(attention).__name__}"
        )
    return _to_numpy(attention)


def _to_numpy(weights: Any) -> np.ndarray:
    """Return an array, or a tensor of any device and number format, as an array."""
    if hasattr(weights, "detach"):
        weights = weights.detach().float().cpu()
    return np.asarray(weights)


def _labels(tokens: Labels | None, shape: tuple[int, ...]) -> tuple[list[str], list[str]]:
    """Return the labels of the queries and of the keys of weights of this shape."""
    n_queries, n_keys = shape[-2:]
    if tokens is None:
        tokens = None, None
    elif _is_one_list(tokens):  # for both sides
        tokens = tokens, tokens
    if len(tokens) != 2:
        raise RecordError(
            "tokens must be a label for each token, or two such lists: the queries' and the keys'"
        )
    queries, keys = (
        readable_pieces([token.text if isinstance(token, Token) else str(token) for token in side])
        for side in (
            range(size) if side is None else side
            for side, size in zip(tokens, shape[-2:], strict=True)
        )
    )
    if (len(queries), len(keys)) != (n_queries, n_keys):
        reason = (
            f"expected {count(n_queries, 'query token')} and {count(n_keys, 'key token')}, "
            f"not {len(queries)} and {len(keys)}"
        )
        n_more_queries, n_more_keys = n_queries - len(queries), n_keys - len(keys)
        virtual = f"[*map('virtual {{}}'.format, range({n_more_keys})), *tokens]"
        if n_more_keys > 0 and n_more_queries == 0:
            reason += f": name the keys that are no token too, such as a prefix, tokens=(tokens, {virtual})"
        elif n_more_keys == 0:
            reason += ": if rows are no tokens, number them, tokens=(None, tokens)"
        elif n_keys == 1:
            reason += ": if they are a weight for each token, give weights.squeeze()"
        elif len(keys) and n_more_keys > 0:
            reason += (
                ": if the others are padding, leave them out, as in "
                f"tuple(layer[:, :, :{len(queries)}, :{len(keys)}] for layer in attentions); if they are virtual "
                f"tokens before these, name them, tokens={virtual}"
            )
        raise RecordError(reason)
    return queries, keys


def _is_one_list(tokens: Labels) -> bool:
    """Return whether these labels are one list, and not a pair of lists."""
    return all(token is None or np.ndim(token) == 0 for token in tokens)
