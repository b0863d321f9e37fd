"""What was typed after the commands that compare heads, as far as it can be meant together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

from attnviz.errors import InputError, RecordError, SelectionError
from attnviz.heads.options import CONTROLS, MAX_OFFSET
from attnviz.text.display import clip, visible

if TYPE_CHECKING:
    from attnviz.heads.files.surveys import Stats
    from attnviz.storage.corpora.corpus import Corpus, Fingerprint


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What was typed.

    Attributes:
        text: one sentence.
        corpus: a file of sentences.
        field: where its objects hold their sentence.
        treebank: a treebank.
        load: what was measured before.
        model: the model's name.
        loading: how it is loaded: the other arguments of `open_source`.
        kind: which attention.
        specials: whether special tokens take part.
        truncate: whether sentences that are too long are cut.
        likeness: whether pairs of heads are compared.
        controls: on how many sentences controls are taken.
        max_offset: how far fixed offsets are measured.
        checkpoint: where to go on from.
        thresholds: of roles.
        expect: told how many layers the model has and how many heads a layer, as soon as that is known; it raises
            where what was typed does not fit.
    """

    text: str | None
    corpus: str | None
    field: str | None
    treebank: str | None
    load: Path | None
    model: str | None
    loading: Mapping[str, object]
    kind: Literal["encoder", "decoder", "cross"] | None
    specials: Literal["keep", "exclude"]
    truncate: bool
    likeness: bool
    controls: int
    max_offset: int
    checkpoint: Path | None
    thresholds: Mapping[str, float]
    expect: Callable[[int, int], object] = lambda _layers, _heads: None


DEFAULT = "the default"
"""What a file of a run calls the model where none was named."""

NOBODY_KNOWS = "nobody can tell whether it is the same when a run goes on"


def thresholds(typed: Sequence[str] | None) -> dict[str, float]:
    """Read ``--threshold previous=0.4``.

    Raises:
        BadParameter: something else was typed, there is no such role, or the number is no threshold.
    """
    if not typed:
        return {}
    from attnviz.heads import roles
    from attnviz.heads.record import OFFSETS

    found = {}
    for one in typed:
        name, _, value = one.partition("=")
        if name.strip() in found:
            raise typer.BadParameter(f"{name.strip()!r} is given two thresholds", param_hint="'--threshold'")
        try:
            found[name.strip()] = float(value)
        except ValueError:
            raise typer.BadParameter(
                f"{one!r} is not ROLE=X, such as previous=0.4", param_hint="'--threshold'"
            ) from None
    try:
        roles.with_thresholds(roles.kinds(OFFSETS), found)
    except SelectionError as error:
        raise typer.BadParameter(str(error), param_hint="'--threshold'") from None
    return found


def understood(*, toy: bool, sizes: Mapping[str, int], **typed: Any) -> Asked:
    """What was typed, as far as it can be meant together.

    Args:
        toy: whether the home-built encoder was asked for in short.
        sizes: of the home-built model with random weights.
        typed: everything else, as `Asked` has it.

    Raises:
        BadParameter: sentences from two places, or options that have nothing to act on.
    """
    if toy and typed["model"] is not None:
        raise typer.BadParameter("give --toy or --model, not both")
    found = Asked(
        **{**typed, "model": "toy" if toy else typed["model"], "loading": {**typed["loading"], "sizes": sizes}}
    )
    places = {
        "a sentence": found.text, "--corpus": found.corpus, "--conllu": found.treebank, "--load": found.load,
    }  # fmt: skip
    given = [name for name, value in places.items() if value is not None]
    if len(given) > 1:
        raise typer.BadParameter(f"give one of {' and '.join(given)}: they say where the sentences are")
    if "" in {found.corpus, found.treebank}:
        raise typer.BadParameter("the name of the file of sentences is empty")
    if found.field is not None and found.corpus is None:
        raise typer.BadParameter(
            "--field says where a --corpus of JSON lines holds its sentences: there is no --corpus"
        )
    if found.load is not None and (found.model is not None or found.checkpoint is not None):
        raise typer.BadParameter("--load draws what was measured before: it takes no model and no --checkpoint")
    too_late = {
        "--kind": found.kind is not None,
        "--specials": found.specials != "keep",
        "--truncate": found.truncate,
        "--no-likeness": not found.likeness,
        "--controls": found.controls != CONTROLS,
        "--max-offset": found.max_offset != MAX_OFFSET,
        "--dtype": found.loading["dtype"] != "auto",
        "--revision": found.loading["revision"] is not None,
    }
    typed_late = [name for name, given in too_late.items() if given]
    if found.load is not None and typed_late:
        raise typer.BadParameter(
            f"--load draws what was measured before, as it was: {' and '.join(typed_late)} "
            f"{'comes' if len(typed_late) == 1 else 'come'} too late"
        )
    if found.checkpoint is not None:
        _check_checkpoint(found.checkpoint, found)
    return found


def _check_checkpoint(path: Path, found: Asked) -> None:
    """Refuse a checkpoint of what nobody can go on with.

    Raises:
        BadParameter: there is no file of sentences, or the checkpoint ends otherwise.
    """
    if found.corpus is None and found.treebank is None:
        raise typer.BadParameter("--checkpoint is for a --corpus or a --conllu")
    if "-" in {found.corpus, found.treebank}:
        raise typer.BadParameter(f"--checkpoint is for a file: of standard input {NOBODY_KNOWS}")
    if path.suffix.lower() != ".stats":
        raise typer.BadParameter(f"{visible(str(path))}: a checkpoint ends in .stats")


def told(asked: Asked) -> dict[str, str]:
    """What must be the same for a run to go on, by the option that says it."""
    sizes: Any = asked.loading["sizes"]
    loaded = {**asked.loading, "sizes": None, **{name: str(size) for name, size in sizes.items()}}
    return {
        "--model": asked.model or DEFAULT,
        **{f"--{name.replace('_', '-')}": str(value) for name, value in loaded.items() if value},
        "--kind": asked.kind or "the usual",
        "--specials": asked.specials,
        "--truncate": str(asked.truncate),
        "--likeness": str(asked.likeness),
        "--controls": str(asked.controls),
        "--max-offset": str(asked.max_offset),
        "--field": asked.field or "text",
    }


def check_can_go_on(checkpoint: Path | None, corpus: Corpus | None, mark: Fingerprint | None) -> None:
    """Refuse a checkpoint of what nobody can know again.

    Args:
        checkpoint: where to go on from.
        corpus: the file of sentences.
        mark: what that file is; None of a pipe.

    Raises:
        InputError: the file is a pipe.
    """
    if checkpoint is not None and corpus is not None and mark is None:
        raise InputError(f"{corpus.name} is a pipe, and --checkpoint is for a file: of a pipe {NOBODY_KNOWS}")


def check_same_run(path: Path, before: Stats, mark: Fingerprint | None, options: Mapping[str, str]) -> None:
    """Make sure that what an earlier run left is of the run that was typed.

    Args:
        path: where it lies.
        before: what it left.
        mark: what the file of sentences is now.
        options: what was typed, as `told` has it.

    Raises:
        RecordError: it is of another corpus, or was measured otherwise.
    """
    differing = [
        f"{name} is {options.get(name, 'not given')}, was {before.options.get(name, 'not given')}"
        for name in sorted({*options, *before.options})
        if options.get(name) != before.options.get(name)
    ]
    if before.fingerprint != mark:
        was = (
            "; ".join(before.corpora)
            if before.fingerprint is None
            else f"{before.fingerprint.name}, {before.fingerprint.size:,} bytes"
        )
        differing.insert(0, f"the corpus is another (it was {visible(was)})")
    if differing:
        raise RecordError(
            f"{visible(str(path))} is a checkpoint of another run: {clip('; '.join(differing), 300)}; remove it to "
            "begin anew"
        )
