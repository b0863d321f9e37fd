"""``attnviz.heatmap_all``: many sentences, each drawn as a file or as a page of one PDF."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnviz.attention import Attention
from attnviz.capture.attend import attend_batch
from attnviz.capture.source import Model, as_source
from attnviz.capture.sources import Source
from attnviz.errors import AttnvizError, InputError, OutputError
from attnviz.heatmaps.figure import draw_record
from attnviz.render.figure.export import Picture, usual_settings
from attnviz.render.figure.style import StyleName, style_of
from attnviz.render.names import DEFAULT, slug
from attnviz.render.sheet import Scale
from attnviz.storage.files import write_whole
from attnviz.text.display import check_text, clip, visible
from attnviz.text.messages import expect_language

if TYPE_CHECKING:
    from attnviz.capture.observers import Batch

TOGETHER = 64  # sentences read at a time; those of similar length share a batch, and all are drawn in their order
TOKENS = 2048  # tokens of a batch, including padding


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
    path: str | os.PathLike[str],
    model: Model = None,
    tokenizer: object = None,
    *,
    choose: Mapping[str, Any] | None = None,
    palette: str = DEFAULT,
    scale: Scale = "shared",
    lang: str = "en",
    title: str | None = "auto",
    style: StyleName = "sheet",
    width: str | None = None,
    dpi: int | None = None,
    on_done: Callable[[int], object] | None = None,
) -> tuple[Failure, ...]:
    """Draw the attention of each of many sentences; one that fails does not stop the others.

    Args:
        texts: sentences; blank ones are left out.
        path: a folder for one PNG per sentence, named after its number and words; or a ``.pdf``, one page each.
        model: as for `attnviz.attend`.
        tokenizer: as for `attnviz.attend`.
        choose: ``kind``, ``layers``, ``heads``, ``truncate``, as for `attnviz.attend`.
        palette: as ``palette`` of `attnviz.heatmap`.
        scale: as for `attnviz.heatmap`.
        lang: likewise.
        title: likewise.
        style: likewise.
        width: likewise.
        dpi: likewise.
        on_done: is called with how many sentences are done, whenever one is.

    Returns:
        What could not be drawn, and why.

    Raises:
        InputError: there is no sentence.
        ModelError: the model cannot be used.
        SettingsError: a style or width that no picture has.
        SelectionError: a palette, scale or language that is not there.
        OutputError: the path is neither a folder nor a PDF, or cannot be written.
    """
    path, numbered = Path(path), _numbered(texts)
    if path.suffix.lower() not in {"", ".pdf"}:
        raise OutputError(f"{visible(str(path))}: many sentences are drawn into a folder or a .pdf")
    expect_language(lang)
    style_of(style, width, dpi)  # refused here, before any work
    failures: list[Failure] = []
    n_digits = len(str(len(texts)))  # width of the number that begins each file name
    _, first_text = numbered[0]
    source = as_source(model, tokenizer, reads=first_text)

    def pictures() -> Iterator[tuple[str, Picture]]:
        for done, (number, text, record_or_error) in enumerate(
            _records(numbered, source, choose or {}), start=1
        ):
            try:
                picture = draw_record(
                    _expect(record_or_error),  # raises it if it is an error
                    palette=palette,
                    scale=scale,
                    lang=lang,
                    title=title,
                    style=style,
                    width=width,
                    dpi=dpi,
                )
            except AttnvizError as error:
                failures.append(Failure(line=number, text=text, reason=str(error)))
            else:
                yield f"{number:0{n_digits}}-{slug(text, 40)}.png", picture
            if on_done is not None:
                on_done(done)

    _write(path, pictures())
    return tuple(failures)


def _numbered(texts: Sequence[str]) -> list[tuple[int, str]]:
    """Return the sentences that are not blank, each with its number from 1. Raises InputError: all are blank."""
    numbered = [(number, text) for number, text in enumerate(texts, start=1) if text.strip()]
    if not numbered:
        raise InputError("there is no sentence: all lines are blank")
    return numbered


def _expect(found: Attention | AttnvizError) -> Attention:
    if isinstance(found, AttnvizError):
        raise found
    return found


def _write(path: Path, pictures: Iterator[tuple[str, Picture]]) -> None:
    """Write pictures into a folder, or as the pages of one PDF, if there are any."""
    from matplotlib.backends.backend_pdf import PdfPages

    if not path.suffix:
        for name, picture in pictures:
            write_whole(path / name, partial(picture.write, suffix=".png"))
        return

    def write(first: Picture, temporary: Path) -> None:
        about = {"Creator": "attnviz", "CreationDate": None}
        with (
            usual_settings(),
            PdfPages(temporary, metadata=about) as pages,
        ):  # fontTools logs when the PDF is closed
            for picture in chain([first], (picture for _, picture in pictures)):
                pages.savefig(picture.figure)

    for _, first in pictures:  # only the first: it writes the other pages as well
        write_whole(path, partial(write, first))


def _records(
    numbered: Sequence[tuple[int, str]], source: Source, choose: Mapping[str, Any]
) -> Iterator[tuple[int, str, Attention | AttnvizError]]:
    """Yield the record of each sentence, or an error, in order; sentences of similar length run together."""
    from attnviz.capture.batching import in_batches, join

    def run(together: Collection[Batch]) -> list[Attention | AttnvizError]:
        try:
            return [
                *attend_batch(
                    join(together), source, layers=choose.get("layers"), heads=choose.get("heads")
                )
            ]
        except AttnvizError as error:
            # The batch failed, perhaps because of one sentence: run them one by one.
            return [error] if len(together) == 1 else [run([single])[0] for single in together]

    for first in range(0, len(numbered), TOGETHER):
        some = numbered[first : first + TOGETHER]
        found: dict[int, Attention | AttnvizError] = {}
        singles: dict[int, Batch] = {}
        for number, text in some:
            try:
                check_text(text)
                singles[number] = source.encode(
                    [text], truncate=bool(choose.get("truncate")), kind=choose.get("kind")
                )
            except AttnvizError as error:
                found[number] = error
        for together in in_batches(singles, TOKENS):
            found |= zip(together, run(together.values()), strict=True)
        yield from ((number, text, found[number]) for number, text in some)
