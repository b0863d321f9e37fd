"""The words of every view of heads, in English and in Korean, and what all of them tell: samples, notes, proofs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from attnviz.attention import Note
from attnviz.heads.measures import rules_of
from attnviz.heads.record import HeadComparison, HeadProfile, Role
from attnviz.heads.roles import CONTROLS, TOO_FEW
from attnviz.heads.selection import HeadRole
from attnviz.text.notes import Templates, sentence
from attnviz.text.phrase import entries

SAMPLES = "sentences shipped with attnviz"  # what the sentences are called where none are given
TOO_NARROW = "~"  # before an interval that is not to be trusted
MARKS = {True: "●", False: "○"}  # before a role, a relation or a change: whether it is established
OWN = "sentences of its own language that it never saw"  # likewise of a trained home-built model
CLOSEST = 3  # so many roles are named that a head without one comes closest to
ALIKE = 4  # so many of the heads most like one are named
MINOR = {
    "relations_lost",
    "relations_in_one_half",
    "relations_uncounted",
    "relations_of_other_words",
}
"""Notes that stand neither on the first screen nor on the page of a comparison."""

TEXTS: Templates = {
    name: (english, korean)
    for name, english, korean in entries("""
layers_heads | {n_layers:layer} x {n_heads:head}, {kind} | 층 {n_layers}개 x 헤드 {n_heads}개, {kind}
mapped | {n_layers:layer} (downward) x {n_heads:head} (across), {kind}
    | 층 {n_layers}개(세로) x 헤드 {n_heads}개(가로), {kind}
encoder | bidirectional self-attention | 양방향 셀프 어텐션
decoder | causal self-attention | 마스크드(인과적) 셀프 어텐션
cross | cross-attention | 크로스 어텐션
corpus | {corpus}: {n_sentences:sentence}, {n_tokens:token}; special tokens kept
    | {corpus}: 문장 {n_sentences:,}개, 토큰 {n_tokens:,}개, 특수 토큰 포함
sentences shipped with attnviz | {n_sentences:,} sentences shipped with attnviz, {n_tokens:token}; special tokens kept
    | attnviz에 들어 있는 문장 {n_sentences:,}개, 토큰 {n_tokens:,}개, 특수 토큰 포함
sentences of its own language that it never saw | {n_sentences:,} sentences of its own language that it never saw,
    {n_tokens:token}; special tokens kept
    | 이 모델이 배운 언어로 된, 학습에 쓰지 않은 문장 {n_sentences:,}개, 토큰 {n_tokens:,}개, 특수 토큰 포함
no_role | no clear role | 뚜렷한 역할 없음
not_explanation | attention is not explanation: where a head looks does not say what the model makes of it
    | 어텐션은 설명이 아님: 헤드가 어디를 보는지는 모델이 그것으로 무엇을 하는지 말해 주지 않음
# pictures
found | A role is established for {n:,} of {n_heads:head} | 헤드 {n_heads:,}개 가운데 {n:,}개의 역할이 확인됨
found_none | No head has an established role ({n_heads:head}) | 헤드 {n_heads:,}개 가운데 역할이 확인된 것 없음
found_most | ; most often: {role} ({n:,}) | ; 가장 많은 역할: {role} ({n:,}개)
found_words | What each of {n_heads:head} looks at most in one sentence
    | 한 문장에서 헤드 {n_heads:,}개가 저마다 가장 많이 보는 단어
of_head | head {head} | 헤드 {head}
heads_from_0 | head, counted from 0 | 헤드 (0부터 셈)
layer | layer | 층
n_heads | heads | 헤드 수
cards | An example of each established role | 확인된 역할의 예
cards_unsure | An example of each role, none established | 역할별 예 하나씩 (확인된 역할 없음)
cards_links | The strongest links between words, of a head each | 단어 사이의 가장 강한 연결 (헤드마다 하나)
cards_more | " ({n:more role} not shown: less clear)" | " (덜 뚜렷한 역할 {n:,}개는 표시하지 않음)"
pattern_axes | rows are queries, columns are keys; colour: weight | 행은 쿼리, 열은 키; 색: 가중치
no_patterns | no patterns: {why} | 패턴 없음: {why}
no_example | no example: it is found in none of the sentences that controls were taken of
    | 예 없음: 대조값을 잰 문장에서는 나오지 않음
no_example_rows | no example: no sentence has {rows} rows that it is counted for
    | 예 없음: 이 지표에 세는 행이 {rows}개 이상인 문장이 없음
solid | solid: established, the score's 95 % interval lies above all that could rule the role out
    | 진한 색: 확인됨, 점수의 95 % 신뢰구간이 역할을 배제할 수 있는 모든 대조값보다 높음
hatched | hatched and pale: not established, since {why} | 빗금: 확인되지 않음 ({why})
resampled | intervals from resampling sentences | 신뢰구간은 문장을 다시 뽑아 구함
one_map_colour | the word that gets most of each head's weight, special tokens left out; colour: the mean weight it gets
    | 칸: 헤드의 가중치를 가장 많이 받는 단어, 특수 토큰 제외; 색: 그 단어가 받는 평균 가중치
head_does | Head {head} {role} | 헤드 {head}: {role}
head_may | Head {head}, not established: {role} | 헤드 {head}, 확인되지 않음: {role}
head_none | Head {head} has no clear role | 헤드 {head}: 뚜렷한 역할 없음
measures_title | measures with their 95 % intervals, and controls | 지표와 95 % 신뢰구간, 대조값
this_head | this head | 이 헤드
narrow | ~ too narrow: on real text fewer than 92 of 100 such intervals hold the mean
    | ~ 너무 좁은 구간: 실제 글에서 이런 구간 100개 가운데 평균을 포함한 것이 92개 미만임
count_from_0 | layers and heads count from 0 | 층과 헤드의 번호는 0부터
# all heads
title | What each head does · {model} | 각 헤드가 하는 일 · {model}
role | role | 역할
best | best | 최고
score | score | 점수
head | head | 헤드
heads | heads, the best first | 헤드 (점수순)
meaning | what it does | 하는 일
and_more | and {n:,} more | 외 {n:,}개
marks | ● established: the score's 95 % interval lies above all that could rule the role out; ○ not established
    | ● 확인됨: 점수의 95 % 신뢰구간이 역할을 배제할 수 있는 모든 대조값보다 높음; ○ 확인되지 않음
marked_so | , ? in the map | " (위 표에서는 ?)"
because | not established: {role}: {why} | 확인되지 않음: {role}: {why}
halves | a relation's heads are chosen on one half of the sentences and scored on the other
    | 관계를 찾는 헤드는 문장 절반에서 고르고 나머지 절반에서 점수를 매김
terms | a > b: looks from a to b; {terms} | a > b: a에서 b를 봄; {terms}
to_beat | to beat | 넘어야 할 값
to_beat_is | ; to beat: the highest of these | ; 넘어야 할 값: 그 대조값 가운데 가장 큰 것
at_offset | at {n:+d} | 거리 {n:+d}
more_roles | and {n:,} more, with --table | 그 밖의 역할 {n:,}개는 --table로 봄
relation | relation | 관계
right | right | 정답률
relations_none | relations between words: none of {n:,} is established{few}
    | 단어 사이의 관계: {n:,}개 가운데 확인된 것 없음{few}
relations_rest | {sure:,} of {n:,} relations between words are established{few}
    | 단어 사이의 관계 {n:,}개 가운데 {sure:,}개가 확인됨{few}
relations_few | ; for {n:,} there are too few links to say | ; {n:,}개는 사례가 너무 적어 판단할 수 없음
relations_title | relations between words, and the head that finds each best
    | 단어 사이의 관계와, 각 관계를 가장 잘 찾는 헤드
relations_columns | right: how often its largest weight is on the right word; offset: the best fixed one, in words;
    rand: the best head of random weights; of both the upper end of the interval; head, offset and rand are chosen on
    one half of the sentences and scored on the other
    | 정답률: 가장 큰 가중치가 맞는 단어에 있는 비율; 거리: 가장 잘 맞는 고정 거리(단어 수); 무작위: 무작위 가중치
    모델의 가장 좋은 헤드; 둘 다 신뢰구간의 상한; 모두 문장 절반에서 고르고 나머지 절반에서 점수를 매김
more | more: --table all heads and relations; attnviz head {head} one head; -o heads.csv a file
    | 더 보기: --table 모든 헤드와 관계; attnviz head {head} 한 헤드; -o heads.csv 파일
more_notes | ; {n:note} with --table | ; 참고 사항 {n}개는 --table로 봄
sorted | sorted by {what}, the largest first | 정렬: {what}, 큰 것부터
no_such_role | no head has such a role here | 이런 역할의 헤드가 없음
others_hidden | {n:other head} not shown | 다른 헤드 {n:,}개는 표시하지 않음
many_hidden | {n:head} with no clear role not shown, since there are more than {most} heads: --role none shows them,
    --layer N all of a layer | 헤드가 {most}개보다 많아, 뚜렷한 역할이 없는 {n:,}개는 표시하지 않음: --role none으로
    보거나, --layer N으로 한 층을 모두 봄
columns | columns: {controls} | 열: {controls}
columns_hidden | controls are shown in a window of {cells} cells | 대조값은 창의 너비가 {cells}칸 이상일 때 보임
pattern | small pattern: mean weight by offset, 0 the token itself, its height the head's largest, {least} at least
    | 작은 그림: 거리별 평균 가중치, 0은 토큰 자신, 높이는 그 헤드의 최댓값(적어도 {least})
alike | heads that look alike (average linkage of Jensen-Shannon distances) | 비슷한 헤드 (젠슨-섀넌 거리의 평균 연결)
cluster | cluster {n} | 군집 {n}
alone | each alone | 단독 헤드
# lines that every view ends with
note | note: {text} | 참고: {text}
bad_line | line {line:,} not used: {reason} | {line:,}번째 줄을 쓰지 않음: {reason}
more_bad | {n:more line} not used | 그 밖에 {n:,}줄을 쓰지 않음
proof | verified: max difference {largest} over {n_layers:layer}{all}
    | 검증됨: 최대 차이 {largest}, 층 {n_layers}개{all}
proof_all | , all {n:,} sentences | , 문장 {n:,}개 모두
# one head
head_title | Head {head} · {model} | 헤드 {head} · {model}
place | layer {layer}, head {head} of {what} | {what} 가운데 {layer}번 층, {head}번 헤드
no_threshold | no clear role: no measure reaches the threshold of a role
    | 뚜렷한 역할 없음: 어떤 지표도 역할의 기준값에 이르지 못함
closest | closest to one: {roles} | 가장 가까운 역할: {roles}
closest_one | {role} {score}, from {threshold} on | {role} {score} (기준 {threshold})
established | established: above {controls} | 확인됨: {controls}보다 높음
not_established | not established: {why} | 확인되지 않음: {why}
no_controls | all controls | 모든 대조값
from_on | {measure}, a role from {threshold} on | {measure}, {threshold} 이상이면 역할
at_offsets | mean weight by offset (0 is the token itself, -1 the one before)
    | 거리별 평균 가중치 (0은 토큰 자신, -1은 바로 앞)
mean_weights | mean weight: {weights} | 평균 가중치: {weights}
most_alike | most like it: {heads} | 가장 비슷한 헤드: {heads}
more_head | more: --full all measures, controls and sentences | 더 보기: --full 모든 지표, 대조값, 문장
held_against | held against | 대조값
value | value | 값
could | could rule it out | 배제할 수 있음
not_measured | its pattern by offset was not measured | 거리별 패턴을 재지 않았음
offset | offset | 거리
weight | weight | 가중치
peak | largest there | 최댓값 비율
measure | measure | 지표
example | typical: | 대표 문장:
strongest | where it is strongest | 가장 뚜렷한 문장
near | heads most like it, by mean Jensen-Shannon divergence, in nats (0 to 0.69){cluster}
    | 가장 비슷한 헤드: 평균 젠슨-섀넌 발산, 단위 nat (0~0.69){cluster}
in_cluster | ; {n_others:other} in its cluster, number {n} | ; {n}번 군집에 다른 헤드 {n_others}개
alone_in_cluster | ; alone in its cluster, number {n} | ; {n}번 군집에는 이 헤드뿐
# one sentence
one_title | Heads on one sentence · {model} | 한 문장에서 본 헤드 · {model}
one_few | one sentence shows what each head looks at here; roles need more sentences: ask for roles, leave the
    sentence out, or give a corpus | 한 문장은 각 헤드가 여기서 무엇을 보는지만 보여 줌; 역할을 알려면 문장이 더 필요함:
    역할(roles)도 재거나, 문장 없이 실행하거나, 말뭉치(corpus)를 주면 됨
one_map | the word that gets most of each head's weight, special tokens left out (layers downward, heads across)
    | 각 헤드의 가중치를 가장 많이 받는 단어, 특수 토큰 제외 (세로는 층, 가로는 헤드)
sorts | four sorts of heads, as lectures name them, and the head that is so, established on {n:sentence}
    | 강의에서 말하는 네 가지 헤드와, 이 모델에서 그 일을 하는 헤드 (문장 {n:,}개로 확인)
sort | sort | 종류
sort_none | no head does it | 그런 헤드 없음
sort_any | " in {head}" | " ({head})"
sort_links | the lecture's link | 강의에 나온 연결
one_links | the strongest links between words, the strongest of a head each | 단어 사이의 가장 강한 연결 (헤드마다 하나)
from_to | from → to | 쿼리 → 키
most | gets most | 가장 많이 받는 단어
share | share | 비율
top_link | strongest link | 가장 강한 연결
more_one | more: --table every head; attnviz heatmap with the sentence; -o heads.csv a file
    | 더 보기: --table 모든 헤드; 이 문장으로 attnviz heatmap; -o heads.csv 파일
# a second model
divergence | JSD | JSD
role_after | role after | 이후 역할
models | {first} → {second} | {first} → {second}
roles_moved | {n:,} of {n_heads:head} {n:have/has} another clearest role in {second}
    | 헤드 {n_heads:,}개 가운데 {n:,}개의 가장 뚜렷한 역할이 {second}에서 다름
divergence_map | how far each head is from the same head in {second}: JSD, the mean Jensen-Shannon divergence between
    its rows in the two models, in nats (0 the same, 0.69 no key in common)
    | {second}의 같은 헤드와의 차이: JSD, 두 모델에서 그 헤드의 행 사이의 평균 젠슨-섀넌 발산, 단위 nat (0은 같음,
    0.69는 함께 보는 키가 없음)
changed_most | the heads that differ most | 가장 많이 다른 헤드
in_second | in {second}: {role}; JSD {divergence} nats{between} | {second}에서는 {role}; JSD {divergence} nat{between}
proof_both | {proof}, in both models | {proof}, 두 모델 모두
merged | wrote {path}: {n_sentences:sentence}, {n_tokens:token}
    | {path}에 저장함: 문장 {n_sentences:,}개, 토큰 {n_tokens:,}개
# notes
text | {text} | {text}
one_sentence | one sentence{copies}: no interval, so no role is established; from {fewest} different sentences on one
    can be | 문장 하나{copies}: 신뢰구간이 없으므로 확인된 역할도 없음; 서로 다른 문장이 {fewest}개는 되어야 함
copies | ", in {lines:,} lines" | " ({lines:,}줄에 되풀이됨)"
few_sentences | {different} different sentences{copies}: too few to say what a head does; {fewest} can establish a role
    | 서로 다른 문장 {different}개{copies}: 헤드가 하는 일을 판단하기에는 너무 적음; {fewest}개부터 확인 가능
no_random_weights | no random weights could be made of this model, so no role is established: {why}
    | 이 모델의 무작위 가중치를 만들 수 없어 확인된 역할이 없음: {why}
nothing_measured | nothing was measured: no token has more than one token to look at
    | 잰 것이 없음: 볼 수 있는 토큰이 둘 이상인 토큰이 없음
sentences_cut | {n:sentence} {n:are/is} longer than the model takes: cut, and measured as far as {n:they go/it goes}
    | 문장 {n:,}개가 모델의 한도보다 길어, 잘라서 앞부분만 쟀음
bad_lines | {n:line} could not be used | {n:,}줄을 쓸 수 없었음
relations_uncontrolled | no control of random weights was taken of relations between words: they make no role
    | 단어 사이의 관계에 대해 무작위 가중치의 대조값을 재지 않았음: 관계는 역할이 되지 않음
relations_lost | {n:,} of {total:,} relations between words {n:were/was} left out: a word has no token of its own
    | 단어 사이의 관계 {total:,}개 가운데 {n:,}개를 제외함: 자기 토큰이 없는 단어가 있음
relations_in_one_half | {n:relation} {n:come/comes} up in one half of the sentences only: no head can be chosen on one
    half and scored on the other
    | 관계 {n:,}개는 문장의 한쪽 절반에만 나와, 한쪽에서 헤드를 고르고 다른 쪽에서 점수를 매길 수 없음
relations_uncounted | the corpus has more than {most} relations: only the first of them by name were looked for, {n:,}
    links were not | 관계의 종류가 {most}개보다 많아, 이름순으로 앞의 것만 찾고 연결 {n:,}개는 찾지 않았음
relations_of_other_words | {n:sentence} {n:have/has} relations, but between other words than this attention: they were
    not looked for | 문장 {n:,}개의 관계는 이 어텐션이 잇는 단어 사이의 것이 아니어서 찾지 않았음
# why a role is not established, by the codes of `attnviz.heads.roles.doubt`
too_few_different | too few to say: {n:,} of the {fewest} different sentences needed
    | 너무 적어 판단할 수 없음: 서로 다른 문장 {n:,}개, {fewest}개는 필요함
too_few_cases | too few to say: it comes up {n:,} of the {fewest} times needed
    | 너무 적어 판단할 수 없음: {n:,}번 나옴, {fewest}번은 필요함
too_few_sentences | too few to say: it comes up in fewer than {fewest} sentences
    | 너무 적어 판단할 수 없음: {fewest}개보다 적은 문장에서만 나옴
below_threshold | right in less than {percent} % of the cases | 맞는 경우가 {percent} %보다 적음
no_control | no control was taken ({controls}) | 대조값을 재지 않았음 ({controls})
too_few_for_control | too few sentences for an interval of {what} | {what}의 신뢰구간을 내기에는 문장이 너무 적음
control_does_as_much | {too} ({value}, {low}–{high}) | {too} ({value}, {low}–{high})
few_carry_it | few sentences carry it, so its interval is too narrow | 몇 문장이 대부분을 차지해 신뢰구간이 너무 좁음
# the same in two or three words
short_too_few | too few to say | 너무 적음
short_below_threshold | below {percent} % | {percent} %보다 낮음
short_no_control | no control | 대조값 없음
short_control_does_as_much | {title} too | {too}
short_few_carry_it | few sentences | 문장이 적음
""")
}
"""The phrases, notes and doubts of heads, in English and in Korean."""


class Cells(NamedTuple):
    """A column of a table, as every medium prints it."""

    title: str
    cells: Sequence[str]  # from top to bottom
    right: bool = False  # whether they end at one place, as numbers do


class Count(int):
    """A number that a phrase can write with its noun, ``{n:head}`` as ``1 head``, and choose by, ``{n:are/is}``."""

    def __format__(self, spec: str) -> str:
        many, _, one = spec.partition("/")
        if one:
            return one if self == 1 else many
        return plural(self, spec) if spec.replace(" ", "").isalpha() else super().__format__(spec)


def _counted(fields: Mapping[str, object]) -> dict[str, Any]:
    return {
        name: Count(value) if isinstance(value, int) else value for name, value in fields.items()
    }


def say(phrase: str, /, language: str = "en", **fields: object) -> str:
    """One of `TEXTS` in a language; a phrase that it lacks as it is."""
    if phrase not in TEXTS:
        return phrase
    return TEXTS[phrase][language == "ko"].format(**_counted(fields))


def rounded(value: float, digits: int = 2) -> str:
    """A number with so many decimals; 0 has no sign."""
    text = f"{value:.{digits}f}"
    return text if text.strip("-0.") else text.removeprefix("-")


def ends(low: float, high: float, digits: int = 2, *, narrow: bool = False) -> str:
    """An interval as ``0.12–0.34``, marked where it is not to be trusted; empty where there is none."""
    shown = f"{TOO_NARROW if narrow else ''}{rounded(low, digits)}–{rounded(high, digits)}"
    return "" if math.isnan(low + high) else shown


def plural(n: int, what: str) -> str:
    """As ``1 head`` or ``1,024 heads``."""
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def role_columns(rows: Sequence[Sequence[HeadRole]], language: str = "en") -> list[Cells]:
    """The table of the roles of a model, as `attnviz.heads.selection.by_role` groups its heads."""
    best = [row[0] for row in rows]
    roles = [role for _, role in best]
    return [
        Cells(
            say("role", language),
            [role.rule.short if role else say("no_role", language) for role in roles],
        ),
        Cells(say("n_heads", language), [f"{len(row):,}" for row in rows], right=True),
        Cells(say("best", language), [head.name if role else "" for head, role in best]),
        Cells(
            say("score", language),
            [f"{role.score:.2f}" if role else "" for role in roles],
            right=True,
        ),
        Cells(
            "95 %",
            [ends(role.low, role.high, narrow=role.narrow) if role else "" for role in roles],
        ),
        Cells(
            say("meaning", language), [role.rule.say(language) if role else "" for role in roles]
        ),
    ]


def model_names(comparison: HeadComparison) -> str:
    """The model, and behind an arrow the second one, if there is one."""
    if comparison.against is None:
        return comparison.model
    return say("models", first=comparison.model, second=comparison.against.model)


def roles_moved(comparison: HeadComparison, language: str = "en") -> str:
    """How many heads have another clearest role in the second model; empty without one."""
    if comparison.against is None:
        return ""
    pairs = zip(comparison.heads, comparison.against.heads, strict=True)
    n = sum(
        (one.role and one.role.name) != (other.role and other.role.name) for one, other in pairs
    )
    names = {"n_heads": len(comparison.heads), "second": comparison.against.model}
    return say("roles_moved", language, n=n, **names)


def explain_changes(comparison: HeadComparison, language: str = "en") -> list[str]:
    """Explain the numbers of a second model; nothing without one."""
    if comparison.against is None:
        return []
    explained = say("divergence_map", language, second=comparison.against.model)
    return [explained, roles_moved(comparison, language)]


def change_columns(comparison: HeadComparison, most: int, language: str = "en") -> list[Cells]:
    """The table of the heads that differ most from those of the second model, as every medium prints it."""
    there = [
        (head, change)
        for head in comparison.heads
        if (change := head.change) is not None and not math.isnan(change.divergence)
    ]
    shown = sorted(there, key=lambda one: -one[1].divergence)[:most]
    return [
        Cells(say("head", language), [head.name for head, _ in shown]),
        Cells(
            say("divergence", language),
            [rounded(change.divergence) for _, change in shown],
            right=True,
        ),
        Cells("95 %", [ends(change.low, change.high) for _, change in shown]),
        Cells(say("role", language), [marked_role(head.role, language) for head, _ in shown]),
        Cells(
            say("role_after", language), [marked_role(change.role, language) for _, change in shown]
        ),
    ]


def marked_role(role: Role | None, language: str = "en") -> str:
    """The short name of a role behind its mark, or that there is none."""
    return (
        say("no_role", language) if role is None else f"{MARKS[role.established]} {role.rule.short}"
    )


def role_words(role: Role | None, language: str = "en") -> str:
    """Describe the role of a head, or say that it has none."""
    return say("no_role", language) if role is None else role.rule.say(language)


def role_score(role: Role, language: str = "en") -> str:
    """A role with its score, its interval where there is one, and what the head does."""
    between = ends(role.low, role.high, narrow=role.narrow)
    return f"{role.rule.short} {rounded(role.score)}{between and f' ({between})'}: {role.rule.say(language)}"


def list_alike(comparison: HeadComparison, profile: HeadProfile, language: str = "en") -> str:
    """The heads most like one, with what they do; empty where heads were not compared."""
    near = [
        f"{other.name} ({other.role.rule.short if other.role else say('no_role', language)})"
        for other, _ in comparison.nearest(profile, ALIKE)
    ]
    return say("most_alike", language, heads=", ".join(near)) if near else ""


def description(
    comparison: HeadComparison, language: str = "en", phrase: str = "layers_heads"
) -> str:
    """Describe the model, as ``6 layers x 12 heads, bidirectional self-attention``; ``mapped`` says what is where."""
    fields = {
        "n_layers": comparison.n_layers,
        "n_heads": comparison.n_heads,
        "kind": say(comparison.kind, language),
    }
    return say(phrase, language, **fields)


def sample(comparison: HeadComparison, language: str = "en") -> str:
    """Describe the sentences, as ``sample sentences: 117 sentences, 1,545 tokens; special tokens kept``."""
    return say(
        comparison.corpus if comparison.corpus in {SAMPLES, OWN} else "corpus",
        language,
        corpus=comparison.corpus,
        n_sentences=comparison.n_sentences,
        n_tokens=comparison.n_tokens,
    )


def why_not(doubt: Note | None, language: str = "en") -> str:
    """Why a role is not established, in a few words; empty where it is."""
    if doubt is None:
        return ""
    code = "too_few" if doubt.code in TOO_FEW else doubt.code
    if f"short_{code}" not in TEXTS:
        return reason_of(doubt, language)
    fields = dict(doubt.fields)
    if code == "control_does_as_much":
        kind = CONTROLS[str(fields["control"])]
        fields |= {"title": kind.short(), "too": kind.too[1]}
    return say(f"short_{code}", language, **fields)


def reason_of(doubt: Note | None, language: str = "en", *, brief: bool = False) -> str:
    """Why a role is not established, in a line, with the control's interval unless brief; empty where it is."""
    if doubt is None:
        return ""
    fields = dict(doubt.fields)
    if (control := CONTROLS.get(str(fields.get("control")))) is not None:
        ko = language == "ko"
        if brief and "value" in fields:
            return control.too[ko]
        return say(doubt.code, language, **fields, what=control.words[ko], too=control.too[ko])
    return sentence(doubt, language, TEXTS)


def how_sure(role: Role, language: str = "en") -> str:
    """Whether a role is established, and the controls that decide it, each with its interval."""
    if not role.established:
        return say("not_established", language, why=reason_of(role.doubt, language))
    controls = "; ".join(
        f"{CONTROLS[one.name].say(language, one)} {one.value:.2f} ({one.low:.2f}–{one.high:.2f})"
        for one in role.controls
        if one.rules_out
    )
    return say("established", language, controls=controls or say("no_controls", language))


def doubts(heads: Sequence[HeadProfile], language: str = "en") -> str:
    """Why the clearest roles of some heads are not established, and of how many; empty where all are."""
    unsure = [head.role.doubt for head in heads if head.role and not head.role.established]
    if len(set(unsure)) == 1:
        return reason_of(unsure[0], language)
    found = Counter(reason_of(doubt, language, brief=True) for doubt in unsure)
    return "; ".join(
        f"{why} ({plural(n, 'head')})" if len(found) > 1 else why for why, n in found.most_common()
    )


def proof(comparison: HeadComparison, language: str = "en") -> str:
    """Return the proof that the numbers are the model's own, in a line."""
    largest, n = max(comparison.differences), comparison.n_sentences
    if comparison.against is not None:
        largest = max(largest, *comparison.against.differences)
    every = say("proof_all", language, n=n) if n != 1 else ""
    shown = f"{largest:.1e}" if largest else "0"
    line = say("proof", language, largest=shown, n_layers=len(comparison.differences), all=every)
    return line if comparison.against is None else say("proof_both", language, proof=line)


def note_words(note: Note, language: str = "en") -> str:
    """A note of a comparison in a sentence."""
    code, fields = note.code, _counted(dict(note.fields))
    if code == "few_sentences":
        code = "one_sentence" if fields["different"] == 1 else code
        fields["copies"] = (
            "" if fields["different"] == fields["lines"] else say("copies", language, **fields)
        )
    return sentence(Note.of(code, **fields), language, TEXTS)


def closest_roles(comparison: HeadComparison, profile: HeadProfile, language: str = "en") -> str:
    """The roles that a head without one comes closest to, with how much they ask for; empty where none was measured."""
    found = [
        (value / rule.threshold, rule, value)
        for measure, rule in rules_of(comparison.measures)
        if (value := comparison.estimate(measure.name, *profile.place)[0]) == value
    ]
    best = [
        say(
            "closest_one",
            language,
            role=rule.short,
            score=f"{value:.2f}",
            threshold=f"{rule.threshold:.2f}",
        )
        for _, rule, value in sorted(found, key=lambda one: -one[0])[:CLOSEST]
    ]
    return say("closest", language, roles=", ".join(best)) if best else ""
