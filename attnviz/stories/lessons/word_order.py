"""Word order: without positions attention sees a bag of words, with them a sentence."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice

import numpy as np
import torch
from torch import Tensor, nn

from attnviz.attention import Attention
from attnviz.capture.attend import attend_all
from attnviz.capture.source import Model, open_source
from attnviz.capture.sources import Source
from attnviz.models.language import splits
from attnviz.models.wholes import LanguageEncoder
from attnviz.stories import common
from attnviz.stories.common import LEAST, percent, read_words, receipt_of, small, words_of
from attnviz.stories.record import Bars, Series, Story, StoryView, Table
from attnviz.text.phrase import Phrase, Texts

SHORT = ("There is a prince", "Is there a prince")
LONG = (
    "Although I did not get 95 in last TOEFL, I could get in the Ph.D program.",
    "Although I did get 95 in last TOEFL, I could not get in the Ph.D program.",
)
TOY = "toy"
OTHERS = 25  # other pairs as the long one, on which the head that is shown is chosen
SHOWN = 5  # how many rows a table of the largest differences has
TEXTS = Texts(
    """
title_of_another | {name}: two orders of the same words move {mean} of a row's weight{rest}
    | {name}: 같은 단어, 다른 순서: 한 행의 가중치 가운데 {mean}가 옮겨 감{rest}
cannot | The positions of {name} cannot be taken away from outside; `attnviz demo word-order` shows toy without.
    | {name}: 위치를 밖에서 뺄 수 없습니다. 위치를 뺀 toy는 `attnviz demo word-order`로 볼 수 있습니다.
other_token | (In the short pair a word is another token where it stands first, with a capital, so its rows differ for
    that reason too.)
    | (짧은 쌍에서는 맨 앞에 대문자로 쓴 단어가 다른 토큰이어서, 그 때문에도 행이 달라집니다.)
bag_of_words | With every word at position 0 the rows are the same in both orders (largest share moved {most}:
    rounding): the model sees a bag of words. {other}
    | 모든 단어의 위치를 0으로 하면 두 순서에서 행이 같습니다(옮겨 간 몫은 많아야 {most}, 반올림 차이). 모델에게는 순서
    없는 단어 주머니로 보이는 것입니다. {other}
mask | its mask tells the order too, since a word sees only those before it.
    | 마스크도 순서를 알려 주기 때문입니다. 단어는 자기 앞의 단어만 봅니다.
still_moves | With every word at position 0 rows still move, by up to {most} of their weight: {why}
    | 모든 단어의 위치를 0으로 해도 행이 달라집니다(많게는 가중치의 {most}만큼). {why}
moves | share of a row's weight that moves to other words, mean over heads and rows
    | 한 행의 가중치에서 다른 단어로 옮겨 가는 몫, 헤드와 행의 평균
title | the same words in two orders: their vectors differ by {off} without positions, by {on} with them
    | 같은 단어, 다른 순서: 벡터의 차이는 위치가 없으면 {off}, 있으면 {on}
receipt | the patterns: {seen}; the vectors: the model called directly in float64, with positions and without, for which
    there is no receipt
    | 패턴: {seen}; 벡터: 위치를 더하고 또 빼고 모델을 float64로 직접 부른 값이어서 검증 정보가 없음
introduction | Attention compares every word with every other, and nothing in softmax(QK^T / sqrt(d_k)) V says which
    came first. Only the positions, added to the words' vectors, can tell. So {name} reads the same words in two orders,
    with its positions and without. The short pair is “{SHORT[0]}” and “{SHORT[1]}”; the long pair is “{LONG[0]}” and
    “{LONG[1]}”
    | 어텐션은 모든 단어를 서로 비교할 뿐이고, softmax(QK^T / sqrt(d_k)) V 어디에도 무엇이 먼저인지는 없습니다. 순서를
    알려 주는 것은 단어 벡터에 더한 위치뿐입니다. 그래서 {name}에게 같은 단어를 두 가지 순서로, 위치를 더해서 한 번,
    빼고 한 번 읽힙니다. 짧은 쌍은 “{SHORT[0]}”, “{SHORT[1]}”이고, 긴 쌍은 “{LONG[0]}”, “{LONG[1]}”입니다.
differences | largest difference between a word's vectors in the first and the second sentence of a pair
    | 쌍의 첫째 문장과 둘째 문장에서 한 단어의 벡터가 가장 크게 다른 값
differences_columns | sentences; positions off; off, no rounding by place; positions on
    | 문장; 위치 없음; 없음, 자리와 무관한 반올림; 위치 있음
nothing_left | the difference is exactly 0: the model sees a bag of words.
    | 차이는 정확히 0입니다. 모델에게는 순서 없는 단어 주머니로 보이는 것입니다.
exactness | Without positions each word has the same vector in both orders, to within {without}: the same numbers, added
    in another order and rounded on the way (float64 holds about 16 digits). Computed so that rounding cannot depend on
    a word's place (each projection number by number, each sum over the words rounded only once), {left}
    | 위치가 없으면 각 단어의 벡터는 두 순서에서 같고, 차이는 많아야 {without}입니다. 같은 수를 다른 순서로 더하면서
    중간에 반올림했기 때문입니다(float64는 약 16자리까지 담습니다). 반올림이 단어의 자리와 무관하도록 계산하면(투영은 수
    하나씩, 단어에 대한 합은 한 번만 반올림) {left}
positions | The sentences of the long pair mean the opposite with the same {n} words. The bars show how far each word's
    vector moves between them, as a share of its length. With positions on, “{most[1]}” (word {most[0]}) moves most, by
    {most[2]}, and “{least[1]}” (word {least[0]}) least, by {least[2]}. The {n_go} words that stand at another place
    move by {gone} on average; the {n_stay} that stay where they are, by {stayed}, only because of what stands around
    them.
    | 긴 쌍의 두 문장은 같은 단어 {n}개로 정반대의 뜻을 말합니다. 막대는 두 문장 사이에서 각 단어의 벡터가 자기 길이의
    몇 %만큼 움직이는지 보여 줍니다. 위치가 있을 때 가장 많이 움직이는 단어: “{most[1]}”({most[0]}번, {most[2]}), 가장
    적게 움직이는 단어: “{least[1]}”({least[0]}번, {least[2]}). 자리가 바뀐 단어 {n_go}개는 평균 {gone}, 제자리에 있는
    단어 {n_stay}개는 오직 주변 단어 때문에 평균 {stayed} 움직입니다.
rows | the attention rows that differ most, with positions (places count from 0)
    | 위치가 있을 때 가장 많이 달라지는 어텐션의 행 (자리는 0부터)
rows_columns | layer.head; word (place); weight moved; looks most at; in the second sentence, at
    | 층.헤드; 단어 (자리); 옮겨 간 가중치; 가장 많이 보는 단어; 둘째 문장에서
most_moved | On average {mean} of a row's weight moves to other words. The picture shows {head} in both sentences, here
    {most}: in {OTHERS} other such pairs its rows moved most. {rows}
    | 한 행의 가중치는 평균 {mean}가 다른 단어로 옮겨 갑니다. 그림은 {head}의 두 문장에서의 패턴입니다(여기서는 {most}).
    이런 쌍 {OTHERS}개에서 행이 가장 많이 달라진 헤드입니다. {rows}
bars | how far each word's vector moves between the two sentences | 두 문장 사이에서 각 단어의 벡터가 움직인 정도
pairs | short pair: first / second sentence; long pair: first / second sentence
    | 짧은 쌍: 첫째 / 둘째 문장; 긴 쌍: 첫째 / 둘째 문장
rest | ; without positions {without} | , 위치가 없으면 {without}
ways | positions off; positions on | 위치 없음; 위치 있음
moved_bars | weight moved between the two sentences | 두 문장 사이에서 옮겨 간 가중치
share | share of the row, mean over heads | 행에서의 비율, 헤드 평균
something | something else in it tells the order. | 위치 말고도 순서를 알려 주는 것이 있는 것입니다.
sentences | sentences | 문장
left | {once} is left. | 차이는 {once}만 남습니다.
which | first (did not get); second (could not get) | 첫째 (did not get); 둘째 (could not get)
pattern | {head}: {what} | {head}: {what}
length | share of the vector's length | 벡터 길이에 대한 비율
views | In head {head}, “{word}” at place {place} looks most at “{at}” (places count from 0).
    | 헤드 {head}: 위치 {place}의 “{word}”이(가) 가장 많이 보는 단어는 “{at}”입니다 (위치는 0부터).
view_all | All heads on “{pair}”. | “{pair}”의 모든 헤드.
""",
    globals(),
)
PAIRS = TEXTS.names("pairs")


def same_words(first: Sequence[str], second: Sequence[str]) -> tuple[int, ...]:
    """Where each word of the first sentence stands in the second; a word that comes twice is paired in order."""
    left: dict[str, list[int]] = {}
    for place, word in enumerate(second):
        left.setdefault(word.lower(), []).append(place)
    return tuple(left[word.lower()].pop(0) for word in first)


def summed_once(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None
) -> tuple[Tensor, None]:
    """Attention whose sums over the keys are rounded only once (`math.fsum`), whatever the order of the keys.

    It is for sentences without padding: the mask hides nothing.
    """
    del mask
    # (B, H, Q, K)
    scores = (query[..., None, :] * key[..., None, :, :]).sum(dim=-1) / query.shape[-1] ** 0.5
    exponentials = (scores - scores.amax(dim=-1, keepdim=True)).exp()  # (B, H, Q, K)
    total = _fsum(exponentials)  # (B, H, Q)
    # (B, H, Q, d, K)
    products = exponentials[..., None, :] * value.transpose(-2, -1)[..., None, :, :]
    return _fsum(products) / total[..., None], None  # (B, H, Q, d)


@contextmanager
def placeless(model: nn.Module) -> Iterator[None]:
    """Within it every projection is computed number by number: fast matrix products round by the place of a row."""

    def alone(module: nn.Module, given: tuple[Tensor], _: Tensor) -> Tensor:
        weight, bias = module.get_parameter("weight"), module.get_parameter("bias")
        # (B, T, 1, in) x (out, in) -> (B, T, out)
        return (given[0][..., None, :] * weight).sum(dim=-1) + bias

    hooks = [
        part.register_forward_hook(alone) for part in model.modules() if isinstance(part, nn.Linear)
    ]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def _fsum(x: Tensor) -> Tensor:
    """The sums over the last axis, each rounded once."""
    rows = x.flatten(end_dim=-2).tolist()
    return torch.tensor([math.fsum(row) for row in rows], dtype=x.dtype).reshape(x.shape[:-1])


def compare(
    model: LanguageEncoder, ids: Tensor, places: Sequence[int]
) -> tuple[list[float], list[list[float]]]:
    """Read two sentences of the same words [2, tokens], with positions and without, in float64.

    Returns the largest difference between a word's two vectors: positions off; off, and computed so that rounding
    cannot depend on a word's place; on. Then each word's difference as a share of its vector's length: off, on.
    """
    without, with_them = model(ids, positions=False).vectors, model(ids).vectors
    with placeless(model):
        once = model(ids, positions=False, attend=summed_once).vectors
    apart = [x[0] - x[1, list(places)] for x in (without, once, with_them)]
    shares = ((apart[0], without), (apart[2], with_them))
    return (
        [float(difference.abs().max()) for difference in apart],
        [(difference.norm(dim=-1) / x[0].norm(dim=-1)).tolist() for difference, x in shares],
    )


def moved_shares(records: Iterable[Attention]) -> list[np.ndarray]:
    """Of each two records of the same words the share of each row's weight that moves to others [layer, head, query].

    What a row lacks lies on special tokens, which are one more word here.
    """
    found, shares = list(records), []
    for one, other in zip(found[::2], found[1::2], strict=True):
        places = list(same_words(words_of(one.text), words_of(other.text)))
        change = one.weights - other.weights[:, :, places][..., places]
        shares.append((np.abs(change).sum(axis=-1) + np.abs(change.sum(axis=-1))) / 2)
    return shares


def other_pairs(n: int = OTHERS) -> list[str]:
    """Other sentences as the long pair, and after each the same with its “not” in the other clause."""
    texts: list[str] = []
    for one in islice(splits.sentences("validation", kind="although"), n):
        words = [word for word in one.words if word != "not"]
        at = words.index("could" if "not" in one.words[: one.words.index(",")] else "did") + 1
        texts += map(
            common.sentence_text, (one, replace(one, words=(*words[:at], "not", *words[at:])))
        )
    return texts


def tell(model: Model = None) -> Story:
    """The demo: two pairs of sentences, each of the same words, with positions and without."""
    source = common.open_own(model or TOY)
    others = [
        shares.mean(axis=-1, keepdims=True)
        for shares in moved_shares(read_words(source, other_pairs()))
    ]
    head, is_toy = common.largest(np.mean(others, axis=0)), source.name == TOY
    records = (
        attend_all(LONG, open_source(TOY)) if is_toy else list(read_words(source, (*SHORT, *LONG)))
    )
    patterns, shares = [record.weights for record in records[-2:]], moved_shares(records)[-1]
    say = TEXTS.filled(
        name=common.name_of(source),
        mean=percent(shares.mean()),
        seen=receipt_of(records[-2]),
        rows=common.ROWS,
        head=common.head_name(head),
        most=percent(shares[head].mean()),
    )
    say, parts, bars = _of_toy(say) if is_toy else _of_another(say, source, records)
    top = float(max(pattern[head].max() for pattern in patterns))
    panels = (
        common.square(say("pattern", what=what), pattern[head], words_of(text), top)
        for what, pattern, text in zip(say.names("which"), patterns, LONG, strict=True)
    )
    return common.story(
        say,
        (
            "introduction",
            *parts,
            _rows_moved(shares, *patterns),
            "most_moved",
            *common.notes_of(records),
        ),
        (*panels, bars),
        title="title" if is_toy else "title_of_another",
        receipt="receipt" if is_toy else receipt_of(records[-2]),
        views=_views(shares, patterns),
        records=() if is_toy else records,
    )


def _of_another(
    say: Texts, source: Source, records: Sequence[Attention]
) -> tuple[Texts, list[Phrase | Table], Bars]:
    """With the weights of any model: what moves, with positions and without where they can be taken away."""
    on, bare = moved_shares(records), common.without_positions(source, (*SHORT, *LONG))
    off = moved_shares(bare) if bare else None
    say = say.filled(rest=say("rest", without=percent(off[1].mean())) if off else Phrase("", ""))
    ways = {way: shares for way, shares in zip(say.names("ways"), (off, on), strict=True) if shares}
    rows = tuple(
        (pair, *(percent(way[i].mean()) for way in ways.values())) for i, pair in enumerate(PAIRS)
    )
    series = Series.each({way: shares[1].mean(axis=(0, 1)) for way, shares in ways.items()})
    moves = Table(say("moves"), (say("sentences"), *ways), rows)
    bars = Bars(say("moved_bars"), tuple(words_of(LONG[0])), series, say("share"))
    return say, [_without(say, off, records), moves], bars


def _without(say: Texts, off: list[np.ndarray] | None, records: Sequence[Attention]) -> Phrase:
    """What is left of the order when no word has a position."""
    if off is None:
        return say("cannot")
    pieces = [sorted(token.piece for token in record.query_tokens) for record in records]
    same = [one == other for one, other in zip(pieces[::2], pieces[1::2], strict=True)]
    most = float(max(shares.max() for shares, alike in zip(off, same, strict=True) if alike))
    if most < LEAST:
        return say(
            "bag_of_words",
            most=small(most),
            other=Phrase("", "") if all(same) else say("other_token"),
        )
    return say(
        "still_moves",
        most=small(most),
        why=say("mask" if records[0].kind == "decoder" else "something"),
    )


@torch.inference_mode()
def _of_toy(say: Texts) -> tuple[Texts, list[Phrase | Table], Bars]:
    """With toy, whose vectors can be had with positions and without."""
    card, model = common.open_model(TOY, LanguageEncoder)
    model = model.double()  # so that rounding is far below what is to be seen
    found = []
    for pair in (SHORT, LONG):
        words = [words_of(sentence) for sentence in pair]
        found.append(compare(model, common.numbers(card.source, words), same_words(*words)))
    without, once, largest = (
        max(each) for each in zip(*(differences for differences, _ in found), strict=True)
    )
    rows = (
        (pair, *map(small, differences))
        for pair, (differences, _) in zip(PAIRS, found, strict=True)
    )
    say = say.filled(off=small(without), on=small(largest))
    long, (_, shares) = words_of(LONG[0]), found[1]
    series = Series.each(dict(zip(say.names("ways"), shares, strict=True)))
    bars = Bars(say("bars"), tuple(long), series, say("length"))
    parts = (
        common.table(say, "differences", rows),
        _exactness(without, once),
        _what_positions_do(long, shares[1]),
    )
    return say, [*parts], bars


def _exactness(without: float, once: float) -> Phrase:
    left = TEXTS("left" if once else "nothing_left", once=small(once))
    return TEXTS("exactness", without=small(without), left=left)


def _what_positions_do(words: Sequence[str], moved: Sequence[float]) -> Phrase:
    order = sorted(range(len(words)), key=lambda place: -moved[place])
    most, least = ((place, words[place], percent(moved[place])) for place in (order[0], order[-1]))
    stay, go = list[float](), list[float]()
    for place, there in enumerate(same_words(words, words_of(LONG[1]))):
        (stay if place == there else go).append(moved[place])
    gone, stayed = (percent(sum(shares) / len(shares)) for shares in (go, stay))
    return TEXTS(
        "positions",
        n=len(words),
        most=most,
        least=least,
        n_go=len(go),
        n_stay=len(stay),
        gone=gone,
        stayed=stayed,
    )


def _rows_moved(shares: np.ndarray, first: np.ndarray, second: np.ndarray) -> Table:
    words, others = map(words_of, LONG)
    there = same_words(words, others)
    rows = []
    for place in np.argsort(-shares, axis=None, kind="stable")[:SHOWN]:
        layer, head, query = (int(i) for i in np.unravel_index(place, shares.shape))
        here, then = (
            int(first[layer, head, query].argmax()),
            int(second[layer, head, there[query]].argmax()),
        )
        share, word = percent(float(shares[layer, head, query])), f"{words[query]} ({query})"
        rows.append(
            (f"{layer}.{head}", word, share, f"{words[here]} ({here})", f"{others[then]} ({then})")
        )
    return common.table(TEXTS, "rows", rows)


def _views(shares: np.ndarray, patterns: Sequence[np.ndarray]) -> Iterator[StoryView]:
    """The row that differs most, in both sentences; then all heads."""
    words = [words_of(text) for text in LONG]
    layer, head, query = (int(i) for i in np.unravel_index(int(shares.argmax()), shares.shape))
    for number, place in enumerate((query, same_words(*words)[query])):
        at = words[number][int(patterns[number][layer, head, place].argmax())]
        text = TEXTS("views", head=f"{layer}.{head}", word=words[number][place], place=place, at=at)
        record = len(SHORT) + number  # those of the short pair come first
        yield StoryView(
            text=text, sentence=LONG[number], record=record, head=(layer, head), query=place
        )
    for number, pair in enumerate(SHORT):
        yield StoryView(text=TEXTS("view_all", pair=pair), sentence=pair, record=number)
