"""Perceptually even colours: weight 0 has the colour of the page, and equal steps of weight look equally large."""

from __future__ import annotations

import functools
import sys
import warnings
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from jaxtyping import Float, UInt8

from attnviz.errors import AttnvizWarning, SelectionError
from attnviz.look import DEFAULT_PALETTE, Palette
from attnviz.render.names import PALETTES
from attnviz.text.suggest import suggest

if TYPE_CHECKING:
    from matplotlib.colors import Colormap

MARKERS = "os^DvPX*"
"""One shape of marker per line of a plot, for readers who see no colours."""

LEVELS = 256
MIDDLE = LEVELS // 2  # the level of 0 in the palette of signed numbers
BLANK = 0.005  # cells with a weight below this stay blank, because it would be printed as 0
LOG_LEAST = 1e-4  # where a logarithmic scale begins: softmax gives few weights below it, and 0 has no logarithm
# A colormap whose ends differ in luminance by at most this has no lighter end; an example is ``RdBu``.
EVEN = 0.1
# A colormap is not monotonic if its luminance goes back by more than this; rounding to a byte changes it by less.
TURNS = 0.004
MIDDLE_LUMINANCE = 1.05**0.5 * 0.05**0.5 - 0.05  # its contrast with black is that with white: 4.6
STEP_256 = 0.14  # in lightness, from 0 to 1: more steps would not be even in 256 colours
NEARLY_GREY = 0.055  # a chroma, which is at most about 0.3
# The matrices of Ottosson's OKLab: from OKLab to the cube roots of the cone responses (LMS), and from LMS to linear
# sRGB.
OKLAB_TO_LMS = np.array(
    [
        [1, 0.3963377774, 0.2158037573],
        [1, -0.1055613458, -0.0638541728],
        [1, -0.0894841775, -1.2914855480],
    ]
)
LMS_TO_RGB = np.array(
    [
        [4.0767416621, -3.3077115913, 0.2309699292],
        [-1.2684380046, 2.6097574011, -0.3413193965],
        [-0.0041960863, -0.7034186147, 1.7076147010],
    ]
)

Table = UInt8[np.ndarray, "level rgb"]


class Hue(NamedTuple):
    """One hue from black to white in OKLab: its angle in degrees; the chroma is ``c l (1 - l)^p`` at lightness l."""

    angle: float
    c: float
    p: float


TEAL, RED, BLUE = Hue(193, 0.28, 0.75), Hue(27, 0.85, 1.3), Hue(256, 0.7, 1.3)
"""Chosen so that all their colours are inside the sRGB range of every screen."""
ENDS = {False: (0.18, 0.38), True: (0.94, 0.7)}
"""The lightness of the largest weight and of the largest signed number, on paper (False) and a dark screen (True)."""


def colours(palette: Palette = DEFAULT_PALETTE, *, on_dark: bool = False) -> Table:
    """Return the palette from weight 0 to the largest, as red, green, blue.

    The palette is one of `attnviz.render.names.PALETTES`, or any other colormap of Matplotlib or seaborn, as a name or
    an object. Weight 0 is the end nearest to the background, so that large weights stand out; attnviz's own palette
    begins with the background colour itself, white or black. A name that ends in ``_r`` reverses the palette. For a
    colormap whose luminance is not monotonic there is an `AttnvizWarning`. Raises SelectionError: no palette has this
    name.
    """
    if isinstance(palette, str) and PALETTES.get(palette.removesuffix("_r")) == "attnviz":
        table = _ramp(TEAL, ENDS[on_dark][0], LEVELS, on_dark=on_dark)
        return table[::-1] if palette.endswith("_r") else table
    colormap = _colormap(palette)
    is_reversed = colormap.name.endswith("_r")
    forward = colormap.reversed() if is_reversed else colormap
    rgb: Table = (forward(np.linspace(0, 1, LEVELS))[:, :3] * 255).round().astype(np.uint8)
    light = luminance(rgb)
    fall = float(light[0] - light[-1])
    if (np.diff(light) * np.sign(-fall)).min() < -TURNS:
        _tell_of_turns(colormap.name.removesuffix("_r"))
    # A colormap whose ends have about the same luminance keeps its own order.
    dark_first = abs(fall) > EVEN and (fall > 0) == on_dark
    return rgb[::-1] if dark_first != is_reversed else rgb


def _colormap(palette: Palette) -> Colormap:
    """Return a colormap by its name, itself, or made of a list of colours. Raises SelectionError: there is none."""
    from matplotlib import colormaps
    from matplotlib.colors import Colormap, LinearSegmentedColormap

    if isinstance(palette, str):
        if palette not in colormaps:
            _register_seaborn()
        if palette not in colormaps:
            raise SelectionError(f"there is no palette {palette!r}{suggest(palette, PALETTES)}")
        palette = colormaps[palette]
    try:
        if not isinstance(palette, Colormap):
            palette = LinearSegmentedColormap.from_list("colours", palette)
        palette(0.0)
    except (TypeError, ValueError, IndexError, KeyError):
        raise SelectionError(
            f"{palette!r} is no colormap: give its name, itself, or a list of colours"
        ) from None
    colormap: Colormap = palette
    return colormap


# Whether pyplot was imported only because seaborn needs it, and not by the user.
seaborn_brought_pyplot = False


def _register_seaborn() -> None:
    """Register seaborn's colormaps with Matplotlib."""
    global seaborn_brought_pyplot
    had_pyplot = "matplotlib.pyplot" in sys.modules
    import seaborn.cm  # noqa: F401 - the import registers them

    if not had_pyplot:
        seaborn_brought_pyplot = True


@functools.cache
def _tell_of_turns(name: str) -> None:
    warnings.warn(
        f"the palette {name} gets lighter and darker by turns: equal steps of weight do not look equal in it",
        AttnvizWarning,
        stacklevel=4,
    )


def diverging(*, on_dark: bool = False) -> Table:
    """Return the colours of signed numbers: blue below 0, red above 0, and the background colour at 0 (`MIDDLE`)."""
    below, above = (_ramp(hue, ENDS[on_dark][1], MIDDLE, on_dark=on_dark) for hue in (BLUE, RED))
    return np.concatenate([below[-1:], below[:0:-1], above])


def _ramp(hue: Hue, end: float, n: int, *, on_dark: bool) -> Table:
    """Return `n` colours of one hue, in even steps of lightness from the background to `end`.

    The steps are even in OKLab (Ottosson 2020, https://bottosson.github.io/posts/oklab/) with its corrected lightness,
    which is even down to black (Ottosson 2021, https://bottosson.github.io/posts/colorpicker/).
    """
    light = np.linspace(0.0 if on_dark else 1.0, end, n)
    chroma, angle = hue.c * light * (1 - light) ** hue.p, np.radians(hue.angle)
    lightness = (light**2 + 0.206 * light) / (1.206 / 1.03 * (light + 0.03))
    lab = np.stack([lightness, chroma * np.cos(angle), chroma * np.sin(angle)])
    linear = (LMS_TO_RGB @ (OKLAB_TO_LMS @ lab) ** 3).clip(0, 1).T
    channels = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    table: Table = (channels * 255).round().astype(np.uint8)
    return table


def _linear(rgb: UInt8[np.ndarray, "*colour rgb"]) -> Float[np.ndarray, "*colour rgb"]:
    """Return sRGB colours as linear intensities from 0 to 1."""
    channels = np.asarray(rgb, dtype=np.float64) / 255
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def luminance(rgb: UInt8[np.ndarray, "*colour rgb"]) -> np.ndarray:
    """Return the relative luminance, 0 (black) to 1 (white), of the Web Content Accessibility Guidelines 2.2."""
    return np.asarray(_linear(rgb) @ np.array([0.2126, 0.7152, 0.0722]))


def levels(matrix: np.ndarray, top: float, *, log: bool = False) -> np.ndarray:
    """Return the palette level of each weight, 0 to 255, for a scale from 0 to `top`; all levels are 0 if `top` is.

    A `log` scale goes from `LOG_LEAST` to `top`, in even steps of the logarithm.
    """
    if log and top > LOG_LEAST:
        shares = np.log(np.maximum(matrix, LOG_LEAST) / LOG_LEAST) / np.log(top / LOG_LEAST)
    elif top > 0 and not log:
        shares = matrix / top
    else:
        shares = np.zeros(matrix.shape)
    steps = np.rint(shares * (LEVELS - 1))
    return np.asarray(np.clip(steps, 0, LEVELS - 1), dtype=np.uint8)


def blank_below(top: float, *, log: bool = False) -> float:
    """Return the weight below which a cell stays blank: `BLANK`, or `top` / 50 if that is less; or `LOG_LEAST`."""
    return LOG_LEAST if log else min(BLANK, top / 50)


def signed_levels(values: np.ndarray, top: float) -> np.ndarray:
    """Return the level in `diverging` of each number, for a scale from ``-top`` to ``top``; 0 is `MIDDLE`."""
    shares = values / top if top > 0 else np.zeros(values.shape)
    return (MIDDLE + np.clip(np.rint(shares * (MIDDLE - 1)), 1 - MIDDLE, MIDDLE - 1)).astype(
        np.uint8
    )


@functools.cache
def terminal_colours() -> Table:
    """Return colours 16 to 255 of a terminal: a cube of 6 x 6 x 6 colours, then 24 greys; users rarely change them."""
    steps = [0, 95, 135, 175, 215, 255]
    cube = [(red, green, blue) for red in steps for green in steps for blue in steps]
    greys = [(8 + 10 * n,) * 3 for n in range(24)]
    return np.array(cube + greys, dtype=np.uint8)


def in_256(table: Table) -> list[int]:
    """Return for each colour of a palette the number of the colour of a terminal that stands for it.

    The nearest of 256 colours would turn grey and change in uneven steps. For a palette from light to dark, or back,
    each of some even steps of lightness therefore has the colour that is near in both lightness and hue.
    """
    wanted, offered = oklab(table), oklab(terminal_colours())
    light = wanted[:, 0]
    span = float(light[-1] - light[0])
    is_monotonic = abs(span) > EVEN and (np.diff(light) * np.sign(span)).min() >= -TURNS
    if not is_monotonic:
        distances = np.linalg.norm(wanted[:, None] - offered[None], axis=-1)
        return [16 + int(number) for number in distances.argmin(axis=1)]
    n_steps = round(abs(span) / STEP_256) + 1
    # the level of the palette in the middle of each step
    middles = np.abs(light[:, None] - np.linspace(light[0], light[-1], n_steps)).argmin(axis=0)
    chroma_wanted = np.hypot(wanted[middles, 1], wanted[middles, 2])
    chroma = np.hypot(offered[:, 1], offered[:, 2])
    distances = np.abs(wanted[middles, None] - offered[None]).sum(axis=-1)
    # A grey may stand only for what is nearly grey.
    is_pale = chroma[None] < chroma_wanted[:, None] / 2
    distances[is_pale & (chroma_wanted > NEARLY_GREY)[:, None]] = np.inf
    best = distances.argmin(axis=1)
    nearest = np.abs(light[:, None] - light[middles]).argmin(axis=1)
    return [16 + int(number) for number in best[nearest]]


def oklab(rgb: UInt8[np.ndarray, "*colour rgb"]) -> Float[np.ndarray, "*colour lab"]:
    """Return colours in OKLab: lightness from 0 to 1, and two axes of hue and chroma."""
    lms = np.cbrt(_linear(rgb) @ np.linalg.inv(LMS_TO_RGB).T)
    return np.asarray(lms @ np.linalg.inv(OKLAB_TO_LMS).T)


def contrast(colour: str, other: str) -> float:
    """Return the contrast of two colours, 1 to 21, as in the Web Content Accessibility Guidelines 2.2."""
    dark, light = sorted(float(luminance(rgb_of(text))) for text in (colour, other))
    return (light + 0.05) / (dark + 0.05)


def text_colours(table: UInt8[np.ndarray, "*colour rgb"]) -> np.ndarray:
    """Return for each colour the colour of text on it, black or white, whichever has more contrast."""
    light = luminance(table)
    is_white = 1.05 / (light + 0.05) > (light + 0.05) / 0.05
    return np.where(is_white, "#ffffff", "#000000")


def hexed(colour: UInt8[np.ndarray, " rgb"]) -> str:
    """Return a colour in hexadecimal, such as ``#ff8800``."""
    return f"#{colour.tobytes().hex()}"


def rgb_of(colour: str) -> UInt8[np.ndarray, " rgb"]:
    """Return red, green and blue of a colour in hexadecimal."""
    return np.array([*bytes.fromhex(colour[1:])], dtype=np.uint8)


def readable(colour: str, *, dark: bool | None) -> str:
    """Return the colour, mixed with as little white (on a dark screen) or black as makes it readable.

    Readable means a contrast of 4.5 with the background, as in the Web Content Accessibility Guidelines. If it is not
    known whether the background is dark, the contrast is about the same with black and with white.
    """
    rgb = rgb_of(colour).astype(np.float64)
    if dark is None:
        shares = np.linspace(0, 1, 51)[:, None]
        mixed = np.concatenate([rgb * (1 - shares), rgb + (255 - rgb) * shares])
        candidates = mixed.round().astype(np.uint8)
        return hexed(candidates[np.abs(luminance(candidates) - MIDDLE_LUMINANCE).argmin()])
    steps = (rgb + (255.0 * dark - rgb) * np.linspace(0, 1, 21)[:, None]).round().astype(np.uint8)
    # Few terminals have an exactly black or white background.
    background = luminance(np.full(3, 30 if dark else 240, dtype=np.uint8))
    contrast = (luminance(steps) + 0.05) / (background + 0.05)
    return hexed(steps[np.argmax(contrast >= 4.5 if dark else 1 / contrast >= 4.5)])
