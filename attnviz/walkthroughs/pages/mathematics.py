r"""The formulas of steps as mathematics: TeX for Markdown, MathML for web pages, both from the same parts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from html import escape
from itertools import starmap

_FUNCTIONS = frozenset({"tanh", "exp", "max", "softmax", "mask", "split", "rotate", "GRU"})
_WORDS = frozenset(
    {"sum", "of", "the", "row", "rows", "and", "times", "mean", "square", "variance"}
)
_SIGNS = {
    "*": ("⊙", r"\odot"),
    "⊙": ("⊙", r"\odot"),
    "·": ("·", r"\cdot"),
    "∞": ("∞", r"\infty"),
    "Φ": ("Φ", r"\Phi"),
    "…": ("…", r"\ldots"),
    "pi": ("π", r"\pi"),
}
_PARTS = re.compile(
    r"\^(?P<power>T|\d|)|sqrt\((?P<root>[^()]*)\)|(?P<number>\d+(?:\.\d+)?(?:e[-+]?\d+)?)"
    r"|(?P<name>[^\W\d_]\w*|[∞…])|(?P<space>\s+)|(?P<operator>_\w*|.)"
)


def parts(formula: str) -> Iterator[tuple[str, str]]:
    """Yield the parts of a formula such as "scores = q K^T / sqrt(8)", part by part: what each is, and its text.

    It is a group of `_PARTS`, or of names a ``function`` or ``words``; a root's text is what stands under it.
    """
    # these make their own room
    for found in _PARTS.finditer(re.sub(r"\s*([=+/*⊙·,;]|(?<=\s)-)\s+", r"\1", formula)):
        kind = found.lastgroup or ""
        text = found[kind]
        if text in _FUNCTIONS:
            kind = "function"
        elif kind == "name" and (text in _WORDS or not (text.isascii() or text in _SIGNS)):
            kind = "words"
        yield kind, text


def _split(name: str) -> tuple[str, str]:
    """Return a symbol and its index: Wq is W with q, context_1 is context with 1."""
    found = re.fullmatch(r"([Wbd])([a-z0-9])(?:_(.+))?|([^_]+)_(.+)", name)
    if found is None:
        return name, ""
    letter, *indices = found.group(1, 2, 3, 5)
    return letter or found[4], ",".join(filter(None, indices)).replace("_", " ")


_ESCAPED = {
    "\\": r"\backslash ",
    "^": r"\hat{}",
    "~": r"\sim ",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "`": r"\grave{}",
}


def tex(formula: str) -> str:
    r"""Return a formula as TeX: "scores = q K^T" as ``\mathit{scores} = q\ K^{\top}``."""
    return re.sub(r" {2,}", " ", "".join(starmap(_tex, parts(formula)))).strip()


def _tex(kind: str, text: str) -> str:
    if kind == "root":
        return rf"\sqrt{{{''.join(starmap(_tex, parts(text)))}}} "
    if kind == "name" and text not in _SIGNS:
        symbol, index = _split(text)
        symbol = symbol if len(symbol) == 1 else rf"\mathit{{{symbol}}}"
        below = index if re.fullmatch(r"\w|(\w,)?\d+", index) else rf"\text{{{index}}}"
        return f"{symbol}_{{{below}}}" if index else symbol
    written = {
        "power": r"^{\top} " if text == "T" else f"^{{{text}}} ",
        "words": rf"\text{{{text}}}",
        "function": f"\\{text} " if text in {"tanh", "exp", "max"} else rf"\operatorname{{{text}}}",
        "space": r"\ ",
    }
    if text in _SIGNS:
        return f"{_SIGNS[text][1]} "
    return written.get(kind) or "".join(_ESCAPED.get(character, character) for character in text)


def mathml(formula: str) -> str:
    """Return a formula as MathML, in pieces between which a line can be broken."""
    pieces: list[list[tuple[str, str]]] = [[]]
    for kind, text in parts(formula):
        if kind == "operator" and text in "=+*⊙" and pieces[-1]:
            pieces.append([])
        pieces[-1].append((kind, text))
        if text == ";":
            pieces.append([])
    return " ".join(f"<math>{_row(piece)}</math>" for piece in pieces)


def _row(piece: Iterable[tuple[str, str]]) -> str:
    drawn: list[str] = []
    for kind, text in piece:
        if kind == "power" and drawn:
            above = "<mo>&#x22A4;</mo>" if text == "T" else f"<mn>{text}</mn>"
            drawn.append(f"<msup>{drawn.pop()}{above}</msup>")
        else:
            drawn.append(_element(kind, text))
    return f"<mrow>{''.join(drawn)}</mrow>"


def _element(kind: str, text: str) -> str:
    if kind == "root":
        return f"<msqrt>{_row(parts(text))}</msqrt>"
    if kind == "space":
        return '<mspace width="0.25em"/>'
    text = escape(_SIGNS.get(text, (text,))[0])
    if kind == "name":
        symbol, index = map(escape, _split(text))
        return f"<msub><mi>{symbol}</mi><mi>{index}</mi></msub>" if index else f"<mi>{symbol}</mi>"
    if text in "()[]":  # without a font for mathematics they would be stretched too far
        return f'<mo stretchy="false">{text}</mo>'
    tag = {"number": "mn", "function": "mi", "words": "mtext"}.get(kind, "mo")
    return f"<{tag}>{text}</{tag}>"
