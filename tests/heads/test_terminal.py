"""Heads in a terminal: every number is the comparison's, and no line is wider than the window."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from attnviz.attention import Attention, Note
from attnviz.heads.measures import rules_of
from attnviz.heads.record import Example, HeadComparison
from attnviz.heads.relation_words import RELATIONS
from attnviz.heads.relations import rule_of
from attnviz.heads.tables import code
from attnviz.heads.terminal import bars, draw_heads, draw_overview, draw_table
from attnviz.render.terminal.screen import Screen
from attnviz.text.messages import LANGUAGES, _, language
from tests.fixtures.pictures import print_lines
from tests.heads.comparisons_by_hand import KOREAN, TAKEN, compared, made, spelled

if TYPE_CHECKING:
    from rich.text import Text

Golden = Callable[[str], None]
PLAIN = Screen(colour=False)
ASCII = Screen(colour=False, unicode=False)
WIDE = Screen(width=200, colour=False)
TO = "\N{EN DASH}"


def plain(lines: list[Text]) -> list[str]:
    """Lines without their colours."""
    return [line.plain for line in lines]


def rows_of(
    comparison: HeadComparison, places: Collection[tuple[int, int]] | None = None
) -> dict[str, str]:
    """The line of each head that the table shows, by its name, in their order."""
    table = "\n".join(plain(draw_table(comparison, PLAIN, places)))
    return {line.split()[0]: line for line in re.findall(r"^\d+\.\d+ .*", table, re.MULTILINE)}


def test_heads_in_80_columns(golden: Golden) -> None:
    """The table without colours, in a usual window."""
    golden(print_lines(draw_table(made(), PLAIN), PLAIN))


def test_overview_of_heads_in_80_columns(golden: Golden) -> None:
    """The first screen."""
    golden(print_lines(draw_overview(made(3, 5, all_roles=True), PLAIN), PLAIN))


def test_two_heads_in_120_columns(golden: Golden) -> None:
    """Two cards side by side, of a role that is not established and of a head without a role, beside a second model."""
    screen = replace(PLAIN, width=120)
    golden(print_lines(draw_heads(compared(made()), [(0, 1), (0, 2)], screen), screen))


@pytest.mark.parametrize(
    ("shape", "screen", "width"),
    [
        ((1, 1), Screen(), 200),
        ((3, 7), ASCII, 60),
        ((24, 16), PLAIN, 80),
    ],
)
def test_every_line_fits(shape: tuple[int, int], screen: Screen, width: int) -> None:
    """No line is wider than the window, each head has one line, and a screen gets only what it can show."""
    screen = replace(screen, width=width)
    name = "some-organisation/a-model-with-a-long-name-" + KOREAN * 3
    comparison = made(*shape, all_roles=True, model=name)
    views = [draw_table(comparison, screen), draw_overview(comparison, screen)]
    views += [draw_heads(comparison, places, screen) for places in ([(-1, -1)], [(0, 0), (-1, -1)])]
    if screen.unicode:
        with language("ko"):
            views.append(draw_overview(comparison, screen))
    for lines in views:
        assert max(line.cell_len for line in lines) <= screen.width
        written = print_lines(lines, screen)
        assert ("\x1b" in written) == screen.colour
        assert written.isascii() == (not screen.unicode)


def test_the_small_pattern_is_the_mean_by_offset() -> None:
    """A bar for each offset, the highest where most weight is."""
    comparison = made()
    for head in comparison.heads:
        values = [comparison.at_offset(offset, head)[0] for offset in range(-4, 5)]
        drawn = bars(values, PLAIN)
        assert drawn in rows_of(comparison)[head.name]
        assert drawn[int(np.argmax(values))] == "█"
    assert bars([0.0, 0.1, float("nan"), 0.2], PLAIN) == " ▄ █"
    assert bars([0.01], PLAIN) == "▁"


def test_of_a_large_model_heads_with_a_role_are_shown() -> None:
    """How many are not, and how to see them, is said; chosen heads are shown with or without a role."""
    comparison = made(24, 16)
    without = sum(not head.roles for head in comparison.heads)
    lines = plain(draw_table(comparison, PLAIN))
    assert f"Heads without a clear role, shown by --layer: {without}." in lines
    assert list(rows_of(comparison)) == [head.name for head in comparison.heads if head.roles]
    places = [(3, number) for number in range(16)]
    assert list(rows_of(comparison, places)) == [f"3.{number}" for number in range(16)]


def test_nothing_that_a_terminal_obeys() -> None:
    """Words of the input cannot move the cursor or change a colour."""
    note = Note.of("no_random_weights", why="d\x1b[2J")
    comparison = made(model="a\x1b[31mb", corpus="c\x07", notes=(note,))
    example = replace(comparison.examples["0.0", "previous"][0], text="g\x1b]0;h\x07\n")
    comparison = replace(comparison, examples={("0.0", "previous"): (example,)})
    card = draw_heads(comparison, [(0, 0)], PLAIN)
    for lines in (draw_table(comparison, PLAIN), card):
        assert not re.search(r"[\x00-\x1f\x7f]", "".join(plain(lines)))
    assert r"g\x1b]0;h" in "".join(plain(card))


@pytest.mark.parametrize("screen", [PLAIN, Screen()])
def test_the_example_of_a_card(fixed_record: Callable[..., Attention], screen: Screen) -> None:
    """Each weight of the head in percent, those of the relation's words in brackets."""
    comparison = made()
    head = comparison.heads[3]
    text = "I love all you"
    example = Example(text=text, score=1.0, links=(((2, 6), (11, 14)),))
    record = spelled(fixed_record(n_layers=2, n_heads=3))
    tokens = record.key_tokens
    comparison = replace(
        comparison,
        typical={(head.name, head.roles[0].measure): example},
        patterns={(head.name, text): record},
    )
    lines = plain(draw_heads(comparison, [head.place], screen))
    start = lines.index("Weights in percent; in brackets: love → you")
    assert lines[start + 1].split() == [token.text for token in tokens]
    for number, token in enumerate(tokens):
        label, *cells = lines[start + 2 + number].split()
        expected = [f"{round(100 * float(n))}" for n in record.weights[1, 0, number]]
        expected[4] = f"[{expected[4]}]" if number == 2 else expected[4]
        assert (label, cells) == (token.text, expected)
    whole = np.broadcast_to(np.eye(6, dtype=np.float32)[[0, 1, 4, 3, 2, 5]], (2, 3, 6, 6))
    comparison = replace(comparison, patterns={(head.name, text): replace(record, weights=whole)})
    for width in range(30, 80):  # a narrow window shows no smaller number for 100%
        shown = " ".join(plain(draw_heads(comparison, [head.place], replace(screen, width=width))))
        assert ("[100]" in shown) == ("Weights in percent" in shown)
    assert "[100]" in shown


def test_the_map_has_the_role_of_each_head() -> None:
    """By a short name: a dot where none is established; above it stands the answer, in either language."""
    comparison = made(3, 12, all_roles=True)
    lines = plain(draw_overview(comparison, WIDE))
    cells: dict[tuple[int, int], str] = {}
    for line in lines[: next(n for n, line in enumerate(lines) if " role " in line)]:
        if re.match(r"\d ", line):
            layer, *codes = line.split()
            cells |= {(int(layer), number): code for number, code in enumerate(codes)}
    assert len(cells) == 36
    for head in comparison.heads:
        assert cells[head.place] == (code(head.roles[0]) if head.established else "·")
    assert "Layer 0, head 0 attends to the previous token (score 0.90)" in lines[0]
    assert f"{comparison.n_established} of 36 heads have an established role" in lines[0]
    heads = tuple(replace(head, roles=()) for head in comparison.heads)
    without = plain(draw_overview(replace(comparison, heads=heads), PLAIN))
    assert without[0] == "No head has an established role"
    with language("ko"):
        assert plain(draw_overview(made(), PLAIN))[0].startswith("0번 층 0번 헤드: 이전 토큰을 봄")


def test_a_role_has_its_best_head_and_its_controls() -> None:
    """The head with the best score, and how many more there are; only what is established."""
    comparison = made(3, 4)
    heads = list(comparison.heads)
    better = replace(heads[0].roles[0], score=0.97, low=0.95, high=0.99)
    heads[9] = replace(heads[9], roles=(better, *heads[0].roles))
    lines = plain(draw_overview(replace(comparison, heads=tuple(heads)), PLAIN))
    (row,) = (line.split() for line in lines if line.startswith("PREV  "))
    assert row[:-2] == f"PREV previous token 2.1 +3 0.97 0.95{TO}0.99".split()
    assert any("PREV+1" in line for line in lines)
    assert not any("broad" in line for line in lines)  # random heads are as broad


def test_of_many_roles_as_many_are_shown_as_fit() -> None:
    """The overview has 40 lines; how many roles it leaves out is said."""
    roles = [rule_of(f"made{n}", reverse=False) for n in range(30)]
    comparison = made(6, 5)
    shown = comparison.heads[0].roles[0]
    heads = tuple(
        replace(head, roles=(replace(shown, rule=rule, measure=rule.name),))
        for head, rule in zip(comparison.heads, roles, strict=True)
    )
    lines = plain(draw_overview(replace(comparison, heads=heads), PLAIN))
    n_shown = sum(line.startswith("MADE") for line in lines)
    assert f"Roles that --table also shows: {30 - n_shown}" in lines
    assert len(lines) == 40


def test_no_two_roles_have_the_same_short_name() -> None:
    """In either language, of all relations in both directions."""
    rules = [rule_of(name, reverse=reverse) for name in RELATIONS for reverse in (False, True)]
    rules += [rule for _measure, rule in rules_of(TAKEN)]
    for lang in LANGUAGES:
        with language(lang):
            names = [_(rule.short) for rule in rules]
        assert len(set(names)) == len(names)
