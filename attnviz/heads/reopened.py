"""A model opened once more, to draw what it was measured on: proved to be the one that was measured."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from attnviz.capture.notices import opened
from attnviz.errors import AttnvizError, FileFormatError, ModelError, UnreachableModelError
from attnviz.heads import surveys
from attnviz.heads.asked import DEFAULT, Asked
from attnviz.models.registry import NAMES
from attnviz.text.display import clip, visible

if TYPE_CHECKING:
    from attnviz.attention import Attention
    from attnviz.capture.source import Source
    from attnviz.heads.figure.examples import Card
    from attnviz.heads.files.surveys import Stats
    from attnviz.heads.record import Comparison


def examples(found: surveys.Found, asked: Asked) -> tuple[Mapping[str, Attention], str]:
    """By role the pattern of the sentence where a head has it most; or none, and why, which is said here too."""
    from attnviz.heads.figure import examples as heads_examples

    cards = [card for card in heads_examples.strongest(found.comparison) if card.example is not None]
    if not cards:
        return {}, ""
    try:
        source = found.source or _again(found.stats, asked)
        return {card.role.name: _pattern(card, source, found.comparison) for card in cards}, ""
    except AttnvizError as error:
        unseen = clip(str(error), 300)
        sys.stderr.write(f"attnviz: the picture shows no patterns of examples: {unseen}\n")
        return {}, unseen


def _pattern(card: Card, source: Source, comparison: Comparison) -> Attention:
    from attnviz.capture.attend import attend

    text = "" if card.example is None else card.example.text
    return attend(
        text, source, kind=comparison.kind, truncate=True,  # where nothing was cut, nothing is
        layers=[card.head.layer], heads=[card.head.head],
    )  # fmt: skip


def _again(stats: Stats, asked: Asked) -> Source:
    """The model that was measured, loaded as it was then, where that needs no download.

    Whether code that comes with a model may run is for who types now to say, and no file.

    Raises:
        ModelError: it is not here, cannot be loaded, or has other weights.
        FileFormatError: how it was loaded cannot be read.
    """
    given = stats.options
    typed = given.get("--model", DEFAULT)
    name = stats.survey.about["model"] if typed == DEFAULT else typed
    revision, called = given.get("--revision"), clip(visible(name), 100)
    if not _is_here(name, revision):
        raise UnreachableModelError(f"{called} is not here, and no model is downloaded for a picture")
    trusted = asked.loading["trust_remote_code"]
    if given.get("--trust-remote-code") == str(True) and not trusted:
        raise ModelError(f"{called} comes with code of its own, which runs only with --trust-remote-code")
    options_of = {size: f"--{size.replace('_', '-')}" for size in ("seed", "d_model", "n_heads", "n_layers")}
    try:
        sizes = {size: int(given[option]) for size, option in options_of.items() if option in given}
    except ValueError:
        raise FileFormatError(f"the sizes of {called} that were saved are no numbers") from None
    dtype = given.get("--dtype", "auto")
    with opened(
        name, device=asked.loading["device"], dtype=dtype, revision=revision, trust_remote_code=trusted, sizes=sizes
    ) as source:
        if source.digest() != stats.survey.about["weights"]:
            raise ModelError(f"{visible(source.name)} is another model than was measured: its weights differ")
        return source


def _is_here(name: str, revision: str | None) -> bool:
    """Whether a model can be opened without asking the hub for it."""
    if name in NAMES:
        return True
    from attnviz.capture.sources.hub import is_cached

    try:
        return (bool(name) and Path(name).expanduser().is_dir()) or is_cached(name, revision)
    except (OSError, RuntimeError, ValueError):  # what names neither a folder nor a model
        return False
