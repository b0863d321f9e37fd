"""Query, key and value by the picture of a library: a look-up that may be soft.

The vectors are made by hand, to be read; scores, weights and what comes back are computed by attention itself.

Source of the formula: Vaswani et al. 2017, "Attention Is All You Need", section 3.2:
https://arxiv.org/abs/1706.03762
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from attnviz.models.attention import attention_scores, scaled_dot_product_attention
from attnviz.stories.common import story, table
from attnviz.stories.record import Bars, Cell, Lines, Matrix, Series, Story, Table
from attnviz.text.phrase import Phrase, Texts

TOPICS = (
    Phrase("Korea", "한국"),
    Phrase("cooking", "요리"),
    Phrase("history", "역사"),
    Phrase("animals", "동물"),
    Phrase("space", "우주"),
)
"""What the numbers of queries and keys stand for, one each."""
SPINES: dict[str, tuple[int, ...]] = {
    "Korean Cooking": (1, 2, 0, 0, 0),
    "A History of Korea": (1, 0, 2, 0, 0),
    "A History of Bread": (0, 1, 2, 0, 0),
    "Animals of Korea": (1, 0, 0, 2, 0),
    "Animals in Space": (0, 0, 0, 2, 1),
}
"""The keys: how much each title speaks of each topic. All are of one length, so that none is louder than another."""
PAGES = (Phrase("recipes", "요리법"), Phrase("dates", "연도"), Phrase("animals", "동물"))
CONTENTS: dict[str, tuple[int, ...]] = {
    "Korean Cooking": (180, 10, 10),
    "A History of Korea": (0, 290, 10),
    "A History of Bread": (60, 140, 0),
    "Animals of Korea": (0, 20, 180),
    "Animals in Space": (0, 30, 70),
}
"""The values: how many pages of each kind the book has."""
SOUGHT: dict[str, tuple[int, ...]] = {
    "Korean Cooking": SPINES["Korean Cooking"],
    "How Koreans Once Cooked": (1, 2, 2, 0, 0),
}
"""The queries: a title that stands on a spine, and one that stands on none."""
SPINE, WEIGHT = Phrase("on the spine", "책등"), Phrase("weight", "가중치")
TIMES = Phrase("scores times", "스코어에 곱한 수")
FACTORS = (0.0, 0.25, 1.0, 4.0, 16.0)
DOUBLED = tuple(2.0**power for power in range(-4, 5))
TEXTS = Texts(
    """
title | “{exact}” is found with {best:.2f} of the weight; the next book gets {second:.2f}
    | “{exact}”: 찾던 책의 가중치가 {best:.2f}, 그다음 책이 {second:.2f}
dictionary | A dictionary knows only yes and no. “{exact}” is there: out come {held}. “{absent}” stands on no spine: out
    comes {nothing}.
    | 사전(dictionary)은 있다와 없다밖에 모릅니다. “{exact}” 책은 있으므로 결과는 {held}입니다. “{absent}” 책은 어느
    책등에도 없으므로 결과는 {nothing}입니다.
found | For “{exact}” the right book has the largest weight, {best:.2f}, but the next has {second:.2f}, and out come
    {out}: a mix.
    | “{exact}”의 경우 맞는 책의 가중치가 가장 크지만({best:.2f}) 그다음 책도 {second:.2f}입니다. 그래서 나오는 것은
    {out}, 곧 섞인 내용입니다.
absent | For “{absent}” attention does what no dictionary can: it mixes the books nearest to it, {nearest}. Out come
    {mixed}.
    | “{absent}”의 경우 어텐션은 사전이 못 하는 일을 합니다. 가장 가까운 책들을 섞는 것입니다: {nearest}. 나오는 것은
    {mixed}입니다.
multiplied | Multiply the scores, and the mix grows sharper or softer. By a large number the best key takes all: the
    soft look-up becomes the exact one. By 0 all keys weigh the same, and out comes the average of the library.
    | 스코어에 수를 곱하면 섞이는 정도가 달라집니다. 큰 수를 곱하면 가장 잘 맞는 키가 모두 가져가서, 부드러운 찾기가
    정확한 찾기가 됩니다. 0을 곱하면 모든 키의 가중치가 같아져서, 도서관 전체의 평균이 나옵니다.
receipt | vectors made by hand; scores, weights and results computed by attention as in Vaswani et al. 2017, equation 1
    | 벡터는 손으로 만들었고, 스코어와 가중치와 결과는 어텐션(Vaswani 외 2017, 식 1)으로 계산함
sharpened | sought: “{exact}”, its scores multiplied: what each book weighs, and what comes back
    | 찾는 제목 “{exact}”, 스코어에 곱한 수에 따라: 책마다의 가중치와 결과
on_one_another | {names} have equal scores, so they weigh the same whatever the factor: in the picture their lines lie
    on one another, the later one dashed.
    | 스코어가 같은 책: {names}. 무엇을 곱해도 가중치가 같으므로 그림에서 선이 겹치고, 뒤의 것은 점선입니다.
introduction | You come to a library with a title in mind: the query. You hold it against the titles on the spines: the
    keys. What you take home is not the spine but what is in the book: the value. Here each title is a vector, one
    number a topic, made by hand so that you can read it; a model learns its own, by three projections of each word's
    vector. All else below is computed by attention.
    | 도서관에 찾을 제목을 들고 왔다고 합시다. 이 제목이 쿼리입니다. 제목을 책등에 적힌 제목들과 견줍니다. 이것이
    키입니다. 그런데 집에 가져가는 것은 책등이 아니라 책의 내용입니다. 이것이 밸류입니다. 여기서 제목은 주제마다 수가
    하나씩 있는 벡터이고, 읽을 수 있도록 손으로 만들었습니다. 모델은 단어 벡터를 세 가지로 투영해 이런 벡터를 스스로
    배웁니다. 아래의 나머지는 모두 어텐션이 계산합니다.
soft | Attention scores every spine. The score is the dot product of query and key, here divided by sqrt({n}): high
    where both speak of the same topics. The softmax makes weights of the scores, positive and with sum 1. What comes
    back is the values, each times its weight, added.
    | 어텐션은 모든 책등에 스코어를 매깁니다. 스코어는 쿼리와 키의 내적을 sqrt({n})로 나눈 값으로, 둘이 같은 주제를
    다룰수록 높습니다. 소프트맥스는 스코어를 0보다 크고 합이 1인 가중치로 바꿉니다. 밸류마다 가중치를 곱해 모두 더한
    것이 결과입니다.
tables | the keys: how much each title speaks of each topic; the values: pages of each kind in the book
    | 키: 제목마다 각 주제를 얼마나 다루는가; 밸류: 책에 든 종류별 쪽수
nothing | nothing | “없음”
weighed | weight x {kind} | 가중치 x {kind}
sought | sought: “{title}” | 찾는 제목: “{title}”
score | score | 스코어
sum | sum | 합
weight_of | weight of {spine} | 가중치: {spine}
pages_of | pages of {kind} | {kind} 쪽수
as_dictionary | dictionary | 사전
vectors | queries (?) and keys as vectors | 벡터로 나타낸 쿼리(?)와 키
vector_axes | sought (?), then on the spines; topic | 찾는 제목(?), 그다음 책등; 주제
shares | how much of each book comes back | 책마다 돌아오는 몫
lines | sought: “{exact}”; scores multiplied | 찾는 제목: “{exact}”; 스코어에 수를 곱함
""",
    globals(),
)


def vectors() -> tuple[Tensor, Tensor, Tensor]:
    """Queries [query, topic], keys [key, topic] and values [key, kind of page]."""
    query, key, value = (
        torch.tensor(list(made.values())).double() for made in (SOUGHT, SPINES, CONTENTS)
    )
    return query, key, value


def sharpen(factors: tuple[float, ...]) -> tuple[Tensor, Tensor]:
    """What comes back for the first title sought [factor, kind of page] and the weights [factor, key].

    The scores are multiplied by each factor; the query is, which comes to the same.
    """
    query, key, value = vectors()
    return scaled_dot_product_attention(
        torch.tensor(factors).double()[:, None] * query[:1], key, value
    )


def tell() -> Story:
    """The demo: an exact look-up beside attention, and how scaling the scores leads from one to the other."""
    query, key, value = vectors()
    scores = attention_scores(query, key)
    context, weights = scaled_dot_product_attention(query, key, value)
    exact, absent = SOUGHT
    best, second = sorted(weights[0].tolist(), reverse=True)[:2]
    out, mixed = (_pages(numbers) for numbers in context.tolist())
    nearest = sorted(zip(weights[1].tolist(), SPINES, strict=True), reverse=True)[:3]
    say = TEXTS.filled(
        exact=exact,
        absent=absent,
        best=best,
        second=second,
        out=out,
        mixed=mixed,
        n=len(TOPICS),
        held=_pages(CONTENTS[exact]),
        nothing=TEXTS("nothing"),
        nearest=", ".join(f"{title} ({share:.2f})" for share, title in nearest),
    )
    library = (
        Table(title, (SPINE, *names), tuple((name, *numbers) for name, numbers in made.items()))
        for title, names, made in zip(
            say.names("tables"), (TOPICS, PAGES), (SPINES, CONTENTS), strict=True
        )
    )
    found, other = (_scored(*one) for one in zip(SOUGHT, scores, weights, strict=True))
    parts: list[str | Table] = [
        "introduction",
        *library,
        "dictionary",
        "soft",
        found,
        "found",
        other,
        "absent",
        "multiplied",
        _sharpened(say, exact),
        *_on_one_another(weights[0]),
    ]
    titles, topics = say.names("vector_axes")
    rows, made = (*(f"? {title}" for title in SOUGHT), *SPINES), torch.cat([query, key]).numpy()
    shares = Series.each(dict(zip(SOUGHT, weights.tolist(), strict=True)))
    multiplied = Series.each(dict(zip(SPINES, sharpen(DOUBLED)[1].T.tolist(), strict=True)))
    picture = (
        Matrix(say("vectors"), made, rows, TOPICS, titles, topics, (0.0, float(made.max()))),
        Bars(say("shares"), tuple(SPINES), shares, WEIGHT),
        Lines(say("lines"), DOUBLED, TIMES, multiplied, WEIGHT, (0.0, 1.0), doubling=True),
    )
    return story(say, parts, picture)


def _pages(numbers: Sequence[float]) -> Phrase:
    """As ``180 pages of recipes, 10 of dates and 10 of animals``."""
    *most, last = (f"{number:.0f} of {kind}" for number, kind in zip(numbers, PAGES, strict=True))
    korean = ", ".join(
        f"{kind.ko} {number:.0f}쪽" for number, kind in zip(numbers, PAGES, strict=True)
    )
    return Phrase(f"{', '.join(most)} and {last}".replace(" of", " pages of", 1), korean)


def _scored(title: str, scores: Tensor, weights: Tensor) -> Table:
    shares = weights.tolist()
    products = [
        [weight * pages for pages in CONTENTS[spine]]
        for spine, weight in zip(SPINES, shares, strict=True)
    ]
    books = zip(SPINES, scores.tolist(), shares, products, strict=True)
    rows = [(spine, score, weight, *pages) for spine, score, weight, pages in books]
    total: tuple[Cell, ...] = (
        TEXTS("sum"),
        "",
        float(weights.sum()),
        *map(sum, zip(*products, strict=True)),
    )
    columns = SPINE, TEXTS("score"), WEIGHT, *(TEXTS("weighed", kind=kind) for kind in PAGES)
    return table(TEXTS.filled(title=title), "sought", [*rows, total], columns, digits=2)


def _sharpened(say: Texts, title: str) -> Table:
    contexts, weights = sharpen(FACTORS)
    rows = zip(FACTORS, weights.tolist(), contexts.tolist(), strict=True)
    weight_of, pages_of = (
        (say("weight_of", spine=s) for s in SPINES),
        (say("pages_of", kind=k) for k in PAGES),
    )
    soft = ((f"{factor:g}", *row, *context) for factor, row, context in rows)
    held = *(float(spine == title) for spine in SPINES), *map(float, CONTENTS[title])
    return table(
        say,
        "sharpened",
        [*soft, (say("as_dictionary"), *held)],
        (TIMES, *weight_of, *pages_of),
        digits=2,
    )


def _on_one_another(weights: Tensor) -> tuple[Phrase, ...]:
    """Which books weigh the same whatever the factor, so that their lines in the picture are one."""
    alike: dict[str, list[str]] = {}
    for spine, weight in zip(SPINES, weights.tolist(), strict=True):
        alike.setdefault(f"{weight:.12f}", []).append(spine)
    named = (
        Phrase(" and ".join(spines), ", ".join(spines))
        for spines in alike.values()
        if len(spines) > 1
    )
    return tuple(TEXTS("on_one_another", names=names) for names in named)
