"""Heads in a terminal: every number is the comparison's, no row is wrapped, none is wider than the window."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.color import Color, ColorSystem
from rich.console import Console

from attnviz.attention import Note
from attnviz.errors import SelectionError
from attnviz.heads.measures import MAX_OFFSET, OFFSETS
from attnviz.heads.record import Estimates, HeadComparison, HeadProfile
from attnviz.heads.relations import rule_of
from attnviz.heads.roles import CONTROLS
from attnviz.heads.selection import (
    MOST,
    by_role,
    choose_heads,
    find_measure,
    find_roles,
    role_names,
)
from attnviz.heads.terminal.cells import bar, spark
from attnviz.heads.terminal.overview import FEWEST_ROLES, draw_overview
from attnviz.heads.terminal.table import draw_head, draw_table
from attnviz.heads.wording import reason_of, why_not
from attnviz.render.palette import luminance, readable
from attnviz.render.terminal.screen import Screen
from tests.heads.comparisons_by_hand import (
    COLOURS,
    KOREAN,
    NAMES,
    NARROW,
    RULES,
    TAKEN,
    made,
    with_chance,
)

if TYPE_CHECKING:
    from rich.text import Text

Golden = Callable[[str], None]
PLAIN = Screen(colour=False)
ASCII = Screen(colour=False, unicode=False)
TO = "\N{EN DASH}"
WIDTHS = [40, 60, 80, 120, 200]


def printed(lines: list[Text], screen: Screen) -> str:
    """What a console writes of them."""
    console = Console(
        width=screen.width,
        file=StringIO(),
        color_system="truecolor" if screen.colour else None,
        force_terminal=screen.colour,
        legacy_windows=False,
        no_color=False,
        highlight=False,
        emoji=False,
        markup=False,
    )
    for line in lines:
        console.print(line, soft_wrap=True)
    written = console.file
    assert isinstance(written, StringIO)
    return written.getvalue()


def shown_of(head: HeadProfile) -> str:
    """The name of its clearest role, as it is shown."""
    return head.roles[0].rule.short if head.roles else "no clear role"


def rows_of(comparison: HeadComparison, screen: Screen, **more: object) -> dict[str, str]:
    """The line of each head that the table shows, by its name, in their order."""
    lines = [line.plain for line in draw_table(comparison, screen, **more)]  # type: ignore[arg-type]
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


def test_a_head_in_60_columns_of_ascii(golden: Golden) -> None:
    """One head's page where little can be shown."""
    screen = replace(ASCII, width=60)
    golden(printed(draw_head(with_chance(made()), 1, 0, screen, full=True), screen))


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("screen", [PLAIN, ASCII, Screen(), Screen(dark=False)])
def test_every_line_fits(screen: Screen, width: int) -> None:
    """In any window on any screen no line is wider, and each head has one line."""
    fits((3, 7), replace(screen, width=width))


@pytest.mark.parametrize("width", [60, 200])
@pytest.mark.parametrize("shape", [(1, 1), (6, 12), (24, 16)])
def test_any_number_of_heads_fits(shape: tuple[int, int], width: int) -> None:
    """So it is with one head and with hundreds."""
    fits(shape, Screen(width=width))


def fits(shape: tuple[int, int], screen: Screen) -> None:
    """Hold the lines of both views against the window."""
    comparison = made(
        *shape, all_roles=True, model="some-organisation/a-model-with-a-long-name-" + KOREAN * 3
    )
    shown = draw_table(comparison, screen)
    views = [
        draw_overview(comparison, screen, language)
        for language in ("en", "ko")[: 1 + screen.unicode]
    ]
    views += [draw_head(comparison, -1, -1, screen, full=full) for full in (False, True)]
    for lines in (shown, *views):
        assert max(line.cell_len for line in lines) <= screen.width
        assert not any(line.plain.endswith(" ") for line in lines)
        written = printed(lines, screen)
        assert re.sub(r"\x1b\[[\d;]*m", "", written) == "".join(f"{line.plain}\n" for line in lines)
        assert ("\x1b" in written) == screen.colour
        assert written.isascii() == (not screen.unicode)
    n = shape[0] * shape[1]
    heads = [head for head in comparison.heads if head.roles or n <= MOST]
    assert list(rows_of(comparison, screen)) == [head.name for head in heads]


def test_the_numbers_are_the_comparisons() -> None:
    """Score, interval and controls of each row, computed again."""
    comparison = made()
    screen = Screen(width=200, colour=False)
    for head in comparison.heads:
        line = rows_of(comparison, screen)[head.name]
        numbers = re.findall(r"(?<![\d.+-])\d+\.\d+", line.split(shown_of(head))[1])
        if not head.roles:
            assert not numbers
            continue
        role = head.roles[0]
        held = [f"{control.value:.2f}" for control in role.controls]
        assert numbers == [f"{role.score:.2f}", f"{role.low:.2f}", f"{role.high:.2f}", *held]
        assert ("●" if role.established else "○") in line
        assert ("random too" in line) == (not role.established)


def test_the_small_pattern_is_the_mean_by_offset() -> None:
    """Seventeen cells, the highest where most weight is; narrow windows show nine of them."""
    comparison = made()
    for width, reach in ((200, MAX_OFFSET), (80, MAX_OFFSET // 2)):
        for head in comparison.heads:
            cells = rows_of(comparison, Screen(width=width, colour=False))[head.name][
                6 if width == 200 else 5 :
            ]
            at = [NAMES.index(f"offset_{offset:+d}") for offset in range(-reach, reach + 1)]
            values = comparison.estimates.value[head.layer, head.head, at]
            assert cells[: len(at)] == spark(values.tolist(), PLAIN)
            heights = ["▁▂▃▄▅▆▇█".index(cell) for cell in cells[: len(at)]]
            assert int(np.argmax(heights)) in np.flatnonzero(values >= values.max() - 0.07)


@pytest.mark.parametrize("width", [80, 100, 120, 140, 200])
def test_roles_have_room(width: int) -> None:
    """Other columns give way, not the words of a role."""
    comparison = made(12, 12, all_roles=True, relations=())
    shown = rows_of(comparison, Screen(width=width, colour=False))
    for words in ("previous", "same word", "induction · random too", "possessed > nmod:poss"):
        head = next(
            head
            for head in comparison.heads
            if head.roles and head.roles[0].rule.short == words.split(" ·")[0]
        )
        assert (words if width > 100 else words[:23]) in shown[head.name]


def test_what_stands_where_there_is_no_number() -> None:
    """A dash, in the table and on the page; nothing divides by it."""
    comparison = made()
    nothing = np.full_like(comparison.estimates.value, np.nan)
    bare = Estimates(value=nothing, low=nothing, high=nothing)
    head = comparison.heads[0]
    role = replace(
        head.roles[0],
        low=math.nan,
        high=math.nan,
        doubt=Note.of("too_few_sentences", fewest=5),
        controls=(),
    )
    comparison = replace(
        comparison,
        estimates=bare,
        controls={"shuffled": bare},
        heads=(replace(head, roles=(role,)), *comparison.heads[1:]),
    )
    assert rows_of(comparison, PLAIN)["0.0"].split()[-3:] == ["0.90", "—", "—"]
    assert "too few" in rows_of(comparison, PLAIN)["0.0"]
    assert why_not(role.doubt) == "too few to say"
    lines = [line.plain for line in draw_head(comparison, 0, 0, PLAIN, full=True)]
    assert next(line for line in lines if line.startswith("self ")).split() == [
        "self",
        "—",
        "—",
        "—",
    ]
    assert "its pattern by offset was not measured" in lines
    assert not any("nan" in line for line in lines)


@pytest.mark.parametrize("sort", ["induction", "prev", "dist", "varies", "entropy", "even"])
def test_sorted_by_a_measure(sort: str) -> None:
    """The largest first; the measure has a column, whatever the window."""
    comparison = made(4, 5)
    name = find_measure(sort, TAKEN).name
    screen = replace(PLAIN, width=60)
    shown = rows_of(comparison, screen, sort=sort)
    values = [comparison.estimate(name, *map(int, head.split(".")))[0] for head in shown]
    assert values == sorted(values, reverse=True)
    assert len(values) == 20
    for line, value in zip(shown.values(), values, strict=True):
        assert f" {value:.2f}" in line
    assert any(
        f"sorted by {name} " in line.plain for line in draw_table(comparison, screen, sort=sort)
    )


def test_why_a_role_is_not_established() -> None:
    """In a few words and in a line, in both languages."""
    assert why_not(None) == reason_of(None) == ""
    few = Note.of("too_few_different", n=3, fewest=10)
    assert why_not(few) == "too few to say"
    assert reason_of(few) == "too few to say: 3 of the 10 different sentences needed"
    assert why_not(Note.of("no_control", controls="chance")) == "no control"
    assert why_not(Note.of("below_threshold", percent=50)) == "below 50 %"
    for kind in CONTROLS.values():
        doubt = Note.of(
            "control_does_as_much", control=kind.name, value="0.55", low="0.50", high="0.60"
        )
        assert why_not(doubt) == f"{kind.title} too"
        assert reason_of(doubt) == f"{kind.too} (0.55, 0.50{TO}0.60)"
        assert reason_of(doubt, "ko") == f"{kind.too.ko} (0.55, 0.50{TO}0.60)"
        assert reason_of(doubt, brief=True) == kind.too
        assert kind.words in reason_of(Note.of("too_few_for_control", control=kind.name))


def test_what_could_rule_a_role_out_is_not_said_to() -> None:
    """In any window: an established role is not ruled out by what it is held against."""
    for width in (60, 120):
        lines = [
            line.plain
            for line in draw_head(made(), 0, 0, Screen(width=width, colour=False), full=True)
        ]
        assert any(line.endswith("could rule it out") for line in lines)
        assert not any("rules out" in line for line in lines)


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_the_legend_tells_what_is_there(width: int) -> None:
    """No small pattern is explained where none was measured, no control where none was taken, no second score."""
    comparison = made(relations=())
    screen = Screen(width=width, colour=False)
    every = " ".join(line.plain for line in draw_table(made(), screen))
    assert "small pattern: " in every
    assert "scored on the other" in every
    assert ("this head on shuffled tokens" in every) == (width >= 80)
    assert "; first: rests on the first token; " in every
    assert "next:" not in every
    values = comparison.estimates.value.copy()
    values[..., [name.startswith("offset_") for name in NAMES]] = np.nan
    controls = {"untrained": comparison.controls["untrained"]}
    comparison = replace(
        comparison, estimates=replace(comparison.estimates, value=values), controls=controls
    )
    text = " ".join(line.plain for line in draw_table(comparison, screen))
    assert "small pattern" not in text
    assert "-4  0" not in text
    assert "half" not in text
    assert "shuf" not in text
    assert "fixed offset" not in text
    assert ("the best head of random weights" in text) == (width >= 80)
    assert list(rows_of(comparison, screen)) == [head.name for head in comparison.heads]


def test_sorted_by_role_and_by_score() -> None:
    """Roles stand together, in their order; heads without one come last."""
    comparison = made(3, 7, all_roles=True)
    order = role_names(comparison)
    roles = [one.role.name if one.role else "none" for one in choose_heads(comparison, sort="role")]
    assert [order.index(role) for role in roles] == sorted(order.index(role) for role in roles)
    assert choose_heads(comparison, sort="score")[-1].role is None


def test_a_measure_has_one_name() -> None:
    """No two measures have one heading; the table is sorted by it."""
    assert len({one.label for one in TAKEN}) == len(TAKEN)
    for width in (120, 200):
        screen = Screen(width=width, colour=False)
        lines = [
            line.plain for line in draw_table(made(relations=()), screen, sort="entropy_share")
        ]
        heading = next(line for line in lines if line.startswith("head "))
        assert heading.split().count("even") == 1
        assert "spread" not in heading
        assert "entropy" not in heading
    assert find_measure("even", TAKEN).name == "entropy_share"


def test_missing_numbers_are_sorted_last() -> None:
    """What was not measured is neither large nor small."""
    comparison = made()
    comparison.estimates.value[0, 1, NAMES.index("sink")] = math.nan
    assert [one.head.name for one in choose_heads(comparison, sort="sink")][-1] == "0.1"


def test_chosen_by_role_and_layer() -> None:
    """Only what is asked for is shown, and how much is not."""
    comparison = made(3, 7, all_roles=True)
    assert {one.head.layer for one in choose_heads(comparison, layers=[-1, 0])} == {0, 2}
    for role in ("previous", "offset", "relation", "relation_nsubj", "offset_-2", "none"):
        found = choose_heads(comparison, role=[role])
        assert found
        for one in comparison.heads:
            names = [r.name for r in one.roles] or ["none"]
            wanted = role in names or role in {r.rule.family for r in one.roles}
            assert wanted == (one.name in [shown.head.name for shown in found])
    lines = [line.plain for line in draw_table(comparison, PLAIN, role=["previous"])]
    assert "19 other heads not shown" in lines
    none = [line.plain for line in draw_table(comparison, PLAIN, role=["offset_+7"])]
    assert "no head has such a role here" in none
    no_relation = [line.plain for line in draw_table(made(), PLAIN, role=["relation_nsubj"])]
    assert "no head has such a role here" in no_relation


def test_a_second_role_is_shown_where_it_is_asked_for() -> None:
    """A head that is chosen for its second role shows that one."""
    comparison = made()
    head = comparison.heads[3]
    both = replace(head, roles=(*head.roles, *comparison.heads[0].roles))
    comparison = replace(comparison, heads=(*comparison.heads[:3], both, *comparison.heads[4:]))
    assert "● previous" in rows_of(comparison, PLAIN, role=["previous"])["1.0"]
    assert "● first" in rows_of(comparison, PLAIN)["1.0"]


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
    with pytest.raises(SelectionError, match="no measure 'norm_'"):
        draw_table(comparison, PLAIN, sort="norm_")


def test_many_heads() -> None:
    """Of a large model only heads with a role are shown; how many are not, and how to see them, is said."""
    comparison = made(24, 16)
    without = sum(not head.roles for head in comparison.heads)
    text = " ".join(line.plain for line in draw_table(comparison, PLAIN))
    assert f"{without} heads with no clear role not shown" in text
    assert "--role none" in text
    assert len(rows_of(comparison, PLAIN, role=["none"])) == without
    assert len(rows_of(comparison, PLAIN, layers=[3])) == 16
    assert "not shown" not in " ".join(line.plain for line in draw_table(made(6, 12), PLAIN))


def test_clusters() -> None:
    """Every head is in its cluster."""
    comparison = made(3, 4)
    lines = [line.plain for line in draw_table(comparison, Screen(width=120, colour=False))]
    for cluster in range(3):
        names = [head.name for head in comparison.heads if head.cluster == cluster]
        assert any(
            line.split() == [str(len(names)), "cluster", str(cluster), *names] for line in lines
        )


def test_relations() -> None:
    """A line a relation: its name, the head, its accuracy with interval, the controls; why it is not established."""
    lines = [line.plain.split() for line in draw_table(made(), Screen(width=100, colour=False))]
    rows = (
        f"● nsubj > verb 1,234 0.1 0.81 0.76{TO}0.86 +1 ≤0.60 ≤0.25",
        f"○ referent > pronoun · no control was taken (untrained) 45 1.2 0.60 0.55{TO}0.65 -6 ≤0.66 —",
    )
    assert rows[0].split() in lines
    assert rows[1].replace(" was taken (untrained)", "").split() in lines
    assert not any("relation" in line.plain for line in draw_table(made(relations=()), PLAIN))
    own = [line.plain.split() for line in draw_head(made(), 0, 1, PLAIN, full=True)]
    assert any("nsubj" in line for line in own)
    assert not any("pronoun" in line for line in own)


def test_what_must_be_said() -> None:
    """Notes, lines that were bad, how to read it, and the proof in the last line, in both views."""
    for lines in (draw_table(made(), PLAIN), draw_head(made(), 0, 0, PLAIN, full=True)):
        text = " ".join(line.plain for line in lines)
        assert "note: one thing to know" in text
        assert "line 3 not used: too long: 1,024 tokens" in text
        assert "6 more lines not used" in text
        assert "attention is not explanation" in text
        assert lines[-1].plain.startswith("verified: ")
        assert "1,234 sentences, 98,765 tokens; special tokens kept" in text


def test_nothing_that_a_terminal_obeys() -> None:
    """Words of the input cannot move the cursor or change a colour."""
    comparison = made(
        model="a\x1b[31mb",
        corpus="c\x07",
        notes=(Note.of("text", text="d\x1b[2J"),),
        bad=((1, "e\rf"),),
    )
    example = replace(comparison.examples["0.0", "previous"][0], text="g\x1b]0;h\x07\n")
    comparison = replace(comparison, examples={("0.0", "previous"): (example,)})
    for lines in (draw_table(comparison, PLAIN), draw_head(comparison, 0, 0, PLAIN)):
        assert not re.search(r"[\x00-\x1f\x7f]", "".join(line.plain for line in lines))
    assert r"g\x1b]0;h" in "".join(line.plain for line in draw_head(comparison, 0, 0, PLAIN))


def test_a_heads_page() -> None:
    """All its measures with controls, its offsets, its sentences, and the heads most like it."""
    comparison = with_chance(made())
    lines = [
        line.plain
        for line in draw_head(comparison, 0, 0, Screen(width=120, colour=False), full=True)
    ]
    e = comparison.estimates
    for name in NAMES:
        if name.startswith(("offset_", "peak_")):
            continue
        at = NAMES.index(name)
        value, low, high = (one[0, 0, at] for one in (e.value, e.low, e.high))
        words = next(
            line for line in lines if line.startswith(f"{name} ") and "“" not in line
        ).split()
        doubted = "~" * (name in NARROW)
        shown = (
            ["—", "—"]
            if math.isnan(value)
            else [f"{value:.2f}", f"{doubted}{low:.2f}{TO}{high:.2f}"]
        )
        held = [
            comparison.controls["shuffled"].value[0, 0, at],
            comparison.controls["untrained"].value[0, 0, at],
        ]
        held += [comparison.controls[name].value[0, 0, at] for name in ("offset", "chance")]
        assert words[1:7] == [*shown, *("—" if math.isnan(one) else f"{one:.2f}" for one in held)]
    for offset in OFFSETS:
        value, low, high = comparison.estimate(f"offset_{offset:+d}", 0, 0)
        peak = comparison.estimate(f"peak_{offset:+d}", 0, 0)[0]
        shown = [
            f"{offset:+d}" if offset else "0",
            f"{value:.2f}",
            f"{low:.2f}{TO}{high:.2f}",
            f"{peak:.2f}",
        ]
        assert any(line.split()[:4] == shown for line in lines)
    assert any(line.split()[:2] == ["previous", "0.75"] and KOREAN in line for line in lines)
    start = lines.index(next(line for line in lines if line.startswith("head  "))) + 1
    assert [line.split()[0] for line in lines[start : start + 5]] == [
        head.name for head, _ in comparison.nearest(comparison.head(0, 0), 5)
    ]
    row = comparison.similarity.divergences[0] if comparison.similarity is not None else np.zeros(0)
    assert [far for _, far in comparison.nearest(comparison.head(0, 0), 5)] == sorted(row[1:])


def test_intervals_that_are_too_narrow_are_marked() -> None:
    """Those of a role that few sentences carry, and only those; what the mark means is said where it stands."""
    for draw in (draw_overview, draw_table):
        text = printed(draw(made(), PLAIN), PLAIN)
        (induction,) = {
            line for line in text.splitlines() if "0.88" in line and "induction" in line
        }
        assert f" ~0.88{TO}0.92" in induction
        assert text.count("~0.88") == 1
        assert "~ too narrow: on real text" in text
        assert "~" not in printed(draw(made(1, 4), PLAIN), PLAIN)


def test_without_similarity() -> None:
    """Where heads were not compared no cluster is shown, and no head like another."""
    comparison = made(similarity=None)
    comparison = replace(
        comparison, heads=tuple(replace(head, cluster=None) for head in comparison.heads)
    )
    assert not any("alike" in line.plain for line in draw_table(comparison, PLAIN))
    assert not any("most like" in line.plain for line in draw_head(comparison, 0, 0, PLAIN))


class TestOverview:
    """The first screen: a map, a line a role, the relations that are established."""

    @pytest.mark.parametrize("width", WIDTHS)
    def test_the_map_has_the_sign_of_each_head(self, width: int) -> None:
        comparison = made(3, 12, all_roles=True)
        lines = [
            line.plain for line in draw_overview(comparison, Screen(width=width, colour=False))
        ]
        start = next(
            at for at, line in enumerate(lines) if line.split() == [str(head) for head in range(12)]
        )
        for layer in range(3):
            label, *signs = lines[start + 1 + layer].split()
            assert label == str(layer)
            for head, sign in zip(comparison.heads[12 * layer :], signs, strict=False):
                role = head.roles[0] if head.roles else None
                assert sign[0] == ("·" if role is None else role.rule.sign[0])
                assert sign.endswith("?") == (role is not None and not role.established)
                assert width < 80 or role is None or sign.rstrip("?") == role.rule.sign

    def test_the_first_ten_lines_answer(self) -> None:
        lines = [line.plain for line in draw_overview(made(6, 12, relations=()), PLAIN)]
        assert [line.split()[0] for line in lines[4:11]] == ["0", "0", "1", "2", "3", "4", "5"]
        assert len(lines) <= 34

    def test_many_heads_go_on_below(self) -> None:
        lines = [
            line.plain.split()
            for line in draw_overview(made(2, 40), Screen(width=60, colour=False))
        ]
        numbers = [line for line in lines if len(line) >= 12 and all(map(str.isdigit, line))]
        assert [int(one) for line in numbers for one in line] == list(range(40))

    def test_a_role_has_its_heads_the_best_first(self) -> None:
        comparison = made(3, 4)
        heads = list(comparison.heads)
        heads[9] = replace(
            heads[9], roles=(replace(heads[0].roles[0], score=0.97, low=0.95, high=0.99),)
        )
        found = replace(comparison, heads=tuple(heads))
        lines = [line.plain for line in draw_overview(found, PLAIN)]
        assert next(line for line in lines if line.startswith("● -1")).split() == [
            *("●", "-1", "previous", "0.97", f"0.95{TO}0.99", "0.12", "random", "2.1", "0.0", "1.2")
        ]
        assert next(line for line in lines if line.startswith("○ all?")).split()[2] == "broad"
        assert "not established: induction, broad: random weights do as much" in lines

    def test_what_is_established_is_so_everywhere(self) -> None:
        """The map, the roles, and the relations in the table of all heads agree."""
        comparison = made(3, 5, all_roles=True)
        screen = Screen(width=120, colour=False)
        lines = [line.plain for line in draw_overview(comparison, screen)]
        for role in (role for head in comparison.heads for role in head.roles):
            sign = role.rule.sign + "?" * (not role.established)
            assert any(f" {sign} " in f" {line} " for line in lines)
            mark = "●" if role.established else "○"
            assert any(
                re.match(f"{mark} {re.escape(sign)} +{role.rule.short} ", line) for line in lines
            )
        lines = [line.plain for line in draw_table(comparison, screen)]
        for one in comparison.relations:
            short = rule_of(one.name, reverse=one.reverse).short
            assert any(line.startswith(f"● {short}") for line in lines) == one.established

    @pytest.mark.parametrize(("n_layers", "most"), [(12, 48), (24, 54)])
    def test_a_deep_model_has_one_screen_too(self, n_layers: int, most: int) -> None:
        """Roles that have no room are counted; the map always stands whole."""
        comparison = made(n_layers, 12, all_roles=True)
        lines = [line.plain for line in draw_overview(comparison, PLAIN)]
        assert len(lines) <= most
        assert all(
            any(line.startswith(f"{layer:<3}") for line in lines) for layer in range(n_layers)
        )
        named = sum(line.startswith(("● ", "○ ")) for line in lines if "established:" not in line)
        n_roles = len([row for row in by_role(comparison) if row[0].role is not None])
        more = next((line for line in lines if line.startswith("and ")), "and 0 more")
        assert named >= FEWEST_ROLES
        assert named + int(more.split()[1]) >= n_roles

    def test_it_is_told_in_korean(self) -> None:
        text = "\n".join(line.plain for line in draw_overview(made(), PLAIN, "ko"))
        assert text.startswith(
            "각 헤드가 하는 일 · made by hand\n층 2개(세로) x 헤드 3개(가로), 양방향 셀프 어텐션"
        )
        assert "previous: 바로 앞 토큰을 봄" in " ".join(text.split("\n"))
        assert "검증됨: 최대 차이 2.5e-07" in text


def test_every_name_that_is_shown_can_be_typed() -> None:
    """And the obvious forms of it; another is refused with what was probably meant."""
    comparison = made(3, 5, all_roles=True)
    for role in (role for head in comparison.heads for role in head.roles):
        for name in (role.rule.short, role.rule.short.upper(), role.name):
            assert role.name in find_roles(name, TAKEN)
    both = {"relation_coreference", "relation_coreference_reversed"}
    assert find_roles("coref", TAKEN) == find_roles("coreference", TAKEN) == both
    assert find_roles("pronoun->referent", TAKEN) == {"relation_coreference"}
    assert (
        find_roles("verb > nsubj", TAKEN)
        == find_roles("verb to nsubj", TAKEN)
        == {"relation_nsubj_reversed"}
    )
    assert find_roles("sink [CLS]", TAKEN) == find_roles("first", TAKEN) == {"first"}
    assert find_roles("kinship", TAKEN, ["kinship"]) == {
        "relation_kinship",
        "relation_kinship_reversed",
    }
    assert (find_roles("-1", TAKEN), find_roles("2 back", TAKEN)) == ({"previous"}, {"offset_-2"})
    with pytest.raises(SelectionError, match="no role 'corref': did you mean coref"):
        find_roles("corref", TAKEN)


@pytest.mark.parametrize("dark", [True, False])
def test_colours_can_be_read(*, dark: bool) -> None:
    """The colour of each role on black, on white, and on what terminals call by these names."""
    for colour in COLOURS.values():
        shown = np.array(
            [int(readable(colour, dark=dark)[at : at + 2], 16) for at in (1, 3, 5)], dtype=np.uint8
        )
        for back in (0, 30) if dark else (255, 240):
            one, other = float(luminance(shown)), float(luminance(np.full(3, back, dtype=np.uint8)))
            assert (max(one, other) + 0.05) / (min(one, other) + 0.05) >= 4.5


def test_every_role_has_a_colour_and_a_short_sign() -> None:
    """All that roles are called, offsets and relations too."""
    for rule in RULES.values():
        assert 0 < len(rule.sign) <= 6
        assert cell_len(rule.sign) == len(rule.sign)
    relations = (
        ("cop", False),
        ("cop", True),
        ("nmod", False),
        ("nmod:poss", True),
        ("nsubj:pass", False),
    )
    assert [rule_of(name, reverse=reverse).sign for name, reverse in relations] == [
        "cop>",
        ">cop",
        "nmod>",
        ">nm:p",
        "ns:p>",
    ]
    assert RULES["offset_-2"].sign == "-2"
    assert len(set(COLOURS.values())) == len(COLOURS) > 20


@pytest.mark.parametrize("dark", [True, False])
def test_colours_are_told_apart_where_there_are_256(*, dark: bool) -> None:
    """No two roles come out alike on a terminal of 256 colours."""
    shown = [
        Color.parse(readable(colour, dark=dark)).downgrade(ColorSystem.EIGHT_BIT)
        for colour in COLOURS.values()
    ]
    assert len({colour.number for colour in shown}) == len(COLOURS)


@given(share=st.floats(0, 1), width=st.integers(1, 40), unicode=st.booleans())
def test_a_bar(share: float, width: int, *, unicode: bool) -> None:
    """As many cells as asked; blank where it reads 0.00, full where it is 1, and never shorter for more."""
    screen = replace(PLAIN, unicode=unicode)
    drawn = bar(share, width, screen)
    assert cell_len(drawn) == width
    assert (not drawn.strip()) == (share < 0.005)
    assert len(drawn.strip()) <= len(bar(min(1.0, share + 0.1), width, screen).strip())
    assert len(bar(1.0, width, screen).strip()) == width


@settings(max_examples=15)
@given(width=st.integers(40, 220), n_heads=st.integers(1, 14), seed=st.integers(0, 5))
def test_any_window(width: int, n_heads: int, seed: int) -> None:
    """Any window from 40 cells on: all lines fit, all heads are there."""
    comparison = made(1 + seed % 3, n_heads, all_roles=seed > 2)
    screen = Screen(width=width, colour=bool(seed % 2))
    assert len(rows_of(comparison, screen)) == len(comparison.heads)
    for lines in (draw_table(comparison, screen), draw_head(comparison, 0, n_heads - 1, screen)):
        assert max(line.cell_len for line in lines) <= width
