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
from attnviz.text.messages import Phrase, _, join_phrases, pgettext

TOPICS = (_("Korea"), _("cooking"), _("history"), _("animals"), _("space"))
"""Meanings of the numbers of queries and keys."""
SPINES: dict[str, tuple[int, ...]] = {
    "Korean Cooking": (1, 2, 0, 0, 0),
    "A History of Korea": (1, 0, 2, 0, 0),
    "A History of Bread": (0, 1, 2, 0, 0),
    "Animals of Korea": (1, 0, 0, 2, 0),
    "Animals in Space": (0, 0, 0, 2, 1),
}
"""The keys: how much each title speaks of each topic. All are of one length, so that none is louder than another."""
PAGES = (_("recipes"), _("dates"), _("animals"))
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
SPINE, WEIGHT = _("on the spine"), _("weight")
TIMES = _("scores times")
FACTORS = (0.0, 0.25, 1.0, 4.0, 16.0)
DOUBLED = tuple(2.0**power for power in range(-4, 5))
PAGES_OF_EACH = _(
    "{recipes:.0f} pages of recipes, {dates:.0f} of dates and {animals:.0f} of animals"
)
TITLE = _("“{exact}” is found with {best:.2f} of the weight; the next book gets {second:.2f}")
DICTIONARY = _(
    "A dictionary knows only yes and no. “{exact}” is there: out come {held}. “{absent}” stands "
    "on no spine: out comes {nothing}."
)
FOUND = _(
    "For “{exact}” the right book has the largest weight, {best:.2f}, but the next has "
    "{second:.2f}, and out come {out}: a mix."
)
ABSENT = _(
    "For “{absent}” attention does what no dictionary can: it mixes the books nearest to it, "
    "{nearest}. Out come {mixed}."
)
MULTIPLIED = _(
    "Multiply the scores, and the mix grows sharper or softer. By a large number the best key "
    "takes all: the soft look-up becomes the exact one. By 0 all keys weigh the same, and out "
    "comes the average of the library."
)
RECEIPT = _(
    "vectors made by hand; scores, weights and results computed by attention as in Vaswani et al. "
    "2017, equation 1"
)
SHARPENED = _(
    "sought: “{exact}”, its scores multiplied: what each book weighs, and what comes back"
)
ON_ONE_ANOTHER = _(
    "{names} have equal scores, so they weigh the same whatever the factor: in the picture their "
    "lines lie on one another, the later one dashed."
)
INTRODUCTION = _(
    "You come to a library with a title in mind: the query. You hold it against the titles on the "
    "spines: the keys. What you take home is not the spine but what is in the book: the value. "
    "Here each title is a vector, one number a topic, made by hand so that you can read it; a "
    "model learns its own, by three projections of each word's vector. All else below is computed "
    "by attention."
)
SOFT = _(
    "Attention scores every spine. The score is the dot product of query and key, here divided by "
    "sqrt({n}): high where both speak of the same topics. The softmax makes weights of the "
    "scores, positive and with sum 1. What comes back is the values, each times its weight, "
    "added."
)


def vectors() -> tuple[Tensor, Tensor, Tensor]:
    """Queries [query, topic], keys [key, topic] and values [key, kind of page]."""
    query, key, value = (
        torch.tensor(list(made.values())).double() for made in (SOUGHT, SPINES, CONTENTS)
    )
    return query, key, value


def sharpen(factors: tuple[float, ...]) -> tuple[Tensor, Tensor]:
    """Return the result for the first title sought [factor, kind of page] and the weights [factor, key].

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
    by_weight = sorted(zip(weights[1].tolist(), SPINES, strict=True), reverse=True)
    n = len(TOPICS)
    held = _pages(CONTENTS[exact])
    nothing = pgettext("library", "nothing")
    nearest = ", ".join(f"{title} ({share:.2f})" for share, title in by_weight[:3])
    library = (
        Table(title, (SPINE, *names), tuple((name, *numbers) for name, numbers in made.items()))
        for title, names, made in zip(
            (
                _("the keys: how much each title speaks of each topic"),
                _("the values: pages of each kind in the book"),
            ),
            (TOPICS, PAGES),
            (SPINES, CONTENTS),
            strict=True,
        )
    )
    found, other = (_scored(*one) for one in zip(SOUGHT, scores, weights, strict=True))
    parts: list[Phrase | Table] = [
        INTRODUCTION,
        *library,
        DICTIONARY.format(exact=exact, held=held, absent=absent, nothing=nothing),
        SOFT.format(n=n),
        found,
        FOUND.format(exact=exact, best=best, second=second, out=out),
        other,
        ABSENT.format(absent=absent, nearest=nearest, mixed=mixed),
        MULTIPLIED,
        _sharpened(exact),
        *_on_one_another(weights[0]),
    ]
    titles, topics = (_("sought (?), then on the spines"), _("topic"))
    rows, made = (*(f"? {title}" for title in SOUGHT), *SPINES), torch.cat([query, key]).numpy()
    shares = Series.each(dict(zip(SOUGHT, weights.tolist(), strict=True)))
    multiplied = Series.each(dict(zip(SPINES, sharpen(DOUBLED)[1].T.tolist(), strict=True)))
    picture = (
        Matrix(
            _("queries (?) and keys as vectors"),
            made,
            rows,
            TOPICS,
            titles,
            topics,
            (0.0, float(made.max())),
        ),
        Bars(_("how much of each book comes back"), tuple(SPINES), shares, WEIGHT),
        Lines(
            _("sought: “{exact}”; scores multiplied").format(exact=exact),
            DOUBLED,
            TIMES,
            multiplied,
            WEIGHT,
            (0.0, 1.0),
            doubling=True,
        ),
    )
    return story(
        title=TITLE.format(exact=exact, best=best, second=second),
        receipt=RECEIPT,
        parts=parts,
        picture=picture,
    )


def _pages(numbers: Sequence[float]) -> Phrase:
    """As ``180 pages of recipes, 10 of dates and 10 of animals``."""
    recipes, dates, animals = numbers
    return PAGES_OF_EACH.format(recipes=recipes, dates=dates, animals=animals)


def _scored(title: str, scores: Tensor, weights: Tensor) -> Table:
    shares = weights.tolist()
    products = [
        [weight * pages for pages in CONTENTS[spine]]
        for spine, weight in zip(SPINES, shares, strict=True)
    ]
    books = zip(SPINES, scores.tolist(), shares, products, strict=True)
    rows = [(spine, score, weight, *pages) for spine, score, weight, pages in books]
    total: tuple[Cell, ...] = (
        _("sum"),
        "",
        float(weights.sum()),
        *map(sum, zip(*products, strict=True)),
    )
    columns = SPINE, _("score"), WEIGHT, *(_("weight x {kind}").format(kind=kind) for kind in PAGES)
    return table(_("sought: “{title}”").format(title=title), columns, [*rows, total], digits=2)


def _sharpened(exact: str) -> Table:
    contexts, weights = sharpen(FACTORS)
    rows = zip(FACTORS, weights.tolist(), contexts.tolist(), strict=True)
    weight_of, pages_of = (
        (_("weight of {spine}").format(spine=s) for s in SPINES),
        (_("pages of {kind}").format(kind=k) for k in PAGES),
    )
    soft = ((f"{factor:g}", *row, *context) for factor, row, context in rows)
    held = *(float(spine == exact) for spine in SPINES), *map(float, CONTENTS[exact])
    return table(
        SHARPENED.format(exact=exact),
        (TIMES, *weight_of, *pages_of),
        [*soft, (_("dictionary"), *held)],
        digits=2,
    )


def _on_one_another(weights: Tensor) -> tuple[Phrase, ...]:
    """Which books weigh the same whatever the factor, so that their lines in the picture are one."""
    alike: dict[str, list[str]] = {}
    for spine, weight in zip(SPINES, weights.tolist(), strict=True):
        alike.setdefault(f"{weight:.12f}", []).append(spine)
    named = (join_phrases(spines, " and ", ", ") for spines in alike.values() if len(spines) > 1)
    return tuple(ON_ONE_ANOTHER.format(names=names) for names in named)
