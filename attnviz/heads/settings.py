"""The settings of a run: measurement and model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from attnviz.errors import SettingsError
from attnviz.models.registry import Device

CONTROLS = 50  # default number of sentences that controls are measured on

Place = str | tuple[int, int]  # a head: ``"1.2"`` or ``(1, 2)``, negative from the end


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    """The name of a model and how to load it."""

    model: str | None = None  # None for the default
    device: Device = "auto"
    trust_remote_code: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SurveySettings:
    """The settings of a measurement.

    Raises SettingsError: a negative number of controls.
    """

    kind: Literal["encoder", "decoder", "cross"] | None = None
    controls: int = CONTROLS  # the number of sentences that controls are measured on

    def __post_init__(self) -> None:
        if self.controls < 0:
            raise SettingsError(f"it must be at least 0, not {self.controls}", "controls")


def check_saved(model: ModelSettings, survey: SurveySettings, others: Mapping[str, bool]) -> None:
    """Raise SettingsError if a saved file is given together with settings of a new measurement.

    `others` says of each other setting whether it is given.
    """
    given = {
        **others,
        "model and device": model != ModelSettings(),
        "kind and controls": survey != SurveySettings(),
    }
    for what, is_given in given.items():
        if is_given:
            raise SettingsError(f"a saved file is shown as it was measured: omit {what}")
