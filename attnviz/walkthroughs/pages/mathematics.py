r"""The formulas of steps as mathematics: TeX for LaTeX and Markdown, MathML for web pages, both from the same parts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import Literal

Kind = Literal["name", "number", "operator", "function", "words", "power", "root", "space"]
_FUNCTIONS = frozenset({"tanh", "exp", "max", "softmax", "mask", "split", "rotate", "GRU"})
_WORDS = frozenset({"sum", "of", "the", "row", "rows", "and", "times", "mean", "square", "variance"})
_SIGNS = {"*": ("⊙", r"\odot"), "⊙": ("⊙", r"\odot"), "·": ("·", r"\cdot"), "∞": ("∞", r"\infty"), "Φ": ("Φ", r"\Phi"),
          "…": ("…", r"\ldots"), "pi": ("π", r"\pi")}  # fmt: skip
_PARTS = re.compile(r"\^(?:T|\d)|sqrt\(([^()]*)\)|\d+(?:\.\d+)?(?:e[-+]?\d+)?|[^\W\d]\w*|\s+|.")
_GREEK = frozenset({"pi", "Φ", "∞", "…"})


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a formula."""

    kind: Kind  # what it is
    text: str  # the part itself; of a power what stands above the part before it
    inner: tuple[Part, ...] = ()  # what stands under a root


def parts(formula: str) -> Iterator[Part]:
    """A formula as steps have it, such as "scores = q K^T / sqrt(8)", part by part."""
    for found in _PARTS.finditer(re.sub(r"\s*([=+/*⊙·,;]|(?<=\s)-)\s+", r"\1", formula)):  # these make their own room
        text = found[0]
        if found[1] is not None:
            yield Part("root", text, tuple(parts(found[1])))
        elif text.startswith("^"):
            yield Part("power", text[1:])
        elif text.isspace():
            yield Part("space", " ")
        elif text[0].isdigit():
            yield Part("number", text)
        elif text in _FUNCTIONS:
            yield Part("function", text)
        elif text in _WORDS or (text[0].isalpha() and not text.isascii() and text not in _SIGNS):
            yield Part("words", text)
        elif text[0].isalpha() or text in _GREEK:
            yield Part("name", text)
        else:
            yield Part("operator", text)


def _split(name: str) -> tuple[str, str]:
    """A symbol and its index: Wq is W with q, context_1 is context with 1."""
    found = re.fullmatch(r"([Wbd])([a-z0-9])(?:_(.+))?|([^_]+)_(.+)", name)
    if found is None:
        return name, ""
    letter, *indices = found.group(1, 2, 3, 5)
    return letter or found[4], ",".join(filter(None, indices)).replace("_", " ")


_ESCAPED = {"\\": r"\backslash ", "^": r"\hat{}", "~": r"\sim ", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&",
            "#": r"\#", "%": r"\%", "_": r"\_", "`": r"\grave{}"}  # fmt: skip


def tex(formula: str) -> str:
    r"""A formula as TeX: "scores = q K^T" as ``\mathit{scores} = q\ K^{\top}``."""
    return re.sub(r" {2,}", " ", "".join(map(_tex, parts(formula)))).strip()


def _tex(part: Part) -> str:
    text = part.text
    if part.kind == "root":
        return rf"\sqrt{{{''.join(map(_tex, part.inner))}}} "
    if part.kind == "name" and text not in _SIGNS:
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
    return written.get(part.kind) or "".join(_ESCAPED.get(character, character) for character in text)


def mathml(formula: str) -> str:
    """A formula as MathML, which browsers draw by themselves; a long list of grids can go on in a new line."""
    return " ".join(f"<math>{_row(tuple(parts(part)))}</math>" for part in re.split(r"(?<=;) ", formula))


def _row(row: tuple[Part, ...]) -> str:
    drawn: list[str] = []
    for part in row:
        if part.kind == "power" and drawn:
            above = "<mo>&#x22A4;</mo>" if part.text == "T" else f"<mn>{part.text}</mn>"
            drawn.append(f"<msup>{drawn.pop()}{above}</msup>")
        else:
            drawn.append(_element(part))
    return f"<mrow>{''.join(drawn)}</mrow>"


def _element(part: Part) -> str:
    text = escape(_SIGNS.get(part.text, (part.text,))[0])
    if part.kind == "root":
        return f"<msqrt>{_row(part.inner)}</msqrt>"
    if part.kind == "space":
        return '<mspace width="0.25em"/>'
    if part.kind == "name":
        symbol, index = map(escape, _split(text))
        return f"<msub><mi>{symbol}</mi><mi>{index}</mi></msub>" if index else f"<mi>{symbol}</mi>"
    tag = {"number": "mn", "function": "mi", "words": "mtext"}.get(part.kind, "mo")
    return f"<{tag}>{text}</{tag}>"
