"""The pictures of likeness, by their artists: what is drawn is what was measured, and every text can be read."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from attnviz.errors import OutputError, RecordError, SelectionError
from attnviz.heads.figure.similarity import FARTHEST, UNIT, Likeness, clustermap
from attnviz.heads.figure.similarity_map import DOT, draw_scatter, places, scatter
from attnviz.heads.similarity import Map, cluster, leaves, scaled_to_two
from attnviz.render.figure.export import blank_sheet, save
from attnviz.render.figure.pen import LEAST_TEXT
from attnviz.render.palette import COLOURS, colours

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.transforms import Bbox

Texts = Callable[["Figure"], list[tuple[str, "Bbox"]]]
TITLE = "made by hand · 나는 너희 모두를 사랑해"
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


def likeness(n: int = 12, far: np.ndarray | None = None, title: str = TITLE) -> Likeness:
    """Heads with their tree."""
    far = distances(n) if far is None else far
    return Likeness(names=heads(n), distances=far, tree=cluster(far), title=title, receipt="verified: by hand " * 6)


def matrix_of(made: Figure) -> Axes:
    """The axes with the cells."""
    return next(axes for axes in made.axes if axes.collections and axes.collections[0].get_array() is not None)


def assert_clear(shown: list[tuple[str, Bbox]], made: Figure) -> None:
    """No two texts share more than a pixel, and none leaves the picture."""
    boxes = np.array([box.extents for _, box in shown])
    left, low, right, high = boxes.T
    outside = (left < -0.5) | (low < -0.5) | (right > made.bbox.width + 0.5) | (high > made.bbox.height + 0.5)
    assert not outside.any(), [shown[index][0] for index in np.flatnonzero(outside)]
    across = np.minimum.outer(right, right) - np.maximum.outer(left, left)
    down = np.minimum.outer(high, high) - np.maximum.outer(low, low)
    pairs = np.argwhere(np.triu(np.minimum(across, down) > 1, k=1))
    assert not len(pairs), [(shown[a][0], shown[b][0]) for a, b in pairs[:5]]


# All pairs.


@pytest.mark.parametrize("n", [2, 3, 12, 72, 144, 200])
def test_texts_of_a_clustermap_keep_clear(texts_of: Texts, n: int) -> None:
    """Few heads and many: no label is cut, touches another or gets too small; that some are left out is said."""
    made = clustermap(likeness(n))
    shown = texts_of(made)
    assert_clear(shown, made)
    matrix = matrix_of(made).get_window_extent()
    for text, box in shown:
        assert not matrix.overlaps(box), text
    labels = matrix_of(made).get_yticklabels()
    assert min(float(label.get_fontsize()) for label in labels) >= LEAST_TEXT
    assert len(labels) == (n if n <= 144 else n // 2)
    said = " ".join(text for text, _ in shown)
    assert ("each 2nd head is named" in said) == (n > 144)


def test_cells_are_the_distances_in_the_order_of_the_tree() -> None:
    """Every cell, every label and the ends of the colours: dark 0, pale the largest distance."""
    alike = likeness(12)
    made = clustermap(alike, "viridis")
    axes = matrix_of(made)
    order = leaves(alike.tree)
    cells = axes.collections[0]
    shown = np.ma.getdata(np.asarray(cells.get_array())).reshape(12, 12)
    np.testing.assert_array_equal(shown, alike.distances[np.ix_(order, order)])
    assert cells.get_clim() == (0, alike.distances.max())
    expected = [alike.names[head] for head in order]
    for axis in (axes.xaxis, axes.yaxis):
        assert [label.get_text() for label in axis.get_ticklabels()] == expected
    table = cells.get_cmap()(np.linspace(0, 1, 256))[:, :3] * 255
    np.testing.assert_array_equal(table.round(), colours("viridis")[::-1])
    assert axes.get_ylim() == (12, 0)
    scale = next(axes for axes in made.axes if axes.images).images[0]
    np.testing.assert_allclose(np.asarray(scale.get_array())[:, 0] * 255, colours("viridis"))


def test_trees_stand_beside_their_heads() -> None:
    """Both trees have a fork for each merge, as high as its distance, and lie along the matrix."""
    alike = likeness(12)
    made = clustermap(alike)
    matrix = matrix_of(made).get_window_extent()
    trees = [axes for axes in made.axes if axes.collections and axes.collections[0].get_array() is None]
    assert len(trees) == 2
    above, beside = sorted(trees, key=lambda axes: axes.get_window_extent().height)
    for axes, height in ((above, 1), (beside, 0)):
        forks: list[np.ndarray] = [path.vertices for path in axes.collections[0].get_paths()]  # type: ignore[misc]
        np.testing.assert_allclose(sorted(fork[:, height].max() for fork in forks), sorted(alike.tree[:, 2]))
    assert above.get_window_extent().intervalx == pytest.approx(matrix.intervalx)
    assert above.get_window_extent().y0 >= matrix.y1
    assert beside.get_window_extent().intervaly == pytest.approx(matrix.intervaly)
    assert beside.get_window_extent().x1 <= matrix.x0


def test_a_clustermap_says_what_it_is(texts_of: Texts) -> None:
    """Title, receipt, order, unit, and what the least and the most stand for."""
    said = " ".join(text for text, _ in texts_of(clustermap(likeness(12))))
    for part in (TITLE, "verified: by hand", "layer.head, counted from 0", "average linkage", UNIT, "dark: alike",
                 "largest distance here is 0.75", f"{FARTHEST:.2f}"):  # fmt: skip
        assert part in said


def test_heads_that_are_all_equal(texts_of: Texts) -> None:
    """No distance at all: the picture is made, dark, its scale ends at the farthest that heads can be."""
    made = clustermap(likeness(4, np.zeros((4, 4))))
    assert matrix_of(made).collections[0].get_clim() == (0, FARTHEST)
    assert_clear(texts_of(made), made)


def test_a_long_title_is_wrapped(texts_of: Texts) -> None:
    """It takes more lines, and nothing is cut."""
    made = clustermap(likeness(3, title="heads compared on a corpus with a long name " * 8))
    assert_clear(texts_of(made), made)


def test_without_scipy_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """One line, with the command."""
    found = importlib.util.find_spec
    monkeypatch.setattr(
        "attnviz.heads.figure.similarity.find_spec", lambda name: None if name == "scipy" else found(name)
    )
    with pytest.raises(OutputError, match=r'needs scipy: pip install "attnviz\[clusters\]"'):
        clustermap(likeness(3))


def test_what_cannot_be_drawn() -> None:
    """One head, an unknown palette, parts that do not fit."""
    with pytest.raises(SelectionError, match="two heads"):
        clustermap(likeness(1))
    with pytest.raises(SelectionError, match="no palette"):
        clustermap(likeness(3), "rainbows")
    with pytest.raises(RecordError, match="2 names"):
        Likeness(names=("0.0", "0.1"), distances=distances(3), tree=cluster(distances(3)), title="", receipt="")


def test_no_window_and_no_setting_is_touched() -> None:
    """No figure of pyplot's is left, and Matplotlib's settings are as they were."""
    from matplotlib import pyplot as plt
    from matplotlib import rcParams

    assert rcParams["backend"], "is chosen when first asked for"
    before, numbers = rcParams.copy(), plt.get_fignums()
    clustermap(likeness(5))
    scatter(scaled_to_two(distances(5)), heads(5), ("a",) * 5, title="t", receipt="r")
    assert plt.get_fignums() == numbers
    assert rcParams == before


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_files_are_the_same_each_time(suffix: str) -> None:
    """Two runs write the same bytes."""

    def written() -> bytes:
        buffer = BytesIO()
        save(clustermap(likeness(12)), buffer, suffix, title=TITLE, description="d")
        return buffer.getvalue()

    first = written()
    assert len(first) > 5_000
    assert first == written()


# The map.


def drawn(n: int, far: np.ndarray | None = None, roles: tuple[str, ...] = ROLES, **more: Any) -> Figure:
    """Heads as points."""
    far = distances(n) if far is None else far
    groups = [roles[number % len(roles)] for number in range(n)]
    return scatter(scaled_to_two(far), heads(n), groups, title=TITLE, receipt="verified: by hand", **more)


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


def test_points_are_where_they_are_and_share_a_scale() -> None:
    """All of them, in their group; an inch along is as far as an inch up, marked in the same steps."""
    made = drawn(12)
    axes = made.axes[0]
    expected = scaled_to_two(distances(12)).points
    for index, group in enumerate(axes.collections):
        np.testing.assert_allclose(np.asarray(group.get_offsets()), expected[index::3])
    box = axes.get_window_extent()
    along, up = np.ptp(axes.get_xlim()) / box.width, np.ptp(axes.get_ylim()) / box.height
    assert along == pytest.approx(up)
    assert np.diff(axes.get_xticks())[0] == pytest.approx(np.diff(axes.get_yticks())[0])


def test_groups_differ_without_colours() -> None:
    """Each group has a colour and a mark of its own, the largest the first; the plain one is grey and last."""
    from matplotlib.colors import to_hex

    roles = ("no clear role", "no clear role", "no clear role", "broad", "broad", "rests on [SEP]")
    made = drawn(12, roles=roles, plain="no clear role")
    groups = made.axes[0].collections
    assert [group.get_label() for group in groups] == ["broad", "rests on [SEP]", "no clear role"]
    legend = made.axes[0].get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["broad", "rests on [SEP]", "no clear role"]
    found = [to_hex(tuple(np.asarray(group.get_facecolor())[0])) for group in groups]
    assert found[:2] == list(COLOURS[:2])
    assert len(set(found[2][1:3] + found[2][3:5] + found[2][5:7])) <= 2, "grey"
    assert len({group.get_paths()[0].vertices.tobytes() for group in groups}) == 3  # type: ignore[union-attr]


def test_more_groups_than_colours() -> None:
    """Where colours come again, marks differ."""
    made = drawn(20, roles=tuple(f"role {number}" for number in range(10)))
    seen = {
        (tuple(np.asarray(group.get_facecolor())[0]), group.get_paths()[0].vertices.tobytes())  # type: ignore[union-attr]
        for group in made.axes[0].collections
    }
    assert len(seen) == 10


def test_a_map_says_how_much_it_keeps(texts_of: Texts) -> None:
    """The shares of both axes, the unit, the receipt."""
    first, second = scaled_to_two(distances(12)).shares
    said = " ".join(text for text, _ in texts_of(drawn(12)))
    for part in (f"keep {first + second:.0%}", f"{first:.0%} along, {second:.0%} up", UNIT, TITLE, "verified: by hand"):
        assert part in said


def test_heads_on_one_point(texts_of: Texts) -> None:
    """Forty heads that are all equal: their labels stand round the point, with lines to it."""
    made = drawn(40, np.zeros((40, 40)))
    assert_clear([(text, box) for text, box in texts_of(made) if "." in text and len(text) < 5], made)
    assert len(made.axes[0].lines) > 20


def test_places_cover_no_dot() -> None:
    """Labels of spread points stand beside their own dot, on no other, and need no line."""
    dots = np.array([[100.0, 100], [112, 100], [100, 140], [190, 190], [10, 10]])
    sizes = np.tile([12.0, 6.0], (5, 1))
    offsets, away = places(dots, sizes, np.array([0.0, 0, 200, 200]))
    assert not away.any()
    middles = dots + offsets
    for middle, size in zip(middles, sizes, strict=True):
        apart = np.abs(middle - dots) - size / 2 - DOT / 2
        assert (apart.max(1) >= 0).all()
        assert (middle - size / 2 > 0).all()
        assert (middle + size / 2 < 200).all()


def test_a_map_that_does_not_fit() -> None:
    """Labels that lack a point are refused."""
    pen = blank_sheet(["a"])
    with pytest.raises(RecordError, match="3 points, 2 labels and 3 groups"):
        draw_scatter(pen.figure.add_axes((0, 0, 1, 1)), np.zeros((3, 2)), ["a", "b"], ["g"] * 3, pen)


def test_a_map_of_equal_shares_is_a_map() -> None:
    """Points given by hand are drawn as they are."""
    points = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    made = scatter(Map(points=points, shares=(0.5, 0.5)), heads(3), ("a",) * 3, title="t", receipt="r")
    np.testing.assert_array_equal(np.asarray(made.axes[0].collections[0].get_offsets()), points)
