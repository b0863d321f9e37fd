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
from attnviz.render.figure.export import Picture, fill_pages
from attnviz.render.figure.style import StyleName, style_of
from attnviz.render.names import DEFAULT, slug
from attnviz.render.sheet import Scale
from attnviz.render.theme import ThemeName, theme_of
from attnviz.storage.files import write_whole
from attnviz.text.display import check_list, check_text, clip, visible
from attnviz.text.messages import expect_language

if TYPE_CHECKING:
    from attnviz.capture.observers import Batch

MOST_SENTENCES = (
    64  # that are read before they are drawn in their order; those of similar length share a batch
)
MOST_TOKENS = 2048  # of a batch, including padding


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
    theme: ThemeName = "auto",
    width: str | None = None,
    dpi: int | None = None,
    on_done: Callable[[int], object] | None = None,
) -> tuple[Failure, ...]:
    """Draw the attention of each of many sentences; one that fails does not stop the others.

    Args:
        texts: the sentences; blank ones are left out.
        path: a folder for one PNG per sentence, named after its number and words; or a ``.pdf`` with one page each.
        model: as for `attnviz.attend`.
        tokenizer: as for `attnviz.attend`.
        choose: ``kind``, ``layers``, ``heads`` and ``truncate``, as for `attnviz.attend`.
        palette: as for `attnviz.heatmap`, like all arguments down to `dpi`.
        scale: the range of the colours.
        lang: ``en`` or ``ko``.
        title: another title for all pictures, or None for none.
        style: what the pictures are for.
        theme: the colours of paper and text.
        width: the width of the pictures.
        dpi: the resolution of the pictures.
        on_done: is called after each sentence with the number of sentences done so far.

    Returns:
        The sentences that could not be drawn, with the reasons.

    Raises:
        InputError: there is no sentence, or a text or a path in place of the list.
        ModelError: the model cannot be used.
        SettingsError: the style, theme, width or resolution is invalid.
        SelectionError: the palette, scale or language is unknown.
        OutputError: the path is neither a folder nor a PDF, or cannot be written.
    """
    check_list(texts)
    path, numbered_texts = Path(path), _without_blanks(texts)
    if path.suffix.lower() not in {"", ".pdf"}:
        raise OutputError(f"{visible(str(path))}: many sentences are drawn into a folder or a .pdf")
    expect_language(lang)
    style_of(style, width, dpi)  # refused here, before any work
    theme_of(theme)
    failures: list[Failure] = []
    n_digits = len(str(len(texts)))  # width of the number that begins each file name
    _, first_text = numbered_texts[0]
    source = as_source(model, tokenizer, reads=first_text)

    def pictures() -> Iterator[tuple[str, Picture]]:
        """Yield each picture with the name of its file, and collect the failures."""
        results = _records(numbered_texts, source, choose or {})
        for n_done, (number, text, result) in enumerate(results, start=1):
            try:
                if isinstance(result, AttnvizError):
                    raise result
                picture = draw_record(
                    result,
                    palette=palette,
                    scale=scale,
                    lang=lang,
                    title=title,
                    style=style,
                    theme=theme,
                    width=width,
                    dpi=dpi,
                )
            except AttnvizError as error:
                failures.append(Failure(line=number, text=text, reason=str(error)))
            else:
                yield f"{number:0{n_digits}}-{slug(text, 40)}.png", picture
            if on_done is not None:
                on_done(n_done)

    _write(path, pictures())
    return tuple(failures)


def _without_blanks(texts: Sequence[str]) -> list[tuple[int, str]]:
    """Return the sentences that are not blank, each after its number, from 1. Raises InputError: all are blank."""
    numbered_texts = [(number, text) for number, text in enumerate(texts, start=1) if text.strip()]
    if not numbered_texts:
        raise InputError("there is no sentence: all lines are blank")
    return numbered_texts


def _write(path: Path, pictures: Iterator[tuple[str, Picture]]) -> None:
    """Write pictures into a folder, or as the pages of one PDF, if there are any."""
    if not path.suffix:
        for name, picture in pictures:
            write_whole(path / name, partial(picture.write, suffix=".png"))
        return

    # The file is created only if there is a first picture; `fill_pages` takes the others too.
    for _, first in pictures:
        pages = chain([first], (picture for _, picture in pictures))
        write_whole(path, partial(fill_pages, pictures=pages))


def _records(
    numbered_texts: Sequence[tuple[int, str]], source: Source, choose: Mapping[str, Any]
) -> Iterator[tuple[int, str, Attention | AttnvizError]]:
    """Yield the number, the text and the record of each sentence, or an error instead of the record, in order.

    Sentences of similar length run in one batch.
    """
    from attnviz.capture.batching import in_batches, join

    def run(sentences: Collection[Batch]) -> list[Attention | AttnvizError]:
        """Return the record of each sentence, or an error, from one run of the model if possible."""
        try:
            records = attend_batch(
                join(sentences), source, layers=choose.get("layers"), heads=choose.get("heads")
            )
            return [*records]
        except AttnvizError as error:
            if len(sentences) == 1:
                return [error]
        # The batch failed, perhaps because of one sentence: run them one by one.
        return [run([sentence])[0] for sentence in sentences]

    for first in range(0, len(numbered_texts), MOST_SENTENCES):
        group = numbered_texts[first : first + MOST_SENTENCES]
        results: dict[int, Attention | AttnvizError] = {}
        encoded: dict[int, Batch] = {}  # each with one sentence
        for number, text in group:
            try:
                check_text(text)
                encoded[number] = source.encode(
                    [text], truncate=bool(choose.get("truncate")), kind=choose.get("kind")
                )
            except AttnvizError as error:
                results[number] = error
        for batch in in_batches(encoded, MOST_TOKENS):
            results |= zip(batch, run(batch.values()), strict=True)
        yield from ((number, text, results[number]) for number, text in group)
