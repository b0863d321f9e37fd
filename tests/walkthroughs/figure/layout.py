"""Walkthroughs of several sizes to draw, and the places of what is drawn."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from attnviz.walkthroughs.record import Walkthrough
from tests.walkthroughs.by_hand import of_model, one_decoder_step

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage
    from matplotlib.transforms import Bbox

WALKS: dict[str, Callable[[], Walkthrough]] = {
    "by hand": one_decoder_step,
    "masked": lambda: one_decoder_step(mask=True),
    "toy": of_model,
    "all queries": lambda: of_model(one=False),
    "as wide as BERT": lambda: of_model(12, 384, 64),
    "three heads": lambda: of_model(5, one=False, n_heads=3),
    "many tokens": lambda: of_model(40, 24, 4),
}


def images(made: Figure) -> list[AxesImage]:
    """The matrices, in the order in which they were drawn; weights of one query are bars, and not among them."""
    return [image for axes in made.axes for image in axes.images]


def expect_apart(made: Figure, texts: list[tuple[str, Bbox]]) -> None:
    """No text leaves the picture or touches another; no matrix lies on a text of another, or on another matrix."""
    boxes = np.array([box.extents for _, box in texts])
    left, low, right, high = boxes.T
    outside = (
        (left < -0.5)
        | (low < -0.5)
        | (right > made.bbox.width + 0.5)
        | (high > made.bbox.height + 0.5)
    )
    assert not outside.any(), [texts[index][0] for index in np.flatnonzero(outside)]
    across = np.minimum.outer(right, right) - np.maximum.outer(left, left)
    down = np.minimum.outer(high, high) - np.maximum.outer(low, low)
    touching = np.argwhere(np.triu((across > 1) & (down > 1), 1))
    assert not len(touching), [(texts[i][0], texts[j][0]) for i, j in touching]
    axes = made.axes[0]
    corners = [
        np.ravel(axes.transData.transform(np.reshape(image.get_extent(), (2, 2)).T))
        for image in images(made)
    ]
    cells = np.array(corners).reshape(-1, 4)  # a slide may have no matrix
    x0, x1 = np.minimum(cells[:, 0], cells[:, 2]), np.maximum(cells[:, 0], cells[:, 2])
    y0, y1 = np.minimum(cells[:, 1], cells[:, 3]), np.maximum(cells[:, 1], cells[:, 3])
    for (text, _), (tl, tb, tr, tt) in zip(texts, boxes, strict=True):
        on = (np.minimum(tr, x1) - np.maximum(tl, x0) > 1) & (
            np.minimum(tt, y1) - np.maximum(tb, y0) > 1
        )
        inside = (tl > x0 - 1) & (tr < x1 + 1) & (tb > y0 - 1) & (tt < y1 + 1)
        assert not (on & ~inside).any(), text
    overlap_x = np.minimum.outer(x1, x1) - np.maximum.outer(x0, x0)
    overlap_y = np.minimum.outer(y1, y1) - np.maximum.outer(y0, y0)
    assert not np.triu((overlap_x > 1) & (overlap_y > 1), 1).any()
