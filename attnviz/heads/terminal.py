"""Views of heads in a terminal: an overview, a table, the heads on one sentence, and one head."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

import numpy as np
from rich.style import Style
from rich.text import Text

from attnviz.attention import Attention
from attnviz.heads import tables, words
from attnviz.heads.measures import CHANCE
from attnviz.heads.record import HeadComparison, HeadProfile, Role
from attnviz.heads.roles import CONTROLS
from attnviz.heads.selection import (
    RoleCard,
    by_role,
    clearest_card,
    link_words,
    linked_cells,
    received_by_words,
    shown_heads,
)
from attnviz.render.columns import Column
from attnviz.render.palette import LEVELS, levels, readable
from attnviz.render.terminal.screen import Screen
from attnviz.render.terminal.table import table
from attnviz.render.terminal.text import centre, fit, spell, wrap
from attnviz.text.display import HELD, number_text
from attnviz.text.messages import _

WIDE = 116  # columns of a window that is wide enough for descriptions beside the roles
OVERVIEW_LINES = 40  # most lines of the overview
CHANGED = 6  # number of heads in the table of those that differ most from a second model
NARROWEST_CARD = 48  # columns of a card of one head beside another
CELL = 5, 20  # smallest and largest width of a head on a map, in characters
REACH = 4  # largest offset of a small pattern, before and after the query
BAR, CHART = 30, 24  # characters of the longest bar, of a link and in a card
# The most characters of a token beside a pattern, and of a cell of the pattern.
LABEL, CELL_WIDTH = 10, 6
BARS, BARS_ASCII = " ▁▂▃▄▅▆▇█", " .:-=+*#@"
# The full height of a small pattern is at least this weight, so that an even head looks even.
LEAST_TOP = 0.2


@dataclass(frozen=True, slots=True)
class Writer:
    """Writes texts and tables in the language of a view and the characters of its screen."""

    screen: Screen

    def say(self, text: str) -> str:
        """Return a text in the characters of the screen."""
        return spell(text, self.screen)

    def prose(self, text: str, style: str | Style = "", indent: int = 0) -> list[Text]:
        """Return a text in lines of readable length; all lines but the first are indented."""
        return wrap(self.say(text), self.screen, style, first=0, indent=indent)

    def column(self, column: Column) -> Column:
        """Return a column with its cells in the colours of their roles."""
        cells: list[Text | str] = [self.say(cell) for cell in column.cells]
        if column.roles:
            styles = [role_style(role, self.screen) for role in column.roles]
            cells = [Text(str(cell), style) for cell, style in zip(cells, styles, strict=True)]
        # A title such as "95% interval" stays in one line.
        title = self.say(column.title).replace("% ", f"%{HELD}")
        return replace(column, title=title, cells=cells)

    def table(self, columns: Sequence[Column], *extra: Column) -> Iterator[Text]:
        """Yield the lines of a table; the last columns are left out if they do not fit."""
        gap = 2 if self.screen.width > 100 else 1
        return table([*map(self.column, columns), *extra], self.screen, gap=gap)


def role_style(role: Role | None, screen: Screen) -> Style:
    """Return the style of a role: in its colour, italic if it is not established; dim without a role."""
    if role is None:
        return Style(dim=True)
    colour = readable(role.rule.colour, dark=screen.dark) if screen.colour else None
    return Style(color=colour, italic=None if role.established else True)


def bars(values: Sequence[float], screen: Screen) -> str:
    """Return a small pattern: one bar per weight, with its height."""
    top = max([LEAST_TOP, *(value for value in values if not math.isnan(value))])
    steps = BARS if screen.unicode else BARS_ASCII
    return "".join(
        " " if not value > 0 else steps[max(1, round(value / top * (len(steps) - 1)))]
        for value in values
    )


def bar(share: float, screen: Screen, longest: int = BAR) -> str:
    """Return a share (0 to 1) as a horizontal bar; empty for NaN."""
    n = 0 if math.isnan(share) else round(share * longest)
    return ("█" if screen.unicode else "#") * n


def draw_overview(comparison: HeadComparison, screen: Screen) -> list[Text]:
    """Draw the overview of a comparison; for one sentence, draw what each head attends to in it."""
    out = Writer(screen)
    if comparison.attention is not None:
        return draw_sentence(comparison, comparison.attention, out)
    size = _("{layers} x {heads}").format(
        layers=words.count_layers(comparison.n_layers), heads=words.count_heads(comparison.n_heads)
    )
    source = " · ".join([words.model_names(comparison), size, words.sample(comparison)])
    above = [*out.prose(words.finding(comparison), "bold"), *out.prose(source), Text()]
    above += _map(comparison, out, lambda head: _label(head, out))
    above += _changes(comparison, out)
    below = out.prose(words.signs(comparison), "dim")
    # Where no role is established, the notes may say why.
    below += _ending(comparison, out, has_notes=not comparison.n_established)
    more = _("More: --table (all heads, roles and notes), --head {head}, -o heads.csv")
    roles = by_role(comparison)
    best_head, _role = roles[0][0] if roles else (comparison.heads[0], None)
    below += out.prose(more.format(head=best_head.name), "dim")
    room = max(3, OVERVIEW_LINES - len(above) - len(below) - 2)  # without titles and a blank line
    most = len(roles) if len(roles) <= room else room - 1
    columns, n_hidden = tables.overview_table(comparison, most)
    table = list(out.table(columns)) if roles else []
    if n_hidden:
        hidden = _("Roles that --table also shows: {n}").format(n=n_hidden)
        table += out.prose(hidden, "dim")
    return [*above, *table, Text(), *below]


def _heading(title: str, comparison: HeadComparison, out: Writer) -> list[Text]:
    """Return the first lines of a table, and of the heads on one sentence: title, model and corpus."""
    title = " · ".join([title, words.model_names(comparison)])
    return [
        *out.prose(title, "bold"),
        *out.prose(words.description(comparison)),
        *out.prose(words.sample(comparison)),
        Text(),
    ]


def _ending(comparison: HeadComparison, out: Writer, *, has_notes: bool = False) -> Iterator[Text]:
    """Yield the last lines of every view: the notes, if it has room for them, and the receipt."""
    if has_notes:
        for note in comparison.notes:
            yield from out.prose(_("Note: {note}").format(note=words.note_words(note)))
    yield from out.prose(words.proof(comparison), "bold")


def _map(
    comparison: HeadComparison, out: Writer, cell_of: Callable[[HeadProfile], Text]
) -> Iterator[Text]:
    """Draw a cell for each head, one row per layer; if there are too many heads, draw several bands."""
    margin = len(str(comparison.n_layers - 1)) + 2
    cells = {head.place: cell_of(head) for head in comparison.heads}
    width = max(CELL[0], min(CELL[1], max(cell.cell_len for cell in cells.values()) + 3))
    # As many heads as fit side by side, in bands of about the same number of heads; -(-a // b) rounds up.
    n_bands = -(-comparison.n_heads // max(1, (out.screen.width - margin) // width))
    n_across = -(-comparison.n_heads // n_bands)
    for start in range(0, comparison.n_heads, n_across):
        numbers = range(start, min(start + n_across, comparison.n_heads))
        titles = "".join(f"{number:<{width}}" for number in numbers)
        yield Text(" " * margin + titles.rstrip(), "dim", no_wrap=True)
        for layer in range(comparison.n_layers):
            line = Text(f"{layer:<{margin}}", "dim", no_wrap=True)
            for number in numbers:
                cell = cells[layer, number]
                text = Text(fit(cell.plain, width - 1, out.screen), cell.style)
                line.append_text(text).append(" " * (width - text.cell_len))
            line.rstrip()
            yield line
        yield Text()


def _label(head: HeadProfile, out: Writer) -> Text:
    """Return the short name of a head's clearest established role, in its colour."""
    role = next(iter(head.established), None)
    return Text(out.say(tables.map_code(head)), role_style(role, out.screen))


def _changes(comparison: HeadComparison, out: Writer) -> Iterator[Text]:
    """Draw a map of the divergences from a second model, and the heads that differ most."""
    if comparison.against is None:
        return
    values = {head.name: head.change.divergence for head in comparison.heads if head.change}
    largest = max([value for value in values.values() if value > 0], default=1.0)

    def cell(head: HeadProfile) -> Text:
        value = values[head.name]
        if math.isnan(value) or not out.screen.colour:
            return Text(out.say(words.rounded(value)))
        return Text(f"{value:.2f}", out.screen.paint(round(value / largest * (LEVELS - 1))))

    yield from out.prose(_(words.DIVERGENCE))
    yield from _map(comparison, out, cell)
    yield from out.prose(words.changes(comparison, comparison.against))
    yield from out.prose(_("The heads that differ most:"))
    yield from out.table(tables.change_table(comparison, CHANGED))
    yield Text()


def draw_sentence(comparison: HeadComparison, record: Attention, out: Writer) -> list[Text]:
    """Draw what the heads attend to in one sentence."""
    received = received_by_words(record)

    def cell(head: HeadProfile) -> Text:
        key = int(received[head.place].argmax())
        share = min(float(received[head.place][key]), 1.0)
        style = out.screen.paint(round(share * (LEVELS - 1))) if out.screen.colour else Style()
        return Text(record.key_tokens[key].text, style)

    lines = _heading(_(words.SENTENCE_TITLE), comparison, out)
    if comparison.roles_on is None:
        lines += out.prose(_(words.ONE_SENTENCE))
    else:
        kinds = _(
            "Four kinds of head named in lectures: the head that gives each link most weight, and the "
            "role of that head, established on {sentences}"
        ).format(sentences=words.count_sentences(comparison.roles_on.n_sentences))
        lines += [*out.prose(kinds), *out.table(tables.kind_table(comparison.roles_on, record))]
    lines += [Text(), *out.prose(_(words.RECEIVES_MOST))]
    lines += _map(comparison, out, cell)
    links = tables.link_table(record)
    if links[0].cells:
        weights = [bar(float(weight), out.screen) for weight in links[-1].cells]
        lines += out.prose(_("The strongest links between words, each of another head"))
        lines += [*out.table(links, Column("", weights)), Text()]
    more = _("More: --table (every head), attnviz heatmap with this sentence, -o heads.csv")
    return [
        *lines,
        *_ending(comparison, out, has_notes=True),
        *out.prose(more, "dim"),
    ]


def draw_table(
    comparison: HeadComparison,
    screen: Screen,
    places: Collection[tuple[int, int]] | None = None,
) -> list[Text]:
    """Draw the table of all heads, or of those at these places, and all relations."""
    out = Writer(screen)
    heads = shown_heads(comparison, places)
    lines = _heading(_("What each head does"), comparison, out)
    lines += _head_lines(comparison, heads, out)
    if hidden := len(comparison.heads) - len(heads):
        text = _("Heads not shown: {n:,}.")
        if places is None:
            text = _("Heads without a clear role, shown by --layer: {n:,}.")
        lines += out.prose(text.format(n=hidden))
    lines += [Text()]
    if comparison.relations:
        lines += out.prose(_("Relations between words, and the head that finds each best"))
        lines += [*out.table(tables.relation_table(comparison.relations))]
        lines += _relation_legend(out)
    lines += [*_legend(comparison, heads, out)]
    lines += _ending(comparison, out, has_notes=True)
    return lines


def _head_lines(
    comparison: HeadComparison, heads: Sequence[HeadProfile], out: Writer
) -> Iterator[Text]:
    """Yield the table of heads, with a small pattern by offset if all its offsets were measured."""
    columns = list(map(out.column, tables.head_table(comparison, heads)))
    if set(range(-REACH, REACH + 1)) <= set(comparison.offsets):
        patterns: list[Text | str] = [
            Text(
                bars(_by_offset(comparison, head, REACH), out.screen),
                role_style(head.role, out.screen),
            )
            for head in heads
        ]
        columns.insert(1, Column(f"-{REACH}  0  +{REACH}", patterns))
    yield from table(columns, out.screen, gap=1 if out.screen.width < WIDE else 2)


def _by_offset(comparison: HeadComparison, head: HeadProfile, reach: int) -> list[float]:
    """Return the mean weight of a head at each offset from -reach to +reach."""
    return [comparison.at_offset(offset, head)[0] for offset in range(-reach, reach + 1)]


def _relation_legend(out: Writer) -> Iterator[Text]:
    """Explain the columns of the table of relations."""
    text = _(
        "right: how often the largest weight is on the right word; offset: the best fixed one, in "
        "words; random: the best head of random weights; ≤ is the upper end of an interval."
    )
    yield from out.prose(" ".join([text, _(words.HALVES)]), "dim")
    yield Text()


def _legend(
    comparison: HeadComparison, heads: Sequence[HeadProfile], out: Writer
) -> Iterator[Text]:
    """Explain the roles, controls and signs of the table of heads."""
    yield from out.prose(_(words.ESTABLISHED), "dim")
    controls = [
        f"{_(kind.title)}: {_(kind.words)}"
        for name, kind in CONTROLS.items()
        if name in comparison.controls and name != CHANCE
    ]
    yield from out.prose("; ".join(controls), "dim")
    if comparison.against is not None:
        yield from out.prose(_(words.DIVERGENCE), "dim")
        yield from out.prose(words.changes(comparison, comparison.against), "dim")
    if any(head.role and head.role.narrow for head in heads):
        yield from out.prose(_(words.TOO_NARROW), "dim")
    pattern = _(
        "Small pattern: mean weight by offset, 0 the token itself; its height is the largest of "
        "the head, at least {least}."
    )
    yield from out.prose(pattern.format(least=LEAST_TOP), "dim")
    yield from out.prose(_(words.NOT_EXPLANATION), "dim")


def draw_heads(
    comparison: HeadComparison,
    places: Sequence[tuple[int, int]],
    screen: Screen,
) -> list[Text]:
    """Draw the cards of one head or two: side by side in a wide window, else one below the other."""
    out = Writer(screen)
    half = (screen.width - 3) // 2
    if len(places) == 2 and half >= NARROWEST_CARD:
        narrow = Writer(replace(screen, width=half))
        left, right = (list(_card(comparison, place, narrow)) for place in places)
        lines = []
        for one, other in zip_longest(left, right, fillvalue=Text()):
            one.truncate(half, pad=True)
            line = Text.assemble(one, "   ", other)
            line.rstrip()
            lines.append(line)
    else:
        lines = [line for place in places for line in _card(comparison, place, out)]
    table = words.model_names(comparison)
    lines += out.prose(" · ".join([table, words.sample(comparison)]), "dim")
    lines += _ending(comparison, out)
    return [*lines, *out.prose(_(words.NOT_EXPLANATION), "dim")]


def _card(comparison: HeadComparison, place: tuple[int, int], out: Writer) -> Iterator[Text]:
    """Yield what one head does, how sure that is, with an example, its weight by offset, and its measures."""
    profile = comparison.head(place)
    yield from out.prose(words.describe(profile), "bold")
    if profile.roles:
        yield from _evidence(profile.roles[0], out)
        yield from _example(clearest_card(profile, comparison), comparison, out)
    else:
        yield from out.prose(words.closest_roles(comparison, profile))
    for role in profile.roles[1:]:
        also = " ".join([words.MARKS[role.established], words.role_score(role)])
        yield from out.prose(also, role_style(role, out.screen), indent=2)
    if comparison.against is not None and profile.change is not None:
        yield from out.prose(words.change(comparison.against, profile.change))
    if comparison.offsets:
        reach = min(max(comparison.offsets), (out.screen.width - 1) // 2)
        text = _("Mean weight by offset, from -{reach} to +{reach}:").format(reach=reach)
        yield from out.prose(text)
        pattern = bars(_by_offset(comparison, profile, reach), out.screen)
        yield Text(pattern, role_style(profile.role, out.screen))
    yield Text()
    yield from out.table(tables.measure_table(comparison, profile))
    yield Text()


def _evidence(role: Role, out: Writer) -> Iterator[Text]:
    """Chart the score of a role beside its controls and its threshold, and say why it is not established."""
    scores = tables.evidence(role)
    style = role_style(role, out.screen)
    longest = max(8, min(CHART, out.screen.width - 48))  # the other columns are as wide as 48
    charts = [Text(bar(score[1], out.screen, longest), style) for score in scores]
    threshold = " " * round(role.rule.threshold * longest) + ("│" if out.screen.unicode else "|")
    yield from out.table(
        [
            Column("", [*(name for name, *_rest in scores), _("threshold")], least=20),
            Column(
                _(tables.SCORE),
                [words.rounded(n) for n in (*(score[1] for score in scores), role.rule.threshold)],
                right=True,
            ),
            Column(
                _(tables.INTERVAL),
                [*(words.interval(low, high) for _name, _value, low, high in scores), ""],
                right=True,
            ),
        ],
        Column("", [*charts, threshold]),
    )
    if role.doubt is not None:
        yield from out.prose(words.not_established(role))


def _example(card: RoleCard, comparison: HeadComparison, out: Writer) -> Iterator[Text]:
    """Yield a typical sentence, and the head's weights on it with the cells of its relation in brackets."""
    if card.example is None:
        return
    yield from out.prose(f"“{card.example.text}”")
    record = comparison.patterns.get(card.key)
    if record is None:
        return
    queries = [fit(token.text, LABEL, out.screen) for token in record.query_tokens]
    margin = max(Text(label).cell_len for label in queries) + 1
    width = min(CELL_WIDTH, (out.screen.width - margin) // len(record.key_tokens))
    weights = record.pattern(*card.head.place)
    shades = levels(weights, 1.0)
    is_linked = np.zeros(weights.shape, bool)
    for first_row, last_row, first_column, last_column in linked_cells(card.example, record):
        is_linked[first_row:last_row, first_column:last_column] = True
    numbers = [
        [f"[{number_text(weight)}]" if marked else number_text(weight) for weight, marked in row]
        for row in (zip(*cells, strict=True) for cells in zip(weights, is_linked, strict=True))
    ]
    # Brackets set a number apart from its neighbours, as a space does.
    if width < max(len(number) + (number[0] != "[") for row in numbers for number in row):
        return
    links = link_words(card.example)
    text = _("Weights in percent; in brackets: {links}") if links else _("Weights in percent:")
    yield from out.prose(text.format(links=links))
    keys = [centre(fit(token.text, width - 1, out.screen), width) for token in record.key_tokens]
    yield Text(" " * margin + "".join(keys).rstrip(), "dim", no_wrap=True)
    for label, row, row_shades in zip(queries, numbers, shades, strict=True):
        line = Text(label + " " * (margin - Text(label).cell_len), no_wrap=True)
        for number, shade in zip(row, row_shades, strict=True):
            style = out.screen.paint(int(shade)) if out.screen.colour else ""
            line.append(centre(number, width), style)
        yield line
