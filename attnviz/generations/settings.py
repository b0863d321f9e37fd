"""How a generation chooses its tokens."""

from __future__ import annotations

import math
from dataclasses import dataclass

from attnviz.errors import SettingsError

DEFAULT_MODEL = "toy-decoder"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """Settings for choosing tokens: the most likely one, or drawn by probability.

    Raises SettingsError: impossible settings, or settings that need `sample`.
    """

    sample: bool = False
    temperature: float = 1.0  # below 1, likely tokens come more often
    top_k: int | None = None  # choose among this many of the most likely tokens
    # choose among the most likely tokens that together have this probability
    top_p: float | None = None
    seed: int = 0  # of the random numbers

    def __post_init__(self) -> None:
        defaults = (1.0, None, None, 0)
        if not self.sample and (self.temperature, self.top_k, self.top_p, self.seed) != defaults:
            raise SettingsError(
                "temperature, top_k, top_p and seed say how to sample: they go with sample"
            )
        if not 0 < self.temperature < math.inf:
            raise SettingsError(f"it must be above 0, not {self.temperature:g}", "temperature")
        if self.top_k is not None and self.top_k < 1:
            raise SettingsError(f"it must be at least 1, not {self.top_k}", "top_k")
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise SettingsError(f"it must be above 0 and at most 1, not {self.top_p:g}", "top_p")
        if self.seed < 0:
            raise SettingsError(f"it must be at least 0, not {self.seed}", "seed")

    def __str__(self) -> str:
        parts = [
            ("temperature", self.temperature),
            ("top-k", self.top_k),
            ("top-p", self.top_p),
            ("seed", self.seed),
        ]
        return ", ".join(f"{name} {value:g}" for name, value in parts if value is not None)
