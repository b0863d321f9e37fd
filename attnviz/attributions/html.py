"""The page of an attribution: the sentence shaded by the cut, a card for each token, maps of heads, and a table."""

from __future__ import annotations

from collections.abc import Iterator
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np

from attnviz.attributions import terminal
from attnviz.attributions.record import COLUMNS, Attribution
from attnviz.attributions.verdicts import (
    DEVIATIONS,
    LEAST_NATS,
    MANY_DEVIATIONS,
    RATIO,
    SMALL_RATIO,
    USED,
)
from attnviz.look import Look, Palette
from attnviz.pages import WebPage
from attnviz.render.html import build, template
from attnviz.render.palette import hexed, levels, text_colours
from attnviz.render.sheet import KINDS
from attnviz.render.theme import DARK, LIGHT, theme_of
from attnviz.text.display import clip, percent, visible, with_particles
from attnviz.text.messages import _
from attnviz.text.notes import proof, sentence

HERE = Path(__file__).parent
OWN = (HERE / "scripts" / "attribution.js", HERE / "scripts" / "attribution.css")
STEP = 15  # levels of the palette from one of the 18 shades of the page to the next
CUTS = COLUMNS[2:]
LONGEST = 80  # characters of a token


def page(attribution: Attribution, look: Look) -> WebPage:
    """Return an attribution as one interactive HTML page. Raises SelectionError: the palette is unknown."""
    theme_of(look.theme, look.palette)
    power = 1 if attribution.after is None else 2  # of divergences, which grow with the square
    body = template(HERE / "templates" / "attribution.html").render(
        attribution=attribution,
        columns=list(_columns(attribution)),
        words=list(_words(attribution)),
        terminal=terminal,
        amount=lambda change: terminal.amount(float(change), attribution),
        percent=percent,
        shade=_shade,
        rules=[(RATIO**power, DEVIATIONS), (SMALL_RATIO**power, MANY_DEVIATIONS)],
        least=LEAST_NATS,
        heads=with_particles(terminal.heads_sentence(attribution)),
        notes=list(map(sentence, attribution.notes)),
    )
    head = [
        ("second", with_particles(terminal.second_sentence(attribution))),
        ("model", f"{visible(attribution.model)} · {_(KINDS[attribution.kind])}"),
        ("proof proved", proof(attribution.receipt)),
    ]
    return WebPage(
        build(
            with_particles(terminal.first_sentence(attribution)),
            [line for line in head if line[1]],
            labels={},
            own=OWN,
            theme=look.theme,
            shared=(),
            body=body,
            rules=_rules(look.palette),
        )
    )


def _columns(attribution: Attribution) -> Iterator[dict[str, Any]]:
    """Yield the columns that are known, with bars of 0 to 100."""
    known = [name for name in COLUMNS if not np.isnan(getattr(attribution, name)).all()]
    for name, (title, values) in zip(known, terminal.columns_of(attribution).items(), strict=True):
        is_cut, is_ranked = name in CUTS, values is attribution.change
        after = attribution.after if is_cut else None
        yield {
            "name": name,
            "title": title,
            "values": values,
            "known": ~np.isnan(values),
            "bars": (100 * values / max(np.nanmax(values), 1e-12)).round(1),
            "is_share": not is_cut,
            "is_ranked": is_ranked,  # whether words are shaded by it
            # the field of a verdict with its controls
            "compared": "here" if is_ranked else name if name == "everywhere" else "",
            "after": None if after is None else after[CUTS.index(name)],
        }


def _words(attribution: Attribution) -> Iterator[dict[str, Any]]:
    """Yield each token as the sentence shows it: the space before it in the text, its name, verdict and marks."""
    output, end = attribution.output, 0
    # Of a prediction the row is where it is read, and in a translation it is not in the sentence.
    is_word = output.kind in {"word", "hidden"} and attribution.kind != "cross"
    top = float(np.nanmax(attribution.change))
    for place, (token, verdict) in enumerate(
        zip(attribution.tokens, attribution.verdicts, strict=True)
    ):
        gap = " "
        if token.span is not None:  # some vocabularies count the space before a word to it
            typed = attribution.text[end : token.span[1]]
            gap, end = typed[: len(typed) - len(typed.lstrip())], token.span[1]
        change = float(attribution.change[place])
        marks = {
            "uncut" if isnan(change) else f"shade-{_shade(change, top)}": True,
            "special": token.special,
            "output": is_word and place in output.rows,
            "tested": verdict is not None,
            "used": verdict is not None and verdict.name in USED,
        }
        name = clip(visible(token.text), LONGEST)
        judged = _("not cut") if isnan(change) else terminal.verdict_name(verdict)
        yield {
            "gap": gap,
            "name": name,
            "text": name if gap else name.removeprefix("·"),
            "verdict": judged,
            "label": f"{name}: {terminal.amount(change, attribution)} {judged}",
            "marks": " ".join(mark for mark, has in marks.items() if has),
        }


def _shade(change: float, top: float) -> int:
    """Return the shade of a change on a scale from 0 to `top`."""
    return round(int(levels(np.array(change), top)) / STEP)


def _rules(palette: Palette) -> str:
    """Return the style of each shade, on light pages and on dark ones."""
    light, dark = (
        "\n".join(
            f".shade-{n} {{ background: {hexed(colour)}; color: {ink}; }}"
            for n, (colour, ink) in enumerate(zip(table, text_colours(table), strict=True))
        )
        for table in (theme.colours(palette)[::STEP] for theme in (LIGHT, DARK))
    )
    return f"{light}\n@media screen {{ @media (prefers-color-scheme: dark) {{\n{dark}\n}} }}"
