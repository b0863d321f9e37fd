r"""The formulas of steps as TeX for Markdown and as MathML for web pages, both from the same parts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from html import escape
from itertools import starmap

_FUNCTIONS = frozenset({"tanh", "exp", "max", "softmax", "mask", "split", "GRU"})
_WORDS = frozenset({"sum", "of", "the", "row", "rows", "and", "times", "mean", "variance"})
_SIGNS = {
    "*": ("⊙", r"\odot"),
    "⊙": ("⊙", r"\odot"),
    "·": ("·", r"\cdot"),
    "∞": ("∞", r"\infty"),
    "…": ("…", r"\ldots"),
}
_PARTS = re.compile(
    r"\^(?P<power>T|\d|)|sqrt\((?P<root>[^()]*)\)|(?P<number>\d+(?:\.\d+)?(?:e[-+]?\d+)?)"
    r"|(?P<name>[^\W\d_]\w*|[∞…])|(?P<space>\s+)|(?P<operator>_\w*|.)"
)


def parts(formula: str) -> Iterator[tuple[str, str]]:
    """Yield the kind and the text of each part of a formula such as "scores = q K^T / sqrt(8)".

    The kind is the name of a group of `_PARTS`, or ``function`` or ``words`` for some names; the text of a root is what
    is under it.
    """
    # Spaces around operators are removed, since TeX and MathML add their own.
    for match in _PARTS.finditer(re.sub(r"\s*([=+/*⊙·,;]|(?<=\s)-)\s+", r"\1", formula)):
        kind = match.lastgroup or ""
        text = match[kind]
        if text in _FUNCTIONS:
            kind = "function"
        elif kind == "name" and (text in _WORDS or not (text.isascii() or text in _SIGNS)):
            kind = "words"
        yield kind, text


def _split(name: str) -> tuple[str, str]:
    """Return a symbol and its index: Wq gives W and q, context_1 gives context and 1."""
    match = re.fullmatch(r"([Wbd])([a-z0-9])(?:_(.+))?|([^_]+)_(.+)", name)
    if match is None:
        return name, ""
    letter, *indices = match.group(1, 2, 3, 5)
    return letter or match[4], ",".join(filter(None, indices)).replace("_", " ")


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
    """Return one part of a formula as TeX."""
    if kind == "root":
        return rf"\sqrt{{{''.join(starmap(_tex, parts(text)))}}} "
    if kind == "name" and text not in _SIGNS:
        symbol, index = _split(text)
        symbol = symbol if len(symbol) == 1 else rf"\mathit{{{symbol}}}"
        subscript = index if re.fullmatch(r"\w|(\w,)?\d+", index) else rf"\text{{{index}}}"
        return f"{symbol}_{{{subscript}}}" if index else symbol
    forms = {
        "power": r"^{\top} " if text == "T" else f"^{{{text}}} ",
        "words": rf"\text{{{text}}}",
        "function": f"\\{text} " if text in {"tanh", "exp", "max"} else rf"\operatorname{{{text}}}",
        "space": r"\ ",
    }
    if text in _SIGNS:
        return f"{_SIGNS[text][1]} "
    return forms.get(kind) or "".join(_ESCAPED.get(character, character) for character in text)


def mathml(formula: str) -> str:
    """Return a formula as MathML, in several pieces, so that a browser can break the line between them."""
    pieces: list[list[tuple[str, str]]] = [[]]
    for kind, text in parts(formula):
        if kind == "operator" and text in "=+*⊙" and pieces[-1]:
            pieces.append([])
        pieces[-1].append((kind, text))
        if text == ";":
            pieces.append([])
    return " ".join(f"<math>{_row(piece)}</math>" for piece in pieces)


def _row(piece: Iterable[tuple[str, str]]) -> str:
    """Return the parts of a formula as one MathML row; a power is joined with the element before it."""
    elements: list[str] = []
    for kind, text in piece:
        if kind == "power" and elements:
            exponent = "<mo>&#x22A4;</mo>" if text == "T" else f"<mn>{text}</mn>"
            elements.append(f"<msup>{elements.pop()}{exponent}</msup>")
        else:
            elements.append(_element(kind, text))
    return f"<mrow>{''.join(elements)}</mrow>"


def _element(kind: str, text: str) -> str:
    """Return one part of a formula as a MathML element."""
    if kind == "root":
        return f"<msqrt>{_row(parts(text))}</msqrt>"
    if kind == "space":
        return '<mspace width="0.25em"/>'
    text = escape(_SIGNS.get(text, (text,))[0])
    if kind == "name":
        symbol, index = map(escape, _split(text))
        return f"<msub><mi>{symbol}</mi><mi>{index}</mi></msub>" if index else f"<mi>{symbol}</mi>"
    if text in "()[]":  # without a mathematics font, browsers stretch brackets too far
        return f'<mo stretchy="false">{text}</mo>'
    tag = {"number": "mn", "function": "mi", "words": "mtext"}.get(kind, "mo")
    return f"<{tag}>{text}</{tag}>"
