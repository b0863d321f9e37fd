"""Colours that do not lie: perceptually even, and safe for colour-blind readers."""

from __future__ import annotations

import functools

import numpy as np
from jaxtyping import UInt8

from attnviz.errors import SelectionError

DEFAULT = "magma"
_MATPLOTLIB = ("magma", "inferno", "plasma", "viridis", "cividis", "gray")
_SEABORN = ("mako", "rocket", "crest", "flare")
PALETTES = _MATPLOTLIB + _SEABORN
"""Each runs evenly from dark to light, so that equal steps of weight look equal, in grey and to any eye."""

DIVERGING = "RdBu_r"
"""Blue below the middle, red above: told apart by any eye, and pale where nothing is."""
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000", "#7f7f7f")
"""Okabe and Ito's, which colour-blind readers tell apart: https://jfly.uni-koeln.de/color/. The darkest come first."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
"""A shape for each line, for who sees no colours at all."""

LEVELS = 256


@functools.cache
def colours(name: str = DEFAULT, *, on_dark: bool = False) -> UInt8[np.ndarray, "level rgb"]:
    """The palette from weight 0 to the largest, as red, green, blue.

    Weight 0 is the end nearest to the background, so that what matters stands out: pale on paper, dark on a dark
    terminal. A name that ends in ``_r`` turns the palette round.

    Raises:
        SelectionError: no palette has this name.
    """
    base = name.removesuffix("_r")
    if base not in PALETTES:
        raise SelectionError(f"there is no palette {name!r}: choose one of {', '.join(PALETTES)} (or one with _r)")
    if base in _SEABORN:
        import seaborn.cm

        table = getattr(seaborn.cm, base)
    else:
        from matplotlib import colormaps

        table = colormaps[base]
    rgb: np.ndarray = (table(np.linspace(0, 1, LEVELS))[:, :3] * 255).round().astype(np.uint8)
    turned = bool(luminance(rgb[0]) > luminance(rgb[-1])) != (not on_dark)
    if turned != name.endswith("_r"):
        rgb = rgb[::-1]
    rgb.setflags(write=False)
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
