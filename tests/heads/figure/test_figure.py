"""The pictures of a comparison, by their artists: colours are the roles', bars the measures; every text can be read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from io import BytesIO
from typing import TYPE_CHECKING

import numpy as np
import pytest

from attnviz.attention import Attention, Note
from attnviz.errors import SelectionError
from attnviz.heads.figure import page as heads_page_figure
from attnviz.heads.figure import sheet
from attnviz.heads.figure.grid import EMPTY, paler
from attnviz.heads.figure.page import MARKS, shares
from attnviz.heads.figure.sheet import ACROSS
from attnviz.heads.measures import OFFSETS
from attnviz.heads.roles import CONTROLS
from attnviz.heads.selection import (
    MOST_CARDS,
    by_role,
    control_of,
    estimate_of,
    received_by_words,
    strongest,
    strongest_links,
    without_card,
)
from attnviz.heads.wording import proof
from attnviz.render.palette import colours, pixels
from tests.fixtures.pictures import expect_enlarged_whole
from tests.heads.comparisons_by_hand import KOREAN, NARROW, RULES, made, with_chance

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle
    from matplotlib.transforms import Bbox

    from attnviz.heads.record import HeadComparison, Role

Shown = list[tuple[str, "Bbox"]]
Texts = Callable[["Figure"], Shown]
Drawn = Callable[..., tuple["Figure", Shown]]
Make = Callable[..., Attention]
LONG = "Although I did not get 95 in last TOEFL, I could get in the Ph.D program. " * 8


def images_of(made_: Figure) -> list[np.ndarray]:
    """What its images show, in the order in which they were drawn."""
    from matplotlib.image import AxesImage

    found = made_.findobj(AxesImage)
    return [np.asarray(image.get_array()) for image in found if isinstance(image, AxesImage)]


def hexed(colour: object) -> str:
    """A colour of Matplotlib's as it is written."""
    from matplotlib.colors import to_hex

    return to_hex(colour)  # type: ignore[arg-type]


def paper(made_: Figure) -> Axes:
    """The axes over the whole figure."""
    return next(ax for ax in made_.axes if not ax.axison)


def filled(made_: Figure) -> list[Rectangle]:
    """The rectangles with a colour: those of the grid first, in the order of the heads."""
    from matplotlib.patches import Rectangle

    return [
        patch for patch in paper(made_).patches if isinstance(patch, Rectangle) and patch.get_fill()
    ]


def assert_clear(shown: list[tuple[str, Bbox]], made_: Figure) -> None:
    """No two texts share more than a pixel, and none leaves the picture."""
    boxes = np.array([box.extents for _, box in shown])
    left, low, right, high = boxes.T
    outside = (
        (left < -0.5)
        | (low < -0.5)
        | (right > made_.bbox.width + 0.5)
        | (high > made_.bbox.height + 0.5)
    )
    assert not outside.any(), [shown[index][0] for index in np.flatnonzero(outside)]
    across = np.minimum.outer(right, right) - np.maximum.outer(left, left)
    down = np.minimum.outer(high, high) - np.maximum.outer(low, low)
    pairs = np.argwhere(np.triu(np.minimum(across, down) > 1.5, k=1))
    assert not len(pairs), [(shown[a][0], shown[b][0]) for a, b in pairs[:5]]


@pytest.fixture(scope="module")
def sheet_of(texts_of: Texts) -> Drawn:
    """The sheet of heads made by hand, and what it says, drawn once."""

    @cache
    def draw(*shape: int, all_roles: bool = False) -> tuple[Figure, Shown]:
        drawn = sheet.draw(made(*shape, all_roles=all_roles)).figure
        return drawn, texts_of(drawn)

    return draw


@pytest.fixture(scope="module")
def page_of(texts_of: Texts) -> Drawn:
    """Likewise the page of one of them, held against all controls."""

    @cache
    def draw(layer: int, head: int) -> tuple[Figure, Shown]:
        drawn = heads_page_figure.draw(with_chance(made()), layer, head).figure
        return drawn, texts_of(drawn)

    return draw


@pytest.mark.parametrize("shape", [(1, 1), (1, 2), (3, 6), (6, 12), (24, 16)])
def test_texts_keep_clear(sheet_of: Drawn, shape: tuple[int, int]) -> None:
    """One head or hundreds: no text is cut or covers another."""
    drawn, shown = sheet_of(*shape, all_roles=shape != (3, 6))
    assert_clear(shown, drawn)


def test_long_words_keep_clear(texts_of: Texts, fixed_record: Make) -> None:
    """Long names and sentences are wrapped or cut; Korean ones too; patterns have their room."""
    comparison = made(
        3,
        6,
        model="an-organisation/" + "long-name-" * 12,
        corpus=LONG,
        notes=(Note.of("text", text=LONG), Note.of("text", text=KOREAN * 9)),
    )
    comparison = replace(
        comparison,
        examples={
            key: tuple(replace(one, text=LONG if key[0] > "1" else KOREAN * 40) for one in several)
            for key, several in comparison.examples.items()
        },
    )
    record = fixed_record(
        "[CLS] 나는 internationalization 너희 모두를 사랑해 " + "token " * 40 + "[SEP]",
        n_layers=3,
        n_heads=6,
    )
    patterns = {card.role.name: record for card in strongest(comparison)}
    drawn = sheet.draw(comparison, patterns=patterns).figure
    assert_clear(texts_of(drawn), drawn)
    page = heads_page_figure.draw(comparison, 0, 0).figure
    assert_clear(texts_of(page), page)


@pytest.mark.parametrize("shape", [(1, 1), (3, 7), (24, 16)])
def test_the_grid_has_the_colours_of_the_roles(sheet_of: Drawn, shape: tuple[int, int]) -> None:
    """A cell a head, in its place; hatched and pale where the role is not established."""
    comparison = made(*shape, all_roles=True)
    cells = filled(sheet_of(*shape, all_roles=True)[0])[: len(comparison.heads)]
    wide, high = cells[0].get_width(), cells[0].get_height()
    for head, cell in zip(comparison.heads, cells, strict=True):
        x, y = (cell.get_x() - cells[0].get_x()) / wide, (cell.get_y() - cells[0].get_y()) / high
        assert (round(y, 6), round(x, 6)) == (head.layer, head.head)
        role = head.roles[0] if head.roles else None
        doubtful = role is not None and not role.established
        colour = role.rule.colour if role else EMPTY
        assert hexed(cell.get_facecolor()) == (paler(colour, 0.82) if doubtful else colour)
        assert bool(cell.get_hatch()) == doubtful
        assert (role is None) or colour == role.rule.colour


def test_every_sign_of_the_grid_is_in_the_legend(texts_of: Texts) -> None:
    """So one who sees ``nsubj`` in a cell can read what that is; a relation the other way round has another sign."""
    comparison = turned(made(6, 12, all_roles=True))
    shown = Counter(text for text, _ in texts_of(sheet.draw(comparison).figure))
    signs = {head.roles[0].rule.sign for head in comparison.heads if head.roles}
    assert {"nsub>", ">nsub", ">nm:p"} <= signs
    for one in signs:
        n_cells = sum(
            bool(head.roles) and head.roles[0].rule.sign == one for head in comparison.heads
        )
        n_cards = sum(card.role.rule.sign == one for card in strongest(comparison))
        assert shown[one] >= n_cells + n_cards + 1


def turned(comparison: HeadComparison) -> HeadComparison:
    """The same, but that the first head looks from verbs to subjects."""
    role = next(
        role for head in comparison.heads for role in head.roles if role.name == "relation_nsubj"
    )
    name = "relation_nsubj_reversed"
    other = replace(role, rule=RULES[name], measure=name)
    return replace(
        comparison, heads=(replace(comparison.heads[0], roles=(other,)), *comparison.heads[1:])
    )


def test_the_table_of_roles_counts(sheet_of: Drawn) -> None:
    """Each role by its short name, how many heads have it, the best of them and its score; title and notes agree."""
    comparison = made(6, 12, all_roles=True)
    _, texts = sheet_of(6, 12, all_roles=True)
    sure = [head for head in comparison.heads if head.roles and head.roles[0].established]
    assert texts[0][0].startswith(
        f"A role is established for {len(sure)} of 72 heads; most often: "
    )
    rows = {
        row[0].role.rule.short if row[0].role else "no clear role": row
        for row in by_role(comparison)
    }
    (start,) = (box.x0 for text, box in texts if text == "role")
    names = [(text, box) for text, box in texts if text in rows and abs(box.x0 - start) < 4]
    assert {text for text, _ in names} == set(rows)
    for name, box in names:
        beside = {
            text
            for text, other in texts
            if other.x0 > box.x1 and abs(other.y0 + other.y1 - box.y0 - box.y1) < 6
        }
        assert f"{len(rows[name])}" in beside, name
        if rows[name][0].role is not None:
            assert {rows[name][0].head.name, "0.90"} <= beside, name
    said = " ".join(text for text, _ in texts)
    assert "hatched and pale: not established, since random weights do as much" in said


def test_a_page_of_72_heads_is_one_landscape_page(fixed_record: Make) -> None:
    """About 4:3, cards of one size, at most eight of them, and one row of four above the other."""
    comparison = made(6, 12, all_roles=True)
    record = fixed_record(n_layers=6, n_heads=12)
    patterns = {card.role.name: record for card in strongest(comparison)}
    figure = sheet.draw(comparison, patterns=patterns).figure
    width, height = figure.get_size_inches()
    assert 1.1 < width / height < 1.5
    n, n_keys = len(record.query_tokens), len(record.key_tokens)
    frames = [
        (round(image.get_extent()[0], 3), round(image.get_extent()[3], 3))
        for image in paper(figure).images
        if np.asarray(image.get_array()).shape[:2] == (n, n_keys)
    ]
    assert len(frames) == len(patterns) == MOST_CARDS
    assert len({left for left, _ in frames}) == ACROSS
    assert len({top for _, top in frames}) == MOST_CARDS // ACROSS


def test_nothing_is_established(texts_of: Texts) -> None:
    """Said in the title and above the cards; nothing is called solid; each reason for hatching is given."""
    comparison = made()
    role = comparison.heads[1].roles[0]
    bare = replace(role, controls=(), doubt=Note.of("no_control", controls="chance, untrained"))
    unsure = {
        head.name: bare if head.name == "0.0" else role for head in comparison.heads if head.roles
    }
    texts = [text for text, _ in texts_of(sheet.draw(with_roles(comparison, unsure)).figure)]
    assert texts[0] == "No head has an established role (6 heads)"
    said = " ".join(texts)
    assert (
        "hatched and pale: not established, since random weights do as much (4 heads); no control"
        in said
    )
    assert "solid" not in said
    assert "An example of each role, none established" in said
    none = replace(comparison, heads=tuple(replace(head, roles=()) for head in comparison.heads))
    assert "hatched" not in " ".join(text for text, _ in texts_of(sheet.draw(none).figure))


def test_one_sentence_shows_words(texts_of: Texts, fixed_record: Make) -> None:
    """In each cell the word that gets most; below, the strongest links between words with their heads."""
    record = fixed_record("[CLS] she eats apples [SEP]", n_layers=2, n_heads=3)
    drawn = sheet.draw(replace(made(), attention=record)).figure
    shown = texts_of(drawn)
    texts = [text for text, _ in shown]
    assert texts[0] == "What each of 6 heads looks at most in one sentence"
    assert_clear(shown, drawn)
    received = received_by_words(record)
    for layer, head in np.ndindex(2, 3):
        assert record.key_tokens[int(received[layer, head].argmax())].text in texts
    for (query, key), (weight, layer, head) in strongest_links(record):
        assert f"head {layer}.{head}" in texts
        assert (
            f"{record.query_tokens[query].text} → {record.key_tokens[key].text} {weight:.2f}"
            in texts
        )


def with_roles(comparison: HeadComparison, roles: dict[str, Role]) -> HeadComparison:
    """The same with other roles of some heads."""
    heads = (
        replace(head, roles=(roles[head.name],)) if head.name in roles else head
        for head in comparison.heads
    )
    return replace(comparison, heads=tuple(heads))


def test_the_strongest_example_of_each_established_role(texts_of: Texts, sheet_of: Drawn) -> None:
    """Of the heads with a role that which has it most clearly; a short sentence of those kept; nothing in doubt."""
    comparison = made(3, 6)
    cards = {card.role.name: card for card in strongest(comparison)}
    assert set(cards) == {"previous", "first", "offset_-2"}
    shown = " ".join(text for text, _ in sheet_of(3, 6)[1])
    for card in cards.values():
        assert card.example == comparison.examples[card.head.name, card.role.measure][0]
        assert f"“{card.example.text}” {card.example.score:.2f}" in shown
        assert f"{card.head.name} · {card.role.rule.short} {card.role.score:.2f}" in shown
    longer = {
        key: (replace(several[0], text=LONG), several[1])
        for key, several in comparison.examples.items()
    }
    short = {
        card.example.text
        for card in strongest(replace(comparison, examples=longer))
        if card.example is not None
    }
    assert short == {"I love all"}
    without = replace(comparison, examples={})
    assert all(card.example is None for card in strongest(without))
    assert "no example" in " ".join(text for text, _ in texts_of(sheet.draw(without).figure))


def test_roles_without_a_card_are_counted(texts_of: Texts, sheet_of: Drawn) -> None:
    """Eight at most; the sheet says how many more there are, and nothing where there are not."""
    comparison = turned(made(6, 12, all_roles=True))
    sure = {role.name for head in comparison.heads for role in head.roles if role.established}
    assert len(strongest(comparison)) == MOST_CARDS
    assert without_card(comparison) == len(sure) - MOST_CARDS > 0
    shown = " ".join(text for text, _ in texts_of(sheet.draw(comparison).figure))
    assert f"({without_card(comparison)} more role" in shown
    assert "more role" not in " ".join(text for text, _ in sheet_of()[1])


def test_the_clearest_head_stands_for_its_role() -> None:
    """Even where it has the card of another role."""
    comparison = made()
    role = replace(comparison.heads[4].roles[0], rule=RULES["offset_-3"])
    heads = list(comparison.heads)
    heads[3] = replace(heads[3], roles=(*heads[3].roles, replace(role, score=0.85)))
    heads[0] = replace(heads[0], roles=(*heads[0].roles, replace(role, score=0.83)))
    cards = {
        card.role.name: card.head.name
        for card in strongest(replace(comparison, heads=tuple(heads)))
    }
    assert cards["offset_-3"] == cards["first"] == heads[3].name


def test_patterns_that_are_given_are_drawn(
    fixed_record: Make, texts_of: Texts, sheet_of: Drawn
) -> None:
    """The head's own matrix, and no other, with its scale from 0 to 1; without the head, refused."""
    comparison = made()
    record = fixed_record(n_layers=2, n_heads=3)
    drawn = sheet.draw(comparison, patterns={"first": record}).figure
    images = images_of(drawn)
    assert (
        sum(np.array_equal(image, pixels(record.pattern(1, 0), 1.0, colours())) for image in images)
        == 1
    )
    assert sum(np.array_equal(image, colours()[None]) for image in images) == 1
    assert images_of(sheet_of()[0]) == []
    shown = [text for text, _ in texts_of(drawn)]
    assert {token.text for token in record.key_tokens} <= set(shown)
    page = heads_page_figure.draw(comparison, 1, 0, patterns={"first": record}).figure
    assert any(
        np.array_equal(image, pixels(record.pattern(1, 0), 1.0, colours()))
        for image in images_of(page)
    )
    card = strongest(made())[0]
    with pytest.raises(SelectionError, match=r"no (layer|head)"):
        sheet.draw(
            comparison,
            patterns={card.role.name: fixed_record(n_layers=2, n_heads=3).select([1], [2])},
        )


def test_what_must_be_said(sheet_of: Drawn, page_of: Drawn) -> None:
    """Model, corpus, proof, notes, and that attention is no explanation."""
    for _, texts in (sheet_of(), page_of(0, 0)):
        shown = " ".join(text for text, _ in texts)
        for words in (
            "made by hand",
            "1,234 sentences",
            proof(made()),
            "one thing to know",
            "not explanation",
        ):
            assert words in shown


def bars_of(ax: Axes) -> list[float]:
    """The heights of the bars."""
    from matplotlib.patches import Rectangle

    return [patch.get_height() for patch in ax.patches if isinstance(patch, Rectangle)]


def test_a_page_has_the_measures(page_of: Drawn) -> None:
    """Bars are the weight by offset, dots the shares with their intervals, marks their controls."""
    comparison = with_chance(made())
    head = comparison.heads[3]
    drawn, _ = page_of(1, 0)
    offsets, measures = (ax for ax in drawn.axes if ax.axison)
    values = [estimate_of(comparison, f"offset_{offset:+d}", head) for offset in OFFSETS]
    assert np.allclose(bars_of(offsets), [value for value, _, _ in values])
    ends = np.array([line.get_ydata() for line in offsets.lines], dtype=np.float64)
    assert np.allclose(ends, [(low, high) for _, low, high in values])
    names = shares(comparison)
    labels = [label.get_text() for label in measures.get_yticklabels()]
    assert labels == [f"{'~' * (name in NARROW)}{name}" for name in names]
    found = {
        str(points.get_label()): np.asarray(points.get_offsets())[:, 0]
        for points in measures.collections
    }
    own = np.array([estimate_of(comparison, name, head)[0] for name in names])
    assert np.allclose(np.ma.filled(found["this head"], np.nan), own, equal_nan=True)
    assert set(MARKS) == set(comparison.controls)
    for control, label in ((kind.name, kind.title) for kind in CONTROLS.values()):
        held = [control_of(comparison, control, name, head) for name in names]
        assert np.allclose(np.ma.filled(found[label], np.nan), held, equal_nan=True)
    assert (
        control_of(comparison, "untrained", "first", head)
        == comparison.controls["untrained"].value[head.layer, head.head, 3]
    )


def test_no_mark_hides_another(page_of: Drawn) -> None:
    """Where a control falls on the head's own dot both are seen: it lies above, without a filling."""
    from matplotlib.collections import PathCollection

    drawn, _ = page_of(0, 2)
    (measures,) = (ax for ax in drawn.axes if ax.axison and ax.collections)
    dots = {
        str(one.get_label()): one for one in measures.collections if isinstance(one, PathCollection)
    }
    own = dots.pop("this head")
    assert {"chance", "shuffled", "random", "offset"} == set(dots)
    for points in dots.values():
        assert points.get_zorder() > own.get_zorder()
        assert points.get_sizes()[0] < own.get_sizes()[0]
        assert points.get_label() == "shuffled" or not len(points.get_facecolor())


def test_how_relations_are_scored_is_said(texts_of: Texts, sheet_of: Drawn, page_of: Drawn) -> None:
    """Chosen on one half of the sentences, scored on the other: said where there are relations."""
    said = "a relation's heads are chosen on one half of the sentences"
    without = texts_of(sheet.draw(made(relations=())).figure)
    for texts, shown in (
        (sheet_of()[1], True),
        (page_of(0, 1)[1], True),
        (page_of(0, 0)[1], False),
        (without, False),
    ):
        assert (said in " ".join(text for text, _ in texts)) == shown


@pytest.mark.parametrize("place", [(0, 0), (0, 1), (0, 2), (1, 1), (-1, -1)])
def test_pages_keep_clear(page_of: Drawn, place: tuple[int, int]) -> None:
    """With an established role, with one that is not, with none."""
    drawn, shown = page_of(*place)
    assert_clear(shown, drawn)


def test_all_grows_with_a_picture() -> None:
    """The sheet with its map, and a page with its marks and what they mean."""
    expect_enlarged_whole(sheet.draw(made()).figure)
    expect_enlarged_whole(heads_page_figure.draw(with_chance(made()), 0, 1).figure)


def test_a_page_of_what_was_not_measured(texts_of: Texts) -> None:
    """One sentence has no intervals, and some measures no number: dashes, no empty bars, no errors."""
    comparison = made()
    e = comparison.estimates
    nothing = np.full_like(e.value, np.nan)
    drawn = heads_page_figure.draw(
        replace(comparison, estimates=replace(e, low=nothing, high=nothing)), 0, 2
    ).figure
    assert not any(ax.lines for ax in drawn.axes if ax.axison and ax.patches)
    empty = replace(comparison, estimates=replace(e, value=nothing, low=nothing, high=nothing))
    page = heads_page_figure.draw(empty, 0, 2).figure
    assert sum(text == "—" for text, _ in texts_of(page)) == len(shares(comparison))
    assert sum(ax.axison for ax in page.axes) == 1


@pytest.mark.parametrize(
    ("place", "title"),
    [
        ((1, 0), "Head 1.0 rests on the first token"),
        ((0, 1), "Head 0.1, not established: spreads over many tokens"),
        ((0, 2), "Head 0.2 has no clear role"),
    ],
)
def test_the_title_of_a_page_says_what_the_head_does(
    page_of: Drawn, place: tuple[int, int], title: str
) -> None:
    """Established, in doubt, or none."""
    assert page_of(*place)[1][0][0] == title


def test_no_such_head() -> None:
    """The message says which there are."""
    with pytest.raises(SelectionError, match="no layer 5"):
        heads_page_figure.draw(made(), 5, 0)


def files() -> list[bytes]:
    """Both pictures as files of each format."""
    made_ = []
    for picture in (sheet.draw(made()), heads_page_figure.draw(made(), 0, 0)):
        for suffix in (".png", ".svg", ".pdf"):
            into = BytesIO()
            assert picture.write(into, suffix).missing == ""
            made_.append(into.getvalue())
    return made_


def test_files() -> None:
    """The same picture gives the same bytes, whatever somebody has set, and settings stay as they are."""
    import matplotlib as mpl

    first = files()
    starts = [b"\x89PNG", b"<?xml", b"%PDF"]
    assert all(one.startswith(start) for one, start in zip(first, starts * 2, strict=True))
    with mpl.rc_context({"axes.facecolor": "red", "font.size": 30, "svg.hashsalt": "x"}):
        before = dict(mpl.rcParams)
        assert files() == first
        assert dict(mpl.rcParams) == before
