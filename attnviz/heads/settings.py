"""The settings of heads: which sentences, how they are measured, what is shown; files keep the same values.

What makes no sense is refused where a group is made (SettingsError).
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import ClassVar, Literal

from attnviz import settings
from attnviz.errors import SelectionError, SettingsError
from attnviz.heads.measures import measures_of
from attnviz.options import FILES, INPUT, RARE, REQUIRED, SHOWN, changed, group, option
from attnviz.storage.formats import COMPARISON
from attnviz.text.display import check_sentence

CONTROLS = 50  # of how many sentences controls are taken where nothing else is set
DIVERGENCE = "divergence"  # orders the table by how far each head is from that of the second model
STATS = ".stats"
"""What a comparison is written as, beside pictures; .stats is drawn, merged and gone on with."""


@group
class CorpusSettings:
    """Where the sentences are; those that come with attnviz where nothing is given."""

    text: str | None = option(
        help="One sentence; - reads it from standard input [default: sentences shipped with attnviz]."
    )
    corpus: str | None = option(
        "--corpus",
        metavar="FILE",
        panel=INPUT,
        help="Any number of sentences, a line each; - is standard input. Also .jsonl, .conllu; .gz, .bz2, .xz.",
    )
    treebank: str | None = option(
        "--conllu",
        help="A treebank: also measure which relations between words each head finds.",
        metavar="FILE",
        panel=INPUT,
    )
    load: Path | None = option(
        "--load",
        metavar="FILE",
        panel=INPUT,
        help="Show what was measured and saved as .stats; its model is run for examples alone.",
    )

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
        """What was measured before, if it is to be shown."""
        return self.load if self.text is None else None

    @property
    def roles(self) -> Path | None:
        """What was measured before, if it tells the roles of the heads that read a sentence."""
        return None if self.text is None else self.load

    @property
    def shown(self) -> str:
        """What names a picture of it."""
        return self.text or Path(self.path or self.load or "samples").name


@group
class SurveySettings:
    """How a corpus is measured."""

    kind: settings.Kind | None = settings.kind_option()
    truncate: bool = option(
        "--truncate",
        default=False,
        panel=INPUT,
        help="Cut sentences that are too long for the model; else they are left out and counted.",
    )
    controls: int = option(
        "--controls",
        default=CONTROLS,
        least=0,
        metavar="N",
        panel=RARE,
        help="How many of the sentences the controls are measured on.",
    )


@group
class ViewSettings:
    """How heads are shown, and the score from which one has a role."""

    threshold: tuple[str, ...] = option(
        "--threshold",
        default=(),
        help="The score from which a head has a role, such as previous=0.4; repeatable.",
        metavar="ROLE=X",
        panel=RARE,
    )
    lang: Literal["en", "ko"] = settings.lang_option()
    background: settings.Background = settings.background_option()

    @property
    def thresholds(self) -> dict[str, float]:
        """Of roles, by name. Raises SettingsError: not as ``previous=0.4``, no such role, or no threshold."""
        if not self.threshold:
            return {}
        from attnviz.heads.roles import with_thresholds

        thresholds: dict[str, float] = {}
        for one in self.threshold:
            name, _, value = one.partition("=")
            if name.strip() in thresholds:
                raise SettingsError(f"{name.strip()!r} is given two thresholds", "threshold")
            try:
                thresholds[name.strip()] = float(value)
            except ValueError:
                raise SettingsError(
                    f"{one!r} is not ROLE=X, such as previous=0.4", "threshold"
                ) from None
        try:
            with_thresholds(measures_of(), thresholds)
        except SelectionError as error:
            raise SettingsError(str(error), "threshold") from None
        return thresholds


@group
class TableSettings(ViewSettings):
    """Which heads the table shows, in which order, and a second model beside them."""

    against: str | None = option(
        "--against",
        metavar="MODEL",
        panel=INPUT,
        help="A second model with the same tokenizer and heads: how far each head is from it, and its role there.",
    )
    table: bool = option(
        "--table", default=False, help="A table of all heads, and of all relations.", panel=SHOWN
    )
    sort: str = option(
        "--sort",
        default="head",
        metavar="NAME",
        panel=SHOWN,
        help="Order of the table: head, role, score, divergence (--against), or a measure such as entropy.",
    )
    role: tuple[str, ...] = option(
        "--role",
        default=(),
        metavar="NAME",
        panel=SHOWN,
        help="Only heads of this role, such as previous, nsubj or coref, in a table; repeatable.",
    )
    layer: tuple[str, ...] = settings.layer_option()
    head: tuple[str, ...] = settings.head_option()
    roles: bool = option(
        "--roles",
        default=False,
        panel=SHOWN,
        help="With a sentence: the heads for grammar, meaning, pronouns and position; --load takes them from a file.",
    )

    def __post_init__(self) -> None:
        _ = self.places, self.thresholds  # refused here, before any work

    @property
    def places(self) -> tuple[settings.Ranges | None, settings.Ranges | None]:
        """The layers and the heads chosen; None for all."""
        return settings.layers_and_heads(self.layer, self.head)

    def check(self) -> None:
        """Find out whether there is such an order, and such roles: hours of a corpus are no time to learn it.

        Of relations only a treebank tells the names. Raises SettingsError: there is none of that name.
        """
        if self.sort == "head" and not self.role:
            return
        from attnviz.heads.selection import ORDERS, find_measure, find_roles

        measures, named = measures_of(), "sort"
        try:
            if self.sort not in ORDERS:
                find_measure(self.sort, measures)
            named = "role"
            for role in self.role:
                find_roles(role, measures)
        except SelectionError as error:
            raise SettingsError(str(error), named) from None


@group
class HeadOutput(settings.FileSettings):
    """The files of one head's page."""

    ENDINGS: ClassVar[Collection[str]] = COMPARISON

    checkpoint: Path | None = option(
        "--checkpoint",
        metavar="FILE",
        panel=FILES,
        help="A .stats file that is written during the run; after a break the same command goes on.",
    )


@group
class ComparisonOutput(HeadOutput):
    """The files of a comparison."""

    json: bool = option(
        "--json", default=False, help="Print all of it as JSON, and no picture.", panel=FILES
    )

    def planned(self, *more: Path | None, writes_picture: bool = True) -> list[Path]:
        """The same; with ``--json`` there is no usual picture."""
        return HeadOutput.planned(self, *more, writes_picture=writes_picture and not self.json)


@group
class HeadSettings(ViewSettings):
    """Which head is shown."""

    head: str = option(
        default=REQUIRED,
        help="The head: its layer and its number, counted from 0.",
        metavar="LAYER.HEAD",
    )
    full: bool = option(
        "--full",
        default=False,
        help="Show all measures, controls, offsets and sentences.",
        panel=SHOWN,
    )

    def __post_init__(self) -> None:
        _ = self.numbers, self.thresholds

    @property
    def numbers(self) -> tuple[int, int]:
        """Its layer and its number."""
        try:
            return settings.place_of(self.head)
        except SettingsError as error:
            raise SettingsError(str(error), "head") from None


@group
class MergeSettings:
    """The parts of a corpus, and the file for the whole."""

    parts: tuple[Path, ...] = option(
        default=(), help="The .stats files of the parts.", metavar="STATS..."
    )
    output: Path = option(
        "--output", "-o", default=REQUIRED, help="The .stats file to write.", metavar="FILE"
    )
    lang: Literal["en", "ko"] = settings.lang_option()

    def __post_init__(self) -> None:
        if not self.parts:
            raise SettingsError("Missing argument 'STATS...'")
        if self.output.suffix.lower() != STATS:
            from attnviz.text.display import visible

            raise SettingsError(f"{visible(str(self.output))}: the ending must be stats", "output")


def check_saved(model: settings.ModelSettings, survey: SurveySettings, checkpoint: object) -> None:
    """Refuse to measure otherwise what was measured before. Raises SettingsError: it is to be."""
    start = "what was measured before is drawn as it was"
    if model.toy or model.model is not None or checkpoint is not None:
        raise SettingsError(f"{start}: it takes no model and no checkpoint")
    if late := [
        name.removeprefix("--") for name in (*changed(survey), *changed(model, "dtype", "revision"))
    ]:
        raise SettingsError(
            f"{start}: {' and '.join(late)} {'comes' if len(late) == 1 else 'come'} too late"
        )
