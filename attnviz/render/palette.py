"""Colours that do not lie: perceptually even, and safe for colour-blind readers."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import UInt8

from attnviz.errors import SelectionError
from attnviz.render.names import PALETTES

if TYPE_CHECKING:
    from matplotlib.colors import Colormap

DEFAULT = "magma"
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000", "#7f7f7f")
"""Okabe and Ito's, which colour-blind readers tell apart: https://jfly.uni-koeln.de/color/. The darkest come first."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
"""A shape for each line, for who sees no colours at all."""

LEVELS = 256
EVEN = 0.1
"""The largest difference of luminance between the ends of a colormap that has no lighter end, such as ``RdBu``."""


Table = UInt8[np.ndarray, "level rgb"]


def colours(palette: str | Colormap = DEFAULT, *, on_dark: bool = False) -> Table:
    """The palette from weight 0 to the largest, as red, green, blue.

    Weight 0 is the end nearest to the background, so that what matters stands out: pale on paper, dark on a dark
    terminal. A name that ends in ``_r`` turns the palette round.

    Args:
        palette: one of `attnviz.render.names.PALETTES`, or any other colormap of Matplotlib or seaborn: its name, or
            the object.
        on_dark: whether the background is dark.

    Raises:
        SelectionError: no palette has this name.
    """
    if isinstance(palette, str):
        return _named(palette, on_dark=on_dark)
    turned = palette.name.endswith("_r")
    return _oriented(palette.reversed() if turned else palette, turned=turned, on_dark=on_dark)


@functools.cache
def _named(name: str, *, on_dark: bool) -> Table:
    from matplotlib import colormaps

    base = name.removesuffix("_r")
    if base not in colormaps:
        import seaborn.cm  # noqa: F401 - it adds its colormaps to Matplotlib's

    if base not in colormaps or name not in colormaps:
        raise SelectionError(
            f"there is no palette {name!r}: choose one of {', '.join(PALETTES)} (or one with _r), or any other "
            "colormap of Matplotlib or seaborn"
        )
    return _oriented(colormaps[base], turned=name != base, on_dark=on_dark)


def _oriented(colormap: Colormap, *, turned: bool, on_dark: bool) -> Table:
    """The colours of a colormap, its end nearest to the background first, or last where it is turned round.

    A colormap whose ends are about as light as each other stays as it comes: neither is nearest to the background.
    """
    rgb = _sampled(colormap)
    brighter = float(luminance(rgb[0]) - luminance(rgb[-1]))
    dark_first = abs(brighter) > EVEN and (brighter > 0) == on_dark
    if dark_first != turned:
        rgb = rgb[::-1]
    rgb.setflags(write=False)
    return rgb


@functools.cache
def diverging() -> Table:
    """The colours of numbers to both sides of 0, the pale middle: from the lowest to the highest."""
    from matplotlib import colormaps

    rgb = _sampled(colormaps["RdBu_r"])
    rgb.setflags(write=False)
    return rgb


def _sampled(colormap: Colormap) -> Table:
    rgb: np.ndarray = (colormap(np.linspace(0, 1, LEVELS))[:, :3] * 255).round().astype(np.uint8)
    return rgb


def luminance(rgb: UInt8[np.ndarray, "*colour rgb"]) -> np.ndarray:
    """Relative luminance, 0 (black) to 1 (white), as in the Web Content Accessibility Guidelines 2.2."""
    part = np.asarray(rgb, dtype=np.float64) / 255
    linear = np.where(part <= 0.04045, part / 12.92, ((part + 0.055) / 1.055) ** 2.4)
    return np.asarray(linear @ np.array([0.2126, 0.7152, 0.0722]))


def levels(matrix: np.ndarray, top: float) -> np.ndarray:
    """The palette's level of each weight, 0 to 255, where `top` is the scale's upper end."""
    if top <= 0:
        return np.zeros(matrix.shape, dtype=np.uint8)
    return np.clip(np.rint(matrix / top * (LEVELS - 1)), 0, LEVELS - 1).astype(np.uint8)


def ink(table: UInt8[np.ndarray, "level rgb"]) -> np.ndarray:
    """For each colour whether text on it is white (else black), by which has the greater contrast."""
    light = luminance(table)
    return np.asarray(1.05 / (light + 0.05) > (light + 0.05) / 0.05)


def hexed(colour: UInt8[np.ndarray, " rgb"]) -> str:
    """A colour as terminals are told it, such as ``#ff8800``."""
    return f"#{colour.tobytes().hex()}"
