"""The terminal views: what they look like (golden files), that their numbers are the record's, that they always fit."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.style import Style

import attnviz
from attnviz.attention import Attention, Note
from attnviz.heatmaps.api import record_of
from attnviz.heatmaps.finding import find
from attnviz.heatmaps.terminal import draw
from attnviz.render.palette import colours, levels, luminance
from attnviz.render.sheet import Sheet, resolve
from attnviz.render.terminal.screen import Screen
from attnviz.text.display import token_text
from attnviz.text.messages import language

if TYPE_CHECKING:
    from pathlib import Path

    from rich.text import Text

    from tests.fixtures.command_line import Result

Make = Callable[..., Attention]
MakeSheet = Callable[..., Sheet]
Printed = Callable[..., str]
Golden = Callable[[str], None]

EAST_ASIAN = "나는 너희 모두를 사랑해 我 愛 👩‍👩‍👧 🇰🇷"
PLAIN = Screen(colour=False)


def plain(sheet: Sheet, screen: Screen = PLAIN, *, overview: bool = False) -> list[str]:
    """The lines of a picture without their colours."""
    return [line.plain for line in draw(sheet, screen, full=not overview)]


def rows_of(lines: list[str], labels: tuple[str, ...]) -> list[str]:
    """The cells of each row, panel by panel."""
    found = []
    for line in lines:
        match = re.match(r" *(\d+) ", line)
        if match and int(match[1]) < len(labels):
            label = labels[int(match[1])]
            rest = line[match.end() :]
            if rest.startswith(label):
                found.append(rest.removeprefix(label))
    return found


def percents(row: str) -> list[int]:
    """The numbers of a row in percent."""
    return list(map(int, re.findall(r"\d+", row)))


def weights_in_percent(matrix: np.ndarray) -> list[list[int]]:
    """The expected percentages; a weight that rounds to nothing has none."""
    return [[round(100 * float(weight)) for weight in row if weight >= 0.005] for row in matrix]


# What it looks like. One file a test; `pytest tests/heatmaps --rewrite-golden` writes them anew.


def test_no_colour_80_columns(fixed_sheet: MakeSheet, printed: Printed, golden: Golden) -> None:
    """One head in a pipe: shades, weights with two decimals, keys by name."""
    golden(printed(fixed_sheet(), PLAIN))


def test_truecolor_one_pattern(fixed_sheet: MakeSheet, printed: Printed, golden: Golden) -> None:
    """One head in 24-bit colour on a dark screen."""
    golden(printed(fixed_sheet(), Screen()))


def test_ascii_only(fixed_sheet: MakeSheet, printed: Printed, golden: Golden) -> None:
    """A screen that knows no more than ASCII is sent no more than ASCII."""
    sheet = fixed_sheet(n_layers=2, n_heads=3)
    text = printed(sheet, Screen(colour=False, unicode=False), overview=True)
    golden(text)
    assert text.isascii()


def test_korean_chinese_emoji(fixed_sheet: MakeSheet, printed: Printed, golden: Golden) -> None:
    """Labels two cells wide keep their columns."""
    golden(printed(fixed_sheet(EAST_ASIAN), PLAIN))


def test_all_heads_with_overview(fixed_sheet: MakeSheet, printed: Printed, golden: Golden) -> None:
    """Every layer and head as thumbnails, then the first layer in full."""
    golden(printed(fixed_sheet(n_layers=3, n_heads=5), PLAIN, overview=True))


def test_a_long_sentence_is_pooled(
    fixed_sheet: MakeSheet, printed: Printed, golden: Golden
) -> None:
    """Sixty tokens and two heads on 60 columns: neighbours share a cell, and a note says so."""
    words = [f"word{i}" for i in range(60)]
    golden(printed(fixed_sheet(words, n_heads=2), Screen(width=60, colour=False)))


@pytest.mark.parametrize("lang", ["en", "ko"])
def test_a_pooled_record_has_its_links(lang: str, printed: Printed, golden: Golden) -> None:
    """Of groups of tokens the Strongest links between tokens are named, and what a query does on average."""
    record = attnviz.attend("the animal crossed the street " * 9, model="toy", memory=40_000)
    assert record.cell > 1
    with language(lang):
        golden(printed(resolve(record.select([1], [2])), Screen(width=60, colour=False)))


# That what it says is true.


def test_percents_are_the_records(fixed_record: Make) -> None:
    """Every percent number of every head, read back from the text, is 100 times the weight, rounded."""
    record = fixed_record(n_layers=1, n_heads=5)
    sheet = resolve(record)
    lines = plain(sheet, Screen(width=33, colour=False))
    rows = rows_of(lines, sheet.query_labels)
    assert len(rows) == 5 * 6
    for head in range(5):
        found = [percents(row) for row in rows[head * 6 : head * 6 + 6]]
        assert found == weights_in_percent(record.pattern(0, head))


def test_weights_that_round_to_nothing_have_no_number(fixed_record: Make) -> None:
    """A weight below half a percent has no number; on a screen with colours its cell is painted like any other."""
    record = fixed_record("All you need is love", causal=True)
    sheet = resolve(record)
    n_numbers = (record.pattern(0, 0) >= 0.005).sum(axis=1).tolist()
    for screen in (Screen(width=34, colour=False), PLAIN, Screen()):
        drawn = draw(sheet, screen)
        lines = [line.plain for line in drawn]
        rows = rows_of(lines, sheet.query_labels)
        assert [len(percents(row)) for row in rows] == n_numbers
        painted = [
            span
            for line in drawn[3:-4]
            for span in line.spans
            if isinstance(span.style, Style) and span.style.bgcolor
        ]
        assert len(painted) == (15 if screen.colour else 0)  # a triangle of 5 rows


def test_everything_is_said(fixed_record: Make) -> None:
    """Every word, the model, kind, axes, scale, notes and the receipt are all there, however narrow."""
    record = fixed_record(
        n_layers=2, n_heads=3, notes=(Note.of("text", text="special tokens hidden"),)
    )
    sheet = resolve(record)
    for width in (30, 80, 200):
        text = " ".join(" ".join(plain(sheet, Screen(width=width), overview=True)).split())
        said = (record.text, sheet.model, "Rows attend to columns", *sheet.notes, sheet.proof)
        for part in said:
            assert " ".join(part.split()) in text, part


@pytest.mark.parametrize("colour", [True, False])
def test_masked_cells_are_hatched(fixed_record: Make, colour: bool) -> None:
    """Keys after the query are masked, unlike small weights, which are blank or dotted; the legend says so."""
    sheet = resolve(fixed_record("one two three", causal=True))
    lines = plain(sheet, Screen(width=80, colour=colour))
    rows = [next(line for line in lines if line.startswith(f"{n} ")) for n in range(3)]
    assert [row.count("╱") for row in rows] == [2, 1, 0]
    assert any("hatched: masked" in line for line in lines)
    unmasked = plain(resolve(fixed_record("one two three")), Screen(width=80, colour=colour))
    assert not any("╱" in line or "masked" in line for line in unmasked)


@pytest.mark.parametrize(("width", "colour"), [(60, True), (80, False), (200, True)])
def test_the_first_screen_answers(real_record: Attention, width: int, *, colour: bool) -> None:
    """72 heads and 16 tokens: the answer in words, the sentence, the other heads, and the head that was named."""
    sheet = resolve(real_record)
    lines = plain(sheet, Screen(width=width, colour=colour), overview=True)
    assert len(lines) <= 40
    assert " attends most to " in lines[0]
    assert "animal" in lines[1]
    assert any(" heads agree: " in line for line in lines)
    assert any(line.startswith("More: --head ") for line in lines)
    assert "✓ verified (" in lines[-1]


@pytest.mark.parametrize(("colour", "most"), [(True, 20), (False, 26)])
def test_four_words_fit_a_small_window(*, colour: bool, most: int) -> None:
    """With all heads as thumbnails."""
    sheet = resolve(attnviz.attend("I love all you", "toy"))
    lines = plain(sheet, Screen(width=80, colour=colour), overview=True)
    assert len(lines) <= most
    assert [line[:7] for line in lines if line.startswith("layer ")] == [
        "layer 0",
        "layer 1",
        "layer 2",
    ]


def test_the_sentence_is_shaded(fixed_record: Make) -> None:
    """Each word has the colour of its weight for the word that is named, which is underlined."""
    sheet = resolve(fixed_record("I love all you", n_layers=2, n_heads=3))
    finding = find(sheet.record)
    assert finding is not None
    for screen in (Screen(), Screen(dark=None)):
        line = draw(sheet, screen)[1]
        assert line.plain == "I love all you"
        row = sheet.record[finding.layer, finding.head][finding.query]
        expected = [
            screen.paint(level).bgcolor for level in levels(row, sheet.panels[0].top).tolist()
        ]
        assert [span.style.bgcolor for span in line.spans] == expected  # type: ignore[union-attr]
        assert [bool(span.style.underline) for span in line.spans] == [  # type: ignore[union-attr]
            index == finding.query for index in range(4)
        ]


@pytest.fixture(scope="module")
def real_record(real_model: str) -> Attention:
    """All heads of a real model on a sentence of 16 tokens; its head 0.2 looks one token back."""
    from attnviz.capture.attend import attend

    return attend("The animal didn't cross the street because it was too tired.", real_model)


@pytest.mark.parametrize("lang", ["en", "ko"])
def test_heads_with_the_same_pattern(lang: str) -> None:
    """No head is said to differ from the others where all attend to the only token."""
    with language(lang):
        sheet = resolve(record_of(np.ones((2, 3, 1, 1), np.float32), ["love"]))
        first, *lines = plain(sheet, overview=True)
    expected = {
        "en": "All heads have the same pattern here",
        "ko": "여기서는 모든 헤드의 패턴이 같습니다",
    }
    assert first == expected[lang]
    assert not any("differs" in line for line in lines)


# That it fits, aligns and can be read.


@pytest.mark.parametrize(("palette", "dark"), [("magma", True), ("crest", False)])
def test_numbers_can_be_read_in_their_cells(
    fixed_record: Make, palette: str, *, dark: bool
) -> None:
    """Every number has a contrast of 4.5 to 1 with its cell, which has the palette's colour of its weight."""
    record = fixed_record()
    sheet = resolve(record)
    table = colours(palette, on_dark=dark)
    matrix = sheet.panels[0].matrix
    shown = np.where(matrix < 0.005, 0, levels(matrix, sheet.panels[0].top))
    found = []
    for line in draw(sheet, Screen(dark=dark, palette=palette))[3:-3]:
        for span in line.spans:
            style = span.style
            if isinstance(style, Style) and style.bgcolor and style.color:
                ink, ground = (
                    np.array(colour.get_truecolor(), np.uint8)
                    for colour in (style.color, style.bgcolor)
                )
                dimmer, lighter = sorted((float(luminance(ink)), float(luminance(ground))))
                assert (lighter + 0.05) / (dimmer + 0.05) >= 4.5
                assert re.fullmatch(r"\d*", line.plain[span.start : span.end].strip())
                found.append(ground)
    np.testing.assert_array_equal(found, table[shown.ravel()])


def assert_fits(sheet: Sheet, screen: Screen, *, overview: bool = False) -> list[Text]:
    """A picture's lines, none wider than the screen and none with a character that a terminal would obey."""
    lines = draw(sheet, screen, full=not overview)
    for line in lines:
        assert cell_len(line.plain) <= screen.width, (screen, line.plain)
        assert not any(unicodedata.category(character) in {"Cc", "Cs"} for character in line.plain)
    return lines


def any_label() -> st.SearchStrategy[str]:
    """Labels of any Unicode text, as a whole token or as a part of one."""
    raw = st.text(st.characters(exclude_categories=[]), min_size=1, max_size=12)
    return st.builds(
        lambda text, continues: token_text(text, typed=text, continues=continues),
        raw,
        st.booleans(),
    )


@given(
    labels=st.lists(any_label(), min_size=1, max_size=9),
    repeats=st.integers(1, 9),
    width=st.integers(30, 220),
    sizes=st.tuples(st.integers(1, 2), st.integers(1, 3)),
    colour=st.booleans(),
    overview=st.booleans(),
    scale=st.sampled_from(["shared", "panel"]),
)
@settings(max_examples=60)
def test_any_labels_on_any_width_fit(
    fixed_record: Make,
    *,
    labels: list[str],
    repeats: int,
    width: int,
    sizes: tuple[int, int],
    scale: Literal["shared", "panel", "log"],
    colour: bool,
    overview: bool,
) -> None:
    """Whatever the tokens are: no line is wider than the screen, and nothing in it is obeyed."""
    record = fixed_record(
        labels * repeats, n_layers=sizes[0], n_heads=sizes[1], text=" ".join(labels)
    )
    assert_fits(resolve(record, scale), Screen(width=width, colour=colour), overview=overview)


def test_a_part_keeps_its_numbers(typed: Callable[..., Result], here: Path) -> None:
    """--rows and --keys show tokens with their numbers in the text, captured or loaded."""
    part = ("--rows", "1-2", "--keys", "2-3", "--head", "0.1")
    typed("heatmap", "--toy", "I love all you", "-o", "whole.json")
    now = typed("heatmap", "--toy", "I love all you", *part)
    assert now.output == typed("heatmap", "--load", "whole.json", *part).output
    assert re.search(r"^1 love .*\n2 all  ", now.output, re.MULTILINE)
    assert "Part of the text: queries 1 to 2 of 4, keys 2 to 3 of 4" in now.output


def test_long_sentences_are_cut_in_the_terminal(fixed_record: Make) -> None:
    """Of a long text the first lines and the last are shown, and that there are more between."""
    record = replace(fixed_record(["w"]), text=" ".join(f"word{i}" for i in range(200)))
    lines = plain(resolve(record), Screen(width=80))
    assert lines[4] == "…"
    assert lines[5].endswith("word199”")
    assert len([line for line in lines if "word" in line]) == 5
