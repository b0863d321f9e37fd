"""The picture of an attribution: a bar for each token in each column, the verdicts, and a map of the heads."""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING

import numpy as np

from attnviz.attributions.record import Attribution
from attnviz.attributions.terminal import (
    amount,
    columns_of,
    first_sentence,
    heads_sentence,
    shown_tokens,
    verdict_name,
)
from attnviz.attributions.verdicts import USED
from attnviz.look import Look
from attnviz.render.fonts import typefaces_for
from attnviz.render.palette import colours, levels
from attnviz.render.picture import (
    POINT,
    Picture,
    Style,
    break_lines,
    height_of,
    missing_line,
    new_figure,
    settings,
    style_of,
    write_lines,
)
from attnviz.render.theme import Theme, theme_of
from attnviz.text.display import clip, with_particles
from attnviz.text.messages import _, pgettext
from attnviz.text.notes import proof

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

WIDTH = 10.0  # inches, where the style leaves it open
ROW = 2.0  # the height of a token's row, in sizes of letters
NARROW = 5.0  # inches; a narrower picture has three columns and no map
GAP = 0.2  # inches between the texts and the charts
LABEL = 18  # most characters of a token
MOST_TICKS = 8  # heads that are numbered on a map


def draw(attribution: Attribution, look: Look) -> Picture:
    """Draw the columns of an attribution side by side, with a sentence above and the receipt below.

    Raises SelectionError: the palette is unknown.
    """
    from matplotlib.transforms import Bbox

    style, theme = style_of(look), theme_of(look.theme, look.palette)
    title = with_particles(first_sentence(attribution))
    caption = f"{with_particles(heads_sentence(attribution))} {proof(attribution.receipt)}"
    places = shown_tokens(attribution)
    labels = [clip(attribution.tokens[place].text, LABEL) for place in places]
    verdicts = [verdict_name(attribution.verdicts[place]) for place in places]
    columns = columns_of(attribution)
    typefaces = typefaces_for([title, caption, *labels, *verdicts, *columns])
    width = style.width or WIDTH
    is_narrow = width < NARROW
    if is_narrow:  # the weights, and the cuts that the verdicts are about
        kept = {pgettext("column", name) for name in ("weight", "cut here", "everywhere")}
        columns = {name: values for name, values in columns.items() if name in kept}
    text_width = width - 2 * style.margin
    head = break_lines([title] * style.has_title, text_width, 1.25 * style.letters)
    foot = break_lines(
        [caption] * bool(style.caption), text_width, 0.9 * style.letters, is_quiet=True
    )
    foot += missing_line(typefaces, style, text_width)
    top = style.margin + height_of(head) + (GAP if head else 0)
    bottom = height_of(foot) + style.margin + (GAP if foot else 0)
    room = (len(places) + 3) * ROW * style.letters * POINT
    height = style.height or top + room + bottom
    with settings(style, theme, typefaces):
        figure = new_figure(width, height)
        write_lines(figure, theme, head, style.margin, style.margin)
        write_lines(figure, theme, foot, style.margin, height - bottom + GAP)
        figure.set_layout_engine(
            "constrained",
            rect=(
                style.margin / width,
                bottom / height,
                text_width / width,
                (height - top - bottom) / height,
            ),
        )
        token = clip(attribution.tokens[attribution.chosen].text, LABEL)
        maps = {_("“{token}”, by head").format(token=token): attribution.heads}
        if attribution.without_head is not None:
            maps[_("Without each head at all")] = attribution.without_head
        if attribution.heads.size == 1 or is_narrow:
            maps = {}
        shares = [*[1.0] * len(columns), *[1.6] * len(maps)]
        axes = figure.subplots(1, len(shares), squeeze=False, width_ratios=shares)[0]
        for ax, (name, values) in zip(axes, columns.items(), strict=False):
            names = labels if ax is axes[0] else [""] * len(labels)
            _bars(ax, attribution, name, values[places], names, style, theme)
        used = [verdict is not None and verdict.name in USED for verdict in attribution.verdicts]
        last = axes[len(columns) - 1].twinx()
        last.set_ylim(axes[0].get_ylim())
        last.set_yticks(range(len(places)), verdicts, fontsize=style.small)
        last.tick_params(length=0)
        for tick, place in zip(last.get_yticklabels(), places, strict=True):
            tick.set_color(theme.ink if used[place] else theme.quiet)
        last.spines[:].set_visible(False)
        for ax, (name, heads) in zip(axes[len(columns) :], maps.items(), strict=True):
            _map_of_heads(ax, name, heads, attribution.layers, look, style, theme)
        figure.draw_without_rendering()
        figure.set_layout_engine("none")
        # The solver's last bits change from run to run, and equal attributions should give equal files.
        for ax in figure.axes:
            ax.set_position(Bbox(ax.get_position(original=True).get_points().round(6)))
    return Picture(
        figure=figure,
        title=title,
        description=caption,
        style=style,
        theme=theme,
        typefaces=typefaces,
    )


def _bars(
    ax: Axes,
    attribution: Attribution,
    name: str,
    values: np.ndarray,
    labels: list[str],
    style: Style,
    theme: Theme,
) -> None:
    """Draw a column as bars with their numbers."""
    is_share = name in {pgettext("column", "weight"), pgettext("column", "carried")}
    shown = np.nan_to_num(values)
    bars = ax.barh(range(len(values)), shown, color=theme.series[0], height=0.7)
    texts = [
        f"{value:.0%}" if is_share and not math.isnan(value) else amount(float(value), attribution)
        for value in values
    ]
    ax.bar_label(bars, texts, padding=2, fontsize=style.small, color=theme.quiet)
    ax.set_xlim(0, 2 * max(float(shown.max()), 1e-12))
    ax.set_title(name, fontsize=style.small)
    ax.set_xticks([])
    ax.set_yticks(range(len(values)), labels)
    ax.tick_params(length=0, labelsize=style.letters)
    ax.invert_yaxis()
    ax.spines[["top", "right", "bottom"]].set_visible(False)


def _map_of_heads(
    ax: Axes,
    title: str,
    heads: np.ndarray,
    layers: Sequence[int],
    look: Look,
    style: Style,
    theme: Theme,
) -> None:
    """Draw the change without each head as a map of layers and heads."""
    table = colours(look.palette, on_dark=theme.is_dark)
    ax.imshow(table[levels(heads, float(heads.max()) or 1.0)], interpolation="none")
    ax.set_title("\n".join(textwrap.wrap(title, LABEL)), fontsize=style.letters)
    ax.set_xlabel(_("head"), fontsize=style.letters)
    ax.set_ylabel(
        _("layer"), fontsize=style.letters, rotation="horizontal", ha="right", va="center"
    )
    every = math.ceil(heads.shape[1] / MOST_TICKS)
    ax.set_xticks(range(0, heads.shape[1], every))
    ax.set_yticks(range(0, heads.shape[0], every), list(map(str, layers[::every])))
    ax.tick_params(length=0, labelsize=style.small)
