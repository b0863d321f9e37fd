"""Notes in words: what a record's notes mean, in English and in Korean."""

from __future__ import annotations

from collections.abc import Mapping

from attnviz.attention import NO_RECEIPT, SOFTMAX, Note, Receipt
from attnviz.text.display import visible
from attnviz.text.phrase import entries

# by a note's code its sentence in English and Korean, with places for fields
Templates = Mapping[str, tuple[str, str]]
NOTES: Templates = {
    code: (english, korean)
    for code, english, korean in entries("""
text | {text} | {text}
random_weights | random weights: they show how attention is computed, not what a model has learned
    | 무작위 가중치: 모델이 배운 것이 아니라, 어텐션을 어떻게 계산하는지를 보여 줌
row_generates_word | each row is the step that generates its word | 각 행은 그 행의 단어를 생성하는 단계임
row_generates_token | each row is the step that generates its token | 각 행은 그 행의 토큰을 생성하는 단계임
column_read_words | each column is what the decoder has read: its start, then the words generated before
    | 각 열은 디코더가 읽은 것: 시작 표시, 그다음은 앞에서 생성한 단어들
column_read_tokens | each column is what the decoder has read: its start, then the tokens generated before
    | 각 열은 디코더가 읽은 것: 시작 표시, 그다음은 앞에서 생성한 토큰들
input_truncated_words | input truncated: {kept:,} of {total:,} words | 입력을 자름: 단어 {total:,}개 가운데 {kept:,}개
input_truncated_tokens | input truncated: {kept:,} of {total:,} tokens | 입력을 자름: 토큰 {total:,}개 가운데 {kept:,}개
target_truncated | target truncated: {kept:,} of {total:,} tokens
    | 생성할 문장을 자름: 토큰 {total:,}개 가운데 {kept:,}개
generation_stopped | stopped after {n:,} tokens: it had not come to an end
    | 토큰 {n:,}개에서 멈춤: 문장이 아직 끝나지 않았음
generation_cut | cut: the keyboard stopped it after {n:,} tokens | 중단됨: 토큰 {n:,}개에서 키보드로 멈춤
positions_end | stopped after {n:,} tokens, where the model's positions end
    | 토큰 {n:,}개에서 멈춤: 모델의 위치가 거기서 끝남
reads_no_more | stopped after {n:,} tokens: {why} | 토큰 {n:,}개에서 멈춤: {why}
sampled | sampled: {how} | 표본 추출: {how}
syllables_broken | the vocabulary lacks Korean syllables: it has only their letters or bytes ({syllable} is {n} tokens)
    | 어휘에 없는 한글 음절은 낱글자나 바이트로 나누어 읽음 ({syllable}: 토큰 {n}개)
reads_bytes | this module came without a tokenizer: it reads the bytes of the text
    | 토크나이저 없이 주어진 모듈: 문장의 바이트를 읽음
never_saw | built unlike all sentences that this model was trained on: what it generates may be wrong
    | 이 모델이 배운 어느 문장과도 짜임이 다름: 생성한 문장이 틀릴 수 있음
unknown_words | read as unknown words: {words} | 모르는 단어로 읽음: {words}
sentences_run_together | the two sentences run together: this model puts no token between them
    | 두 문장이 이어져 있음: 이 모델은 그 사이에 토큰을 넣지 않음
vocabulary_smaller | the tokenizer has {pieces:,} tokens, the model {vectors:,} word vectors: they may not belong
    together
    | 토크나이저의 토큰은 {pieces:,}개, 모델의 단어 벡터는 {vectors:,}개: 서로 맞지 않을 수 있음
sinks | heads have sinks: a row sums to less than 1 where its head looks at nothing
    | 헤드에 싱크가 있음: 헤드가 아무것도 보지 않으면 행의 합이 1보다 작음
dropout | dropout was on: these are the weights before it set some of them to zero
    | 드롭아웃이 켜져 있음: 일부를 0으로 만들기 전의 가중치임
tokens_shuffled | its tokens are shuffled | 토큰의 순서를 섞었음
words_merged | word pieces merged: to a word the sum over its pieces, from it the mean
    | 단어 조각을 합침: 단어로 가는 가중치는 합, 단어에서 나오는 가중치는 평균
specials_hidden | special tokens hidden ({tokens}); rows not renormalised: what they lack went there
    | 특수 토큰을 숨김 ({tokens}); 행을 다시 정규화하지 않음: 모자란 만큼은 그 토큰들로 갔음
pooled | pooled: a cell is {cell} x {wide} of {n_queries:,} x {n_keys:,} tokens (to a group the sum, from it the mean)
    | 묶음: 한 칸이 토큰 {cell} x {wide}개, 모두 {n_queries:,} x {n_keys:,}개 (묶음으로는 합, 묶음에서는 평균)
part | a part: queries {query_first:,} to {query_last:,} of {query_all:,}, keys {key_first:,} to {key_last:,} of
    {key_all:,} (counted from 0)
    | 일부: 쿼리 {query_all:,}개 가운데 {query_first:,}~{query_last:,}, 키 {key_all:,}개 가운데
    {key_first:,}~{key_last:,} (0부터 셈)
rounded | the rows sum to 1 only roughly: the file's numbers were rounded
    | 행의 합이 대략 1임: 파일의 수가 반올림되어 있음
""")
}
"""The notes of records. A feature has more, for what it alone does."""


def sentence(note: Note, language: str = "en", templates: Templates = NOTES) -> str:
    """A note in words, in English or in Korean (``en``, ``ko``); a code without a template, as it is."""
    fields = {
        name: visible(value) if isinstance(value, str) else value for name, value in note.fields
    }
    if note.code not in templates:
        return visible(note.code) + "".join(
            f", {visible(name)}: {value}" for name, value in fields.items()
        )
    english, korean = templates[note.code]
    return (korean if language == "ko" else english).format(**fields)


def proof(receipt: Receipt | None, language: str = "en") -> str:
    """The receipt in one line, as every view prints it: how far captured weights are from the model's own at most."""
    if language != "ko":
        return str(receipt or NO_RECEIPT)
    if receipt is None:
        return "검증되지 않음: 이 기록에는 검증 정보가 없음"
    if receipt.native == SOFTMAX:
        return f"검증됨: 층 {len(receipt.layers)}개에서 모델 자신의 소프트맥스"
    largest = receipt.max_difference
    sums = f" (각 행의 무작위 합 {receipt.sums}개로)" if receipt.sums else ""
    return f"검증됨: 층 {len(receipt.layers)}개에서 최대 차이 {f'{largest:.1e}' if largest else '0'}{sums}"
