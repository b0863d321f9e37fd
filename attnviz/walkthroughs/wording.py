"""What every view of a walkthrough says in words: whose calculation it is, how it was checked, what its signs mean."""

from __future__ import annotations

from attnviz.attention import Receipt
from attnviz.text.display import visible
from attnviz.walkthroughs.record import Walkthrough
from attnviz.walkthroughs.sentences import translated

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
        "beyond": "; the last colour is for all numbers farther from 0",
        "sharing": "; cells that share a point show the number farthest from 0",
        "limits": "colours to {limit}",
        "clipped": "colours to {limit}, farthest {largest}",
        "pooled": "{rows} x {columns} cells a point",
        "upright": "{shape}, drawn upright",
        "across": "{shape}, used as {name}",
        "products": "matrices side by side, as in q K^T, are multiplied",
        "cells": "; ⊙ multiplies cell by cell",
        "signs": "{matrix} between matrices is the matrix product, as in q Kᵀ",
        "ascii": "Korean needs a terminal that knows Unicode: this is English",
        "same": "recomputed {own} is exactly the model's own",
        "near": "recomputed {own} is {difference} from the model's own",
        "from input": " ({difference} from the input on)",
        "model": "no number of this model's own to compare with",
        "hand": "no model to compare with",
        "step": "step {n} of {total}",
        "lines": "lines {first}-{last} of {n}, more: ↑ ↓",
        "keys": "next →, back ←, first Home, last End, quit q",
        "short step": "step {n} of {total}",
        "short lines": "lines {first}-{last} of {n} ↑ ↓",
        "short keys": "next →, back ←, quit q",
        "shorter step": "step {n}/{total}",
        "shorter lines": "{first}-{last} of {n} ↑ ↓",
        "shorter keys": "next →, back ←, quit q",
        "shortest step": "{n}/{total}",
        "shortest lines": "↑ ↓",
        "shortest keys": "→ ← q",
    },
    "ko": {
        "layer": "층 {n}",
        "head": "헤드 {n}",
        "counted": "{where} (0부터 셈)",
        "query is": "쿼리: {name}",
        "row": "{n}행",
        "number": "{n}번 수",
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
        "beyond": "; 색의 끝보다 먼 수는 모두 마지막 색",
        "sharing": "; 점 하나에 여러 칸이면 0에서 가장 먼 수의 색",
        "limits": "색의 끝 {limit}",
        "clipped": "색의 끝 {limit}, 가장 먼 수 {largest}",
        "pooled": "점 하나에 {rows} x {columns}칸",
        "upright": "{shape}, 세워서 그림",
        "across": "{shape}, {name}로 씀",
        "products": "q K^T처럼 나란히 쓴 행렬은 행렬곱",
        "cells": "; ⊙는 칸마다 곱하기",
        "signs": "행렬 사이의 {matrix}는 행렬곱(식에서는 q Kᵀ처럼 나란히 씀)",
        "same": "다시 계산한 {own}: 모델 자신의 값과 정확히 같음",
        "near": "다시 계산한 {own}: 모델 자신의 값과의 차이 {difference}",
        "from input": " (입력부터는 {difference})",
        "model": "이 모델에서 비교할 값이 없음",
        "hand": "직접 넣은 수: 비교할 모델이 없음",
        "step": "단계 {n}/{total}",
        "lines": "{n}줄 중 {first}-{last}, 더 보기 ↑ ↓",
        "keys": "다음 →, 이전 ←, 처음 Home, 끝 End, 나가기 q",
        "short step": "단계 {n}/{total}",
        "short lines": "{n}줄 중 {first}-{last} ↑ ↓",
        "short keys": "다음 →, 이전 ←, 나가기 q",
        "shorter step": "{n}/{total}",
        "shorter lines": "{first}-{last}/{n} ↑ ↓",
        "shorter keys": "다음 →, 이전 ←, q",
        "shortest step": "{n}/{total}",
        "shortest lines": "↑ ↓",
        "shortest keys": "→ ← q",
        "verified": "검증됨: 층 {n}개에서 최대 차이 {difference}",
    },
}


def say(what: str, language: str, **fields: object) -> str:
    """One of the phrases, in a language of `attnviz.walkthroughs.steps.LANGUAGES`."""
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
    parts += [f"“{visible(walk.text)}”"] if walk.text else []
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
