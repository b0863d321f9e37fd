"""The settings of a run: sentences, measurement and model, as ``.stats`` files keep them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from attnviz.errors import SettingsError
from attnviz.models.registry import Device, Dtype
from attnviz.text.display import check_sentence

CONTROLS = 50  # of how many sentences controls are taken where nothing else is set
DIVERGENCE = "divergence"  # orders the table by how far each head is from that of the second model
STATS = ".stats"  # the ending of a file that is drawn, merged and gone on with

Place = str | tuple[int, int]  # a head: ``"1.2"`` or ``(1, 2)``, negative from the end


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    """A model by its name, and how it is loaded."""

    model: str | None = None  # None for the default
    device: Device = "auto"
    dtype: Dtype = "auto"
    trust_remote_code: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusSettings:
    """Where the sentences are; those that come with attnviz where nothing is given.

    Raises SettingsError: several places, or none that can be named.
    """

    text: str | None = None  # one sentence
    corpus: str | None = None  # a file of sentences, a line each; ``-`` is standard input
    treebank: str | None = None  # a treebank, which tells the relations between words
    load: Path | None = None  # a ``.stats`` file; beside a sentence, of the roles of the heads

    def __post_init__(self) -> None:
        places = {
            "a sentence": self.text,
            "a corpus": self.corpus,
            "a treebank": self.treebank,
            "a .stats file": self.saved,
        }
        given = [name for name, value in places.items() if value is not None]
        if len(given) > 1:
            raise SettingsError(
                f"give one of {' and '.join(given)}: they say where the sentences are"
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
        """The file of earlier measurements, if they are to be shown."""
        return self.load if self.text is None else None

    @property
    def roles(self) -> Path | None:
        """The file of earlier measurements, if it tells the roles of the heads that read a sentence."""
        return None if self.text is None else self.load

    @property
    def shown(self) -> str:
        """The part of a picture's name that tells the sentences."""
        return self.text or Path(self.path or self.load or "samples").name


@dataclass(frozen=True, slots=True, kw_only=True)
class SurveySettings:
    """The settings of a measurement. Raises SettingsError: a negative number of controls."""

    kind: Literal["encoder", "decoder", "cross"] | None = None
    truncate: bool = False  # whether sentences that are too long are cut, rather than left out
    controls: int = CONTROLS  # how many of the sentences the controls are measured on

    def __post_init__(self) -> None:
        if self.controls < 0:
            raise SettingsError(f"it must be at least 0, not {self.controls}", "controls")


def check_saved(model: ModelSettings, survey: SurveySettings, checkpoint: object) -> None:
    """Refuse to measure otherwise what was measured before, by a `SettingsError`."""
    given = {
        "model": model.model is not None,
        "dtype": model.dtype != "auto",
        "checkpoint": checkpoint is not None,
        "kind, truncate and controls": survey != SurveySettings(),
    }
    for name, is_given in given.items():
        if is_given:
            raise SettingsError(f"a saved file is shown as it was measured: omit {name}")
