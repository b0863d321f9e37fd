"""Heads in a terminal: every number is the comparison's, and no line is wider than the window."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from typing import TYPE_CHECKING

import numpy as np
import pytest
from rich.console import Console

from attnviz.attention import Note
from attnviz.errors import SelectionError
from attnviz.heads.measures import rules_of
from attnviz.heads.record import HeadComparison
from attnviz.heads.relation_words import RELATIONS
from attnviz.heads.relations import rule_of
from attnviz.heads.selection import MOST, choose_heads, find_measure, find_roles, role_order
from attnviz.heads.terminal import bars, draw_head, draw_overview, draw_table
from attnviz.render.palette import luminance, readable
from attnviz.render.terminal.screen import Screen
from attnviz.text.messages import both
from tests.heads.comparisons_by_hand import COLOURS, KOREAN, NAMES, TAKEN, made, with_chance

if TYPE_CHECKING:
    from rich.text import Text

Golden = Callable[[str], None]
PLAIN = Screen(colour=False)
ASCII = Screen(colour=False, unicode=False)
WIDE = Screen(width=200, colour=False)
TO = "\N{EN DASH}"


def printed(lines: list[Text], screen: Screen) -> str:
    """Return what a console prints of them."""
    console = Console(
        width=screen.width,
        file=StringIO(),
        color_system="truecolor" if screen.colour else None,
        force_terminal=screen.colour,
        highlight=False,
        emoji=False,
        markup=False,
    )
    for line in lines:
        console.print(line, soft_wrap=True)
    written = console.file
    assert isinstance(written, StringIO)
    return written.getvalue()


def plain(lines: list[Text]) -> list[str]:
    """Lines without their colours."""
    return [line.plain for line in lines]


def rows_of(comparison: HeadComparison, screen: Screen, **more: object) -> dict[str, str]:
    """The line of each head that the table shows, by its name, in their order."""
    lines = plain(draw_table(comparison, screen, **more))  # type: ignore[arg-type]
    start = next(index for index, line in enumerate(lines) if line.startswith("head "))
    rows = {}
    for line in lines[start + 1 :]:
        match = re.match(r"(\d+\.\d+) ", line)
        if not match:
            break
        rows[match[1]] = line
    return rows


def test_heads_in_80_columns(golden: Golden) -> None:
    """The table without colours, in a usual window."""
    golden(printed(draw_table(made(), PLAIN), PLAIN))


def test_overview_of_heads_in_80_columns(golden: Golden) -> None:
    """The first screen."""
    golden(printed(draw_overview(made(3, 5, all_roles=True), PLAIN), PLAIN))


def test_a_head_in_60_columns_of_ascii(golden: Golden) -> None:
    """One head's page where little can be shown."""
    screen = replace(ASCII, width=60)
    golden(printed(draw_head(with_chance(made()), 1, 0, screen, full=True), screen))


@pytest.mark.parametrize("width", [60, 80, 200])
@pytest.mark.parametrize(
    ("shape", "screen"),
    [((1, 1), Screen()), ((3, 7), ASCII), ((6, 12), Screen(dark=False)), ((24, 16), PLAIN)],
)
def test_every_line_fits(shape: tuple[int, int], screen: Screen, width: int) -> None:
    """No line is wider than the window, each head has one line, and a screen gets only what it can show."""
    screen = replace(screen, width=width)
    name = "some-organisation/a-model-with-a-long-name-" + KOREAN * 3
    comparison = made(*shape, all_roles=True, model=name)
    views = [draw_table(comparison, screen), draw_overview(comparison, screen)]
    views += [draw_head(comparison, -1, -1, screen, full=full) for full in (False, True)]
    if screen.unicode:
        views.append(draw_overview(comparison, screen, "ko"))
    for lines in views:
        assert max(line.cell_len for line in lines) <= screen.width
        written = printed(lines, screen)
        assert ("\x1b" in written) == screen.colour
        assert written.isascii() == (not screen.unicode)
    is_large = shape[0] * shape[1] > MOST
    heads = [head for head in comparison.heads if head.roles or not is_large]
    assert list(rows_of(comparison, screen)) == [head.name for head in heads]


def test_the_numbers_are_the_comparisons() -> None:
    """Score, interval and controls of each row, computed again."""
    comparison = made()
    rows = rows_of(comparison, WIDE)
    for head in comparison.heads:
        line = rows[head.name]
        if not head.roles:
            assert "no clear role" in line
            continue
        role = head.roles[0]
        numbers = re.findall(r"(?<![\d.+-])\d+\.\d+", line.split(role.rule.short)[1])
        held = [f"{control.value:.2f}" for control in role.controls]
        assert numbers == [f"{role.score:.2f}", f"{role.low:.2f}", f"{role.high:.2f}", *held]
        assert ("●" if role.established else "○") in line
        assert ("random too" in line) == (not role.established)


def test_the_small_pattern_is_the_mean_by_offset() -> None:
    """A bar for each offset, the highest where most weight is."""
    comparison = made()
    for head in comparison.heads:
        values = [comparison.at_offset(offset, head)[0] for offset in range(-4, 5)]
        drawn = bars(values, PLAIN)
        assert drawn in rows_of(comparison, PLAIN)[head.name]
        assert drawn[int(np.argmax(values))] == "█"
    assert bars([0.0, 0.1, float("nan"), 0.2], PLAIN) == " ▄ █"
    assert bars([0.01], PLAIN) == "▁"


@pytest.mark.parametrize("sort", ["induction", "prev", "dist", "varies", "entropy", "even"])
def test_sorted_by_a_measure(sort: str) -> None:
    """The largest first; the measure has a column."""
    comparison = made(4, 5)
    name = find_measure(sort, TAKEN).name
    shown = rows_of(comparison, PLAIN, sort=sort)
    values = [comparison.estimate(name, *map(int, head.split(".")))[0] for head in shown]
    assert values == sorted(values, reverse=True)
    for line, value in zip(shown.values(), values, strict=True):
        assert f" {value:.2f}" in line


def test_sorted_by_role_and_by_score() -> None:
    """Roles stand together, in their order; heads without one come last, and so do missing numbers."""
    comparison = made(3, 7, all_roles=True)
    order = [role_order(comparison, one.role) for one in choose_heads(comparison, sort="role")]
    assert order == sorted(order)
    assert choose_heads(comparison, sort="score")[-1].role is None
    comparison.estimates.value[0, 1, NAMES.index("sink")] = float("nan")
    assert choose_heads(comparison, sort="sink")[-1].head.name == "0.1"


def test_chosen_by_role_and_layer() -> None:
    """Only what is asked for is shown, and how much is not."""
    comparison = made(3, 7, all_roles=True)
    assert {one.head.layer for one in choose_heads(comparison, layers=[-1, 0])} == {0, 2}
    for role in ("previous", "offset", "relation", "relation_nsubj", "offset_-2", "none"):
        shown = [one.head.name for one in choose_heads(comparison, role=[role])]
        assert shown
        for one in comparison.heads:
            names = {name for r in one.roles for name in (r.name, r.rule.family)} or {"none"}
            assert (role in names) == (one.name in shown)
    assert "Heads not shown: 19." in plain(draw_table(comparison, PLAIN, role=["previous"]))
    none = plain(draw_table(made(), PLAIN, role=["relation_nsubj"]))
    assert "No head has such a role here." in none


def test_what_is_not_there_is_refused() -> None:
    """Each message says what there is."""
    comparison = made()
    with pytest.raises(SelectionError, match="no measure 'indukt': did you mean induction"):
        draw_table(comparison, PLAIN, sort="indukt")
    with pytest.raises(SelectionError, match="no role 'previos': did you mean previous"):
        draw_table(comparison, PLAIN, role=["previos"])
    with pytest.raises(SelectionError, match="no layer 2"):
        draw_table(comparison, PLAIN, layers=[2])
    with pytest.raises(SelectionError, match="no head 3"):
        draw_head(comparison, 0, 3, PLAIN)


def test_of_a_large_model_heads_with_a_role_are_shown() -> None:
    """How many are not, and how to see them, is said."""
    comparison = made(24, 16)
    without = sum(not head.roles for head in comparison.heads)
    lines = plain(draw_table(comparison, PLAIN))
    assert f"Heads without a clear role, shown by --role none: {without}." in lines
    assert len(rows_of(comparison, PLAIN, role=["none"])) == without
    assert len(rows_of(comparison, PLAIN, layers=[3])) == 16


def test_clusters() -> None:
    """Every head is in its cluster; nothing is said where heads were not compared."""
    comparison = made(3, 4)
    lines = plain(draw_table(comparison, PLAIN))
    for cluster in range(3):
        names = [head.name for head in comparison.heads if head.cluster == cluster]
        assert f"{len(names):>4}  {' '.join(names)}" in lines
    heads = tuple(replace(head, cluster=None) for head in comparison.heads)
    alone = replace(comparison, heads=heads, similarity=None)
    assert "imilar" not in " ".join(plain(draw_table(alone, PLAIN)))
    assert "imilar" not in " ".join(plain(draw_head(alone, 0, 0, PLAIN)))


def test_relations() -> None:
    """A line a relation: its name, the head, its accuracy with interval, the controls; why it is not established."""
    lines = [line.split() for line in plain(draw_table(made(), WIDE))]
    rows = (
        f"● subject to verb 1,234 0.1 0.81 0.76{TO}0.86 +1 ≤0.60 ≤0.25",
        f"○ referent to pronoun · no control 45 1.2 0.60 0.55{TO}0.65 -6 ≤0.66 —",
    )
    assert all(row.split() in lines for row in rows)
    own = " ".join(plain(draw_head(made(), 0, 1, PLAIN, full=True)))
    assert "subject to verb" in own
    assert "referent" not in own


def test_notes_and_the_receipt_stand_below_every_view() -> None:
    """Each note once, and the receipt."""
    views = draw_table(made(), PLAIN), draw_overview(made(), PLAIN), draw_head(made(), 0, 0, PLAIN)
    for lines in views:
        text = " ".join(plain(lines))
        note = "Note: Sentences that were too long for the model and were cut: 3."
        assert text.count(note) == 1
        assert "verified: weights, max difference 2.5e-07 over 2 layers, 1,234 sentences" in text
        assert "sentences made by hand: 1,234 sentences, 98,765 tokens" in text


def test_nothing_that_a_terminal_obeys() -> None:
    """Words of the input cannot move the cursor or change a colour."""
    note = Note.of("no_random_weights", why="d\x1b[2J")
    comparison = made(model="a\x1b[31mb", corpus="c\x07", notes=(note,))
    example = replace(comparison.examples["0.0", "previous"][0], text="g\x1b]0;h\x07\n")
    comparison = replace(comparison, examples={("0.0", "previous"): (example,)})
    for lines in (draw_table(comparison, PLAIN), draw_head(comparison, 0, 0, PLAIN)):
        assert not re.search(r"[\x00-\x1f\x7f]", "".join(plain(lines)))
    assert r"g\x1b]0;h" in "".join(plain(draw_head(comparison, 0, 0, PLAIN)))


def test_a_heads_page() -> None:
    """Its role with interval and controls; in full all measures with theirs, and the sentences."""
    comparison = with_chance(made())
    brief, full = (plain(draw_head(comparison, 0, 0, WIDE, full=full)) for full in (False, True))
    assert brief[0] == "Layer 0, head 0 · made by hand"
    assert f"● previous token 0.90 (0.88{TO}0.92): attends to the previous token" in brief
    assert f"  Established: above the best head of random weights: 0.10 (0.08{TO}0.12)" in brief
    for measure in TAKEN:
        if measure.offset is None:
            row = next(line.split() for line in full if line.startswith(f"{measure.name} "))
            value, low, high = comparison.estimate(measure.name, 0, 0)
            mark = "~" if measure.narrow else ""
            held = [
                comparison.control(name, measure.name, comparison.heads[0])
                for name in ("shuffled", "untrained", "offset", "chance")
            ]
            numbers = [value, *held]
            if not np.isnan(value):
                assert row[2] == f"{mark}{low:.2f}{TO}{high:.2f}"
            shown = [row[1], *row[3:7]]
            assert shown == ["—" if np.isnan(one) else f"{one:.2f}" for one in numbers]
    without = plain(draw_head(comparison, 0, 2, WIDE))
    assert any(line.startswith("No clear role; closest: ") for line in without)


class TestOverview:
    """The first screen: a map, a line a role, the relations that are established."""

    @pytest.mark.parametrize("width", [60, 80, 200])
    def test_the_map_has_the_role_of_each_head_in_words(self, width: int) -> None:
        comparison = made(3, 12, all_roles=True)
        lines = plain(draw_overview(comparison, replace(PLAIN, width=width)))
        cells: dict[tuple[int, int], str] = {}
        starts: list[int] = []
        layer = 0
        for line in lines[: next(n for n, line in enumerate(lines) if " role " in line)]:
            if re.fullmatch(r"[ \d]+", line):
                numbers = [int(number) for number in line.split()]
                starts = [match.start() for match in re.finditer(r"\d+", line)]
            elif starts and line:
                layer = int(line[:2]) if line[0] != " " else layer
                for number, start, end in zip(numbers, starts, [*starts[1:], None], strict=True):
                    cells[layer, number] = f"{cells.get((layer, number), '')} {line[start:end]}"
        assert len(cells) == 36
        for head in comparison.heads:
            words = " ".join(cells[head.place].split())
            role = head.role
            if role is None:
                assert words == "·"
            else:
                assert words == role.rule.short + "?" * (not role.established)

    def test_a_role_has_its_heads_the_best_first(self) -> None:
        comparison = made(3, 4)
        heads = list(comparison.heads)
        better = replace(heads[0].roles[0], score=0.97, low=0.95, high=0.99)
        heads[9] = replace(heads[9], roles=(better,))
        lines = plain(draw_overview(replace(comparison, heads=tuple(heads)), PLAIN))
        row = next(line for line in lines if line.startswith("● previous"))
        expected = f"● previous token 0.97 0.95{TO}0.99 2.1 0.0 1.2 0.12 random"
        assert row.split() == expected.split()
        assert any(line.startswith("○ broad · random too") for line in lines)

    def test_of_many_roles_the_first_are_shown(self) -> None:
        roles = [rule_of(f"made{n}", reverse=False) for n in range(30)]
        comparison = made(6, 5)
        shown = comparison.heads[0].roles[0]
        heads = tuple(
            replace(head, roles=(replace(shown, rule=rule, measure=rule.name),))
            for head, rule in zip(comparison.heads, roles, strict=True)
        )
        lines = plain(draw_overview(replace(comparison, heads=heads), PLAIN))
        assert sum(line.startswith("● made") for line in lines) == 24
        assert "Roles that --table also shows: 6" in lines

    def test_the_answer_stands_at_the_top(self) -> None:
        comparison = made(3, 4)
        top = " ".join(plain(draw_overview(comparison, PLAIN))[:5])
        assert "Layer 0, head 0 attends to the previous token (score 0.90)" in top
        assert f"{comparison.n_established} of 12 heads have an established role" in top
        heads = tuple(replace(head, roles=()) for head in comparison.heads)
        without = plain(draw_overview(replace(comparison, heads=heads), PLAIN))
        assert "No head has an established role" in without[:5]

    def test_it_is_told_in_korean(self) -> None:
        text = "\n".join(plain(draw_overview(made(), PLAIN, "ko")))
        assert text.startswith("각 헤드가 하는 일 · made by hand\n0번 층 0번 헤드: 이전 토큰을 봄")
        assert "층 2개(세로) x 헤드 3개(가로), 양방향 셀프 어텐션" in text
        assert "귀납(induction): 앞에 나온 같은 단어의 다음 단어를 봄" in text
        assert "검증됨(가중치): 최대 차이 2.5e-07" in text


def test_every_name_that_is_shown_can_be_typed() -> None:
    """And the obvious forms of it; another is refused with what was probably meant."""
    for head in made(3, 5, all_roles=True).heads:
        for role in head.roles:
            for name in (*both(role.rule.short), role.rule.short.upper(), role.name):
                assert role.name in find_roles(name, TAKEN)
    coreference = {"relation_coreference", "relation_coreference_reversed"}
    assert find_roles("coref", TAKEN) == find_roles("coreference", TAKEN) == coreference
    assert find_roles("pronoun->referent", TAKEN) == {"relation_coreference"}
    assert find_roles("verb to nsubj", TAKEN) == {"relation_nsubj_reversed"}
    assert find_roles("adjective -> noun", TAKEN) == find_roles("amod > noun", TAKEN)
    assert find_roles("sink [CLS]", TAKEN) == find_roles("first", TAKEN) == {"first"}
    kinship = {"relation_kinship", "relation_kinship_reversed"}
    assert find_roles("kinship", TAKEN, ["kinship"]) == kinship
    assert (find_roles("-1", TAKEN), find_roles("2 back", TAKEN)) == ({"previous"}, {"offset_-2"})
    with pytest.raises(SelectionError, match="no role 'corref': did you mean coref"):
        find_roles("corref", TAKEN)


@pytest.mark.parametrize("dark", [True, False])
def test_colours_of_roles_can_be_read_and_told_apart(*, dark: bool) -> None:
    """On black, on white, and on what terminals call by these names."""
    shown = [readable(colour, dark=dark) for colour in COLOURS.values()]
    for colour in shown:
        rgb = np.array([*bytes.fromhex(colour[1:])], dtype=np.uint8)
        for back in (0, 30) if dark else (255, 240):
            one, other = float(luminance(rgb)), float(luminance(np.full(3, back, dtype=np.uint8)))
            assert (max(one, other) + 0.05) / (min(one, other) + 0.05) >= 4.5
    assert len(set(shown)) == len(COLOURS)


def test_no_two_roles_have_the_same_short_name() -> None:
    """In either language, of all relations in both directions."""
    rules = [rule_of(name, reverse=reverse) for name in RELATIONS for reverse in (False, True)]
    for language in (0, 1):
        names = [both(rule.short)[language] for rule in [*rules, *(r for _, r in rules_of(TAKEN))]]
        assert len(set(names)) == len(names)
