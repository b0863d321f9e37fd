"""English to Korean: which English word each decoding step looks at, and how often that is the right one."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import torch
from jaxtyping import Float32

from attnviz.attention import Attention
from attnviz.capture.attend import attend
from attnviz.capture.source import open_source
from attnviz.models.language import splits
from attnviz.models.language.sentences import Pair
from attnviz.models.seq2seq import RecurrentTranslator
from attnviz.models.training import measure
from attnviz.models.wholes import TranslationTransformer
from attnviz.stories.common import (
    ROWS,
    head_name,
    open_model,
    receipt_of,
    row_view,
    steps_panel,
    story,
    table,
)
from attnviz.stories.record import Cell, Story, StoryView, Table
from attnviz.text.phrase import Phrase, Texts, join_phrases

RECURRENT, TRANSFORMER = NAMES = "toy-seq2seq", "toy-transformer"
STEP, FORCED, WEIGHT = (
    Phrase("step", "단계"),
    Phrase("forced word", "넣어 준 단어"),
    Phrase("weight", "가중치"),
)
SENTENCES = (
    "She is eating a green apple",
    "The animal didn't cross the street because it was too wide",
)
RIGHT = ("그녀는 초록색 사과를 먹고 있다", "길이 너무 넓었기 때문에 동물은 건너지 않았다")
"""What the small language makes of them; both models generate it under teacher forcing."""
N_PAIRS = 200  # test pairs that the alignment error rate is measured on
GOLD_WORDS = range(9, 14)
"""English words of the test pair that is shown with its gold alignment: enough to cross, few enough to read."""
TEXTS = Texts(
    """
title | alignment error on unseen pairs: {RECURRENT} {one:.3f}, {TRANSFORMER} {two:.3f}, the diagonal {diagonal:.3f}
    | 처음 보는 문장 쌍의 정렬 오류율: {RECURRENT} {one:.3f}, {TRANSFORMER} {two:.3f}, 대각선 {diagonal:.3f}
panel | {one.record.model}, {name}: “{one.record.text}” | {one.record.model}, {name}: “{one.record.text}”
least | {name}: {least}, the largest of {n} sentences | {name}: {least}, 문장 {n}개 가운데 가장 큰 값
lengths | Rows and columns need not be equally many; keys and values must: K has {keys} rows for the second sentence, V
    has {values}.
    | 행과 열의 수는 달라도 되지만 키와 밸류의 수는 같아야 합니다. 둘째 문장에서 K는 {keys}행, V는 {values}행입니다.
seen | {RECURRENT} reads an English sentence and generates it in Korean, a word a step. At each step the decoder's state
    is the query; the encoder's states, one for each English word, are the keys and the values. So there is a row for
    each step and a column for each English word: {sizes} (queries x keys) for the two sentences below. {lengths} Both
    models are given the right Korean (teacher forcing), so that their steps can be compared.
    | {RECURRENT}: 영어 문장을 읽고 한 단계에 한 단어씩 한국어로 생성하는 모델입니다. 단계마다 디코더의 상태가 쿼리이고,
    영어 단어마다 하나씩 있는 인코더의 상태가 키이자 밸류입니다. 그래서 단계마다 행이, 영어 단어마다 열이 하나씩
    있습니다. 아래의 두 문장에서는 {sizes}입니다(쿼리 x 키). {lengths} 단계를 서로 비교할 수 있도록 두 모델 모두에
    올바른 한국어를 넣어 줍니다(교사 강요).
by_themselves | By themselves both models generate these very words for both sentences.
    | 아무것도 넣어 주지 않아도 두 모델 모두 두 문장에서 바로 이 단어들을 생성합니다.
path | In the {which} sentence {RECURRENT} looks most at words {path} (counted from 0): {back} of {moves} moves go back
    to the left.
    | {which} 문장에서 {RECURRENT} 모델이 가장 많이 보는 단어는 차례로 {path}번(0부터)이고, {moves}번의 이동 가운데
    {back}번은 왼쪽으로 되돌아갑니다.
crossing | Korean puts the verb last, so the steps do not walk through the English sentence from left to right. {paths}
    The weights of {TRANSFORMER} are those of its cross attention.
    | 한국어는 동사가 끝에 오므로, 단계는 영어 문장을 왼쪽에서 오른쪽으로 차례로 훑지 않습니다. {paths} {TRANSFORMER}의
    가중치는 크로스 어텐션의 가중치입니다.
gold | an unseen test sentence with its gold alignment, {RECURRENT}: “{english}”
    | 학습에 쓰지 않은 시험 문장과 정답 정렬, {RECURRENT}: “{english}”
errors | The test sentences were made with their alignment, which no model was ever shown. The alignment error rate (Och
    and Ney 2003) is 0 where the largest weights agree with it, and 1 where none does. Over {n} unseen pairs, with the
    right words forced, {compared} than the diagonal, which looks as far along in English as the step is in Korean
    ({diagonal:.3f}). A head need not look at the very word that is generated next: the weights show where the model
    fetched something, and the encoder may have carried it there. {rows}
    | 시험 문장은 정렬과 함께 만들었지만, 어느 모델도 그 정렬을 본 적이 없습니다. 정렬 오류율(Och와 Ney 2003)은 가장 큰
    가중치들이 정렬과 모두 맞으면 0, 하나도 맞지 않으면 1입니다. 학습에 쓰지 않은 문장 쌍 {n}개에 올바른 단어를 넣어
    주고 잰 오류율: {compared}. 대각선은 한국어에서 나아간 만큼 영어에서도 나아간 자리를 보는 것으로, 오류율이
    {diagonal:.3f}입니다. 헤드가 바로 다음에 생성할 단어를 꼭 보는 것은 아닙니다. 가중치는 모델이 무언가를 가져온 자리를
    보여 주며, 그것을 인코더가 그 자리로 옮겨 두었을 수도 있습니다. {rows}
rates | alignment error rate on {n} unseen test pairs; heads chosen on validation pairs
    | 학습에 쓰지 않은 시험 문장 쌍 {n}개의 정렬 오류율; 헤드는 검증 문장 쌍에서 고름
steps | “{one.record.text}”, step by step | “{one.record.text}”, 단계마다
looks_at | {name} looks at | {name}: 보는 단어
which | first; second | 첫째; 둘째
hit | yes | 예
miss | no | 아니요
gold_columns | step; forced word; looks at; weight; means; right
    | 단계; 넣어 준 단어; 보는 단어; 가중치; 뜻하는 단어; 정답
less | {name} errs less ({error:.3f}) | {name} {error:.3f}(대각선보다 적음)
no_less | {name} errs no less ({error:.3f}) | {name} {error:.3f}(대각선보다 적지 않음)
named | {name}, {head} | {name}, {head}
rates_columns | what looks; error rate | 보는 것; 오류율
diagonal | the diagonal | 대각선
view | {name}, before it generates “{word}”: it looks most at “{at}” ({weight:.2f}).
    | {name}: “{word}”을(를) 생성하기 전에 가장 많이 보는 단어는 “{at}” ({weight:.2f})입니다.
view_all | All heads of {TRANSFORMER}, on the first sentence. | 첫째 문장, {TRANSFORMER} 모델의 모든 헤드.
wrong | by itself {name} generates “{words}” for “{sentence}”, which is not right
    | {name}: “{sentence}”에 대해 스스로 생성한 “{words}” (틀림)
""",
    globals(),
)


@dataclass(frozen=True, slots=True)
class AlignmentHead:
    """One head's look at one sentence: the record it is taken from, and the layer and the head."""

    record: Attention
    head: measure.Head

    @property
    def pattern(self) -> Float32[np.ndarray, "step source"]:
        """The weights: a row for each step, a column for each English word."""
        return self.record.pattern(*self.head)

    @property
    def looks(self) -> list[int]:
        """The English word that each step looks at most, counted from 0."""
        looks: list[int] = self.pattern.argmax(axis=-1).tolist()
        return looks

    @property
    def path(self) -> list[int]:
        """The same for the Korean words only: the end means no English word."""
        steps = zip(self.looks, self.record.query_tokens, strict=True)
        return [look for look, token in steps if not token.special]

    def look(self, step: int) -> tuple[Cell, ...]:
        """The English word that a step looks at most, with its place, and its weight."""
        place = self.looks[step]
        return f"{self.record.key_tokens[place].text} ({place})", float(self.pattern[step, place])


def backward(path: Sequence[int]) -> int:
    """How many steps look further to the left than the one before them."""
    return sum(there < here for here, there in itertools.pairwise(path))


def crossing_pair() -> Pair:
    """The first unseen test pair, of a length to be read, whose gold alignment goes back to the left twice or more."""
    pairs = (pair for pair in splits.pairs("test") if len(pair.english) in GOLD_WORDS)
    return next(pair for pair in pairs if backward([min(gold) for gold in golds(pair) if gold]) > 1)


def golds(pair: Pair) -> list[list[int]]:
    """For each Korean word the English ones that surely mean it, by their places."""
    return [
        sorted(place for step, place in pair.sure if step == index)
        for index in range(len(pair.korean))
    ]


def tell() -> Story:
    """The demo: two sentences whose order Korean turns around, one unseen pair with its gold, the error rate."""
    pair = crossing_pair()
    card, recurrent = open_model(RECURRENT, RecurrentTranslator)
    other_card, transformer = open_model(TRANSFORMER, TranslationTransformer)
    heads = [  # those that were found to align best on validation pairs
        (int(one.quality["alignment layer"]), int(one.quality["alignment head"]))
        for one in (card, other_card)
    ]
    sources = [open_source(name) for name in NAMES]
    first, second = (
        [
            AlignmentHead(attend(text, source, target=right), head)
            for text, right in zip(SENTENCES, RIGHT, strict=True)
        ]
        for source, head in zip(sources, heads, strict=True)
    )
    own = [tuple(attend(sentence, source).target for source in sources) for sentence in SENTENCES]
    gold = AlignmentHead(
        attend(" ".join(pair.english), sources[0], target=" ".join(pair.korean)), heads[0]
    )
    pairs = list(islice(splits.pairs("test"), N_PAIRS))
    models: tuple[measure.Translator, ...] = (recurrent, transformer)
    errors = [
        float(measure.alignment_errors(one, pairs)[head])
        for one, head in zip(models, heads, strict=True)
    ]
    diagonal = measure.diagonal_error(pairs)
    say = TEXTS.filled(
        one=errors[0],
        two=errors[1],
        diagonal=diagonal,
        n=len(pairs),
        rows=ROWS,
        compared=_compared(errors, diagonal),
    )
    names = (
        say("named", name=name, head=head_name(head))
        for name, head in zip(NAMES, heads, strict=True)
    )
    rates = (*zip(names, errors, strict=True), (say("diagonal"), diagonal))
    shown = [*first, *second]
    parts: list[str | Table] = [
        _what_is_seen(first, recurrent),
        *map(_steps, first, second),
        _by_themselves(own),
        _crossing(first),
        _against_gold(gold, pair),
        "errors",
        table(say, "rates", rates),
    ]
    panels = (
        steps_panel(say("panel", one=one, name=head_name(one.head)), one.record, one.head)
        for one in shown
    )
    return story(
        say,
        parts,
        panels,
        receipt=_least_proved({RECURRENT: [*first, gold], TRANSFORMER: second}),
        views=_views(shown),
        records=[one.record for one in shown],
    )


def _views(shown: Sequence[AlignmentHead]) -> tuple[StoryView, ...]:
    """Of each record the step that goes back to the left farthest; then all heads of the transformer."""
    views = []
    for number, one in enumerate(shown):
        moves = [there - here for here, there in itertools.pairwise(one.path)]
        step = 1 + moves.index(min(moves))
        views.append(row_view(TEXTS, one.record, one.head, step, number))
    return *views, StoryView(text=TEXTS("view_all"), record=len(SENTENCES))


def _least_proved(shown: Mapping[str, Sequence[AlignmentHead]]) -> Phrase:
    """The proof of each model's record with the largest difference; one without a receipt has the largest of all."""
    found = []
    for name, ones in shown.items():
        records = [one.record for one in ones]
        least = receipt_of(
            max(records, key=lambda one: one.receipt.max_difference if one.receipt else np.inf)
        )
        found.append(TEXTS("least", name=name, least=least, n=len(ones)))
    return join_phrases(found, "; ")


@torch.inference_mode()
def _what_is_seen(shown: Sequence[AlignmentHead], model: RecurrentTranslator) -> Phrase:
    sizes = ["{} x {}".format(*one.pattern.shape) for one in shown]
    encoded = model.encode(torch.tensor([[token.id or 0 for token in shown[-1].record.key_tokens]]))
    keys, values = (
        states.shape[1] for states in (encoded.key, encoded.value) if states is not None
    )
    lengths = TEXTS("lengths", keys=keys, values=values)
    return TEXTS("seen", sizes=Phrase(" and ".join(sizes), ", ".join(sizes)), lengths=lengths)


def _steps(one: AlignmentHead, other: AlignmentHead) -> Table:
    looks = (column for name in NAMES for column in (TEXTS("looks_at", name=name), WEIGHT))
    steps = enumerate(one.record.query_tokens)
    rows = tuple((step, token.text, *one.look(step), *other.look(step)) for step, token in steps)
    return Table(TEXTS("steps", one=one), (STEP, FORCED, *looks), rows)


def _by_themselves(own: Sequence[tuple[str | None, ...]]) -> Phrase:
    """What each model generates when nothing is forced on it, where that is not the right Korean."""
    wrong = [
        TEXTS("wrong", name=name, words=words, sentence=sentence)
        for sentence, right, generated in zip(SENTENCES, RIGHT, own, strict=True)
        for name, words in zip(NAMES, generated, strict=True)
        if words != right
    ]
    if not wrong:
        return TEXTS("by_themselves")
    listed = join_phrases(wrong, "; ")
    return Phrase(f"{listed[0].upper()}{listed[1:]}.", f"{listed.ko}.")


def _crossing(shown: Sequence[AlignmentHead]) -> Phrase:
    paths = (
        TEXTS(
            "path",
            which=which,
            path=", ".join(map(str, one.path)),
            back=backward(one.path),
            moves=len(one.path) - 1,
        )
        for one, which in zip(shown, TEXTS.names("which"), strict=True)
    )
    return TEXTS("crossing", paths=join_phrases(paths))


def _against_gold(one: AlignmentHead, pair: Pair) -> Table:
    rows = []
    for step, (word, gold) in enumerate(zip(pair.korean, golds(pair), strict=True)):
        hit = TEXTS("hit" if (step, one.looks[step]) in pair.possible else "miss")
        meant = ", ".join(f"{pair.english[place]} ({place})" for place in gold)
        rows.append((step, word, *one.look(step), meant, hit))
    return table(TEXTS.filled(english=" ".join(pair.english)), "gold", rows)


def _compared(errors: Sequence[float], diagonal: float) -> Phrase:
    ways = ("less" if error < diagonal else "no_less" for error in errors)
    shown = (
        TEXTS(way, name=name, error=error)
        for way, name, error in zip(ways, NAMES, errors, strict=True)
    )
    return join_phrases(shown, " and ", ", ")
