"""HTML pages that a browser opens from the disk: one file with compressed data, which needs no network.

The scripts beside this module and the scripts of a feature import nothing. In the page they are joined in the given
order, inside one function scope.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import zlib
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from attnviz.look import DEFAULT_PALETTE, Palette, Theme
from attnviz.render.theme import DARK, LIGHT
from attnviz.text.display import hold_units
from attnviz.text.messages import _, current_language, pgettext

if TYPE_CHECKING:
    from jinja2 import Template

HERE = Path(__file__).parent
# Scripts that create elements and unpack numbers.
BASE = tuple(HERE / f"{name}.js" for name in ("dom", "binary"))
SHARED = (*BASE, *(HERE / f"{name}.js" for name in ("colours", "pens", "save")))
"""The scripts of `BASE` and those for drawing, which come before the scripts of a page with pictures."""


def build(
    title: str,
    head: Sequence[tuple[str, str]],
    *,
    labels: object,
    own: Sequence[Path],
    data: bytes = b"",
    theme: Theme = "auto",
    shared: Sequence[Path] = SHARED,
    body: str = "",
    after: str = "",
    rules: str = "",
) -> str:
    """Return a page of labels and numbers, with the scripts and styles that show them.

    Args:
        title: the title of the window, and the page's heading.
        head: the lines below the heading, which can be read without scripts; for each line its CSS class and its text.
        labels: plain values for JSON, stored in the element ``labels``.
        data: numbers, which the scripts inflate from the element ``data``; may be empty.
        own: the page's own scripts (``.js``) and styles (``.css``), in this order, after those of all pages.
        theme: `light`, `dark`, or `auto`, which follows the reader's system; paper is always light.
        shared: the scripts before the page's own scripts.
        body: HTML that can be read without scripts; empty if scripts draw everything.
        after: HTML that follows what scripts draw.
        rules: computed styles, after the others.
    """
    scripts = (path.read_text("utf-8") for path in (*shared, *own) if path.suffix == ".js")
    script = _with_messages("\n".join(scripts)).replace(*_dark_when(theme))
    # In a function scope, so that no name is global.
    script = '"use strict";\n(() => {\n' + script + "})();\n"
    styles = [
        path.read_text("utf-8") for path in (HERE / "page.css", *own) if path.suffix == ".css"
    ]
    style = "\n".join([*styles, *filter(None, [rules])]).replace(*_dark_when(theme))
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )
    return template(HERE / "templates" / "page.html").render(
        lang=current_language(),
        policy=policy,
        color_scheme="light dark" if theme == "auto" else theme,
        title=title,
        style=style,
        head=head,
        body=body,
        after=after,
        labels=json.dumps(labels, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c"),
        data=_in_text(data) if data else "",
        script=script,
    )


def template(file: Path) -> Template:
    """Return a template of HTML, which escapes what it is given and looks up its messages by `_` and `pgettext`."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(file.parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.globals.update({"_": _, "pgettext": pgettext})
    environment.filters["hold_units"] = hold_units
    return environment.get_template(file.name)


def frame(page: str) -> str:
    """Return a page in a frame that can reach neither the notebook around it nor other pages."""
    return (
        '<iframe sandbox="allow-scripts allow-downloads" title="attnviz" loading="lazy" '
        f'style="width: 100%; height: 46rem; border: 0" srcdoc="{escape(page)}"></iframe>'
    )


def _dark_when(theme: Theme) -> tuple[str, str]:
    """Return the media query by which styles and scripts ask whether the page is dark, and the one that replaces it."""
    query = "(prefers-color-scheme: dark)"
    return query, {"auto": query, "light": "not all", "dark": "screen"}[theme]


def _with_messages(script: str) -> str:
    """Replace each ``gettext("...")`` in a script by the message in the language of the page."""

    def message(match: re.Match[str]) -> str:
        *context, english = json.loads(f"[{match[1]}]")
        phrase = pgettext(context[0], english) if context else _(english)
        return json.dumps(phrase, ensure_ascii=False)

    string = r'"(?:[^"\\]|\\.)*"'
    return re.sub(rf"\bp?gettext\(({string}(?:, {string})?)\)", message, script)


def _in_text(data: bytes) -> str:
    """Return data as compressed text that browsers can unpack; the strategy Z_FILTERED gives the smallest pages."""
    packer = zlib.compressobj(6, zlib.DEFLATED, zlib.MAX_WBITS, 9, zlib.Z_FILTERED)
    return base64.b64encode(packer.compress(data) + packer.flush()).decode()


def palettes(name: Palette = DEFAULT_PALETTE, *, signed: bool = False) -> dict[str, str]:
    """Return the colours of all levels on a light and on a dark page, in hexadecimal.

    The first colour is the page's own; with `signed` numbers it is in the middle.
    """
    tables = {
        theme.name: theme.diverging() if signed else theme.colours(name) for theme in (LIGHT, DARK)
    }
    return {theme: table.tobytes().hex() for theme, table in tables.items()}


def planes(values: bytes, width: int) -> bytes:
    """Group numbers of `width` bytes by byte: all first bytes, then all second bytes; this compresses better."""
    return b"".join(values[i::width] for i in range(width))


def _hash(text: str) -> str:
    """Return the hash by which a content security policy allows an inline script or style."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
