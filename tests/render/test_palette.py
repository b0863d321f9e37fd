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

# Viénot, Brettel and Mollon 1999, on linear RGB: eyes without long-wave and without medium-wave cones.
PROTAN = np.array([[0.11238, 0.88762, 0.0], [0.11238, 0.88762, 0.0], [0.00401, -0.00401, 1.0]])
DEUTAN = np.array([[0.29275, 0.70725, 0.0], [0.29275, 0.70725, 0.0], [-0.02234, 0.02234, 1.0]])


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
        turned = colours(f"{name}_r", on_dark=on_dark)
        np.testing.assert_array_equal(turned, colours(name, on_dark=on_dark)[::-1])


def test_other_palettes() -> None:
    """One that does not exist is refused; one whose lightness turns is told of once, on whatever background."""
    for name in ("", "jets", "magma_r_r", "Magma"):
        with pytest.raises(SelectionError, match=f"no palette '{name}'"):
            colours(name)
    with pytest.warns(AttnvizWarning, match=r"^the palette turbo gets lighter and darker by turns"):
        colours("turbo")
    assert colours("turbo", on_dark=True).shape == (LEVELS, 3)  # a second warning would fail


@pytest.mark.parametrize("on_dark", [False, True])
def test_signed_numbers_stand_around_the_background(*, on_dark: bool) -> None:
    """Blue below, red above, the background at 0; lightness goes one way on both sides, and every eye sees two hues."""
    table = diverging(on_dark=on_dark)
    assert (table[MIDDLE] == (0 if on_dark else 255)).all()
    assert table[0, 2] > table[0, 0] + 50
    assert table[-1, 0] > table[-1, 2] + 50
    for side in (table[MIDDLE::-1], table[MIDDLE:]):
        assert (np.diff(lightness(side[::8].astype(float))) * (1 if on_dark else -1) > 0).all()
    red, blue = linear(table[[-1, 0]].astype(float))
    for eye in (PROTAN, DEUTAN):
        assert np.linalg.norm(eye @ (red - blue)) > 0.15


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
