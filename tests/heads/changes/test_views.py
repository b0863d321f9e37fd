"""The views and files of two models: what they say is what was found, no row wraps, every text can be read."""

from __future__ import annotations

import csv
import io
import json
import re
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from io import BytesIO
from typing import TYPE_CHECKING

import numpy as np
import pytest

from attnviz.attention import Note
from attnviz.capture.source import open_source
from attnviz.errors import AttnvizWarning, OutputError
from attnviz.heads.changes import figure
from attnviz.heads.changes.compare import changes
from attnviz.heads.changes.figure import MOST_RELATIONS
from attnviz.heads.changes.terminal import draw, draw_watch
from attnviz.heads.changes.wording import group_by_change, heads_of, moves, names_of, relations
from attnviz.heads.figure.grid import KEY
from attnviz.heads.measures import MAX_OFFSET
from attnviz.heads.settings import SurveySettings
from attnviz.heads.tables import to_csv, to_json
from attnviz.models.language import splits
from attnviz.models.language.splits import corpus_lines
from attnviz.render.figure.pen import LEAST_TEXT
from attnviz.render.figure.style import STYLES, smallest_letters
from attnviz.render.terminal.screen import Screen
from attnviz.text.corpus import CorpusLine
from tests.heads.surveys import survey_pair

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure
    from matplotlib.transforms import Bbox

    from attnviz.heads.changes.record import Changes, RelationChange
    from attnviz.heads.survey import Surveys

pytestmark = pytest.mark.usefixtures("whole_corpora", "few_seeds")

CASES = ["two", "saved", "same", "one", "odd", "related", "alike"]

Shown = list[tuple[str, "Bbox"]]
Texts = Callable[["Figure"], Shown]
Drawn = Callable[..., tuple["Figure", Shown]]


def surveyed(n: int, *, same: bool = False) -> Surveys:
    """The home-built encoder and its twin of random weights, or itself, on so many sentences."""
    made = splits.sentences("test")
    lines = [
        CorpusLine(number=number, text=" ".join(next(made).words)) for number in range(1, n + 1)
    ]
    source = open_source("toy")
    return survey_pair(
        lines, source, source if same else source.untrained(), SurveySettings(controls=8)
    )


@pytest.fixture(scope="module")
def cases() -> dict[str, Changes]:
    """Two models in step, of what was saved, one against itself, on one sentence, and with names hard to draw."""
    both, one, same = surveyed(30), surveyed(1), surveyed(4, same=True)
    found = changes(both.before, both.after, both.divergences, corpus="30 sentences")
    source = open_source("toy")
    linked = survey_pair(
        corpus_lines(60), source, source.untrained(), SurveySettings(controls=60, similarity=False)
    )
    related = changes(linked.before, linked.after, linked.divergences, corpus="60 sentences")
    first = next(one for one in related.relations if one.name == "coreference")
    odd = replace(
        found,
        before=replace(
            found.before,
            model="나는 너희\x1b[31m " * 12,
            notes=(Note.of("text", text="사랑해 " * 40),),
        ),
    )
    return {
        "two": found,
        "saved": changes(both.before, both.after, corpus="a.stats", corpus_after="b.stats"),
        "same": changes(same.before, same.after, same.divergences, corpus="4 sentences"),
        "one": changes(one.before, one.after, one.divergences, corpus="1 sentence"),
        "odd": odd,
        "related": replace(related, relations=(first, *many(first))),
        "alike": replace(related, relations=(replace(first, after=first.before, value=0.0),)),
    }


def many(first: RelationChange) -> list[RelationChange]:
    """Relations with names hard to draw, some of them not sure, unchanged or of other sentences."""
    made = []
    for number in range(60):
        before = replace(
            first.before, name=f"관계:{number}" + "길다" * (number % 9), head=number % 3
        )
        value = 0.0 if number % 7 == 0 else (number - 25) / 50
        low, high = value - number / 99, value + number / 99
        made.append(
            replace(
                first,
                before=before,
                after=replace(first.after, name=before.name, n=9 + number % 2),
                value=value,
                low=max(low, -1.0),
                high=min(high, 1.0),
            )
        )
    return made


def plain(found: Changes, *, full: bool = True, lang: str = "en", **screen: object) -> str:
    """The terminal view, without its colours: the tables, or else the first screen."""
    return "\n".join(line.plain for line in draw(found, Screen(**screen), lang, full=full))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def figure_of(cases: dict[str, Changes], texts_of: Texts) -> Drawn:
    """The picture of a case, and what it says, drawn once."""

    @cache
    def draw(case: str) -> tuple[Figure, Shown]:
        drawn = figure.draw(cases[case]).figure
        return drawn, texts_of(drawn)

    return draw


# In a terminal.


@pytest.mark.parametrize("width", [40, 60, 80, 100, 120, 160, 200])
@pytest.mark.parametrize("case", CASES)
def test_no_line_is_wider_than_the_window(cases: dict[str, Changes], case: str, width: int) -> None:
    """In any window, in ASCII too; every line is one line."""
    for unicode, full in ((True, True), (True, False), (False, True), (False, False)):
        for line in draw(cases[case], Screen(width=width, unicode=unicode), full=full):
            assert line.cell_len <= width, line.plain
            assert "\n" not in line.plain
            assert "\x1b" not in line.plain
            assert unicode or line.plain.isascii()
    for full in (True, False):
        assert all(
            line.cell_len <= width
            for line in draw(cases[case], Screen(width=width), "ko", full=full)
        )


def test_heads_stand_in_the_order_of_their_change(cases: dict[str, Changes]) -> None:
    """The largest first, with its number, its interval and its roles."""
    found = cases["two"]
    first = max(found.heads, key=lambda change: change.pattern)
    lines = plain(found, width=120).splitlines()
    start = next(index for index, line in enumerate(lines) if line.startswith("head"))
    shown = lines[start + 1 : start + 1 + len(found.heads)]
    assert shown[0].split()[0] == first.name
    assert f"{first.pattern:.3f}" in shown[0]
    assert f"{first.low:.3f}" in shown[0]
    numbers = [float(line.split()[1]) for line in shown]
    assert numbers == sorted(numbers, reverse=True)
    assert all(
        (" → " in line) == found.change(*map(int, line.split()[0].split("."))).role_changed
        for line in shown
    )


def test_both_roles_are_seen_in_a_narrow_window(cases: dict[str, Changes]) -> None:
    """The longer one is cut; the arrow is never lost."""
    found = cases["two"]
    lines = plain(found, width=60).splitlines()
    for change in found.heads:
        line = next(line for line in lines if line.startswith(f"{change.name} "))
        assert ("→" in line) == change.role_changed
        if change.role_changed:
            assert line.partition("→")[2].strip()[0].isalpha()


@pytest.mark.parametrize("width", [80, 120, 200])
@pytest.mark.parametrize("case", ["two", "related"])
def test_the_first_screen_says_what_changed(
    cases: dict[str, Changes], case: str, width: int
) -> None:
    """In 48 lines; in the first ten the heads that changed most, the roles that came or went, and the map."""
    found = cases[case]
    lines = plain(found, full=False, width=width).splitlines()
    assert len(lines) <= 48
    top = " ".join(" ".join(lines[:10]).split())
    first = max(found.heads, key=lambda change: change.pattern)
    assert f"{first.name} ({first.pattern:.2f})" in top
    beyond = [change for change in found.heads if change.beyond_nearest]
    assert (f"{len(beyond)} of 18 heads changed beyond" in top) == (
        case == "two"
    )  # the other knows no nearest head
    for one in moves(found):
        if not (one.before and one.after):
            assert one.rule.short in top.partition("roles that ")[2]
    rows = [line for line in lines if line[:3] in {"0  ", "1  ", "2  "}]
    assert rows[0] in lines[:10]
    for change in found.heads:
        place = rows[change.before.layer][3:]
        assert f"{change.pattern:.2f}"[1:] in place if change.pattern >= 0.005 else True
        assert place.count("●") + place.count("○") == sum(
            one.role_changed for one in found.heads if one.before.layer == change.before.layer
        )
    for move in moves(found)[:6]:
        (line,) = [line for line in lines if line.startswith(f"{move.rule.short}  ")]
        assert line.split()[-1] in {*names_of(move.lost), *names_of(move.got)}


def test_the_map_of_a_change_keeps_the_contract_of_colours(cases: dict[str, Changes]) -> None:
    """How far a pattern moved is a size, in the palette of weights; a difference of saved numbers red or blue."""
    for dark in (True, False):
        screen = Screen(width=100, dark=dark)
        for case, sizes in (("two", True), ("saved", False)):
            cells = [
                span.style
                for line in draw(cases[case], screen)[3:12]
                for span in line.spans
                if not isinstance(span.style, str) and span.style.bgcolor is not None
            ]
            assert cells, case
            weights = {screen.paint(level).bgcolor for level in range(256)}
            signed = {screen.paint_signed(value, 1.0).bgcolor for value in np.linspace(-1, 1, 511)}
            assert {cell.bgcolor for cell in cells} <= (weights if sizes else signed), case
    for line in draw(cases["two"], Screen(width=100, colour=False)):
        assert all(isinstance(span.style, str) or span.style.bgcolor is None for span in line.spans)


def test_korean_leaves_no_english_sentence(cases: dict[str, Changes], texts_of: Texts) -> None:
    """Under ``--lang ko`` no line of any view is of English words alone, but for names."""
    for case in ("two", "saved", "same", "related"):
        for full in (True, False):
            for line in plain(cases[case], full=full, lang="ko", width=100).splitlines():
                assert not english(line.replace(cases[case].after.model, "")), line
        for text, _ in texts_of(figure.draw(cases[case], language="ko").figure):
            assert not english(text.replace(cases[case].after.model, "")), text


def english(line: str) -> bool:
    """Whether a line has four English words in a row: names of models, measures and options are fewer."""
    parts = (part.split() for part in re.split(r"[^a-zA-Z ]+", line))
    return any(len(words) > 3 and all(map(str.islower, words)) for words in parts)


def test_how_to_read_it_and_both_proofs_are_there(cases: dict[str, Changes]) -> None:
    """Wherever it is shown."""
    for case, found in cases.items():
        text = " ".join(plain(found, width=80).split())
        assert "before: verified" in text
        assert "after: verified" in text
        assert "attention is not explanation" in text
        assert "attention is not explanation" in " ".join(
            plain(found, full=False, width=80).split()
        )
        assert ("Jensen-Shannon" in text) == (found.pattern is not None), case
    assert "no patterns" in plain(cases["saved"], width=200)
    assert "if nothing had changed" in plain(cases["two"], width=200)


def test_nothing_changed_is_said(cases: dict[str, Changes]) -> None:
    """No empty table."""
    text = plain(cases["same"], width=80)
    assert "no head changed" in text
    assert "pattern the same: 18" in " ".join(text.split())
    assert "role changed" not in text
    assert "no head changed" in plain(cases["same"], full=False, width=80)


def test_each_head_is_counted_once(cases: dict[str, Changes]) -> None:
    """What happened to patterns adds up to all heads, and moves to all changes of role."""
    for case in ("two", "same", "one"):
        ways = [
            (what, names)
            for what, names in group_by_change(cases[case])
            if what.startswith("pattern_")
        ]
        named = [name for _, names in ways for name in names]
        assert sorted(named) == sorted(change.name for change in cases[case].heads), case
    found = cases["two"]
    changed = [change for change in found.heads if change.role_changed]
    lost, got = (
        [change.name for one in moves(found) for change in getattr(one, side)]
        for side in ("lost", "got")
    )
    assert sorted(lost) == sorted(change.name for change in changed if change.roles[0] is not None)
    assert sorted(got) == sorted(change.name for change in changed if change.roles[1] is not None)


def test_relations_have_a_line_each(cases: dict[str, Changes]) -> None:
    """How often they are found before and after, by which heads, and how sure that is; the largest change first."""
    found = cases["related"]
    shown = relations(found)
    assert {one.name for one in shown} == {one.name for one in found.relations if one.value}
    sure = [one.established for one in shown]
    assert sure == sorted(sure, reverse=True)
    assert 0 < sum(sure) < len(sure)
    lines = plain(found, width=120).splitlines()
    start = lines.index("relations between words, each found by its best head before and after") + 2
    for one, line in zip(shown, lines[start:], strict=False):
        assert line.startswith("● " if one.established else "○ ")
        assert f"{one.before.accuracy:.2f}" in line
        value, low, high = (
            f"{end:+.2f}".replace("+0.00", "0.00") for end in (one.value, one.low, one.high)
        )
        assert f" {value}  " in line
        assert f"{low} to {high}".replace("-0.00", "0.00") in line
        heads = [f"{best.layer}.{best.head}" for best in (one.before, one.after)]
        assert (heads[0] if heads[0] == heads[1] else " → ".join(heads)) in line
    text = " ".join(plain(found, width=60).split())
    others = sum(one.moved for one in found.relations)
    way = "looks the other way (←: from the word depended on)"
    assert f"it is another one after, or {way}, for {others} of 61 relations" in text
    assert f"{sum(sure)} of 61 exclude 0, about 3 would if nothing had changed" in text
    assert f"not shown: {61 - len(shown)} relations found about as often after as before" in text
    brief = plain(found, full=False, width=100)
    assert (
        f"{sum(sure)} of 61 relations changed with an interval that excludes 0; about 3 would if nothing had changed"
        in brief
    )
    assert (
        "95 %" in plain(found, width=60).split("relations between words")[1].split("best head: ")[0]
    )


def test_a_head_that_looks_the_other_way_is_told(cases: dict[str, Changes]) -> None:
    """The same head, seen from the word depended on: that is another finding, and its arrow says so."""
    one = cases["alike"].relations[0]
    there = replace(one.before, layer=0, head=2, reverse=False)
    for before, after, shown in (
        (there, there, "0.2"),
        (replace(there, reverse=True), replace(there, reverse=True), "0.2"),
        (there, replace(there, reverse=True), "0.2 → 0.2←"),
        (replace(there, reverse=True), replace(there, head=3), "0.2← → 0.3"),
    ):
        assert heads_of(replace(one, before=before, after=after)) == shown


def test_relations_that_are_the_same_are_only_counted(cases: dict[str, Changes]) -> None:
    """No empty table; and without a treebank nothing is said of relations."""
    text = " ".join(plain(cases["alike"], width=100).split())
    assert "1 relation between words: found as often after as before, by the same heads" in text
    assert "+0.00" not in text.split("relation between words")[1].split("a role changes")[0]
    assert "relations" not in plain(cases["two"], width=100).split("more:")[0]
    assert "no such interval" not in plain(cases["two"], width=200)


def test_what_a_watch_says(cases: dict[str, Changes]) -> None:
    """Which heads, the first few by name, and how many; or none."""
    found = cases["two"]
    screen = Screen(width=200)
    text = " ".join(line.plain.strip() for line in draw_watch(found.exceeds(0.01), 0.01, screen))
    assert text.startswith("18 heads changed by more than 0.01 nats: ")
    assert text.endswith("and 13 more")
    assert draw_watch((), 0.5, screen)[0].plain == "no head's pattern changed by more than 0.5 nats"


# As a figure.


@pytest.mark.parametrize("case", CASES)
def test_texts_of_a_figure_keep_clear(figure_of: Drawn, case: str) -> None:
    """No text leaves the picture or touches another, none is too small; how to read it and the proofs are there."""
    made, shown = figure_of(case)
    boxes = np.array([box.extents for _, box in shown])
    left, low, right, high = boxes.T
    outside = (
        (left < -0.5)
        | (low < -0.5)
        | (right > made.bbox.width + 0.5)
        | (high > made.bbox.height + 0.5)
    )
    assert not outside.any(), [shown[index][0] for index in np.flatnonzero(outside)]
    across = np.minimum.outer(right, right) - np.maximum.outer(left, left)
    down = np.minimum.outer(high, high) - np.maximum.outer(low, low)
    pairs = np.argwhere(np.triu(np.minimum(across, down) > 1, k=1))
    assert not len(pairs), [(shown[a][0], shown[b][0]) for a, b in pairs[:5]]
    assert min(float(text.get_fontsize()) for text in made.axes[0].texts) >= LEAST_TEXT
    whole = " ".join(text for text, _ in shown)
    assert whole.count("verified: max difference") == 2
    assert "attention is not explanation" in whole


def test_a_figure_has_a_cell_a_head_in_its_colour(
    cases: dict[str, Changes], figure_of: Drawn
) -> None:
    """The darkest is the head that changed most; a frame stands round each head of another role."""
    from matplotlib.colors import to_rgb
    from matplotlib.patches import Rectangle

    found = cases["two"]
    (ax,) = figure_of("two")[0].axes
    drawn = [patch for patch in ax.patches if isinstance(patch, Rectangle) and patch.get_fill()]
    cells = [
        patch for patch in drawn if patch.get_height() != KEY
    ]  # the others are the keys of roles
    assert len(cells) == len(found.heads)
    light = [sum(to_rgb(cell.get_facecolor())) for cell in cells]
    assert int(np.argmin(light)) == int(np.argmax([change.pattern for change in found.heads]))
    frames = [patch for patch in ax.patches if patch.get_linewidth() == 1.1]
    assert len(frames) == sum(change.role_changed for change in found.heads)
    said = [text.get_text() for text in ax.texts]
    assert (
        sum(
            f"{change.pattern:.2f}"[1:] in said for change in found.heads if change.pattern >= 0.005
        )
        > 9
    )


def test_a_figure_draws_the_change_of_each_relation(
    cases: dict[str, Changes], figure_of: Drawn
) -> None:
    """A mark a relation, at its place between the ends of its interval, full where it is established."""
    from matplotlib.colors import to_rgb
    from matplotlib.patches import Ellipse

    found = cases["related"]
    shown = relations(found)
    (ax,) = figure_of("related")[0].axes
    marks = [patch for patch in ax.patches if isinstance(patch, Ellipse)]
    assert len(marks) == MOST_RELATIONS < len(shown)
    places = [mark.center[0] for mark in marks]
    assert np.corrcoef(places, [one.value for one in shown[:MOST_RELATIONS]])[
        0, 1
    ] == pytest.approx(1.0)
    full = [sum(to_rgb(mark.get_facecolor())) < 1 for mark in marks]
    assert full == [one.established for one in shown[:MOST_RELATIONS]]
    assert not [
        patch for patch in figure_of("two")[0].axes[0].patches if isinstance(patch, Ellipse)
    ]


def test_the_title_of_a_figure_says_the_finding(
    cases: dict[str, Changes], figure_of: Drawn
) -> None:
    """The heads that changed most, and the roles that went; below it both models."""
    found = cases["two"]
    said = [text for text, _ in figure_of("two")[1]]
    first = max(found.heads, key=lambda change: change.pattern)
    assert (
        f"of 18 heads changed beyond the head most like it: {first.name} ({first.pattern:.2f})"
        in said[0]
    )
    assert f"What changed in each head · toy → {found.after.model}" in said
    nothing = [text for text, _ in figure_of("same")[1]]
    assert nothing[0] == "no head changed: every pattern, measure and role is the same"


@pytest.mark.parametrize(("style", "least"), [("paper", 6.0), ("slides", 10.0)])
@pytest.mark.parametrize("lang", ["en", "ko"])
def test_a_figure_is_legible_in_a_column_and_on_a_slide(
    cases: dict[str, Changes], style: str, least: float, lang: str
) -> None:
    """As wide as it is there, and no letters too small."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", AttnvizWarning)
        made = cases["two"].figure(style=style, lang=lang)
    assert made.get_size_inches()[0] == pytest.approx(STYLES[style].width)
    assert smallest_letters(made) >= least - 0.05


def test_a_figure_that_is_too_narrow_says_so(cases: dict[str, Changes]) -> None:
    """No letter of it can be read."""
    with pytest.warns(AttnvizWarning, match="smallest letters"):
        cases["two"].figure(style="paper", width="1in")


def test_a_figure_is_written_the_same_each_time(cases: dict[str, Changes]) -> None:
    """In every format."""
    pictures = [figure.draw(cases["two"]) for _ in range(2)]
    for suffix in (".png", ".svg", ".pdf"):
        files = [BytesIO(), BytesIO()]
        for picture, into in zip(pictures, files, strict=True):
            picture.write(into, suffix)
        assert files[0].getvalue() == files[1].getvalue()


# As files.


def test_csv_holds_all_numbers(cases: dict[str, Changes]) -> None:
    """A row a head; differences are after less before; what was not measured is empty."""
    found = cases["two"]
    rows = list(csv.DictReader(io.StringIO(to_csv(found))))
    assert len(rows) == len(found.heads)
    for row, change in zip(rows, found.heads, strict=True):
        assert (int(row["layer"]), int(row["head"])) == (change.before.layer, change.before.head)
        assert float(row["change"]) == change.pattern
        assert float(row["entropy_difference"]) == pytest.approx(
            float(row["entropy_after"]) - float(row["entropy_before"]), abs=1e-12
        )
        assert row["role_changed"] == str(change.role_changed)
    saved = next(csv.DictReader(io.StringIO(to_csv(cases["saved"]))))
    assert saved["change"] == ""
    assert saved["entropy_difference"]
    assert f"offset_+{MAX_OFFSET}_low" in saved


def test_relations_in_csv_stand_beside_their_head(cases: dict[str, Changes]) -> None:
    """In the row of the head that finds them best before, with the one that does after."""
    found = cases["related"]
    rows = list(csv.DictReader(io.StringIO(to_csv(found))))
    for one in found.relations:
        (row,) = [row for row in rows if row[f"relation_{one.name}_difference"]]
        assert (int(row["layer"]), int(row["head"])) == (one.before.layer, one.before.head)
        assert row[f"relation_{one.name}_head_after"] == f"{one.after.layer}.{one.after.head}"
        numbers = [one.before.accuracy, one.after.accuracy, one.value, one.low, one.high]
        ends = ("before", "after", "difference", "low", "high")
        assert [float(row[f"relation_{one.name}_{end}"]) for end in ends] == numbers


def test_a_frame_has_the_table_of_the_csv_and_heads_by_their_names(
    cases: dict[str, Changes],
) -> None:
    """Head 1.10 is no number: it would be head 1.1."""
    first = cases["alike"].relations[0]
    found = replace(
        cases["alike"], relations=(replace(first, after=replace(first.after, layer=1, head=10)),)
    )
    frame = found.to_frame()
    assert list(frame.columns) == to_csv(found).splitlines()[0].split(",")
    assert len(frame) == len(found.heads)
    assert [*frame[f"relation_{first.name}_head_after"].dropna()] == ["1.10"]


@pytest.mark.parametrize("case", CASES)
def test_json_holds_all_there_is(cases: dict[str, Changes], case: str) -> None:
    """Both comparisons and what differs; no NaN."""
    found = cases[case]
    held = json.loads(to_json(found), parse_constant=pytest.fail)
    assert (held["format"], held["version"]) == ("attnviz-changes", 1)
    assert held["before"]["format"] == "attnviz-comparison"
    assert held["after"]["model"] == found.after.model
    assert held["paired"] is found.paired
    assert len(held["heads"]) == len(found.heads)
    first, change = held["heads"][0], found.heads[0]
    assert first["change"]["pattern"] == (None if np.isnan(change.pattern) else change.pattern)
    assert set(first["differences"]) == set(found.before.names)
    assert [one["name"] for one in held["relations"]] == [one.name for one in found.relations]
    for one, relation in zip(held["relations"], found.relations, strict=True):
        assert one["difference"]["established"] is relation.established
        assert one["difference"]["low"] == relation.low
        assert one["before"]["accuracy"] == relation.before.accuracy
        assert (one["after"]["layer"], one["after"]["head"]) == (
            relation.after.layer,
            relation.after.head,
        )
        assert one["other_head"] is relation.moved


def test_files_are_written_by_their_ending(cases: dict[str, Changes], tmp_path: Path) -> None:
    """And no other."""
    for name in ("a.csv", "b.JSON"):
        assert cases["one"].save(tmp_path / name).read_text(encoding="utf-8").endswith("\n")
    with pytest.raises(OutputError, match=r"\.csv, \.json or \.html"):
        cases["one"].save(tmp_path / "a.parquet")
