"""What every view of a walkthrough says: whose calculation it is, which cell is done by hand, how it was checked."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from attnviz.analysis.spelled import spelled
from attnviz.attention import Receipt
from attnviz.errors import SelectionError
from attnviz.text.sentences import translated
from attnviz.text.steps import formulated
from attnviz.walk import Grid, Step, Walkthrough

Blanks = frozenset[tuple[str, int, int]]
"""Cells that a learner fills in: grid, row, column."""

BLANK = "____"

NO_BLANKS: Blanks = frozenset()

BY_KEY = ("scores", "scaled", "bias", "softcap", "mask", "softmax", "alignment")
"""Steps that make a number or a vector for each key of a query."""

WORDS = {
    "en": {
        "layer": "layer {n}",
        "head": "head {n}",
        "counted": "{where} (counted from 0)",
        "query is": "query: {name}",
        "row": "row {n}",
        "number": "number {n}",
        "key": "key",
        "key vector": "key vector",
        "scores": "score",
        "scaled": "scaled",
        "bias": "with bias",
        "softcap": "capped",
        "mask": "masked",
        "softmax": "weight",
        "alignment": "alignment vector",
        "numbers": "{name} ({n} numbers)",
        "sum": "sum of {n}",
        "more rows": "... {n} more rows",
        "by key": "Key by key:",
        "weights sum": "The weights sum to {total}",
        "rest": "; {rest} is for looking at nothing",
        "shade": "how far a number is from 0, in its own grid",
        "colours": "each matrix has its own colours: the palest is 0, and where there are numbers below 0, these are "
        "blue and those above are red",
        "ascii": "Korean needs a terminal that knows Unicode: this is English",
        "same": "recomputed {own} is exactly the model's own",
        "near": "recomputed {own} is {difference} from the model's own",
        "from input": " ({difference} from the input on)",
        "model": "no number of this model's own to compare with",
        "hand": "numbers given by hand: no model to compare with",
        "step": "step {n} of {total}",
        "lines": "lines {first}-{last} of {n}, more: ↑ ↓",
        "keys": "next →, back ←, first Home, last End, quit q",
    },
    "ko": {
        "layer": "층 {n}",
        "head": "헤드 {n}",
        "counted": "{where} (0부터 셈)",
        "query is": "쿼리: {name}",
        "row": "{n}행",
        "number": "{n}번째 수",
        "key": "키",
        "key vector": "키 벡터",
        "scores": "스코어",
        "scaled": "스케일",
        "bias": "편향 더함",
        "softcap": "소프트 캡",
        "mask": "마스크",
        "softmax": "가중치",
        "alignment": "정렬 벡터",
        "numbers": "{name} (수 {n}개)",
        "sum": "{n}개의 합",
        "more rows": "... {n}줄 더 있음",
        "by key": "키마다 보기:",
        "weights sum": "가중치의 합: {total}",
        "rest": "; 아무것도 보지 않는 몫: {rest}",
        "shade": "각 표 안에서 수가 0에서 얼마나 먼지",
        "colours": "행렬마다 색의 기준이 다름: 가장 옅은 색이 0이고, 음수가 있으면 음수는 파랑, 양수는 빨강",
        "same": "다시 계산한 {own}: 모델 자신의 값과 정확히 같음",
        "near": "다시 계산한 {own}: 모델 자신의 값과의 차이 {difference}",
        "from input": " (입력부터는 {difference})",
        "model": "이 모델에서 비교할 값이 없음",
        "hand": "직접 넣은 수: 비교할 모델이 없음",
        "step": "단계 {n}/{total}",
        "lines": "{n}줄 중 {first}-{last}, 더 보기 ↑ ↓",
        "keys": "다음 →, 이전 ←, 처음 Home, 끝 End, 나가기 q",
        "verified": "검증됨: 층 {n}개에서 최대 차이 {difference}",
    },
}


def say(what: str, language: str, **fields: object) -> str:
    """One of the phrases, in a language of `attnviz.text.steps.LANGUAGES`."""
    return WORDS[language][what].format(**fields)


def title_line(walk: Walkthrough, language: str) -> str:
    """What is calculated, in one line."""
    return translated(walk.title, language)


def note_lines(walk: Walkthrough, language: str) -> tuple[str, ...]:
    """What was done to the input, a sentence each."""
    return tuple(translated(note, language) for note in walk.notes)


def source_line(walk: Walkthrough, language: str) -> str:
    """Whose calculation it is: sentence, layer, head, query, and the model if the title does not name it."""
    places = [say(what, language, n=n) for what, n in (("layer", walk.layer), ("head", walk.head)) if n is not None]
    parts = [walk.model] if walk.model and walk.model not in walk.title else []
    parts += [f"“{walk.text}”"] if walk.text else []
    parts += [say("counted", language, where=", ".join(places))] if places else []
    name = query_name(walk)
    parts += [say("query is", language, name=f"{name} ({say('row', language, n=walk.query)})")] if name else []
    return " · ".join(parts)


def query_name(walk: Walkthrough) -> str:
    """The name of the one query that is walked; empty where there is none."""
    if walk.query is None:
        return ""
    for name in ("q", "x", "context"):
        grid = walk.grids.get(name)
        if grid is not None and len(grid.rows) == 1:
            return grid.rows[0]
    inputs = walk.grids.get("X")
    return inputs.rows[walk.query] if inputs is not None and walk.query < len(inputs.rows) else ""


def receipt_line(walk: Walkthrough, language: str) -> str:
    """How far the numbers are from the model's own, and how these were proved."""
    if walk.own is None or walk.difference is None:
        return say("model" if walk.model else "hand", language)
    if walk.difference:
        text = say("near", language, own=walk.own, difference=f"{walk.difference:.1e}")
    else:
        text = say("same", language, own=walk.own)
    if walk.from_input is not None:
        text += say("from input", language, difference=f"{walk.from_input:.1e}")
    return text if walk.receipt is None else f"{text}; {_proof(walk.receipt, language)}"


def _proof(receipt: Receipt, language: str) -> str:
    """The receipt in one line; in English it is the receipt's own."""
    if language == "en":
        return str(receipt)
    largest = receipt.max_difference
    return say("verified", language, difference=f"{largest:.1e}" if largest else "0", n=len(receipt.layers))


def whole_formula(walk: Walkthrough) -> str:
    """The steps of attention in one line, such as "context = softmax(q K^T / sqrt(8)) V"."""
    text, written = "", ""
    for step in walk.steps:
        if step.name == "scores":
            written = formulated(step).partition(" = ")[2]
            text = f"scores = {written}"
        elif step.name in BY_KEY and written and step.operation != "weigh":
            inner = f"({written})" if step.operation == "times" and " + " in written else written
            written = formulated(step, {step.operands[0]: inner}).partition(" = ")[2]
            text = f"{step.result} = {written}"
        elif written and step.operation == "weigh":
            text = f"context = {written} {step.operands[1]}"
        elif written and step.name == "context":
            text = text if step.operation == "sum" else f"context = {written} {step.operands[1]}"
            break
    return re.sub(r"_\d+", "", text)  # of several heads all have the same


def chosen(walk: Walkthrough, names: Sequence[str] | None, first: int = 1) -> list[tuple[int, Step]]:
    """The steps with these names, from a step on, and the number that each has in the whole calculation, from 1.

    Raises:
        SelectionError: a name that no step has, or no step is left.
    """
    steps = list(enumerate(walk.steps, start=1))
    known = dict.fromkeys(step.name for step in walk.steps)
    for name in names or ():
        if name not in known:
            raise SelectionError(f"there is no step {name!r}: this calculation has {', '.join(known)}")
    found = [(number, step) for number, step in steps if names is None or step.name in names]
    if found and not 1 <= first <= found[-1][0]:
        raise SelectionError(f"there is no step {first} to begin at: the last one is {found[-1][0]}, counted from 1")
    return [(number, step) for number, step in found if number >= first]


def by_hand(walk: Walkthrough, step: Step, precision: int, language: str, blanks: Blanks) -> str:
    """The arithmetic of one telling cell of a step, with the cell's name; empty where it would fill in a blank."""
    if {grid for grid, _, _ in blanks} & {step.result, *step.operands}:
        return ""
    row, column = telling_cell(walk, step)
    grid = walk.grids[step.result]
    return f"{cell_name(step.result, grid, row, column, language)}: " + spelled(
        walk, step, row, column, precision, language=language
    )


def followed(walk: Walkthrough) -> Grid | None:
    """The weights of the one query that is followed; None where several are walked, or several heads."""
    made = [walk.grids[step.result] for step in walk.steps if step.operation == "softmax"]
    return made[0] if len(made) == 1 and len(made[0].values) == 1 else None


def telling_cell(walk: Walkthrough, step: Step) -> tuple[int, int]:
    """The row and column of the cell that tells most: where the weight, or else the number, is largest."""
    values = walk.grids[step.result].values
    weights = followed(walk)
    row = 0
    if weights is not None and step.name in BY_KEY:
        key = int(weights.values[0].argmax())
        if step.operation != "weigh":
            return 0, key
        row = key
    elif step.name in BY_KEY or step.name == "context":
        row = len(values) - 1  # the last query is the one that may see most
        made = next((walk.grids[one.result].values for one in walk.steps if one.operation == "softmax"), values)
        if step.name in BY_KEY and made.shape == values.shape:
            return row, int(made[row].argmax())
    finite = np.where(np.isfinite(values[row]), np.abs(values[row]), -1.0)
    return row, int(finite.argmax())


def cell_name(name: str, grid: Grid, row: int, column: int, language: str) -> str:
    """As "scores, love" or "alignment, love, number 3"."""
    parts = [name]
    if len(grid.values) > 1:
        parts.append(grid.rows[row] if grid.rows else say("row", language, n=row))
    parts.append(grid.columns[column] if grid.columns else say("number", language, n=column))
    return ", ".join(parts)
