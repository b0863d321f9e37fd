"""Notes, proofs and doubts of heads in words: everywhere else they are data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from attnviz.attention import Note
from attnviz.heads.measures import rules_of
from attnviz.heads.record import HeadComparison, HeadProfile, Role
from attnviz.heads.roles import CONTROLS
from attnviz.heads.wording import counted, say
from attnviz.text.notes import Templates, sentence

CLOSEST = 3
"""So many roles are named that a head without one comes closest to."""

DOUBTS: Templates = {
    "too_few_different": (
        "too few to say: {n:,} different sentences, {fewest} are needed",
        "너무 적어 판단할 수 없음: 서로 다른 문장 {n:,}개, {fewest}개는 필요함",
    ),
    "too_few_cases": (
        "too few to say: it comes up {n:,} times, {fewest} are needed",
        "너무 적어 판단할 수 없음: {n:,}번 나옴, {fewest}번은 필요함",
    ),
    "too_few_sentences": (
        "too few to say: it comes up in fewer than {fewest} sentences",
        "너무 적어 판단할 수 없음: {fewest}개보다 적은 문장에서만 나옴",
    ),
    "below_threshold": (
        "right in less than {percent} % of the cases", "맞는 경우가 {percent} %보다 적음",
    ),
    "no_control": ("no control was taken ({controls})", "대조값을 재지 않았음 ({controls})"),
    "too_few_for_control": (
        "too few sentences for an interval of {what}", "{what}의 신뢰구간을 내기에는 문장이 너무 적음",
    ),
    "too_few_seeds": (
        "random weights were drawn only once, as earlier versions did: measure it again",
        "이전 버전처럼 무작위 가중치를 한 번만 뽑았음: 다시 재야 함",
    ),
    "control_does_as_much": ("{too} ({value}, {low}–{high})", "{too} ({value}, {low}–{high})"),  # noqa: RUF001
    "few_carry_it": (
        "few sentences carry it, so its interval is too narrow",
        "몇 문장이 대부분을 차지해 신뢰구간이 너무 좁음",
    ),
}  # fmt: skip
"""Why a role is not established, by the codes of `attnviz.heads.roles.doubt`."""
SHORT: Templates = {
    "too_few": ("too few to say", "너무 적음"),
    "below_threshold": ("below {percent} %", "{percent} %보다 낮음"),
    "no_control": ("no control", "대조값 없음"),
    "control_does_as_much": ("{title} too", "{too}"),
    "few_carry_it": ("few sentences", "문장이 적음"),
}
"""The same in two or three words."""


def why_not(doubt: Note | None, language: str = "en") -> str:
    """Why a role is not established, in a few words; empty where it is."""
    if doubt is None:
        return ""
    code = "too_few" if doubt.code.startswith("too_few") else doubt.code
    if code not in SHORT:
        return reason_of(doubt, language)
    fields = dict(doubt.fields)
    if code == "control_does_as_much":
        kind = CONTROLS[str(fields["control"])]
        fields |= {"title": kind.titles[1], "too": kind.too[1]}
    return SHORT[code][language == "ko"].format(**fields)


def reason_of(doubt: Note | None, language: str = "en", *, brief: bool = False) -> str:
    """Why a role is not established, in a line, with the control's interval unless brief; empty where it is."""
    if doubt is None:
        return ""
    fields = dict(doubt.fields)
    if (control := CONTROLS.get(str(fields.get("control")))) is not None:
        ko = language == "ko"
        if brief and "value" in fields:
            return control.too[ko]
        return DOUBTS[doubt.code][ko].format(**fields, what=control.words[ko], too=control.too[ko])
    return sentence(doubt, language, {**NOTES, **DOUBTS})


def how_sure(role: Role, language: str = "en") -> str:
    """Whether a role is established, and the controls that decide it, each with its interval."""
    if not role.established:
        return say("not_established", language, why=reason_of(role.doubt, language))
    controls = "; ".join(
        f"{CONTROLS[one.name].say(language, one)} {one.value:.2f} ({one.low:.2f}–{one.high:.2f})"  # noqa: RUF001
        for one in role.controls
        if one.rules_out
    )
    return say("established", language, controls=controls or say("no_controls", language))


def doubts(heads: Sequence[HeadProfile], language: str = "en") -> str:
    """Why the clearest roles of some heads are not established, and of how many; empty where all are."""
    unsure = [head.roles[0].doubt for head in heads if head.roles and not head.roles[0].established]
    if len(set(unsure)) == 1:
        return reason_of(unsure[0], language)
    found = Counter(reason_of(doubt, language, brief=True) for doubt in unsure)
    return "; ".join(f"{why} ({counted(n, 'head')})" if len(found) > 1 else why for why, n in found.most_common())


def proof(comparison: HeadComparison, language: str = "en") -> str:
    """That the numbers are proved to be the model's own, in a line."""
    n_layers, largest, n = len(comparison.differences), max(comparison.differences), comparison.n_sentences
    every = say("proof_all", language, n=n) if n != 1 else ""
    return say(
        "proof", language, largest=f"{largest:.1e}" if largest else "0", layers=counted(n_layers, "layer"),
        n_layers=n_layers, all=every,
    )  # fmt: skip


def note_words(note: Note, language: str = "en") -> str:
    """A note of a comparison, or of two models, in a sentence."""
    fields = dict(note.fields)
    if note.code == "few_sentences":
        copies = (", in {lines:,} lines", " ({lines:,}줄에 되풀이됨)")[language == "ko"].format(**fields)
        code = "one_sentence" if fields["different"] == 1 else "few_sentences"
        note = Note.of(code, **fields, copies="" if fields["different"] == fields["lines"] else copies)
    if language == "en" and note.code in SINGULARS and fields["n"] == 1:
        return SINGULARS[note.code]
    return sentence(note, language, NOTES)


def closest_roles(comparison: HeadComparison, profile: HeadProfile, language: str = "en") -> str:
    """The roles that a head without one comes closest to, with how much they ask for; empty where none was measured."""
    at = profile.layer, profile.head
    found = [
        (value / rule.threshold, rule, value)
        for measure, rule in rules_of(comparison.measures)
        if (value := comparison.estimate(measure.name, *at)[0]) == value
    ]
    best = [
        say("closest_one", language, role=rule.short, score=f"{value:.2f}", threshold=f"{rule.threshold:.2f}")
        for _, rule, value in sorted(found, key=lambda one: -one[0])[:CLOSEST]
    ]
    return say("closest", language, roles=", ".join(best)) if best else ""


MINOR = {"few_carry", "relations_lost", "relations_in_one_half", "relations_uncounted", "relations_of_other_words"}
"""Notes that stand neither on the first screen nor on the page of a comparison."""

NOTES: Templates = {
    "text": ("{text}", "{text}"),
    "one_sentence": (
        "one sentence{copies}: no interval, so no role is established; from {fewest} different sentences on one can be",
        "문장 하나{copies}: 신뢰구간이 없으므로 확인된 역할도 없음; 서로 다른 문장이 {fewest}개는 되어야 함",
    ),
    "few_sentences": (
        "{different} different sentences{copies}: too few to say what a head does; {fewest} can establish a role",
        "서로 다른 문장 {different}개{copies}: 헤드가 하는 일을 판단하기에는 너무 적음; {fewest}개부터 확인 가능",
    ),
    "no_random_weights": (
        "no random weights could be made of this model, so no role is established: {why}",
        "이 모델의 무작위 가중치를 만들 수 없어 확인된 역할이 없음: {why}",
    ),
    "nothing_measured": (
        "nothing was measured: no token has more than one token to look at",
        "잰 것이 없음: 볼 수 있는 토큰이 둘 이상인 토큰이 없음",
    ),
    "specials_excluded": (
        "special tokens left out: what remains of each row sums to 1 again, as if they were masked",
        "특수 토큰 제외: 마스크한 것처럼 각 행의 나머지를 합이 1이 되게 함",
    ),
    "few_carry": (
        (
            "few sentences carry {measures}: half of what is counted is in {n} of {groups} groups of sentences, and "
            "these intervals are too narrow"
        ),
        (
            "{measures}은(는) 몇 문장이 좌우함: 센 것의 절반이 문장 {groups}묶음 가운데 {n}묶음에 있어, "
            "신뢰구간이 너무 좁음"
        ),
    ),
    "sentences_cut": (
        "{n:,} sentences are longer than the model takes: cut, and measured as far as they go",
        "문장 {n:,}개가 모델의 한도보다 길어, 잘라서 앞부분만 쟀음",
    ),
    "bad_lines": ("{n:,} lines could not be used", "{n:,}줄을 쓸 수 없었음"),
    "relations_uncontrolled": (
        "no control of random weights was taken of relations between words: they make no role",
        "단어 사이의 관계에 대해 무작위 가중치의 대조값을 재지 않았음: 관계는 역할이 되지 않음",
    ),
    "relations_lost": (
        "{n:,} of {total:,} relations between words were left out: a word has no token of its own",
        "단어 사이의 관계 {total:,}개 가운데 {n:,}개를 제외함: 자기 토큰이 없는 단어가 있음",
    ),
    "relations_in_one_half": (
        (
            "{n:,} relations come up in one half of the sentences only: no head can be chosen on one half and "
            "scored on "
            "the "
            "other"
        ),
        "관계 {n:,}개는 문장의 한쪽 절반에만 나와, 한쪽에서 헤드를 고르고 다른 쪽에서 점수를 매길 수 없음",
    ),
    "relations_uncounted": (
        (
            "the corpus has more than {most} relations: only the first of them by name were looked for, {n:,} links "
            "were "
            "not"
        ),
        "관계의 종류가 {most}개보다 많아, 이름순으로 앞의 것만 찾고 연결 {n:,}개는 찾지 않았음",
    ),
    "relations_of_other_words": (
        "{n:,} sentences have relations, but between other words than this attention: they were not looked for",
        "문장 {n:,}개의 관계는 이 어텐션이 잇는 단어 사이의 것이 아니어서 찾지 않았음",
    ),
    "saved_numbers": (
        "saved numbers were compared: roles and measures, no patterns, for which both models are run",
        "저장된 수를 비교함: 역할과 지표만 비교하고, 두 모델을 실행해야 하는 패턴은 비교하지 않음",
    ),
    "other_sentences": (
        (
            "not the same sentences: a difference is that of the models and of the sentences, and the intervals are "
            "not "
            "paired"
        ),
        "같은 문장이 아님: 차이에는 모델의 차이와 문장의 차이가 섞여 있고, 신뢰구간은 짝지어지지 않음",
    ),
    "paired": (
        "both were measured on the same sentences: the intervals of differences are paired",
        "두 모델을 같은 문장에서 쟀음: 차이의 신뢰구간은 짝지은 것임",
    ),
}
"""The notes of heads, by their codes."""
SINGULARS = {
    "sentences_cut": "1 sentence is longer than the model takes: cut, and measured as far as it goes",
    "bad_lines": "1 line could not be used",
    "relations_in_one_half": (
        "1 relation comes up in one half of the sentences only: no head can be chosen on one half and scored on the "
        "other"
    ),
    "relations_of_other_words": (
        "1 sentence has relations, but between other words than this attention: they were not looked for"
    ),
}
"""Those that are otherwise of one thing, in English."""
