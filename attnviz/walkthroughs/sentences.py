"""The sentences that walkthroughs carry with them, title and notes, in Korean.

A walkthrough and its file hold them in English, as they were written when it was made; a view that speaks Korean finds
each of them here by its wording.
"""

from __future__ import annotations

import re

_NOT_ITS_OWN = "not the model's own way: {changes}; it has no context of its own to compare with"
_NOT_ITS_OWN_KOREAN = "모델 자신의 방식이 아님: {changes}; 비교할 컨텍스트가 모델에 없음"

KOREAN = {
    "{model}: layer {layer}, head {head}, the query “{query}”": "{model}: 층 {layer}, 헤드 {head}, 쿼리 “{query}”",
    "{model}: layer {layer}, head {head}, all words": "{model}: 층 {layer}, 헤드 {head}, 모든 단어",
    "{model}: layer {layer}, all heads, the query “{query}”": "{model}: 층 {layer}, 모든 헤드, 쿼리 “{query}”",
    "{model}: layer {layer}, all heads, all words": "{model}: 층 {layer}, 모든 헤드, 모든 단어",
    "Attention by hand: a decoder's state and four states of the encoder":
        "손으로 계산하는 어텐션: 디코더의 상태 하나와 인코더의 상태 넷",
    "the encoder's states are keys and values alike": "인코더의 상태가 키이면서 동시에 밸류임",
    "what was concatenated goes to the decoder": "이어 붙인 벡터는 디코더로 들어감",
    "Self-attention by hand: {n} tokens, {d_model} wide, to queries, keys and values {d_k} wide":
        "손으로 계산하는 셀프 어텐션: 너비 {d_model}인 토큰 {n}개에서 너비 {d_k}인 쿼리, 키, 밸류로",
    "a batch of one sentence: weights of shape {weights}, output of shape {output}":
        "문장 하나로 된 배치: 가중치의 모양 {weights}, 출력의 모양 {output}",
    "Exercise {seed}: one query and {n} keys": "연습 문제 {seed}: 쿼리 하나와 키 {n}개",
    "small whole numbers, drawn from seed {seed}": "시드 {seed}에서 뽑은 작은 정수",
    "Attention, from numbers typed by hand": "직접 넣은 수로 계산하는 어텐션",
    "no values are given: the calculation ends at the weights": "밸류가 주어지지 않음: 계산은 가중치에서 끝남",
    "random weights: they show how attention is computed, not what a model has learned":
        "무작위 가중치: 모델이 배운 것이 아니라, 어텐션을 어떻게 계산하는지를 보여 줌",
    "each row is the step that says its word": "각 행은 그 행의 단어를 말하는 단계임",
    "each row is the step that says its token": "각 행은 그 행의 토큰을 말하는 단계임",
    "each column is what the decoder has read: its start, then the words said before":
        "각 열은 디코더가 읽은 것: 시작 표시, 그다음은 앞에서 말한 단어들",
    "each column is what the decoder has read: its start, then the tokens said before":
        "각 열은 디코더가 읽은 것: 시작 표시, 그다음은 앞에서 말한 토큰들",
    "{y} is the vector of the word said before; with the context beside it, it goes to the decoder":
        "{y}: 바로 앞에서 말한 단어의 벡터. 컨텍스트와 나란히 디코더로 들어감",
    "no single map makes {names} (rotary positions, or a scaling, may come after it): they are taken as attention was "
    "given them":
        "{names}: 행렬 하나로 만들어지지 않음 (회전 위치 인코딩이나 스케일이 뒤따를 수 있음). 받은 값 그대로 씀",
    "no single map makes {names} (rotary positions, or a scaling, may come after it): it is taken as attention was "
    "given it":
        "{names}: 행렬 하나로 만들어지지 않음 (회전 위치 인코딩이나 스케일이 뒤따를 수 있음). 받은 값 그대로 씀",
    "the layer looks twice: back at what was said, then across at the other sentence, in the grids named cross":
        "이 층은 두 번 봄: 먼저 앞에서 말한 것을, 그다음 다른 문장을 봄 (이름에 cross가 붙은 표)",
    "the output map, {shape} numbers, is left out": "출력 행렬(수 {shape}개)은 생략함",
    "input truncated: {n} of {total} words": "입력을 자름: 단어 {total}개 가운데 {n}개",
    "input truncated: {n} of {total} tokens": "입력을 자름: 토큰 {total}개 가운데 {n}개",
    "target truncated: {n} of {total} tokens": "말할 문장을 자름: 토큰 {total}개 가운데 {n}개",
    "stopped after {n} tokens: it had not come to an end": "토큰 {n}개에서 멈춤: 문장이 아직 끝나지 않았음",
    "read as unknown words: {words}": "모르는 단어로 읽음: {words}",
    "the two sentences run together: this model puts no token between them":
        "두 문장이 이어져 있음: 이 모델은 그 사이에 토큰을 넣지 않음",
    **{
        _NOT_ITS_OWN.replace("{changes}", english): _NOT_ITS_OWN_KOREAN.replace("{changes}", korean)
        for english, korean in (
            ("scores are {score} with weights drawn from seed {seed}, and what comes after each word is hidden",
             "스코어는 {score} (가중치는 시드 {seed}에서 뽑음), 각 단어의 뒤는 가림"),
            ("scores are {score}, and what comes after each word is hidden", "스코어는 {score}, 각 단어의 뒤는 가림"),
            ("scores are {score} with weights drawn from seed {seed}",
             "스코어는 {score} (가중치는 시드 {seed}에서 뽑음)"),
            ("scores are {score}", "스코어는 {score}"),
            ("what comes after each word is hidden", "각 단어의 뒤는 가림"),
        )
    },
}  # fmt: skip
"""Each sentence with holes for what differs, and the same in Korean; the first that fits is meant."""


def translated(sentence: str, language: str) -> str:
    """The sentence in a language of `attnviz.walkthroughs.texts.LANGUAGES`; one that nobody knows stays as it is."""
    if language == "ko":
        for english, korean in KOREAN.items():
            pattern = re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>.+)", re.escape(english))
            match = re.fullmatch(pattern, sentence, re.DOTALL)
            if match is not None:
                found = match.groupdict()
                listed = {"names": found["names"].replace(" and ", ", ")} if "names" in found else {}
                return korean.format(**found | listed)
    return sentence
