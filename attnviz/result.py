"""The base class of results, through which each is drawn, shown as a page and saved."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from attnviz.look import Look

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from attnviz.pages import WebPage


class Result:
    """A result that can be drawn, shown as a page, and saved.

    All methods take the fields of `attnviz.look.Look` as keywords (`palette`, `scale`, `style`, `theme` and `dpi`),
    those of the result's own view, which `attnviz.results.picture` lists, and `lang`, ``en`` or ``ko``; None is the
    language of the result, or else that of `attnviz.text.messages.language`.
    """

    __slots__ = ()
    ENDINGS: ClassVar[tuple[str, ...]]  # of the files that `save` writes
    language: str | None = None  # of the texts that it holds

    def figure(self, *place: Any, lang: str | None = None, **options: Any) -> Figure:
        """Draw the result as a Matplotlib figure; `place` chooses a part of it, such as a layer and a head.

        Raises:
            SelectionError: there is no such part, palette, scale or language.
            SettingsError: there is no such style or theme.
        """
        from attnviz import results

        look, own = split_options(options)
        return results.picture(self, look, *place, lang=lang, **own).figure

    def page(self, lang: str | None = None, **options: Any) -> WebPage:
        """Make one interactive HTML page of the result, which works offline.

        Raises SelectionError: there is no such palette, scale or language; SettingsError: there is no such theme.
        """
        from attnviz import results

        look, own = split_options(options)
        return results.web_page(self, look, lang=lang, **own)

    def save(
        self, path: str | os.PathLike[str], *place: Any, lang: str | None = None, **options: Any
    ) -> Path:
        """Write the result to a file, in the format of its ending; a failed write leaves no partial file.

        ``.png``, ``.svg`` and ``.pdf`` are pictures as `figure` draws them, ``.html`` is a page as `page` makes it; the
        other endings hold the numbers.

        Raises:
            OutputError: the path has another ending, or the file cannot be written.
            SelectionError: there is no such part, palette, scale or language.
            SettingsError: there is no such style or theme.
        """
        from attnviz import results

        look, own = split_options(options)
        return results.write(self, Path(path), look, *place, lang=lang, **own)

    def _repr_html_(self) -> str | None:
        """Return the page in a frame, for notebooks."""
        return self.page()._repr_html_()

    def _repr_png_(self) -> bytes:
        """Return the picture, for notebooks that show no page."""
        from attnviz import results

        return results.picture(self, Look()).png()


def split_options(options: Mapping[str, Any]) -> tuple[Look, dict[str, Any]]:
    """Return the look that keywords describe, and the other keywords."""
    names = {field.name for field in fields(Look)}
    look = Look(**{name: options[name] for name in options if name in names})
    return look, {name: options[name] for name in options if name not in names}
