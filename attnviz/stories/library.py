"""Query, key and value by the picture of a library: a look-up that may be soft.

The vectors are made by hand, to be read; scores, weights and what comes back are computed by attention itself.

Source of the formula: Vaswani et al. 2017, "Attention Is All You Need", section 3.2:
https://arxiv.org/abs/1706.03762
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from attnviz.models.attention import attention_scores, scaled_dot_product_attention
from attnviz.stories.common import prose
from attnviz.stories.record import Bars, Lines, Matrix, Series, Story, Table

TOPICS = ("Korea", "cooking", "history", "animals", "space")
"""What the numbers of queries and keys stand for, one each."""
SPINES: dict[str, tuple[int, ...]] = {
    "Korean Cooking": (1, 2, 0, 0, 0),
    "A History of Korea": (1, 0, 2, 0, 0),
    "A History of Bread": (0, 1, 2, 0, 0),
    "Animals of Korea": (1, 0, 0, 2, 0),
    "Animals in Space": (0, 0, 0, 2, 1),
}
"""The keys: how much each title speaks of each topic. All are of one length, so that none is louder than another."""
PAGES = ("recipes", "dates", "animals")
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
FACTORS = (0.0, 0.25, 1.0, 4.0, 16.0)
DOUBLED = tuple(2.0**power for power in range(-4, 5))


def tell() -> Story:
    """The demo: an exact look-up beside attention, and how scaling the scores leads from one to the other."""
    query, key, value = vectors()
    scores = attention_scores(query, key)
    context, weights = scaled_dot_product_attention(query, key, value)
    exact, absent = SOUGHT
    row = weights[0].tolist()
    best, second = sorted(row, reverse=True)[:2]
    found, mixed = (_pages(numbers) for numbers in context.tolist())
    shares = sorted(zip(weights[1].tolist(), SPINES, strict=True), reverse=True)[:3]
    return Story(
        name="library",
        title=f"“{exact}” is found with {best:.2f} of the weight; the next book gets {second:.2f}",
        parts=(
            prose("""You come to a library with a title in mind: the query. You hold it against the titles on the
            spines: the keys. What you take home is not the spine but what is in the book: the value. Here each title is
            a vector, one number a topic, made by hand so that you can read it; a model learns its own, by three
            projections of each word's vector. All else below is computed by attention."""),
            *_library(),
            prose(f"""A dictionary knows only yes and no. “{exact}” is there: out come {_pages(CONTENTS.get(exact))}.
            “{absent}” stands on no spine: out comes {_pages(CONTENTS.get(absent))}."""),
            prose(f"""Attention scores every spine. The score is the dot product of query and key, here divided by
            sqrt({len(TOPICS)}): high where both speak of the same topics. The softmax makes weights of the scores,
            positive and with sum 1. What comes back is the values, each times its weight, added."""),
            _scored(scores[0], weights[0], exact),
            prose(f"""For “{exact}” the right book has the largest weight, {best:.2f}, but the next has {second:.2f},
            and out come {found}: a mix."""),
            _scored(scores[1], weights[1], absent),
            prose(f"""For “{absent}” attention does what no dictionary can: it mixes the books nearest to it,
            {", ".join(f"{title} ({share:.2f})" for share, title in shares)}. Out come {mixed}."""),
            prose("""Multiply the scores, and the mix grows sharper or softer. By a large number the best key takes all:
            the soft look-up becomes the exact one. By 0 all keys weigh the same, and out comes the average of the
            library."""),
            _sharpened(exact),
            *_on_one_another(weights[0]),
        ),
        picture=_picture(query, key, weights),
        receipt="vectors made by hand; scores, weights and results computed by attention as in Vaswani et al. 2017, "
        "equation 1",
    )


def vectors() -> tuple[Tensor, Tensor, Tensor]:
    """Queries [query, topic], keys [key, topic] and values [key, kind of page]."""
    query, key, value = (torch.tensor(list(made.values())).double() for made in (SOUGHT, SPINES, CONTENTS))
    return query, key, value


def sharpened(factors: tuple[float, ...]) -> tuple[Tensor, Tensor]:
    """What comes back for the first title sought [factor, kind of page] and the weights [factor, key].

    The scores are multiplied by each factor; the query is, which comes to the same.
    """
    query, key, value = vectors()
    return scaled_dot_product_attention(torch.tensor(factors).double()[:, None] * query[:1], key, value)


def _library() -> tuple[Table, Table]:
    """The keys and the values, as they were made by hand."""
    return (
        Table(
            title="the keys: how much each title speaks of each topic",
            columns=("on the spine", *TOPICS),
            rows=tuple((title, *numbers) for title, numbers in SPINES.items()),
        ),
        Table(
            title="the values: pages of each kind in the book",
            columns=("on the spine", *PAGES),
            rows=tuple((title, *numbers) for title, numbers in CONTENTS.items()),
        ),
    )


def _pages(numbers: tuple[int, ...] | list[float] | None) -> str:
    """As ``180 pages of recipes, 10 of dates and 10 of animals``."""
    if numbers is None:
        return "nothing"
    *most, last = (f"{number:.0f} of {kind}" for number, kind in zip(numbers, PAGES, strict=True))
    return f"{', '.join(most)} and {last}".replace(" of", " pages of", 1)


def _scored(scores: Tensor, weights: Tensor, title: str) -> Table:
    shares = weights.tolist()
    products = [[weight * pages for pages in CONTENTS[spine]] for spine, weight in zip(SPINES, shares, strict=True)]
    return Table(
        title=f"sought: “{title}”",
        columns=("on the spine", "score", "weight", *(f"weight x {kind}" for kind in PAGES)),
        rows=(
            *(
                (s, score, weight, *p)
                for s, score, weight, p in zip(SPINES, scores.tolist(), shares, products, strict=True)
            ),
            ("sum", "", float(weights.sum()), *map(sum, zip(*products, strict=True))),
        ),
        digits=2,
    )


def _sharpened(title: str) -> Table:
    contexts, weights = sharpened(FACTORS)
    return Table(
        title=f"sought: “{title}”, its scores multiplied: what each book weighs, and what comes back",
        columns=("scores times", *(f"weight of {spine}" for spine in SPINES), *(f"pages of {kind}" for kind in PAGES)),
        rows=(
            *(
                (f"{factor:g}", *row, *context)
                for factor, row, context in zip(FACTORS, weights.tolist(), contexts.tolist(), strict=True)
            ),
            ("dictionary", *(float(spine == title) for spine in SPINES), *map(float, CONTENTS[title])),
        ),
        digits=2,
    )


def _on_one_another(weights: Tensor) -> tuple[str, ...]:
    """Which books weigh the same whatever the factor, so that their lines in the picture are one."""
    alike: dict[str, list[str]] = {}
    for spine, weight in zip(SPINES, weights.tolist(), strict=True):
        alike.setdefault(f"{weight:.12f}", []).append(spine)
    return tuple(
        f"{' and '.join(spines)} have equal scores, so they weigh the same whatever the factor: in the picture their "
        "lines lie on one another, the later one dashed."
        for spines in alike.values()
        if len(spines) > 1
    )


def _picture(query: Tensor, key: Tensor, weights: Tensor) -> tuple[Matrix, Bars, Lines]:
    exact, absent = SOUGHT
    vectors = torch.cat([query, key])
    rows = (f"? {exact}", f"? {absent}", *SPINES)
    top = float(vectors.max())
    return (
        Matrix(
            "queries (?) and keys as vectors", vectors.numpy(), rows, TOPICS,
            "sought (?), then on the spines", "topic", limits=(0.0, top),
        ),
        Bars(
            title="how much of each book comes back",
            labels=tuple(SPINES),
            series=_series(SOUGHT, weights),
            y_title="weight",
        ),
        Lines(
            title=f"sought: “{exact}”; scores multiplied",
            x=DOUBLED,
            x_title="scores times",
            series=_series(SPINES, sharpened(DOUBLED)[1].T),
            y_title="weight",
            y_limits=(0.0, 1.0),
            doubling=True,
        ),
    )  # fmt: skip


def _series(titles: Iterable[str], weights: Tensor) -> tuple[Series, ...]:
    return tuple(Series(name=name, values=tuple(row)) for name, row in zip(titles, weights.tolist(), strict=True))
