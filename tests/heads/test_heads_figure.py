"""The pictures of a comparison, by their artists: colours are the roles', bars the measures; every text can be read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from io import BytesIO
from typing import TYPE_CHECKING

import numpy as np
import pytest

from attnviz.attention import Attention, Note
from attnviz.errors import SelectionError
from attnviz.heads.figure import page as heads_page_figure
from attnviz.heads.figure import scatter, sheet
from attnviz.heads.figure.grid import colour_of, legend_entries, legend_notes, paler
from attnviz.heads.figure.page import MARKS, shares
from attnviz.heads.figure.sheet import columns_in
from attnviz.heads.figure.similarity import branches
from attnviz.heads.measures import offsets_up_to
from attnviz.heads.notes import proof
from attnviz.heads.roles import CONTROLS
from attnviz.heads.selection import MOST_CARDS, control_of, estimate_of, strongest, without_card
from attnviz.heads.settings import MAX_OFFSET
from attnviz.heads.similarity import leaves
from attnviz.render.palette import colours, levels, pixels
from tests.heads.comparisons_by_hand import COLOURS, KOREAN, RULES, made, similarity_of, with_chance

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle
    from matplotlib.transforms import Bbox

    from attnviz.heads.record import HeadComparison, Role

Texts = Callable[["Figure"], list[tuple[str, "Bbox"]]]
Make = Callable[..., Attention]
LONG = "Although I did not get 95 in last TOEFL, I could get in the Ph.D program. " * 8


def assert_clear(shown: list[tuple[str, Bbox]], made_: Figure, crowded: Axes | None = None) -> None:
    """No two texts share more than a pixel, but for labels on a crowded map, and none leaves the picture."""
    if crowded is not None:
        box = crowded.get_window_extent()
        shown = [one for one in shown if not box.contains(*one[1].get_points().mean(0))]
    boxes = np.array([box.extents for _, box in shown])
    left, low, right, high = boxes.T
    outside = (left < -0.5) | (low < -0.5) | (right > made_.bbox.width + 0.5) | (high > made_.bbox.height + 0.5)
    assert not outside.any(), [shown[index][0] for index in np.flatnonzero(outside)]
    across = np.minimum.outer(right, right) - np.maximum.outer(left, left)
    down = np.minimum.outer(high, high) - np.maximum.outer(low, low)
    pairs = np.argwhere(np.triu(np.minimum(across, down) > 1.5, k=1))
    assert not len(pairs), [(shown[a][0], shown[b][0]) for a, b in pairs[:5]]


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

    return [patch for patch in paper(made_).patches if isinstance(patch, Rectangle) and patch.get_fill()]


def map_of(made_: Figure) -> Axes | None:
    """The map of heads, where there is one."""
    return next((ax for ax in made_.axes if ax.get_xlabel().startswith("first axis")), None)


@pytest.mark.parametrize("shape", [(1, 1), (1, 2), (3, 6), (6, 12), (24, 16)])
def test_texts_keep_clear(texts_of: Texts, shape: tuple[int, int]) -> None:
    """One head or hundreds: no text is cut or covers another."""
    drawn = sheet.draw(made(*shape, all_roles=shape[0] > 3)).figure
    assert_clear(texts_of(drawn), drawn, map_of(drawn))


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
        "[CLS] 나는 internationalization 너희 모두를 사랑해 " + "token " * 40 + "[SEP]", n_layers=3, n_heads=6
    )
    patterns = {card.role.name: record for card in strongest(comparison)}
    drawn = sheet.draw(comparison, patterns=patterns).figure
    assert_clear(texts_of(drawn), drawn, map_of(drawn))
    page = heads_page_figure.draw(comparison, 0, 0).figure
    assert_clear(texts_of(page), page)


@pytest.mark.parametrize("shape", [(1, 1), (3, 7), (24, 16)])
def test_the_grid_has_the_colours_of_the_roles(shape: tuple[int, int]) -> None:
    """A cell a head, in its place; hatched and pale where the role is not established."""
    comparison = made(*shape, all_roles=True)
    cells = filled(sheet.draw(comparison).figure)[: len(comparison.heads)]
    side = cells[0].get_width()
    for head, cell in zip(comparison.heads, cells, strict=True):
        x, y = (cell.get_x() - cells[0].get_x()) / side, (cell.get_y() - cells[0].get_y()) / side
        assert (round(y, 6), round(x, 6)) == (head.layer, head.head)
        role = head.roles[0] if head.roles else None
        doubtful = role is not None and not role.established
        colour = colour_of(role)
        assert hexed(cell.get_facecolor()) == (paler(colour, 0.82) if doubtful else colour)
        assert bool(cell.get_hatch()) == doubtful
        assert (role is None) or colour == role.rule.colour


def test_the_legend_counts() -> None:
    """All colours of the grid in words, with how many heads have them."""
    comparison = made(6, 12, all_roles=True)
    entries = legend_entries(comparison)
    text = [words for _, words in entries]
    n_first = sum(head.words == "rests on the first token" for head in comparison.heads)
    assert f"rests on the first token: {n_first} heads, established" in text
    n_broad = sum(head.words == "spreads over many tokens" for head in comparison.heads)
    assert f"spreads over many tokens: {n_broad} heads, none established" in text
    for name in ("relation_nsubj", "relation_nmod:poss_reversed"):
        of_it = [head for head in comparison.heads if head.roles and head.roles[0].name == name]
        assert f"{of_it[0].words}: {len(of_it)} heads, established" in text
    assert text[-1].startswith("no clear role: ")
    first = {head.roles[0].name for head in comparison.heads if head.roles}
    assert {role.name for role, _ in entries if role is not None} == first


def test_every_sign_of_the_grid_is_in_the_legend(texts_of: Texts) -> None:
    """So one who sees ``nsubj`` in a cell can read what that is; a relation the other way round has another sign."""
    comparison = turned(made(6, 12, all_roles=True))
    shown = Counter(text for text, _ in texts_of(sheet.draw(comparison).figure))
    signs = {head.roles[0].rule.sign for head in comparison.heads if head.roles}
    assert {"nsub>", ">nsub", ">nm:p"} <= signs
    for one in signs:
        n_cells = sum(bool(head.roles) and head.roles[0].rule.sign == one for head in comparison.heads)
        n_cards = sum(card.role.rule.sign == one for card in strongest(comparison))
        assert shown[one] == n_cells + n_cards + 1


def turned(comparison: HeadComparison) -> HeadComparison:
    """The same, but that the first head looks from verbs to subjects."""
    role = next(role for head in comparison.heads for role in head.roles if role.name == "relation_nsubj")
    name = "relation_nsubj_reversed"
    other = replace(role, rule=RULES[name], measure=name)
    return replace(comparison, heads=(replace(comparison.heads[0], roles=(other,)), *comparison.heads[1:]))


def test_hatching_is_explained_by_what_occurs(texts_of: Texts) -> None:
    """Only where something is hatched, and with the reasons that there are."""
    comparison = made()
    assert "hatched and pale: not established, since random weights do as much" in legend_notes(comparison)
    role = comparison.heads[1].roles[0]
    unsure = replace(role, low=np.nan, high=np.nan, doubt=Note.of("too_few_different", n=1, fewest=10))
    one_sentence = with_roles(comparison, {"0.1": unsure, "1.2": unsure})
    said = "hatched and pale: not established, since too few to say: 1 different sentences, 10 are needed"
    assert said in " ".join(text for text, _ in texts_of(sheet.draw(one_sentence).figure))
    bare = replace(role, controls=(), doubt=Note.of("no_control", controls="chance, untrained"))
    both = with_roles(comparison, {"0.1": bare})
    assert legend_notes(both)[-1] == (
        "hatched and pale: not established, since no control was taken (chance, untrained) (1 head); random weights "
        "do as much (1 head)"
    )
    sure = with_roles(comparison, {name: replace(role, doubt=None) for name in ("0.1", "1.2")})
    none = replace(comparison, heads=tuple(replace(head, roles=()) for head in comparison.heads))
    for clear in (sure, none):
        assert not any("hatched" in text for text, _ in texts_of(sheet.draw(clear).figure))
    assert legend_notes(none) == []


def with_roles(comparison: HeadComparison, roles: dict[str, Role]) -> HeadComparison:
    """The same with other roles of some heads."""
    heads = (replace(head, roles=(roles[head.name],)) if head.name in roles else head for head in comparison.heads)
    return replace(comparison, heads=tuple(heads))


@pytest.mark.parametrize("n", [2, 3, 12, 72])
def test_the_tree_is_the_linkage(n: int) -> None:
    """Each merge is a line at its distance between the two that it joins; no two branches cross."""
    similarity, _ = similarity_of(n)
    lines, order = branches(similarity)
    assert order.tolist() == leaves(similarity.linkage).tolist()
    assert [line[1, 0] for line in lines] == similarity.linkage[:, 2].tolist()
    ends = {tuple(line[end]) for line in lines for end in (0, 3)}
    for place in range(n):
        assert (0.0, place + 0.5) in ends
    for line in lines[:-1]:  # what is joined goes on from the middle of its line
        assert (line[1, 0], (line[1, 1] + line[2, 1]) / 2) in ends


def test_the_matrix_is_the_divergences() -> None:
    """Cells in the order of the tree, darkest where two heads are alike."""
    comparison = made(3, 6)
    assert comparison.similarity is not None
    drawn = sheet.draw(comparison).figure
    image = next(one for one in images_of(drawn) if one.shape[:2] == (18, 18))
    order = leaves(comparison.similarity.linkage)
    far = np.sqrt(comparison.similarity.divergences)[np.ix_(order, order)]
    wanted = colours()[levels(far.max() - far, float(far.max()))]
    assert np.array_equal(image, wanted)
    sums = image.astype(int).sum(-1)
    assert (np.diag(sums) == sums.min()).all()


def test_the_map_has_the_colours_of_the_grid() -> None:
    """A group of points for each role, at the places of its heads; hollow where it is not established."""
    comparison = made(3, 6)
    ax = map_of(sheet.draw(comparison).figure)
    assert ax is not None
    assert comparison.similarity is not None
    found = {str(points.get_label()): points for points in ax.collections}
    first = found["rests on the first token"]
    assert hexed(first.get_facecolor()[0]) == COLOURS["first"]
    at = [index for index, head in enumerate(comparison.heads) if head.words == "rests on the first token"]
    assert np.allclose(first.get_offsets(), comparison.similarity.points[at])
    assert hexed(found["spreads over many tokens (not established)"].get_facecolor()[0]) == "#ffffff"
    legend = ax.get_legend()
    assert legend is not None
    shown = dict(zip([t.get_text() for t in legend.get_texts()], legend.legend_handles, strict=True))
    assert hexed(shown["rests on the first token"].get_facecolor()[0]) == COLOURS["first"]  # type: ignore[union-attr]


def test_the_strongest_example_of_each_role(texts_of: Texts) -> None:
    """Of the heads with a role that which has it most clearly, established ones before; its sentence is written."""
    comparison = made(3, 6)
    better = replace(comparison.heads[7], roles=(replace(comparison.heads[7].roles[0], score=0.99),))
    assert better.roles[0].name == "broad"
    sure = replace(comparison.heads[1], roles=(replace(comparison.heads[1].roles[0], doubt=None),))
    comparison = replace(
        comparison, heads=(comparison.heads[0], sure, *comparison.heads[2:7], better, *comparison.heads[8:])
    )
    cards = {card.role.name: card for card in strongest(comparison)}
    assert cards["broad"].head.name == "0.1"
    assert set(cards) == {"previous", "broad", "first", "offset_-2", "induction"}
    shown = " ".join(text for text, _ in texts_of(sheet.draw(comparison).figure))
    for card in cards.values():
        assert card.example is not None
        assert card.example == comparison.examples[card.head.name, card.role.measure][0]
        assert f"“{card.example.text}”" in shown
        assert f"head {card.head.name}" in shown
    without = replace(comparison, examples={})
    assert all(card.example is None for card in strongest(without))
    sheet.draw(without)


def test_a_card_for_each_role_by_its_name() -> None:
    """Relations and offsets too, each by itself; what a head is established to do beside a clearer role as well."""
    comparison = turned(made(6, 12, all_roles=True))
    names = {head.roles[0].name for head in comparison.heads if head.roles}
    assert len(names) == MOST_CARDS + 1
    cards = strongest(comparison)
    assert len(cards) == MOST_CARDS
    assert without_card(comparison) == 1
    assert len({card.role.name for card in cards}) == len(cards)
    assert {"relation_nsubj", "relation_nsubj_reversed", "relation_nmod:poss_reversed"} <= {c.role.name for c in cards}
    few = made()
    second = few.heads[4].roles[0]
    beside = replace(few.heads[3], roles=(few.heads[3].roles[0], replace(second, rule=RULES["offset_-3"], score=0.85)))
    few = replace(few, heads=(*few.heads[:3], beside, *few.heads[4:]))
    found = {card.role.name: card.head.name for card in strongest(few)}
    assert found["first"] == "1.0"
    assert found["offset_-3"] == "1.0"
    assert without_card(few) == 0


def test_the_clearest_head_stands_for_its_role() -> None:
    """Even where it has the card of another role."""
    comparison = made()
    role = replace(comparison.heads[4].roles[0], rule=RULES["offset_-3"])
    heads = list(comparison.heads)
    heads[3] = replace(heads[3], roles=(*heads[3].roles, replace(role, score=0.85)))
    heads[0] = replace(heads[0], roles=(*heads[0].roles, replace(role, score=0.83)))
    cards = {card.role.name: card.head.name for card in strongest(replace(comparison, heads=tuple(heads)))}
    assert cards["offset_-3"] == cards["first"] == heads[3].name


def test_roles_without_a_card_are_counted(texts_of: Texts) -> None:
    """The sheet says that there are more, and nothing where there are not."""
    shown = " ".join(text for text, _ in texts_of(sheet.draw(turned(made(6, 12, all_roles=True))).figure))
    assert "1 more role without a card" in shown
    assert "without a card" not in " ".join(text for text, _ in texts_of(sheet.draw(made()).figure))


@pytest.mark.parametrize(
    ("width", "n", "columns"), [(6.8, 5, 1), (7.0, 5, 2), (14.8, 10, 4), (14.8, 3, 3), (3.0, 2, 1)]
)
def test_cards_stand_side_by_side(width: float, n: int, columns: int) -> None:
    """As many as fit and as there are; together no wider than the sheet."""
    found, wide = columns_in(width, n)
    assert found == columns
    assert found * wide + (found - 1) * sheet.BETWEEN <= width + 1e-9


def test_patterns_that_are_given_are_drawn(fixed_record: Make, texts_of: Texts) -> None:
    """The head's own matrix, and no other, on a scale from 0 to 1 that is drawn and told; without the head, refused."""
    comparison = made()
    record = fixed_record(n_layers=2, n_heads=3)
    drawn = sheet.draw(comparison, patterns={"first": record}).figure
    images = images_of(drawn)
    pattern = record.pattern(1, 0)
    wanted = pixels(pattern, 1.0, colours())
    assert sum(np.array_equal(image, wanted) for image in images) == 1
    plain = sheet.draw(comparison).figure
    assert len(images_of(plain)) == len(images) - 2
    assert sum(np.array_equal(image, colours()[None]) for image in images) == 1
    for figure, shown in ((drawn, True), (plain, False)):
        assert any("attention weight, on every card from 0 to 1" in text for text, _ in texts_of(figure)) == shown
    other = comparison.head(1, 2).roles[0].name
    with pytest.raises(SelectionError, match="no head 2"):
        sheet.draw(comparison, patterns={"first": record, other: fixed_record(n_layers=2, n_heads=2)})


def test_a_crowded_map_names_the_rarest_roles() -> None:
    """Of hundreds of heads a few dozen are named, and nothing leads to a name that is not there."""
    comparison = made(24, 16, all_roles=True)
    ax = map_of(sheet.draw(comparison).figure)
    assert ax is not None
    names = [text.get_text() for text in ax.texts]
    assert 0 < len(names) <= scatter.NAMED
    assert all(names)
    assert len(ax.lines) <= len(names)
    named = {comparison.head(*map(int, name.split("."))).words for name in names}
    counts = Counter(head.words for head in comparison.heads)
    assert max(counts[words] for words in named) <= min(n for words, n in counts.items() if words not in named)


def test_without_similarity(texts_of: Texts) -> None:
    """Where heads were not compared there is no tree and no map."""
    drawn = sheet.draw(made(similarity=None)).figure
    assert map_of(drawn) is None
    assert not any("alike" in text for text, _ in texts_of(drawn))


def test_what_must_be_said(texts_of: Texts) -> None:
    """Model, corpus, proof, notes, and that attention is no explanation."""
    comparison = made()
    for drawn in (sheet.draw(comparison).figure, heads_page_figure.draw(comparison, 0, 0).figure):
        shown = " ".join(text for text, _ in texts_of(drawn))
        for words in ("made by hand", "1,234 sentences", proof(comparison), "one thing to know", "not explanation"):
            assert words in shown


def bars_of(ax: Axes) -> list[float]:
    """The heights of the bars."""
    from matplotlib.patches import Rectangle

    return [patch.get_height() for patch in ax.patches if isinstance(patch, Rectangle)]


def test_a_page_has_the_measures() -> None:
    """Bars are the weight by offset, dots the shares with their intervals, marks their controls."""
    comparison = with_chance(made())
    head = comparison.heads[3]
    drawn = heads_page_figure.draw(comparison, 1, 0).figure
    offsets, measures = (ax for ax in drawn.axes if ax.axison)
    values = [estimate_of(comparison, f"offset_{offset:+d}", head) for offset in offsets_up_to(MAX_OFFSET)]
    assert np.allclose(bars_of(offsets), [value for value, _, _ in values])
    ends = np.array([line.get_ydata() for line in offsets.lines], dtype=np.float64)
    assert np.allclose(ends, [(low, high) for _, low, high in values])
    names = shares(comparison)
    assert [label.get_text() for label in measures.get_yticklabels()] == names
    found = {str(points.get_label()): np.asarray(points.get_offsets())[:, 0] for points in measures.collections}
    own = np.array([estimate_of(comparison, name, head)[0] for name in names])
    assert np.allclose(np.ma.filled(found["this head"], np.nan), own, equal_nan=True)
    assert set(MARKS) == set(comparison.controls)
    for control, label in ((kind.name, kind.titles[1]) for kind in CONTROLS.values()):
        held = [control_of(comparison, control, name, head) for name in names]
        assert np.allclose(np.ma.filled(found[label], np.nan), held, equal_nan=True)
    assert control_of(comparison, "untrained", "first", head) == comparison.controls["untrained"].value[:, :, 3].max()


def test_no_mark_hides_another() -> None:
    """Where a control falls on the head's own dot both are seen: it lies above, without a filling."""
    from matplotlib.collections import PathCollection

    drawn = heads_page_figure.draw(with_chance(made()), 0, 2).figure
    (measures,) = (ax for ax in drawn.axes if ax.axison and ax.collections)
    dots = {str(one.get_label()): one for one in measures.collections if isinstance(one, PathCollection)}
    own = dots.pop("this head")
    assert {"chance", "shuffled", "random", "offset"} == set(dots)
    for points in dots.values():
        assert points.get_zorder() > own.get_zorder()
        assert points.get_sizes()[0] < own.get_sizes()[0]
        assert points.get_label() == "shuffled" or not len(points.get_facecolor())


def test_how_relations_are_scored_is_said(texts_of: Texts) -> None:
    """Chosen on one half of the sentences, scored on the other: said where there are relations."""
    said = "a relation's heads are chosen on one half of the sentences"
    for drawn, shown in (
        (sheet.draw(made()).figure, True),
        (heads_page_figure.draw(made(), 0, 1).figure, True),
        (heads_page_figure.draw(made(), 0, 0).figure, False),
        (sheet.draw(made(relations=())).figure, False),
    ):
        assert any(said in text for text, _ in texts_of(drawn)) == shown


@pytest.mark.parametrize("place", [(0, 0), (0, 1), (0, 2), (1, 1), (-1, -1)])
def test_pages_keep_clear(texts_of: Texts, place: tuple[int, int]) -> None:
    """With an established role, with one that is not, with none."""
    drawn = heads_page_figure.draw(with_chance(made()), *place).figure
    assert_clear(texts_of(drawn), drawn)


def test_a_page_of_what_was_not_measured(texts_of: Texts) -> None:
    """One sentence has no intervals, and some measures no number: dashes, not errors."""
    comparison = made()
    e = comparison.estimates
    nothing = np.full_like(e.value, np.nan)
    drawn = heads_page_figure.draw(replace(comparison, estimates=replace(e, low=nothing, high=nothing)), 0, 2).figure
    assert not any(ax.lines for ax in drawn.axes if ax.axison and ax.patches)
    empty = replace(comparison, estimates=replace(e, value=nothing, low=nothing, high=nothing))
    page = heads_page_figure.draw(empty, 0, 2).figure
    assert sum(text == "—" for text, _ in texts_of(page)) == len(offsets_up_to(MAX_OFFSET)) + len(shares(comparison))


def test_no_such_head() -> None:
    """The message says which there are."""
    with pytest.raises(SelectionError, match="no layer 5"):
        heads_page_figure.draw(made(), 5, 0)


def files(comparison: HeadComparison, suffix: str) -> list[bytes]:
    """Both pictures as files."""
    whole, page = BytesIO(), BytesIO()
    for fonts in (
        sheet.draw(comparison).write(whole, suffix),
        heads_page_figure.draw(comparison, 0, 0).write(page, suffix),
    ):
        assert fonts.missing == ""
    return [whole.getvalue(), page.getvalue()]


@pytest.mark.parametrize(("suffix", "start"), [(".png", b"\x89PNG"), (".svg", b"<?xml"), (".pdf", b"%PDF")])
def test_files(suffix: str, start: bytes) -> None:
    """The same picture gives the same bytes, whatever somebody has set, and settings stay as they are."""
    import matplotlib as mpl

    comparison = made()
    first = files(comparison, suffix)
    assert all(one.startswith(start) for one in first)
    with mpl.rc_context({"axes.facecolor": "red", "font.size": 30, "svg.hashsalt": "x"}):
        before = dict(mpl.rcParams)
        assert files(comparison, suffix) == first
        assert dict(mpl.rcParams) == before
