"""The formulas of steps as TeX, for Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import starmap

_FUNCTIONS = frozenset({"tanh", "exp", "max", "softmax", "mask", "split", "rotate", "GRU"})
_WORDS = frozenset(
    {"sum", "of", "the", "row", "rows", "and", "times", "mean", "square", "variance"}
)
_SIGNS = {
    "*": r"\odot",
    "⊙": r"\odot",
    "·": r"\cdot",
    "∞": r"\infty",
    "Φ": r"\Phi",
    "…": r"\ldots",
    "pi": r"\pi",
}
_PARTS = re.compile(
    r"\^(?P<power>T|\d|)|sqrt\((?P<root>[^()]*)\)|(?P<number>\d+(?:\.\d+)?(?:e[-+]?\d+)?)"
    r"|(?P<name>[^\W\d_]\w*|[∞…])|(?P<space>\s+)|(?P<operator>_\w*|.)"
)
_ESCAPED = str.maketrans(
    {
        "\\": r"\backslash ",
        "^": r"\hat{}",
        "~": r"\sim ",
        "`": r"\grave{}",
        **{sign: rf"\{sign}" for sign in "{}$&#%_"},
    }
)


def tex(formula: str) -> str:
    r"""Return a formula as TeX: "scores = q K^T" as ``\mathit{scores} = q\ K^{\top}``."""
    return re.sub(r" {2,}", " ", "".join(starmap(_tex, _parts(formula)))).strip()


def _parts(formula: str) -> Iterator[tuple[str, str]]:
    """Yield the parts of a formula, each with its kind; a root's text is what stands under it."""
    # These signs make their own room.
    tight = re.sub(r"\s*([=+/*⊙·,;]|(?<=\s)-)\s+", r"\1", formula)
    for found in _PARTS.finditer(tight):
        kind = found.lastgroup or ""
        text = found[kind]
        if text in _FUNCTIONS:
            kind = "function"
        elif kind == "name" and (text in _WORDS or not (text.isascii() or text in _SIGNS)):
            kind = "words"
        yield kind, text


def _tex(kind: str, text: str) -> str:
    if text in _SIGNS:
        return f"{_SIGNS[text]} "
    if kind == "root":
        return rf"\sqrt{{{''.join(starmap(_tex, _parts(text)))}}} "
    if kind == "name":
        return _symbol(text)
    if kind == "power":
        return r"^{\top} " if text == "T" else f"^{{{text}}} "
    if kind == "words":
        return rf"\text{{{text}}}"
    if kind == "function":
        known = text in {"tanh", "exp", "max"}
        return f"\\{text} " if known else rf"\operatorname{{{text}}}"
    return r"\ " if kind == "space" else text.translate(_ESCAPED)


def _symbol(name: str) -> str:
    """Return a symbol with its index: Wq is W with q, context_1 is context with 1."""
    found = re.fullmatch(r"([Wbd])([a-z0-9])(?:_(.+))?|([^_]+)_(.+)", name)
    letter, index = name, ""
    if found is not None:
        first, *indices = found.group(1, 2, 3, 5)
        letter = first or found[4]
        index = ",".join(filter(None, indices)).replace("_", " ")
    symbol = letter if len(letter) == 1 else rf"\mathit{{{letter}}}"
    below = index if re.fullmatch(r"\w|(\w,)?\d+", index) else rf"\text{{{index}}}"
    return f"{symbol}_{{{below}}}" if index else symbol
