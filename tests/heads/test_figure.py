"""The pictures of a comparison, by their artists: colours are the roles', bars the measures; every text can be read."""

from __future__ import annotations

import struct
import warnings
from collections.abc import Callable
from dataclasses import replace
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from attnviz.attention import Attention, Note
from attnviz.errors import AttnvizWarning, SelectionError
from attnviz.heads import figure
from attnviz.heads.api import draw
from attnviz.heads.measures import GROUPS, rules_of
from attnviz.heads.record import Example
from attnviz.heads.selection import (
    MOST_CARDS,
    by_role,
    received_by_words,
    strongest,
    strongest_links,
)
from attnviz.heads.words import proof
from attnviz.look import Look
from attnviz.render.figure.style import smallest_letters
from attnviz.render.palette import colours, luminance
from attnviz.render.theme import LIGHT
from attnviz.text.messages import _, language
from tests.fixtures.pictures import expect_apart, expect_enlarged_whole
from tests.heads.comparisons_by_hand import KOREAN, compared, made

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle
    from matplotlib.transforms import Bbox

    from attnviz.heads.record import HeadComparison

Texts = Callable[["Figure"], list[tuple[str, "Bbox"]]]
Make = Callable[..., Attention]
LONG = "Although I did not get 95 in last TOEFL, I could get in the Ph.D program. " * 8


def images_of(drawn: Figure) -> list[np.ndarray]:
    """Return the arrays of a figure's images, in drawing order."""
    from matplotlib.image import AxesImage

    found = drawn.findobj(AxesImage)
    return [np.asarray(image.get_array()) for image in found if isinstance(image, AxesImage)]


def hexed(colour: object) -> str:
    """A colour of Matplotlib's as it is written."""
    from matplotlib.colors import to_hex

    return to_hex(colour)  # type: ignore[arg-type]


def cells_of(drawn: Figure) -> list[Rectangle]:
    """The rectangles with a colour: those of the map first, in the order of the heads."""
    from matplotlib.patches import Rectangle

    paper = next(ax for ax in drawn.axes if not ax.axison)
    return [patch for patch in paper.patches if isinstance(patch, Rectangle) and patch.get_fill()]


def expect_clear(drawn: Figure, texts_of: Texts) -> list[str]:
    """No two texts share more than a pixel, and none leaves the picture; return them."""
    shown = texts_of(drawn)
    expect_apart(shown, drawn)
    return [text for text, _ in shown]


@pytest.mark.parametrize("shape", [(1, 1), (1, 2), (3, 6), (6, 12), (24, 16)])
def test_the_sheet(texts_of: Texts, shape: tuple[int, int]) -> None:
    """A cell a head in the colour of its role, a line a role, and no text covers another."""
    comparison = made(*shape, all_roles=shape != (3, 6))
    drawn = figure.draw(comparison).figure
    shown = expect_clear(drawn, texts_of)
    for head, cell in zip(comparison.heads, cells_of(drawn), strict=False):
        colour = hexed(cell.get_facecolor())
        if head.role is None:
            assert colour == LIGHT.shade
        else:
            assert (colour == head.role.rule.colour) == head.role.established
    for (_head, role), *_others in by_role(comparison):
        if role is not None:
            assert any(text.startswith(_(role.rule.short)) for text in shown)
            assert f"{role.low:.2f}–{role.high:.2f}" in " ".join(shown)
    answer = f"{comparison.n_established} of {shape[0] * shape[1]} head"
    assert answer in " ".join(shown)
    groups = {head.role.rule.group for head in comparison.heads if head.role is not None}
    assert {_(GROUPS[group][0]) for group in groups} <= set(shown)


def contrast(ink: str, back: str) -> float:
    """The contrast of two colours, as the Web Content Accessibility Guidelines define it."""
    rgb = np.array([[*bytes.fromhex(one[1:])] for one in (ink, back)], dtype=np.uint8)
    low, high = np.sort(luminance(rgb))
    return float((high + 0.05) / (low + 0.05))


@pytest.mark.parametrize("established", [True, False])
def test_words_on_the_map_are_readable(*, established: bool) -> None:
    """Each role in words, on its colour or a paler one, with a contrast of at least 4.5."""
    comparison = made(3, 6, all_roles=True)
    doubt = None if established else Note.of("below_threshold", least="0.5")
    heads = tuple(
        replace(head, roles=tuple(replace(role, doubt=doubt) for role in head.roles))
        for head in comparison.heads
    )
    drawn = figure.draw(replace(comparison, heads=heads)).figure
    paper = next(ax for ax in drawn.axes if not ax.axison)
    cells = cells_of(drawn)[: len(heads)]
    for head, cell in zip(heads, cells, strict=True):
        middle = np.add(cell.get_xy(), np.divide([cell.get_width(), cell.get_height()], 2))
        texts = [text for text in paper.texts if np.allclose(text.get_position(), middle)]
        if head.role is None:
            assert not texts
        else:
            (text,) = texts
            words = " ".join(text.get_text().split())
            assert words == _(head.role.rule.short) + "?" * (not established)
            assert contrast(hexed(text.get_color()), hexed(cell.get_facecolor())) >= 4.5


def test_where_words_do_not_fit_roles_have_numbers(texts_of: Texts) -> None:
    """The map has the number of the role's line in the table, as on a map of 60 heads a layer."""
    comparison = made(2, 60, all_roles=True)
    shown = expect_clear(figure.draw(comparison).figure, texts_of)
    rows = [row for row in by_role(comparison) if row[0].role is not None]
    for number in range(1, len(rows) + 1):
        assert shown.count(str(number)) >= 2  # on the map and in the table


def test_long_words_keep_clear(texts_of: Texts, fixed_record: Make) -> None:
    """Long names and sentences are wrapped or cut; Korean ones too; patterns have their room."""
    comparison = made(3, 6, model="some-organisation/a-model-with-a-long-name-" + KOREAN * 3)
    examples = {
        place: tuple(replace(one, text=LONG + KOREAN * 9) for one in several)
        for place, several in comparison.examples.items()
    }
    comparison = replace(comparison, examples=examples, corpus=LONG + KOREAN * 9)
    words = [f"{n}-{KOREAN}" for n in range(60)]
    record = fixed_record(tuple(words), n_layers=3, n_heads=6)
    patterns = {card.key: record for card in strongest(comparison)}
    for lang in ("en", "ko"):
        with language(lang):
            drawn = figure.draw(comparison, patterns=patterns).figure
        assert "…" in "".join(expect_clear(drawn, texts_of))
    expect_clear(figure.draw(comparison, [(0, 0), (2, 5)], patterns=patterns).figure, texts_of)


def test_one_sentence_shows_words(texts_of: Texts, fixed_record: Make) -> None:
    """In each cell the word that receives most; below, the strongest links between words with their heads."""
    record = fixed_record(("I", "love", "all", "you"), n_layers=2, n_heads=3)
    drawn = figure.draw(made(attention=record)).figure
    shown = expect_clear(drawn, texts_of)
    received = received_by_words(record)
    for cell, head in zip(cells_of(drawn), np.ndindex(2, 3), strict=False):
        share = float(received[head].max())
        expected = LIGHT.pixels(np.array([[share]]), 1.0, colours())[0, 0, :3]
        assert hexed(cell.get_facecolor()) == "#" + bytes(expected.tolist()).hex()
        assert record.key_tokens[int(received[head].argmax())].text in shown
    links = strongest_links(record)
    assert links
    tokens = [token.text for token in record.key_tokens]
    for query, key, weight, layer, number in links:
        assert weight == record.weights[layer, number, tokens.index(query), tokens.index(key)]
        assert f"{query} → {key} {weight:.2f}" in shown
        assert f"Layer {layer}, head {number}" in shown


def with_roles(comparison: HeadComparison, **roles: Any) -> HeadComparison:
    """Return the comparison with other roles for some heads, named with an underscore."""
    heads = tuple(
        replace(head, roles=roles.get(f"head_{head.layer}_{head.head}", head.roles))
        for head in comparison.heads
    )
    return replace(comparison, heads=heads)


def test_cards_are_of_the_clearest_roles(texts_of: Texts) -> None:
    """Of the heads with a role that which has it most clearly; established ones alone, if there are any."""
    comparison = made(3, 6, all_roles=True)
    cards = strongest(comparison)
    assert len(cards) == MOST_CARDS == len({card.role.name for card in cards})
    for head, role, example in cards:
        assert role.established
        every = [one for other in comparison.heads for one in other.roles if one.name == role.name]
        assert role.clearness == max(one.clearness for one in every)
        assert example is not None
        assert example.text == "I love all" or len(example.text.split()) <= 12
        assert role in head.roles
    shown = [text for text, _ in texts_of(figure.draw(comparison).figure)]
    assert all(f"{card.head.name} · {_(card.role.rule.short)} 0.90" in shown for card in cards)
    doubtful = comparison.heads[1].roles
    unsure = with_roles(made(1, 2), head_0_0=doubtful, head_0_1=())
    assert [card.role.established for card in strongest(unsure)] == [False]


def test_of_few_roles_more_heads_are_shown() -> None:
    """Four cards where there are heads for them, each with another head and another sentence."""
    comparison = made(3, 6)
    role = comparison.heads[0].roles
    few = replace(
        comparison,
        heads=tuple(replace(head, roles=role) for head in comparison.heads),
        examples={
            (head.name, role[0].measure): (Example(text=f"Sentence {head.name}.", score=0.9),)
            for head in comparison.heads
        },
    )
    cards = strongest(few)
    assert len({card.head.name for card in cards}) == 4
    assert len({card.example.text for card in cards if card.example is not None}) == 4


def test_patterns_that_are_given_are_drawn(fixed_record: Make, texts_of: Texts) -> None:
    """The head's own matrix, and no other, with its scale from 0 to 1; without the head, refused."""
    comparison = made()
    record = fixed_record(n_layers=2, n_heads=3)
    expected = LIGHT.pixels(record.pattern(1, 0), 1.0, colours())
    drawn = figure.draw(comparison, patterns={("1.0", "first"): record}).figure
    images = images_of(drawn)
    assert sum(np.array_equal(image, expected) for image in images) == 1
    assert sum(np.array_equal(image, colours()[None]) for image in images) == 1
    assert images_of(figure.draw(comparison).figure) == []
    assert {token.text for token in record.key_tokens} <= set(expect_clear(drawn, texts_of))
    card = figure.draw(comparison, [(1, 0)], patterns={("1.0", "first"): record}).figure
    assert any(np.array_equal(image, expected) for image in images_of(card))
    with pytest.raises(SelectionError, match=r"no (layer|head)"):
        figure.draw(comparison, patterns={("1.0", "first"): record.select([0], [2])})


@pytest.mark.parametrize("places", [[(0, 0)], [(0, 1)], [(0, 2)], [(0, 0), (-1, -1)]])
def test_the_picture_of_some_heads(texts_of: Texts, places: list[tuple[int, int]]) -> None:
    """What each does, with its score, its interval and how sure that is, or the roles that come closest."""
    comparison = made()
    shown = " ".join(expect_clear(figure.draw(comparison, places).figure, texts_of))
    for head in (comparison.head(place) for place in places):
        assert f"Layer {head.layer}, head {head.head}: {head.words}" in shown
        for role in head.roles:
            assert f"{role.score:.2f} ({role.low:.2f}–{role.high:.2f})" in shown
            assert ("Established: above" if role.established else "Not established") in shown
        assert ("No clear role; closest" in shown) == (not head.roles)


def test_a_second_model(texts_of: Texts) -> None:
    """Sheet and slide have a map of the divergences and the heads that differ most; the sheet their roles before."""
    comparison = compared(made(3, 6))
    sheet = expect_clear(figure.draw(comparison).figure, texts_of)
    slide, _drawn = expect_slide(comparison, texts_of, examples=None)
    for shown in (sheet, slide):
        assert {"0.17", "0.16", ".17", ".00"} <= set(shown)
        assert "made by hand, before → made by hand" in " ".join(shown)
        assert "made by hand, before: 18 of 18." in " ".join(shown)
    assert "role before" in sheet


def test_what_must_be_said(texts_of: Texts) -> None:
    """Model, corpus, receipt, notes, and that attention is no explanation."""
    comparison = made()
    for picture in (figure.draw(comparison), figure.draw(comparison, [(0, 0)])):
        shown = " ".join(text for text, _ in texts_of(picture.figure))
        for words in ("made by hand", "1,234 sentences", proof(comparison), "not expl"):
            assert words in shown
        assert proof(comparison) in picture.description
    unseen = figure.draw(comparison, unseen="the model is not here").figure
    shown = " ".join(text for text, _ in texts_of(unseen))
    assert "their patterns are not shown: the model is not here" in shown


@pytest.mark.parametrize("lang", ["en", "ko"])
def test_the_sheet_is_legible_in_a_column(texts_of: Texts, lang: str) -> None:
    """It is as wide as a column of a paper, no letters are too small, nothing leaves it, and nobody is warned."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", AttnvizWarning)
        drawn = made(3, 6).figure(lang=lang, style="paper")
    assert drawn.get_size_inches()[0] == pytest.approx(3.3)
    assert smallest_letters(drawn) >= 5.95
    expect_clear(drawn, texts_of)


def expect_slide(
    comparison: HeadComparison, texts_of: Texts, **options: Any
) -> tuple[list[str], Figure]:
    """A slide of exactly 1,920 x 1,080 pixels, no letter below 18, nothing covered; return its texts and itself."""
    picture = draw(comparison, Look(style="slides"), **options)
    assert struct.unpack(">II", picture.png()[16:24]) == (1920, 1080)
    assert smallest_letters(picture.figure) * 2 >= 18
    return expect_clear(picture.figure, texts_of), picture.figure


@pytest.mark.parametrize(
    ("shape", "lang"),
    [((1, 1), "en"), ((3, 6), "ko"), ((12, 12), "en"), ((24, 16), "ko"), ((48, 25), "en")],
)
def test_the_slide_of_all_heads(texts_of: Texts, shape: tuple[int, int], lang: str) -> None:
    """The map fills the height or the width; its legend names each role; nobody is warned."""
    comparison = made(*shape, all_roles=shape != (3, 6))
    with warnings.catch_warnings(), language(lang):
        warnings.simplefilter("error", AttnvizWarning)
        shown, drawn = expect_slide(comparison, texts_of, examples=None)
        joined = " ".join(shown)
        assert proof(comparison) in joined
        for (_head, role), *_others in by_role(comparison):
            if role is not None:
                assert _(role.rule.short) in joined
    cells = cells_of(drawn)[: shape[0] * shape[1]]
    width = sum(cell.get_width() for cell in cells[: shape[1]])
    height = sum(cell.get_height() for cell in cells[:: shape[1]])
    page = next(ax for ax in drawn.axes if not ax.axison)
    assert width > 0.45 * page.get_xlim()[1] or height > 0.4 * page.get_ylim()[0]


def test_more_roles_than_a_slide_has_room_for(texts_of: Texts) -> None:
    """The legend ends with their number, and a warning has the option that shows all of them."""
    comparison = made(3, 12)
    rules = [(measure, rule) for measure, rule in rules_of(comparison.measures)]
    role = comparison.heads[0].roles[0]
    heads = [
        replace(head, roles=(replace(role, rule=rule, measure=measure.name),))
        for head, (measure, rule) in zip(comparison.heads, rules, strict=False)
    ]
    many = replace(comparison, heads=(*heads, *comparison.heads[len(heads) :]))
    with pytest.warns(AttnvizWarning, match="--style sheet"):
        shown, _drawn = expect_slide(many, texts_of)
    assert any(text.startswith("and ") and "--style sheet" in text for text in shown)


def test_the_slide_of_one_sentence(texts_of: Texts, fixed_record: Make) -> None:
    """The word that each head attends to most, with the scale of its colour, and the strongest links."""
    record = fixed_record(("I", "love", KOREAN * 9, "you"), n_layers=2, n_heads=3)
    comparison = made(attention=record)
    shown, _drawn = expect_slide(comparison, texts_of)
    for place in np.ndindex(2, 3):
        word = record.key_tokens[int(received_by_words(record)[place].argmax())].text
        assert any(word.startswith(text.rstrip("…")) for text in shown if text)
    assert {f"{link.weight:.2f}" for link in strongest_links(record)} <= set(shown)


def test_long_names_on_slides(texts_of: Texts) -> None:
    """Names of models and of sentences are cut."""
    comparison = replace(made(3, 6, model="a-long-name-" * 20), corpus=LONG + KOREAN * 9)
    shown, _drawn = expect_slide(comparison, texts_of)
    assert "…" in "".join(shown)


def test_what_cannot_be_read_at_its_width_is_said() -> None:
    """The picture of some heads is for a page, not for a column; a head that is not there is refused."""
    with pytest.warns(AttnvizWarning, match=r"smallest letters are"):
        made().figure([(0, 1)], style="paper")
    with pytest.raises(SelectionError, match="no layer 7"):
        figure.draw(made(), [(7, 0)])


def test_all_grows_with_a_picture() -> None:
    """The sheet with its map."""
    expect_enlarged_whole(figure.draw(made()).figure)


def test_files_are_the_same_each_time() -> None:
    """Whatever somebody has set, and settings stay as they are."""
    from matplotlib import rc_context, rcParams

    def files() -> list[bytes]:
        written = []
        for places in ([], [(0, 0)]):
            file = BytesIO()
            figure.draw(made(), places).write(file, ".svg")
            written.append(file.getvalue())
        return written

    first = files()
    with rc_context({"font.size": 30, "axes.facecolor": "black", "lines.linewidth": 9}):
        before = dict(rcParams)
        assert files() == first
        assert dict(rcParams) == before
