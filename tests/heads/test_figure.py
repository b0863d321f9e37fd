"""The pictures of a comparison: colours are the roles', every text can be read, and links are outlined."""

from __future__ import annotations

import struct
import warnings
from collections.abc import Callable
from dataclasses import replace
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from attnviz.attention import Attention
from attnviz.errors import AttnvizWarning, SelectionError
from attnviz.heads import figure
from attnviz.heads.measures import rules_of
from attnviz.heads.record import Example
from attnviz.heads.selection import (
    MOST_CARDS,
    by_role,
    received_by_words,
    strongest,
    strongest_links,
)
from attnviz.heads.tables import code, map_code, overview_table
from attnviz.heads.words import proof
from attnviz.look import Look
from attnviz.render.palette import colours, rgb_of
from attnviz.render.theme import LIGHT
from attnviz.text.messages import _, language
from tests.fixtures.pictures import expect_apart, text_contrasts
from tests.heads.comparisons_by_hand import KOREAN, compared, made, spelled

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.transforms import Bbox

    from attnviz.heads.record import HeadComparison
    from attnviz.render.picture import Picture

Texts = Callable[["Figure"], list[tuple[str, "Bbox"]]]
Make = Callable[..., Attention]
LONG = "Although I did not get 95 in last TOEFL, I could get in the Ph.D program. " * 8


def draw(comparison: HeadComparison, *place: Any, **options: Any) -> Picture:
    """Draw a comparison; `options` are those of a look."""
    return figure.draw(comparison, Look(**options), *place)


def images_of(drawn: Figure) -> list[np.ndarray]:
    """Return the colours of a figure's images: the map, then patterns."""
    return [np.asarray(image.get_array()) for image in drawn.axes[0].images]


def outlined(drawn: Figure) -> list[tuple[float, float]]:
    """Return the middles of the outlined cells."""
    from matplotlib.colors import to_hex

    patches: list[Any] = list(drawn.axes[0].patches)
    boxes = [box for box in patches if to_hex(box.get_edgecolor()) == LIGHT.accent]
    return [tuple(box.get_center()) for box in boxes]


def expect_clear(drawn: Figure, texts_of: Texts) -> list[str]:
    """No two texts share more than a pixel, and none leaves the picture; return them."""
    shown = texts_of(drawn)
    expect_apart(shown, drawn)
    return [text.replace("\n", "") for text, _ in shown]


@pytest.mark.parametrize("shape", [(1, 1), (4, 60)])
def test_the_sheet(texts_of: Texts, shape: tuple[int, int]) -> None:
    """A cell a head, in the colour of its role and with its short name; below, the terminal's table of roles."""
    comparison = made(*shape, all_roles=True)
    drawn = draw(comparison).figure
    shown = expect_clear(drawn, texts_of)
    head_map = images_of(drawn)[0]
    assert head_map.shape == (*shape, 3)
    for head in comparison.heads:
        role = next((role for role in head.roles if role.established), None)
        colour = rgb_of(role.rule.colour if role else LIGHT.shade)
        assert head_map[head.place].tolist() == colour.tolist()
        assert role is None or map_code(head) in shown
    for column in overview_table(comparison)[0]:
        assert {column.title, *column.cells} - {""} <= set(shown)
    answer = f"{comparison.n_established} of {shape[0] * shape[1]} head"
    for words in (answer, "made by hand", "1,234 sentences", proof(comparison), "not expl"):
        assert words in " ".join(shown)


@pytest.mark.parametrize(("style", "theme"), [("sheet", "light"), ("slides", "dark")])
def test_all_texts_are_readable(style: str, theme: str) -> None:
    """On the paper and on the colours of roles."""
    for places in ([], [(0, 1), (0, 2)]):
        drawn = draw(made(3, 6, all_roles=True), places, style=style, theme=theme).figure
        assert min(text_contrasts(drawn).values()) >= 4.5


@pytest.mark.parametrize("style", ["sheet", "slides", "paper"])
def test_long_words_keep_clear(texts_of: Texts, fixed_record: Make, style: str) -> None:
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
    comparison = replace(comparison, patterns=patterns)
    with language("ko" if style == "sheet" else "en"):
        for places in ([], [(0, 0), (2, 5)]):
            drawn = draw(comparison, places, style=style).figure
            expect_clear(drawn, texts_of)


def test_one_sentence_shows_words(texts_of: Texts, fixed_record: Make) -> None:
    """In each cell the word that receives most; below, the strongest links, outlined in the patterns of their heads."""
    record = fixed_record(("the", "cat", "the", "dog"), n_layers=2, n_heads=3)
    drawn = draw(made(attention=record)).figure
    shown = expect_clear(drawn, texts_of)
    received = received_by_words(record)
    for head in np.ndindex(2, 3):
        share = float(received[head].max())
        expected = LIGHT.pixels(np.array([[share]]), 1.0, colours())[0, 0, :3]
        assert images_of(drawn)[0][head].tolist() == expected.tolist()
        assert record.key_tokens[int(received[head].argmax())].text in shown
    links = strongest_links(record)
    assert len(outlined(drawn)) == len(links) > 0
    tokens = [token.text for token in record.key_tokens]
    assert any(link.row != tokens.index(link.query) for link in links)  # the second of equal words
    for link, middle, image in zip(links, outlined(drawn), drawn.axes[0].images[1:], strict=True):
        left, right, low, top = image.get_extent()
        column = int((middle[0] - left) / (right - left) * len(tokens))
        row = int((middle[1] - top) / (low - top) * len(tokens))
        assert (tokens[row], tokens[column]) == (link.query, link.key)
        assert link.weight == record.weights[link.layer, link.head, row, column]
        assert f"{link.words} {link.weight:.2f}" in shown
        assert f"Layer {link.layer}, head {link.head}" in shown
    slide = expect_slide(made(attention=record), texts_of)
    assert {f"{link.weight:.2f}" for link in links} <= set(slide)


def test_cards_are_of_the_clearest_roles(texts_of: Texts) -> None:
    """Of the heads with a role that which has it most clearly; established ones alone, if there are any."""
    comparison = made(3, 6, all_roles=True)
    cards = strongest(comparison)
    assert len(cards) == MOST_CARDS == len({card.role.name for card in cards})
    for head, role, example in cards:
        every = [one for other in comparison.heads for one in other.roles if one.name == role.name]
        assert role in head.established
        assert role.clearness == max(one.clearness for one in every)
        assert example is not None
    shown = [text for text, _ in texts_of(draw(comparison).figure)]
    assert all(f"{card.head.name} · {_(card.role.rule.short)} 0.90" in shown for card in cards)
    unsure = replace(comparison, heads=(comparison.heads[1],))
    assert [card.role.established for card in strongest(unsure)] == [False]
    # Of few roles four heads are shown, each with another sentence.
    heads = [replace(head, roles=comparison.heads[0].roles) for head in comparison.heads]
    cards = strongest(replace(comparison, heads=tuple(heads)))
    assert len({card.head.name for card in cards}) == 4
    assert len({card.example.text for card in cards if card.example is not None}) == 4


def test_patterns_are_drawn_and_the_cells_of_a_relation_outlined(
    fixed_record: Make, texts_of: Texts
) -> None:
    """The head's own matrix; outlined are the words that the example links, and a line says which."""
    comparison, record = made(), spelled(fixed_record(n_layers=2, n_heads=3))
    head, text, links = comparison.heads[3], "I love all you", (((2, 6), (11, 14)),)
    comparison = replace(
        comparison,
        typical={(head.name, head.roles[0].measure): Example(text=text, score=1.0, links=links)},
        patterns={(head.name, text): record},
    )
    expected = LIGHT.pixels(record.pattern(*head.place), 1.0, colours())
    for places in ([], [head.place]):
        drawn = draw(comparison, places).figure
        assert sum(np.array_equal(image, expected) for image in images_of(drawn)) == 1
        shown = expect_clear(drawn, texts_of)
        assert {token.text for token in record.key_tokens} | {"Outlined: love → you"} <= set(shown)
        (middle,) = outlined(drawn)
        left, right, low, top = drawn.axes[0].images[-1].get_extent()
        place = (middle[0] - left) / (right - left), (middle[1] - top) / (low - top)
        assert np.allclose(place, (4.5 / 6, 2.5 / 6))  # the fifth column, the third row
    without = replace(comparison, patterns={(head.name, text): record.select([0], [2])})
    with pytest.raises(SelectionError, match=r"no (layer|head)"):
        draw(without)


@pytest.mark.parametrize(
    ("places", "style"),
    [
        ([(0, 0)], "paper"),
        ([(0, 1)], "sheet"),
        ([(0, 2)], "slides"),
    ],
)
def test_the_picture_of_some_heads(
    texts_of: Texts, places: list[tuple[int, int]], style: str
) -> None:
    """What each does, with its score, its interval and what it must exceed, or the roles that come closest."""
    comparison = made()
    drawn = draw(comparison, places, style=style).figure
    shown = " ".join(expect_clear(drawn, texts_of))
    for head in (comparison.head(place) for place in places):
        if style != "paper":
            assert f"Layer {head.layer}, head {head.head}: {head.words}" in shown
        for role in head.roles:
            interval = f"{role.score:.2f} ({role.low:.2f}–{role.high:.2f})"
            assert f"{interval} this head" in shown.replace("  ", " ")
            assert f"threshold {role.rule.threshold:.2f}" in shown
            assert ("Not established" in shown) == (not role.established)
        assert ("No clear role; closest" in shown) == (not head.roles)


def test_a_second_model(texts_of: Texts) -> None:
    """Sheet and slide have a map of the divergences and the heads that differ most; the sheet their roles before."""
    comparison = compared(made(3, 6))
    sheet = expect_clear(draw(comparison).figure, texts_of)
    slide = expect_slide(comparison, texts_of)
    for shown in (sheet, slide):
        assert {"0.17", "0.16", ".17", ".00"} <= set(shown)
        assert "made by hand, before → made by hand" in " ".join(shown)
        assert "made by hand, before: 18 of 18." in " ".join(shown)
    assert "role before" in sheet


def test_a_column_of_a_paper(texts_of: Texts) -> None:
    """It is 3.3 inches wide, with the intervals; nothing leaves it, and nobody is warned."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", AttnvizWarning)
        drawn = made(6, 12, all_roles=True).figure(lang="ko", style="paper")
    assert drawn.get_size_inches()[0] == pytest.approx(3.3)
    assert {"PREV", "FIRST", "0.88–0.92"} <= set(expect_clear(drawn, texts_of))


def expect_slide(comparison: HeadComparison, texts_of: Texts) -> list[str]:
    """A slide of exactly 1,920 x 1,080 pixels, no letter below 18, nothing covered; return its texts."""
    from matplotlib.text import Text

    picture = draw(comparison, style="slides")
    assert struct.unpack(">II", picture.png()[16:24]) == (1920, 1080)
    texts = [text for text in picture.figure.findobj(Text) if text.get_text()]
    assert min(float(text.get_fontsize()) for text in texts) * 2 >= 18
    return expect_clear(picture.figure, texts_of)


@pytest.mark.parametrize(("shape", "lang"), [((1, 1), "en"), ((12, 12), "ko")])
def test_the_slide_of_all_heads(texts_of: Texts, shape: tuple[int, int], lang: str) -> None:
    """The map fills the height or the width; the table names each role."""
    comparison = made(*shape, all_roles=True)
    with language(lang):
        joined = " ".join(expect_slide(comparison, texts_of))
        for (_head, role), *_others in by_role(comparison):
            assert f"{code(role)} {_(role.rule.short)}"[:4] in joined
        drawn = draw(comparison, style="slides").figure
        assert proof(comparison) in joined
    left, right, low, top = drawn.axes[0].images[0].get_extent()
    assert right - left > 0.45 * 13.3 or low - top > 0.5 * 7.5


def test_more_roles_than_a_slide_has_room_for(texts_of: Texts) -> None:
    """The table ends with their number, and with what shows all of them."""
    comparison = made(3, 12)
    role = comparison.heads[0].roles[0]
    rules = rules_of(comparison.measures)
    heads = [
        replace(head, roles=(replace(role, rule=rule, measure=measure.name),))
        for head, (measure, rule) in zip(comparison.heads, rules, strict=False)
    ]
    heads += comparison.heads[len(heads) :]
    shown = expect_slide(replace(comparison, heads=tuple(heads)), texts_of)
    assert any(text.startswith("and ") and "--style sheet" in text for text in shown)


def test_files_are_the_same_each_time() -> None:
    """Whatever somebody has set, and settings stay as they are."""
    from matplotlib import rc_context, rcParams

    def files() -> list[bytes]:
        written = []
        for places in ([], [(0, 0)]):
            file = BytesIO()
            draw(made(), places).write(file, ".svg")
            written.append(file.getvalue())
        return written

    first = files()
    with rc_context({"font.size": 30, "axes.facecolor": "black", "lines.linewidth": 9}):
        before = dict(rcParams)
        assert files() == first
        assert dict(rcParams) == before
