"""Query, key and value as a library search, in which every book counts a little.

The vectors are written by hand, so that they are readable; attention computes scores, weights and results.

Source of the formula: Vaswani et al. 2017, "Attention Is All You Need", section 3.2:
https://arxiv.org/abs/1706.03762
"""

from __future__ import annotations

import torch
from torch import Tensor

from attnviz.models.attention import attention_scores, scaled_dot_product_attention
from attnviz.stories.record import Bars, Lines, Matrix, Series, Story, Table
from attnviz.text.display import percent
from attnviz.text.messages import N_, _

TOPICS = (N_("Korea"), N_("cooking"), N_("history"), N_("animals"), N_("space"))
KEYS = {  # how much each title is about each topic; all vectors have the same length
    "Korean Cooking": (1, 2, 0, 0, 0),
    "A History of Korea": (1, 0, 2, 0, 0),
    "A History of Bread": (0, 1, 2, 0, 0),
    "Animals of Korea": (1, 0, 0, 2, 0),
    "Animals in Space": (0, 0, 0, 2, 1),
}
PAGES = (N_("recipes"), N_("dates"), N_("animals"))
VALUES = {  # how many pages of each kind each book has
    "Korean Cooking": (180, 10, 10),
    "A History of Korea": (0, 290, 10),
    "A History of Bread": (60, 140, 0),
    "Animals of Korea": (0, 20, 180),
    "Animals in Space": (0, 30, 70),
}
# The title of one of the books, and a title that no book has.
QUERIES = {"Korean Cooking": (1, 2, 0, 0, 0), "How Koreans Once Cooked": (1, 2, 2, 0, 0)}
FACTORS = [2.0**power for power in range(-4, 5)]


def build_story() -> Story:
    """Search for a title that exists and one that does not, then multiply the scores by several factors."""
    query, key, value = (
        torch.tensor(list(rows.values())).double() for rows in (QUERIES, KEYS, VALUES)
    )
    scores = attention_scores(query, key)
    results, weights = scaled_dot_product_attention(query, key, value)
    # Multiplying the query by a factor multiplies its scores by the same factor.
    multiples = torch.tensor(FACTORS).double()[:, None] * query[:1]
    sharpened = scaled_dot_product_attention(multiples, key, value)[1]
    exact, absent = QUERIES
    best, second = sorted(weights[0].tolist(), reverse=True)[:2]
    pages = _("{recipes:.0f} pages of recipes, {dates:.0f} of dates and {animals:.0f} of animals")
    exact_result, absent_result = (
        pages.format(recipes=recipes, dates=dates, animals=animals)
        for recipes, dates, animals in results.tolist()
    )
    vectors_shown = torch.cat([query, key]).numpy()
    return Story(
        title=_(
            "Attention is a soft choice: “{exact}” gets {best:.0%} of it, the second "
            "book still {second:.0%}"
        ).format(exact=exact, best=best, second=second),
        receipt=_(
            "Vectors made by hand; scores, weights and results computed as in Vaswani et al. 2017, "
            "equation 1."
        ),
        parts=[
            _(
                "You come to a library with a title in mind: the query. You compare it with the "
                "titles on the spines: the keys. What you take home is the contents of the books: the "
                "values. Here each title is a vector made by hand, one number a topic, so that you "
                "can read it. A model learns to make its vectors."
            ),
            Table(
                _("Keys: how much each title speaks of each topic"),
                [_("title"), *map(_, TOPICS)],
                [(title, *row) for title, row in KEYS.items()],
            ),
            Table(
                _("Values: pages of each kind in the book"),
                [_("title"), *map(_, PAGES)],
                [(title, *row) for title, row in VALUES.items()],
            ),
            _(
                "The score of a book is the dot product of query and key, divided by sqrt({n}): high "
                "where both speak of the same topics. softmax turns the scaled scores into weights, "
                "positive and with sum 1. The result is the sum of the values, each times its weight."
            ).format(n=len(TOPICS)),
            _search_table(exact, scores[0], weights[0], results[0]),
            _(
                "A dictionary would return only the book “{exact}”. Attention gives it the largest "
                "weight, {best}, but mixes in the others: {found}."
            ).format(exact=exact, best=percent(best), found=exact_result),
            _search_table(absent, scores[1], weights[1], results[1]),
            _(
                "For “{absent}” a dictionary would return nothing. Attention mixes the books nearest "
                "to it: {mixed}. Multiplying the scores makes the mix sharper or softer: with a large "
                "factor the best key takes everything, as in a dictionary; with 0 all keys weigh the "
                "same. In the picture, the lines of books with equal scores coincide."
            ).format(absent=absent, mixed=absent_result),
        ],
        main=1,
        picture=[
            Matrix(
                _("Queries (?) and keys"),
                vectors_shown,
                [*(f"? {title}" for title in QUERIES), *KEYS],
                [*map(_, TOPICS)],
                _("query (?) or key"),
                _("topic"),
                (0.0, float(vectors_shown.max())),
            ),
            Bars(
                _("How much of each book comes back"),
                list(KEYS),
                [Series(title, row) for title, row in zip(QUERIES, weights.tolist(), strict=True)],
                _("weight"),
            ),
            Lines(
                _("Query “{exact}”, scores multiplied").format(exact=exact),
                FACTORS,
                _("scores times"),
                [Series(title, row) for title, row in zip(KEYS, sharpened.T.tolist(), strict=True)],
                _("weight"),
                (0.0, 1.0),
                doubling=True,
            ),
        ],
    )


def _search_table(title: str, scores: Tensor, weights: Tensor, result: Tensor) -> Table:
    """Return the score, weight and weighted pages of each book, with their sums."""
    rows: list[list[str | float]] = []
    for book, score, weight in zip(KEYS, scores.tolist(), weights.tolist(), strict=True):
        rows.append([book, score, weight, *(weight * pages for pages in VALUES[book])])
    rows.append([_("sum"), "", float(weights.sum()), *result.tolist()])
    return Table(
        _("Query: “{title}”").format(title=title),
        [
            _("title"),
            _("score"),
            _("weight"),
            *(_("weight x {kind}").format(kind=_(kind)) for kind in PAGES),
        ],
        rows,
        digits=2,
    )
