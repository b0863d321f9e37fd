"""Pyplot's current figure, where pyplot is in use."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from attnviz.render import palette

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def is_in_use() -> bool:
    """Return whether pyplot shows the figures: the user imported it, or this is a notebook."""
    if "ipykernel" in sys.modules:  # its figures appear below the cell, by way of pyplot
        return True
    return "matplotlib.pyplot" in sys.modules and not palette.seaborn_brought_pyplot


def current_axes() -> Axes | None:
    """Return pyplot's current axes if they are empty; None if there is no figure, or something is drawn already."""
    if not is_in_use():
        return None
    from matplotlib import pyplot as plt

    if not plt.get_fignums():
        return None
    axes = plt.gca()
    return None if axes.has_data() else axes


def register(figure: Figure) -> None:
    """Make a figure pyplot's current one, if pyplot is in use."""
    if is_in_use():
        from matplotlib import pyplot as plt

        plt.figure(figure)
