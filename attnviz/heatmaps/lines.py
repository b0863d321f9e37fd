"""Many sentences: each drawn, as a file of its own or as a page of one PDF."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnviz.attention import Attention, Kind
from attnviz.capture.source import Model, Source, as_source
from attnviz.errors import AttnvizError, InputError, OutputError
from attnviz.heatmaps.figure import draw
from attnviz.render.figure.export import Picture, usual_settings
from attnviz.render.names import DEFAULT, slug
from attnviz.render.sheet import Scale, resolve
from attnviz.settings import FigureSettings
from attnviz.storage.files import write_whole
from attnviz.text.display import check_text, clip, visible

if TYPE_CHECKING:
    from attnviz.capture.observers import Batch

TOGETHER = 64
"""Sentences that are held at a time: those of like length run together, and are drawn in their order."""
TOKENS = 2048
"""Tokens of a batch, its padding included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A line that could not be drawn."""

    line: int  # its number, from 1
    text: str
    reason: str

    def __str__(self) -> str:
        return f"line {self.line} ({clip(visible(self.text.strip()), 30)}): {self.reason}"


def heatmap_all(
    texts: Sequence[str],
    path: str | Path,
    model: Model = None,
    tokenizer: object = None,
    *,
    choose: Mapping[str, Any] | None = None,
    palette: str = DEFAULT,
    scale: Scale = "shared",
    lang: str = "en",
    on_done: Callable[[int], object] | None = None,
    **look: Any,
) -> tuple[Failure, ...]:
    """Draw the attention of each of many sentences; one that fails holds up no other.

    Args:
        texts: a sentence each; blank ones are left out.
        path: a folder, in which each becomes a PNG named after its number and its words, or a ``.pdf``, in which each
            is a page.
        model: as for `attnviz.attend`.
        tokenizer: likewise.
        choose: ``kind``, ``layers``, ``heads``, ``truncate``, as for `attnviz.attend`.
        palette: as ``cmap`` of `attnviz.heatmap`.
        scale: as for `attnviz.heatmap`.
        lang: likewise.
        on_done: is called with how many sentences are done, whenever one is.
        look: what the pictures are for and their size, as for `attnviz.heatmap`.

    Returns:
        What could not be drawn, and why; nothing where all was.

    Raises:
        InputError: there is no sentence.
        ModelError: the model cannot be used.
        OutputError: the path is neither a folder nor a PDF, or cannot be written.
    """
    path, numbered = Path(path), [(number, text) for number, text in enumerate(texts, start=1) if text.strip()]
    if path.suffix.lower() not in {"", ".pdf"}:
        raise OutputError(f"{visible(str(path))}: many sentences are drawn into a folder or a .pdf")
    if not numbered:
        raise InputError("there is no sentence: all lines are blank")
    source = as_source(model, tokenizer, reads=numbered[0][1])
    settings, failures = FigureSettings(**look), list[Failure]()

    def make(record: Attention) -> Picture:
        return draw(resolve(record, scale, lang), palette, title=settings.heading, style=settings.look)

    def good() -> Iterator[tuple[int, str, Picture]]:
        for done, (number, text, picture) in enumerate(_pictures(numbered, source, choose or {}, make), start=1):
            if isinstance(picture, Picture):
                yield number, text, picture
            else:
                failures.append(Failure(line=number, text=text, reason=str(picture)))
            if on_done is not None:
                on_done(done)

    if path.suffix:
        _write_pages(path, good())
    else:
        width = len(str(len(texts)))
        for number, text, picture in good():
            _write_one(path / f"{number:0{width}}-{slug(text, 40)}.png", picture)
    return tuple(failures)


def _pictures(
    numbered: Sequence[tuple[int, str]], source: Source, choose: Mapping[str, Any], make: Callable[[Attention], Picture]
) -> Iterator[tuple[int, str, Picture | AttnvizError]]:
    """The picture of each sentence, or why there is none, in their order."""
    for some in (numbered[first : first + TOGETHER] for first in range(0, len(numbered), TOGETHER)):
        for (number, text), found in zip(some, _records(some, source, choose), strict=True):
            picture: Picture | AttnvizError
            try:
                picture = found if isinstance(found, AttnvizError) else make(found)
            except AttnvizError as error:
                picture = error
            yield number, text, picture


def _write_one(path: Path, picture: Picture) -> None:
    write_whole(path, lambda temporary: picture.write(temporary, ".png"))


def _write_pages(path: Path, pictures: Iterator[tuple[int, str, Picture]]) -> None:
    """One PDF with all pictures; none where there is none."""
    from matplotlib.backends.backend_pdf import PdfPages

    first = next(pictures, None)
    if first is None:
        return

    def write(temporary: Path) -> None:
        about = {"Creator": "attnviz", "CreationDate": None}
        with usual_settings(), PdfPages(temporary, metadata=about) as pages:  # which writes the fonts when it is closed
            pages.savefig(first[2].figure)
            for _, _, picture in pictures:
                pages.savefig(picture.figure)

    write_whole(path, write)


def _records(
    some: Sequence[tuple[int, str]], source: Source, choose: Mapping[str, Any]
) -> list[Attention | AttnvizError]:
    """The record of each sentence, or why there is none; sentences of like length run together."""
    from attnviz.capture.attend import attend_batch
    from attnviz.capture.batching import in_batches, join

    kind: Kind | None = choose.get("kind")
    kept: dict[str, Any] = {name: choose.get(name) for name in ("layers", "heads")}
    found: dict[int, Attention | AttnvizError] = {}
    singles: dict[int, Batch] = {}
    for number, text in some:
        try:
            check_text(text)
            singles[number] = source.encode([text], truncate=bool(choose.get("truncate")), kind=kind)
        except AttnvizError as error:
            found[number] = error
    numbers = {id(single): number for number, single in singles.items()}
    for together in in_batches(list(singles.values()), TOKENS):
        try:
            records = attend_batch(join(together), source, **kept)
        except AttnvizError:  # each alone: one of them may be at fault
            for single in together:
                try:
                    (found[numbers[id(single)]],) = attend_batch(single, source, **kept)
                except AttnvizError as error:
                    found[numbers[id(single)]] = error
        else:
            found |= {numbers[id(single)]: record for single, record in zip(together, records, strict=True)}
    return [found[number] for number, _ in some]
