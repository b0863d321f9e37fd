"""Colours that do not lie: even steps of lightness, to any eye, on any background, with text that can be read."""

from __future__ import annotations

import numpy as np
import pytest

from attnviz.errors import AttnvizWarning, SelectionError
from attnviz.render.names import PALETTES
from attnviz.render.palette import (
    LEVELS,
    MIDDLE,
    colours,
    diverging,
    levels,
    luminance,
    signed_levels,
    text_colours,
)
from attnviz.render.theme import LIGHT

TENTHS = np.linspace(0, LEVELS - 1, 11).round().astype(int)

# Viénot, Brettel and Mollon 1999 for eyes without long-wave (protan) and medium-wave (deutan) cones; Brettel, Viénot
# and Mollon 1997 for eyes without short-wave cones (tritan), one matrix on either side of a plane. All on linear RGB.
PROTAN = np.array([[0.11238, 0.88762, 0.0], [0.11238, 0.88762, 0.0], [0.00401, -0.00401, 1.0]])
DEUTAN = np.array([[0.29275, 0.70725, 0.0], [0.29275, 0.70725, 0.0], [-0.02234, 0.02234, 1.0]])
TRITAN_ABOVE = np.array(
    [[1.01277, 0.13548, -0.14826], [-0.01243, 0.86812, 0.14431], [0.07589, 0.80500, 0.11911]]
)
TRITAN_BELOW = np.array(
    [[0.93678, 0.18979, -0.12657], [0.06154, 0.81526, 0.12320], [-0.37562, 1.12767, 0.24796]]
)
TRITAN_PLANE = np.array([0.03901, -0.02788, -0.01113])


def linear(rgb: np.ndarray) -> np.ndarray:
    """Amounts of light from sRGB bytes (IEC 61966-2-1)."""
    part = rgb / 255
    return np.asarray(np.where(part <= 0.04045, part / 12.92, ((part + 0.055) / 1.055) ** 2.4))


def lightness(rgb: np.ndarray) -> np.ndarray:
    """CIE 1976 L*: 0 is black, 100 is white, and equal steps look equal."""
    light = linear(rgb) @ np.array([0.2126729, 0.7151522, 0.0721750])
    return np.asarray(
        np.where(light > (6 / 29) ** 3, 116 * np.cbrt(light) - 16, light * (29 / 3) ** 3)
    )


def oklab(light: np.ndarray) -> np.ndarray:
    """Ottosson 2020, from linear RGB: distances are differences as they look."""
    cones = light @ np.array(
        [
            [0.4122214708, 0.2119034982, 0.0883024619],
            [0.5363325363, 0.6806995451, 0.2817188376],
            [0.0514459929, 0.1073969566, 0.6299787005],
        ]
    )
    to_lab = [
        [0.2104542553, 1.9779984951, 0.0259040371],
        [0.7936177850, -2.4285922050, 0.7827717662],
        [-0.0040720468, 0.4505937099, -0.8086757660],
    ]
    return np.asarray(np.cbrt(cones) @ np.array(to_lab))


def seen(rgb: np.ndarray, eye: str) -> np.ndarray:
    """Colours as an eye sees them, in OKLab."""
    light = linear(rgb)
    if eye == "tritan":
        above = (light @ TRITAN_PLANE >= 0)[:, None]
        light = np.where(above, light @ TRITAN_ABOVE.T, light @ TRITAN_BELOW.T)
    elif eye != "full":
        light = light @ {"protan": PROTAN, "deutan": DEUTAN}[eye].T
    return oklab(np.clip(light, 0, 1))


@pytest.mark.parametrize("on_dark", [False, True])
@pytest.mark.parametrize("name", PALETTES)
def test_lightness_goes_one_way(name: str, *, on_dark: bool) -> None:
    """Every palette gets strictly darker on paper, lighter on a dark screen; bytes may round by a tenth of a unit."""
    table = lightness(colours(name, on_dark=on_dark).astype(float)) * (1 if on_dark else -1)
    assert (np.diff(table[::8]) > 0).all()
    assert np.diff(table).min() > -0.1


def test_the_default_steps_are_nearly_even() -> None:
    """Tenths of the default scale: the largest step of lightness is at most twice the smallest."""
    for on_dark in (False, True):
        steps = np.abs(np.diff(lightness(colours(on_dark=on_dark)[TENTHS].astype(float))))
        assert steps.max() / steps.min() <= 2.0
        assert steps.min() >= 5.0


@pytest.mark.parametrize("name", PALETTES)
def test_a_palette_turns_round(name: str) -> None:
    """`_r` turns the palette round, on both backgrounds."""
    for on_dark in (False, True):
        np.testing.assert_array_equal(
            colours(f"{name}_r", on_dark=on_dark), colours(name, on_dark=on_dark)[::-1]
        )


@pytest.mark.parametrize("name", ["", "jets", "_r", "magma_r_r", "Magma", "rainbows_r"])
def test_an_unknown_palette_is_refused(name: str) -> None:
    """A palette that does not exist is an error that names those that do."""
    with pytest.raises(SelectionError, match=f"no palette '{name}'"):
        colours(name)


@pytest.mark.parametrize("name", ["turbo", "PiYG", "Spectral"])
def test_a_palette_that_turns_is_used_and_told_of_once(name: str) -> None:
    """One warning in one line, however often and on whatever background it is drawn."""
    with pytest.warns(
        AttnvizWarning, match=f"^the palette {name} gets lighter and darker by turns: .*$"
    ):
        colours(name)
    assert colours(name, on_dark=True).shape == (LEVELS, 3)  # a second warning would fail


@pytest.mark.parametrize("on_dark", [False, True])
def test_signed_numbers_stand_around_the_background(*, on_dark: bool) -> None:
    """Blue below, red above, the background at 0; to every eye lightness goes one way on both sides, in even steps."""
    table = diverging(on_dark=on_dark)
    assert (table[MIDDLE] == (0 if on_dark else 255)).all()
    assert table[0, 2] > table[0, 0] + 50
    assert table[-1, 0] > table[-1, 2] + 50
    for side in (table[MIDDLE::-1], table[MIDDLE:]):
        assert (np.diff(lightness(side[::8].astype(float))) * (1 if on_dark else -1) > 0).all()
        for eye in ("full", "protan", "deutan"):
            assert (
                np.diff(seen(side[::16].astype(float), eye)[:, 0]) * (1 if on_dark else -1) > 0
            ).all()
    for eye in ("protan", "deutan"):
        red, blue = seen(table[[-1, 0]].astype(float), eye)
        assert np.linalg.norm(red - blue) > 0.15


def test_signed_levels_by_hand() -> None:
    """0 is the middle, the ends are as far from it; what is beyond stays there, and without a scale all is 0."""
    values = np.array([-3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 9.0])
    assert signed_levels(values, 2.0).tolist() == [1, 1, 64, 128, 192, 255, 255]
    assert signed_levels(np.zeros(2), 0.0).tolist() == [128, 128]


@pytest.mark.parametrize("name", [*PALETTES, "signed"])
@pytest.mark.parametrize("on_dark", [False, True])
def test_text_can_be_read_on_every_colour(name: str, *, on_dark: bool) -> None:
    """Black or white text has a contrast of 4.5 to 1 at least (WCAG 2.2, AA), and is the better of the two."""
    table = diverging(on_dark=on_dark) if name == "signed" else colours(name, on_dark=on_dark)
    light = luminance(table)
    contrast = {True: 1.05 / (light + 0.05), False: (light + 0.05) / 0.05}
    chosen = np.where(text_colours(table) == "#ffffff", contrast[True], contrast[False])
    assert chosen.min() >= 4.5
    np.testing.assert_array_equal(chosen, np.maximum(contrast[True], contrast[False]))


def test_levels_by_hand() -> None:
    """0 is level 0, the top 255, a fifth of it 51; what is above the top stays at 255."""
    found = levels(np.array([[0.0, 0.1, 0.5, 0.7]]), 0.5)
    assert found.dtype == np.uint8
    assert found.tolist() == [[0, 51, 255, 255]]


def test_cells_of_small_weights_stay_blank() -> None:
    """Below 0.005 a cell is white; where even the largest weight is small, below a fiftieth of that."""
    table = colours("magma")
    shown = LIGHT.pixels(np.array([[0.0, 0.0049, 0.005, 1.0]]), 1.0, table)
    assert shown[0, :2].tolist() == [[255, 255, 255]] * 2
    np.testing.assert_array_equal(shown[0, 2:], table[[1, 255]])
    shown = LIGHT.pixels(np.array([[0.0003, 0.0005, 0.02]]), 0.02, table)
    assert (shown[0, 0] == 255).all()
    np.testing.assert_array_equal(shown[0, 1:], table[[6, 255]])
