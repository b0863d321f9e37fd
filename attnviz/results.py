"""Results of any kind: their pictures, pages and files. The one file that knows all views."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from attnviz.attention import MEAN_IN_DATA
from attnviz.errors import FileFormatError, OutputError, SettingsError
from attnviz.look import Look
from attnviz.result import Result
from attnviz.storage.files import check_ending, listed, write_whole
from attnviz.text.display import visible
from attnviz.text.messages import current_language, language
from attnviz.text.suggest import FOREIGN

if TYPE_CHECKING:
    from attnviz.attention import Attention
    from attnviz.pages import WebPage
    from attnviz.render.picture import Picture


PICTURES = {".png", ".svg", ".pdf"}
# The class of each result, and how messages call it.
WHAT = {
    "Attention": "a record",
    "Attribution": "an attribution",
    "Difference": "a difference",
    "HeadComparison": "a comparison of heads",
    "Story": "a story",
    "Walkthrough": "a walkthrough",
}
COMPARISON, WALKTHROUGH = "attnviz-comparison", "attnviz-walkthrough"  # the formats of JSON files


def page(
    result: Any = None,
    path: str | os.PathLike[str] | None = None,
    *,
    model: str | None = None,
    lang: str | None = None,
    **options: Any,
) -> WebPage:
    """Make one HTML page of a result, which works offline; without a result, make a page for typing sentences.

    Args:
        result: the result of `attend`, `generate`, `walkthrough`, `attribute`, `compare_heads` or `load`; None for a
            page in which the reader types sentences and a home-built encoder runs.
        path: the file to write; None writes no file.
        model: the model that runs in a page without a result: ``toy`` (the default) or ``toy-ko``.
        lang: ``en`` or ``ko``; None is the language of the result, or else English.
        options: ``theme`` is ``light``, ``dark``, or ``auto`` (the default), which follows the system. A record,
            and a page without a result, take ``palette`` and ``scale``, as for `attnviz.heatmap`. A walkthrough takes
            ``precision`` and ``blanks``, as for its `figure`.

    Returns:
        The page, which a notebook shows and `save` writes.

    Raises:
        OutputError: the path does not end in ``.html``, or cannot be written.
        SelectionError: there is no such language, palette, scale or model.
        SettingsError: `result` is no result, a model is given beside a result, or the theme or precision is impossible.
    """
    if result is None:
        from attnviz.heatmaps.html import tour
        from attnviz.models.registry import TOY

        with language(lang):
            made = tour(TOY if model is None else model, Look(**options))
    elif not isinstance(result, Result):
        kind = type(result).__name__
        raise SettingsError(f"a page shows a result, such as that of attnviz.attend, not {kind}")
    elif model is not None:
        raise SettingsError("a model runs in a page without a result: give one of them")
    else:
        made = result.page(lang, **options)
    if path is not None:
        made.save(path)
    return made


def save(result: Result, path: str | os.PathLike[str], *place: Any, **options: Any) -> Path:
    """Write a result in the format of the path's ending; equivalent to ``result.save(path, ...)``."""
    return result.save(path, *place, **options)


def picture(result: Any, look: Look, *place: Any, lang: str | None = None, **own: Any) -> Picture:
    """Return the picture of a result; `place` chooses a part of it.

    `lang` is the language, None that of the result or else the current one. `own` are the keywords of its view:
    ``layer`` and ``head`` of a record or a difference, ``heads`` of a comparison of heads, ``precision`` and
    ``blanks`` of a walkthrough.
    """
    with language(lang or result.language):
        match type(result).__name__:
            case "Attention" | "Difference":
                from attnviz.heatmaps.figure import draw_result

                return draw_result(result, look, *place, **own)
            case "HeadComparison":
                from attnviz.heads import figure as of_heads

                return of_heads.draw(result, look, *place, **own)
            case "Attribution":
                from attnviz.attributions import figure as of_attribution

                return of_attribution.draw(result, look, *place, **own)
            case "Walkthrough":
                from attnviz.walkthroughs import figure as of_walkthrough

                return of_walkthrough.draw(result.view(look, **own), look, *place)
            case _:
                from attnviz.stories import figure as of_story
                from attnviz.stories import told

                return of_story.draw(told(result, current_language()), look, *place, **own)


def web_page(result: Any, look: Look, *, lang: str | None = None, **own: Any) -> WebPage:
    """Return the page of a result; `own` are the keywords of its view, as for `picture`."""
    with language(lang or result.language):
        match type(result).__name__:
            case "Attention":
                from attnviz.heatmaps import html

                return html.page(result, look, **own)
            case "Difference":
                from attnviz.heatmaps import html

                return html.difference_page(result, look, **own)
            case "HeadComparison":
                from attnviz.heads.html import page as page_of_heads

                return page_of_heads(result, look, **own)
            case "Attribution":
                from attnviz.attributions.html import page as page_of_attribution

                return page_of_attribution(result, look, **own)
            case "Walkthrough":
                from attnviz.walkthroughs.pages.html import page as page_of_walkthrough

                return page_of_walkthrough(result.view(look, **own), look)
            case _:
                from attnviz.stories import told
                from attnviz.stories.html import page as page_of_story

                return page_of_story(told(result, current_language()), look, **own)


def write(
    result: Result, path: Path, look: Look, *place: Any, lang: str | None = None, **own: Any
) -> Path:
    """Write a result to a file in the format of its ending. Raises OutputError: it has none, or cannot be written."""
    with language(lang or result.language):
        ending = check_ending(path, result.ENDINGS, f"{WHAT[type(result).__name__]} is")
        content: str | bytes | Callable[[Path], object]
        if ending in PICTURES:
            content = picture(result, look, *place, lang=lang, **own).fill
        elif ending == ".html":
            # A page shows all heads of a comparison.
            of_page = {name: own[name] for name in own if name != "heads"}
            content = web_page(result, look, lang=lang, **of_page).html
        else:
            content = _data(result, ending, path.name, look, own)
        return write_whole(path, content)


def _data(
    result: Any, ending: str, name: str, look: Look, own: dict[str, Any]
) -> str | bytes | Callable[[Path], object]:
    """Return the content of a file that is neither picture nor page."""
    match type(result).__name__:
        case "Attention":
            from attnviz.storage import record_files

            if result.averaged:
                raise OutputError(f"{name}: {MEAN_IN_DATA}")
            if ending == ".csv":
                return record_files.csv_table(result)
            if ending == ".json":
                return record_files.to_json(result)
            if ending == ".npz":
                return record_files.npz(result)
            return record_files.safetensors(result)
        case "Attribution":
            from attnviz.attributions import files as attribution_files

            is_csv = ending == ".csv"
            return (attribution_files.to_csv if is_csv else attribution_files.to_json)(result)
        case "HeadComparison":
            from attnviz.heads import files as heads_files

            is_csv = ending == ".csv"
            return heads_files.to_csv(result) if is_csv else heads_files.to_json(result)
        case "Walkthrough":
            from attnviz.walkthroughs import files as walkthrough_files
            from attnviz.walkthroughs.pages import markdown

            if ending == ".json":
                return walkthrough_files.to_json(result, blanks=own.get("blanks", frozenset()))
            view = result.view(look, **own)
            return markdown.csv(view) if ending == ".csv" else markdown.markdown(view)
        case _:
            from attnviz.stories import told
            from attnviz.stories.record import to_json

            return to_json(told(result, current_language()))


def load(path: str | os.PathLike[str]) -> Any:
    """Read a saved record, walkthrough, or comparison of heads.

    Args:
        path: a record (``.safetensors``, ``.npz``, ``.json``), also one written by another program (see docs/files.md);
            a walkthrough or the result of `attnviz.compare_heads` (``.json``).

    Raises:
        FileFormatError: the file cannot be read, holds something else, or was changed after its receipt was issued.
    """
    from attnviz.storage import record_files

    path = Path(path)
    suffix = path.suffix.lower()
    kind = _format_of(path) if suffix == ".json" else None
    if suffix == ".stats" or kind == COMPARISON:
        from attnviz.heads import files as heads_files

        return heads_files.load(path)
    if kind == WALKTHROUGH:
        from attnviz.walkthroughs import files as walkthrough_files

        return walkthrough_files.load(path)
    if suffix not in record_files.SUFFIXES:
        suffixes = listed(record_files.SUFFIXES)
        reason = f"what was saved is read from {suffixes}, not {suffix!r}"
        if suffix in FOREIGN:
            reason = f"it {FOREIGN[suffix]}"
        raise FileFormatError(visible(f"{path}: {reason}"))
    return record_files.read(path)


def load_record(path: str | os.PathLike[str]) -> Attention:
    """Read a record. Raises FileFormatError: the file holds something else, or cannot be read."""
    record = load(path)
    kind = type(record).__name__
    if kind != "Attention":
        command = "attnviz verify" if kind == "Walkthrough" else "attnviz compare-heads --load"
        raise FileFormatError(
            visible(f"{path}: it holds {WHAT[kind]}, no record: {command} reads it")
        )
    return cast("Attention", record)


def _format_of(path: Path) -> object:
    """Return the format field of a JSON file; None if it cannot be read, which its reader will say."""
    if not os.path.isfile(path):  # reading a pipe here would block, or consume its data
        return None
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return content.get("format") if isinstance(content, dict) else None
