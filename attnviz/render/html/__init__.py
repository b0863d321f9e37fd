"""A page that a browser opens from the disk: one file, no network, and the data in it packed.

The scripts beside this module and those of a feature import nothing: in the page they stand one after the other, in the
order given, in one scope of their own.
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

import numpy as np

from attnviz.render.palette import DEFAULT, Palette, colours, diverging
from attnviz.text.display import hold_units
from attnviz.text.messages import _, both, in_language, pgettext

HERE = Path(__file__).parent
# scripts that make elements, and unpack numbers
BASE = tuple(HERE / f"{name}.js" for name in ("dom", "binary"))
SHARED = (*BASE, *(HERE / f"{name}.js" for name in ("colours", "pens", "save")))
"""Those, and what draws: before the scripts of a page that is drawn."""


def build(
    title: str,
    head: Sequence[tuple[str, str]],
    *,
    labels: object,
    data: bytes,
    own: Sequence[Path],
    language: str,
    shared: Sequence[Path] = SHARED,
    body: str = "",
    rules: str = "",
) -> str:
    """Return a page of labels, numbers, and the scripts and styles that show them.

    Args:
        title: of the window, and the page's heading.
        head: lines below it, which can be read without scripts too: the class of each line, and its text.
        labels: plain values, in the element ``labels``.
        data: numbers, which the scripts inflate from the element ``data``; there may be none.
        own: the page's own scripts (``.js``) and styles (``.css``), in their order, after those of all pages.
        language: `en` or `ko`.
        shared: the scripts before its own.
        body: HTML that can be read without scripts too; empty where all is drawn.
        rules: styles that were computed, after the others.
    """
    scripts = (path.read_text("utf-8") for path in (*shared, *own) if path.suffix == ".js")
    script = _with_messages("\n".join(scripts))
    script = '"use strict";\n(() => {\n' + script + "})();\n"  # in a scope of their own
    styles = [
        path.read_text("utf-8") for path in (HERE / "page.css", *own) if path.suffix == ".css"
    ]
    style = "\n".join([*styles, *filter(None, [rules])])
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )
    lines = "\n".join(f'<p class="{name}">{escape(hold_units(text))}</p>' for name, text in head)
    plain = json.dumps(labels, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    block = (
        f'<script type="application/octet-stream" id="data">{_in_text(data)}</script>\n'
        if data
        else ""
    )
    return f"""<!doctype html>
<html lang="{language}">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{escape(title)}</title>
<style>{style}</style>
</head>
<body>
<header>
<h1><bdi>{escape(title)}</bdi></h1>
{lines}
</header>
<main id="page">{body or f'<p id="wait">{in_language(_WAIT, language)}</p>'}</main>
<script type="application/json" id="labels">{plain}</script>
{block}<script>{script}</script>
</body>
</html>
"""


def frame(page: str) -> str:
    """Return a page in a frame that can reach neither the notebook around it nor other pages."""
    return (
        '<iframe sandbox="allow-scripts allow-downloads" title="attnviz" loading="lazy" '
        f'style="width: 100%; height: 46rem; border: 0" srcdoc="{escape(page)}"></iframe>'
    )


_WAIT = _(
    "The picture is drawn by a script in this file. Where this line stays, scripts are turned off."
)


def _with_messages(script: str) -> str:
    """Put the messages of a script, ``gettext("...")``, in their places: ``["English", "Korean"]``."""

    def message(found: re.Match[str]) -> str:
        *context, english = json.loads(f"[{found[1]}]")
        phrase = pgettext(context[0], english) if context else _(english)
        return json.dumps(both(phrase), ensure_ascii=False)

    string = r'"(?:[^"\\]|\\.)*"'
    return re.sub(rf"\bp?gettext\(({string}(?:, {string})?)\)", message, script)


def _in_text(data: bytes) -> str:
    """Compress data so that browsers unpack it by themselves; filtered matches suit codes of weights best."""
    packer = zlib.compressobj(6, zlib.DEFLATED, zlib.MAX_WBITS, 9, zlib.Z_FILTERED)
    return base64.b64encode(packer.compress(data) + packer.flush()).decode()


PAPER = {False: (255, 255, 255), True: (15, 19, 21)}
"""The colour of a page, which weight 0 has too, in light and in dark: as in `page.css`."""


def palettes(name: Palette = DEFAULT, *, signed: bool = False) -> dict[str, str]:
    """Return the colours of all levels on a light and on a dark page, in hexadecimal.

    They begin with the page's own colour; those of `signed` numbers have it in their middle.
    """
    light, on_dark = (
        diverging(on_dark=dark) if signed else colours(name, on_dark=dark) for dark in (False, True)
    )
    dark = 255 - (255.0 - on_dark) * (255 - np.array(PAPER[True])) / 255
    return {"light": light.tobytes().hex(), "dark": dark.round().astype(np.uint8).tobytes().hex()}


def planes(values: bytes, width: int) -> bytes:
    """Group numbers of `width` bytes by byte: all first bytes, then all second ones, which compresses better."""
    return b"".join(values[i::width] for i in range(width))


def _hash(text: str) -> str:
    """Return the name by which a content security policy allows an inline script or style."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
