"""The settings of a run: sentences, measurement and model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from attnviz.errors import SettingsError
from attnviz.models.registry import Device
from attnviz.text.display import check_sentence

CONTROLS = 50  # default number of sentences that controls are measured on

Place = str | tuple[int, int]  # a head: ``"1.2"`` or ``(1, 2)``, negative from the end


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    """The name of a model and how to load it."""

    model: str | None = None  # None for the default
    device: Device = "auto"
    trust_remote_code: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusSettings:
    """Location of the sentences; by default those that come with attnviz.

    Raises SettingsError: several places are given, or an empty file name.
    """

    text: str | None = None  # one sentence
    corpus: str | None = None  # a file with one sentence per line; ``-`` is standard input
    treebank: str | None = None  # a treebank, which has the relations between words
    # a saved comparison (``.json``); together with a sentence, it gives the roles of the heads
    load: Path | None = None

    def __post_init__(self) -> None:
        places = {
            "a sentence": self.text,
            "a corpus": self.corpus,
            "a treebank": self.treebank,
            "a saved comparison": self.saved,
        }
        named_places = [name for name, value in places.items() if value is not None]
        if len(named_places) > 1:
            raise SettingsError(
                f"give one of {' and '.join(named_places)}: they say where the sentences are"
            )
        check_sentence(self.text)
        if "" in {self.corpus, self.treebank}:
            raise SettingsError("the name of the file of sentences is empty")

    @property
    def path(self) -> str | None:
        """The file of sentences, if there is one."""
        return self.corpus if self.treebank is None else self.treebank

    @property
    def saved(self) -> Path | None:
        """The file of earlier measurements to show; None if the file only gives roles."""
        return self.load if self.text is None else None

    @property
    def roles(self) -> Path | None:
        """The file of earlier measurements that gives the roles of heads for a sentence; None without a sentence."""
        return None if self.text is None else self.load

    @property
    def shown(self) -> str:
        """The name of the sentences in the file name of a picture."""
        return self.text or Path(self.path or self.load or "samples").name


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


def check_saved(model: ModelSettings, survey: SurveySettings) -> None:
    """Raise SettingsError if a saved file is given together with settings of a new measurement."""
    if model != ModelSettings():
        raise SettingsError("a saved file is shown as it was measured: omit model and device")
    if survey != SurveySettings():
        raise SettingsError("a saved file is shown as it was measured: omit kind and controls")
