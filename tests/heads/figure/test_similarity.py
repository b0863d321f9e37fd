"""The pictures of likeness, by their artists: what is drawn is what was measured, and every text can be read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from io import BytesIO
from itertools import cycle
from typing import TYPE_CHECKING

import numpy as np
import pytest

from attnviz.errors import SelectionError
from attnviz.heads.figure.similarity import (
    DOT,
    FARTHEST,
    STRIP,
    draw_clusters,
    draw_scatter,
    places,
)
from attnviz.heads.record import NO_ROLE, HeadComparison, HeadSimilarity
from attnviz.heads.similarity import cluster, leaves, scaled_to_two
from attnviz.heads.wording import proof
from attnviz.render.figure.export import blank_figure, usual_settings
from attnviz.render.figure.pen import GREY, LEAST_TEXT
from attnviz.render.palette import COLOURS, colours, levels
from tests.fixtures.pictures import expect_enlarged_whole
from tests.heads.comparisons_by_hand import made as made_by_hand

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage
    from matplotlib.transforms import Bbox

Texts = Callable[["Figure"], list[tuple[str, "Bbox"]]]
ROLES = ("rests on [SEP]", "looks at the previous token", "no clear role")


def distances(n: int, seed: int = 5) -> np.ndarray:
    """Distances of heads that stand in groups."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(n, 4)) + 3 * rng.integers(0, 3, size=(n, 1))
    far = np.linalg.norm(points[:, None] - points, axis=-1)
    return np.asarray(0.75 * far / max(far.max(), 1e-9))


def heads(n: int, across: int = 12) -> tuple[str, ...]:
    """Their names."""
    return tuple(f"{number // across}.{number % across}" for number in range(n))


def comparison(n: int, far: np.ndarray | None = None) -> HeadComparison:
    """Heads with their tree, two in a layer."""
    far = distances(n) if far is None else far
    alike = HeadSimilarity(
        divergences=far**2, linkage=cluster(far), points=np.zeros((n, 2)), kept=1.0
    )
    return made_by_hand(*((n // 2, 2) if n % 2 == 0 else (1, n)), similarity=alike)


def assert_clear(shown: list[tuple[str, Bbox]], made: Figure) -> None:
    """No two texts share more than a pixel, and none leaves the picture."""
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


# All pairs.


def images_of(made: Figure) -> tuple[AxesImage, AxesImage]:
    """The cells, and the colours of the scale."""
    cells, scale = made.axes[0].images
    return cells, scale


@pytest.mark.parametrize("n", [2, 3, 12, 72, 144, 200])
def test_texts_of_clusters_keep_clear(texts_of: Texts, n: int) -> None:
    """Few heads and many: no label is cut, touches another or gets too small; that some are left out is said."""
    made = draw_clusters(comparison(n)).figure
    shown = texts_of(made)
    assert_clear(shown, made)
    matrix = images_of(made)[0].get_window_extent()
    for text, box in shown:
        assert not matrix.overlaps(box), text
    names = {head.name for head in comparison(n).heads}
    labels = [
        text for text in made.axes[0].texts if text.get_text() in names and text.get_color() != GREY
    ]
    assert min(float(label.get_fontsize()) for label in labels) >= LEAST_TEXT
    assert len(labels) == 2 * (n if n <= 144 else n // 2)
    said = " ".join(text for text, _ in shown)
    assert ("each 2nd head is named" in said) == (n > 144)


def test_cells_are_the_distances_in_the_order_of_the_tree() -> None:
    """Every cell, every label and the ends of the colours: dark 0, pale the largest distance."""
    alike = comparison(12)
    far = distances(12)
    made = draw_clusters(alike).figure
    cells, scale = images_of(made)
    order = leaves(cluster(far))
    sorted_far = far[np.ix_(order, order)]
    expected = colours()[levels(far.max() - sorted_far, float(far.max()))]
    np.testing.assert_array_equal(np.asarray(cells.get_array()), expected)
    names = [alike.heads[head].name for head in order]
    labels = [
        text for text in made.axes[0].texts if text.get_text() in names and text.get_color() != GREY
    ]
    beside = [
        text.get_text() for text in sorted(labels, key=lambda text: text.get_position()[1])[:12]
    ]
    assert beside == names
    below = sorted(labels, key=lambda text: text.get_position()[0])[:12]
    assert [text.get_text() for text in below] == names
    np.testing.assert_array_equal(np.asarray(scale.get_array())[:, 0], colours())


def test_trees_stand_beside_their_heads() -> None:
    """Both trees have a fork for each merge, as high as its distance, and end at the middles of their cells."""
    tree = cluster(distances(12))
    made = draw_clusters(comparison(12)).figure
    matrix = images_of(made)[0].get_extent()
    beside, above = (
        np.array([path.vertices for path in lines.get_paths()])
        for lines in made.axes[0].collections
    )
    for forks, along, away, start in (
        (beside, 1, 0, matrix[0] - STRIP - 0.04),
        (above, 0, 1, matrix[3]),
    ):
        heights = start - forks[:, :, away].min(axis=1)
        np.testing.assert_allclose(
            (heights - 0.03) / (heights - 0.03).max(), tree[:, 2] / tree[:, 2].max()
        )
        ends = forks[:, [0, 3]][np.isclose(forks[:, [0, 3], away], start - 0.03)][:, along]
        cell = (matrix[1] - matrix[0]) / 12
        first = matrix[3] if along else matrix[0]
        np.testing.assert_allclose(sorted(ends), first + (np.arange(12) + 0.5) * cell)
        assert forks[:, :, away].max() < start


def test_a_page_of_clusters_says_what_it_is(texts_of: Texts) -> None:
    """Title, receipt, order, unit, and what the least and the most stand for."""
    alike = comparison(12)
    said = " ".join(text for text, _ in texts_of(draw_clusters(alike).figure))
    for part in (
        alike.model,
        proof(alike),
        "layer.head, counted from 0",
        "average linkage",
        "√nats",
        "dark: alike",
        "largest distance here is 0.75",
        f"{FARTHEST:.2f}",
    ):
        assert part in said


def test_heads_that_are_all_equal(texts_of: Texts) -> None:
    """No distance at all: the picture is made, dark, its scale goes as far as heads can be apart, 0.83."""
    made = draw_clusters(comparison(4, np.zeros((4, 4)))).figure
    assert (np.asarray(images_of(made)[0].get_array()) == colours()[-1]).all()
    shown = texts_of(made)
    assert "0.8" in [text for text, _ in shown]
    assert_clear(shown, made)


def test_a_long_title_is_wrapped(texts_of: Texts) -> None:
    """It takes more lines, and nothing is cut."""
    made = draw_clusters(
        replace(comparison(3), model="heads of a model with a long name " * 8)
    ).figure
    assert_clear(texts_of(made), made)


def test_what_cannot_be_drawn() -> None:
    """One head, and heads that were not compared."""
    with pytest.raises(SelectionError, match="two heads"):
        draw_clusters(comparison(1))
    with pytest.raises(SelectionError, match="not compared"):
        draw_clusters(replace(comparison(3), similarity=None))


def test_no_window_and_no_setting_is_touched() -> None:
    """No figure of pyplot's is left, and Matplotlib's settings are as they were."""
    from matplotlib import pyplot as plt
    from matplotlib import rcParams

    assert rcParams["backend"], "is chosen when first asked for"
    before, numbers = rcParams.copy(), plt.get_fignums()
    draw_clusters(comparison(5))
    assert plt.get_fignums() == numbers
    assert rcParams == before


def test_files_are_the_same_each_time() -> None:
    """Two pictures write the same bytes, in every format."""
    pictures = [draw_clusters(comparison(12)) for _ in range(2)]
    for suffix in (".png", ".svg", ".pdf"):
        files = [BytesIO(), BytesIO()]
        for picture, into in zip(pictures, files, strict=True):
            picture.write(into, suffix)
        assert len(files[0].getvalue()) > 5_000
        assert files[0].getvalue() == files[1].getvalue()


# The map.


def drawn(n: int, far: np.ndarray | None = None, roles: tuple[str, ...] = ROLES) -> Figure:
    """Heads as points."""
    groups = [roles[number % len(roles)] for number in range(n)]
    return plotted(scaled_to_two(distances(n) if far is None else far)[0], groups)


def plotted(points: np.ndarray, groups: Sequence[str]) -> Figure:
    """Points on axes as wide as those of the sheet."""
    looks = {
        group: {"facecolor": colour} for group, colour in zip(dict.fromkeys(groups), cycle(COLOURS))
    }
    with usual_settings():
        pen = blank_figure([*groups])
        pen.figure.set_size_inches(8, 9)
        ax = pen.figure.add_axes((0.08, 0.08, 0.88, 0.6))
        draw_scatter(ax, points, heads(len(points)), groups, pen, looks=looks)
    return pen.figure


@pytest.mark.parametrize("n", [1, 2, 12, 72, 144])
def test_labels_of_a_map_keep_clear(texts_of: Texts, n: int) -> None:
    """Every head has its label, and none covers another or leaves the axes."""
    made = drawn(n)
    shown = texts_of(made)
    assert_clear(shown, made)
    axes = made.axes[0]
    assert sorted(text.get_text() for text in axes.texts) == sorted(heads(n))
    frame = axes.get_window_extent()
    for text in axes.texts:
        box = text.get_window_extent()
        assert frame.x0 <= box.x0
        assert box.x1 <= frame.x1
        assert frame.y0 <= box.y0
        assert box.y1 <= frame.y1


def test_all_grows_with_a_picture() -> None:
    """Dots, and names that stand so many points away from them; trees."""
    expect_enlarged_whole(drawn(12))
    expect_enlarged_whole(draw_clusters(comparison(12)).figure)


def test_points_are_where_they_are_and_share_a_scale() -> None:
    """All of them, in their group; an inch along is as far as an inch up, marked in the same steps."""
    made = drawn(12)
    axes = made.axes[0]
    expected = scaled_to_two(distances(12))[0]
    for index, group in enumerate(axes.collections):
        np.testing.assert_allclose(np.asarray(group.get_offsets()), expected[index::3])
    box = axes.get_window_extent()
    along, up = np.ptp(axes.get_xlim()) / box.width, np.ptp(axes.get_ylim()) / box.height
    assert along == pytest.approx(up)
    assert np.diff(axes.get_xticks())[0] == pytest.approx(np.diff(axes.get_yticks())[0])


def test_groups_differ_without_colours() -> None:
    """Each group has its look and a mark of its own, the largest the first; what has no clear role is last."""
    from matplotlib.colors import to_hex

    roles = (NO_ROLE, NO_ROLE, NO_ROLE, "broad", "broad", "rests on [SEP]")
    made = drawn(12, roles=roles)
    groups = made.axes[0].collections
    expected = ["broad", "rests on [SEP]", NO_ROLE]
    assert [group.get_label() for group in groups] == expected
    legend = made.axes[0].get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == expected
    found = [to_hex(tuple(np.asarray(group.get_facecolor())[0])) for group in groups]
    assert found == [COLOURS[1], COLOURS[2], COLOURS[0]]
    assert len({group.get_paths()[0].vertices.tobytes() for group in groups}) == 3  # type: ignore[union-attr]


def test_more_groups_than_colours() -> None:
    """Where colours come again, marks differ."""
    made = drawn(20, roles=tuple(f"role {number}" for number in range(10)))
    seen = {
        (tuple(np.asarray(group.get_facecolor())[0]), group.get_paths()[0].vertices.tobytes())  # type: ignore[union-attr]
        for group in made.axes[0].collections
    }
    assert len(seen) == 10


def test_heads_on_one_point(texts_of: Texts) -> None:
    """Forty heads that are all equal: labels stand round the point, with lines to it; those without room do not."""
    made = drawn(40, np.zeros((40, 40)))
    assert 20 < len(made.axes[0].texts) <= 40
    assert_clear(
        [(text, box) for text, box in texts_of(made) if "." in text and len(text) < 5], made
    )
    assert len(made.axes[0].lines) > 20


def test_places_cover_no_dot() -> None:
    """Labels of spread points stand beside their own dot, on no other, and need no line."""
    dots = np.array([[100.0, 100], [112, 100], [100, 140], [190, 190], [10, 10]])
    sizes = np.tile([12.0, 6.0], (5, 1))
    offsets, away, free = places(dots, sizes, np.array([0.0, 0, 200, 200]))
    assert not away.any()
    assert free.all()
    middles = dots + offsets
    for middle, size in zip(middles, sizes, strict=True):
        apart = np.abs(middle - dots) - size / 2 - DOT / 2
        assert (apart.max(1) >= 0).all()
        assert (middle - size / 2 > 0).all()
        assert (middle + size / 2 < 200).all()
