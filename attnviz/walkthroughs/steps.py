"""The steps of attention in words: a title, a formula and a sentence for each, in English and in Korean."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import Formatter
from typing import Any, Protocol, runtime_checkable

from attnviz.errors import SelectionError
from attnviz.walkthroughs.step_texts import TEXTS

LANGUAGES = ("en", "ko")
_COUNTED = ("gain", "shift", "norm", "residual")
"""Grids whose numbers are no heads."""
_NUMBERED = {"en": (", head {number}", " {number}"), "ko": (", 헤드 {number}", " {number}")}
_ACROSS = {"en": ", cross attention", "ko": ", 교차 어텐션"}
_COUNTED_ROWS = {"en": "sum of {n} rows of {shape}", "ko": "{shape} 행 {n}개의 합"}
_TIMES = {"en": "{n} times {shape}", "ko": "{shape} {n}개"}
_MANY = 3
"""Operands of one shape, from which on they are counted and not listed."""


@dataclass(frozen=True, slots=True)
class Explained:
    """What a step or a grid is.

    Attributes:
        title: a few words.
        formula: in the field's symbols; empty for what is given.
        sentence: one sentence for somebody who sees it for the first time.
    """

    title: str
    formula: str
    sentence: str


@runtime_checkable
class Stepped(Protocol):
    """A step, as `attnviz.walkthroughs.record.Step` is one: the texts do not import it, they stand beside it."""

    @property
    def result(self) -> str:
        """The grid that it makes."""

    @property
    def operation(self) -> Any:
        """How."""

    @property
    def operands(self) -> tuple[str, ...]:
        """What from."""

    @property
    def number(self) -> float | None:
        """What it needs beside them."""


@runtime_checkable
class Walked(Protocol):
    """A calculation, as `attnviz.walkthroughs.record.Walkthrough` is one."""

    @property
    def grids(self) -> Mapping[str, Any]:
        """All numbers by name."""

    @property
    def steps(self) -> Sequence[Any]:
        """How each of those that were computed was made."""


def explained(name: str, language: str = "en") -> Explained:
    """What a step or a grid with this name is; a name that is not known explains itself.

    Args:
        name: as in `attnviz.walkthroughs.record`, such as ``scores`` or ``Wq``; ``Wq_3`` is that of head 3,
            ``Wq_cross_3`` of head 3 of cross attention where a layer has both.
        language: one of `LANGUAGES`.

    Raises:
        SelectionError: there is no such language.
    """
    if language not in LANGUAGES:
        raise SelectionError(f"there is no language {language!r}: choose one of {', '.join(LANGUAGES)}")
    base, _, number = name.rpartition("_")
    known, more = TEXTS.get(name), ""
    if known is None:
        base, more = (
            (base, _NUMBERED[language][base in _COUNTED].format(number=number)) if number.isdigit() else (name, "")
        )
        of = base.removesuffix("_cross")
        known, more = TEXTS.get(of), (_ACROSS[language] if of != base else "") + more
    if known is None:
        return Explained(title=name.replace("_", " "), formula="", sentence="")
    formula, english, korean = known
    title, sentence = korean if language == "ko" else english
    return Explained(title=title + more, formula=formula, sentence=sentence)


def formulated(
    step: Stepped, instead: Mapping[str, str] | None = None, *, language: str = "en", walk: Walked | None = None
) -> str:
    """The formula of a step with the names of its own grids, such as "scores = q K^T".

    Args:
        step: the step.
        instead: what to write for some of its operands.
        language: of the few words in it.
        walk: whose step it is: a factor is only written as a root where that is of the width of its queries and keys.
    """
    names = [(instead or {}).get(name, name) for name in step.operands]
    turned = [f"{name}^T" for name in names]
    return f"{step.result} = {_filled(step, names, turned, language, _written(step, walk))}"


def shaped(walk: Walked, step: Stepped, *, language: str = "en") -> str:
    """The formula of a step with the shapes put in, such as "(1, 4) = (1, 8) (8, 4)"; its few words in a language."""
    shapes = [walk.grids[name].values.shape for name in step.operands]
    turned = [_shape(shape[::-1]) for shape in shapes]
    result = _shape(walk.grids[step.result].values.shape)
    if step.operation == "sum":
        return f"{result} = {_COUNTED_ROWS[language].format(n=shapes[0][0], shape=_shape((1, shapes[0][1])))}"
    if step.operation == "concatenate" and len(shapes) > _MANY and len(set(shapes)) == 1:
        return f"{result} = [{_TIMES[language].format(n=len(shapes), shape=_shape(shapes[0]))}]"
    return f"{result} = {_filled(step, list(map(_shape, shapes)), turned, language, _written(step, walk))}"


def factor(walk: Walked, step: Stepped) -> tuple[str, float]:
    """How to write the factor of a step: ("/ sqrt", d) if it is 1 / sqrt(d), of queries and keys d wide; else as it is.

    An eighth is 1 / sqrt(64), but where nothing is 64 wide, 64 would say nothing.
    """
    number = 1.0 if step.number is None else step.number
    made = next((one for one in walk.steps if one.result == step.operands[0] and one.operation == "dot"), None)
    how, root = scale(number)
    if made is not None and how != "*" and root == walk.grids[made.operands[0]].values.shape[1]:
        return how, root
    return "*", number


def _written(step: Stepped, walk: Walked | None) -> tuple[str, float]:
    if walk is not None and step.operation == "times":
        return factor(walk, step)
    return scale(1.0 if step.number is None else step.number)


def scale(number: float) -> tuple[str, float]:
    """How to write a factor: ("/ sqrt", 64.0) for an eighth, which is 1 over the root of 64; else ("*", the factor)."""
    if number > 0:
        width = round(1 / number**2)
        if width > 1 and math.isclose(number, 1 / math.sqrt(width), rel_tol=1e-7):
            return "/ sqrt", float(width)
    return "*", number


def _filled(
    step: Stepped, names: Sequence[str], turned: Sequence[str], language: str, written: tuple[str, float]
) -> str:
    """The formula of a step with its operands put in, as they are and with rows and columns exchanged."""
    if step.operation in {"add", "concatenate"}:
        named = list(names) if len(names) <= 2 * _MANY else [*names[:2], "…", names[-1]]
        return " + ".join(named) if step.operation == "add" else f"[{'; '.join(named)}]"
    fields = dict(zip("abcde", names, strict=False)) | dict(zip("ABCDE", turned, strict=False))
    number = 1.0 if step.number is None else step.number
    how, value = written
    fields |= {"number": f"{number:g}", "factor": f"{how}({value:g})" if how != "*" else f"* {value:.6g}"}
    formula = (_FORMULAS | (_KOREAN if language == "ko" else {}))[step.operation]
    return "".join(part.format(**fields) for part in formula if set(_holes(part)) <= set(fields))


def _holes(part: str) -> list[str]:
    return [name for _, name, _, _ in Formatter().parse(part) if name]


def _shape(shape: Sequence[int]) -> str:
    return f"({', '.join(map(str, shape))})"


_FORMULAS: dict[str, tuple[str, ...]] = {
    "map": ("{a} {b}", " + {c}"),
    "dot": ("{a} {B}",),
    "general": ("{a} {b} {C}",),
    "additive": ("tanh({a} {C} + {b} {D}) {E}",),
    "times": ("{a} {factor}",),
    "softcap": ("{number} tanh({a} / {number})",),
    "mask": ("mask({a})",),
    "softmax": ("softmax({a}", " and {b}", ")"),
    "weigh": ("{A} * {b}",),
    "sum": ("sum of the rows of {a}",),
    "norm": ("({a} - mean) / sqrt(variance + {number})", " * {b}", " + {c}"),
    "rms_norm": ("{a} / sqrt(mean square + {number})", " * {b}"),
    "relu": ("max(0, {a})",),
    "gelu": ("{a} Φ({a})",),
    "gelu_tanh": ("{a} / 2 * (1 + tanh(sqrt(2 / pi) ({a} + 0.044715 {a}^3)))",),
    "silu": ("{a} / (1 + exp(-{a}))",),
    "product": ("{a} * {b}",),
    "row": ("row {number} of {a}",),
}
"""Each operation with its operands a, b, c, ..., in capitals where rows and columns are exchanged.

A part is left out where its operand is not there.
"""

_KOREAN: dict[str, tuple[str, ...]] = {
    "sum": ("{a}의 행의 합",),
    "norm": ("({a} - 평균) / sqrt(분산 + {number})", " * {b}", " + {c}"),
    "rms_norm": ("{a} / sqrt(제곱의 평균 + {number})", " * {b}"),
    "row": ("{a}의 {number}행",),
}
"""Those that have words in them."""
