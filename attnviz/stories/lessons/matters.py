"""Does it matter? What a model does without the attention to a token: where that is known, and in toy.

Sources: Jain and Wallace 2019, "Attention is not Explanation": https://arxiv.org/abs/1902.10186; sinks, Xiao et al.
2024: https://arxiv.org/abs/2309.17453; heads that stand in for others, McGrath et al. 2023, "The Hydra Effect":
https://arxiv.org/abs/2307.15771
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from attnviz.attributions.api import attribute
from attnviz.attributions.record import Attribution, Verdict
from attnviz.attributions.terminal import verdict_name
from attnviz.attributions.verdicts import CONTROLS, LEAST_NATS, RATIO, SMALL_RATIO, USED
from attnviz.capture.attend import attend
from attnviz.capture.sources.home_built import CircuitSource
from attnviz.models.circuit import RIGHT
from attnviz.models.registry import TOY
from attnviz.stories import common
from attnviz.stories.record import Cell, Matrix, Story, Table
from attnviz.text.display import percent
from attnviz.text.messages import N_, _, pgettext
from attnviz.text.notes import proof

SENTENCE = "The animal didn't cross the street because it was too tired"
DARKEST = 0.6  # larger numbers have the same colour, so that smaller ones can be told apart
# What heads do with each kind of token, and what would mislead a reader.
KINDS = {
    "copied": (N_("one head adds its word to the prediction"), N_("nothing")),
    "relayed": (
        N_("one head brings its word to another token, one from there to the query"),
        N_("the row alone: the query hardly attends to it, but needs it"),
    ),
    "backup": (
        N_("two heads bring its word, and one of them is enough"),
        N_("one head at a time: the other one stands in for it"),
    ),
    "decoy": (
        N_("one head attends to it, and its values are projected to nothing"),
        N_("the weight alone: it is that of “copied”"),
    ),
    "constant": (
        N_("one head adds the same number to all words"),
        N_("the weight alone: it changes no probability"),
    ),
    "sink": (
        N_("heads without a task attend to it, and carry hardly anything"),
        N_("the weight alone: it is the largest"),
    ),
    "cancelling": (
        N_("one head adds its word, another takes it away"),
        N_("one head at a time: together they change nothing"),
    ),
}


class Finding(NamedTuple):
    """A token that has a verdict."""

    token: str
    verdict: Verdict
    numbers: list[float]  # its weight, and the changes of the columns of `_columns`


def findings(found: Attribution) -> list[Finding]:
    """Return the tokens that have a verdict, with their numbers."""
    rows = []
    for place, verdict in enumerate(found.verdicts):
        if verdict is None or verdict.here is None:
            continue
        compared = verdict.counted or verdict.here
        numbers = [found.weight[place], verdict.alone, found.here[place]]
        numbers += [found.everywhere[place], compared.controls]
        rows.append(Finding(found.tokens[place].text, verdict, list(map(float, numbers))))
    return rows


def build_story() -> Story:
    """Cut each kind of token of the circuit, and the words of a sentence that toy reads."""
    source = CircuitSource()
    text = " ".join(source.order)
    circuit = attribute(text, source, target="next", judged=len(source.order))
    by_kind = {row.token: row for row in findings(circuit)}
    kinds = [by_kind[kind] for kind in KINDS]
    used = [row for row in kinds if row.verdict.name in USED]
    heavy = max(kinds, key=lambda row: row.numbers[0])
    light = min(used, key=lambda row: row.numbers[0])
    toy = attribute(SENTENCE, TOY, target="it")
    words = findings(toy)
    records = [attend(text, source), attend(SENTENCE, TOY)]
    # The first kind with the same verdict.
    like = {name: kind for kind, name in reversed(RIGHT.items())}
    alike = [
        _(N_("“{word}” is like “{kind}”").format(word=row.token, kind=like[row.verdict.name]))
        for row in words
        if row.verdict.name in like
    ]
    return Story(
        title=_(
            "Attention is not use: “{heavy}” gets {weight} of it and is not used, “{light}” {other_weight} and is used"
        ).format(
            heavy=heavy.token,
            weight=percent(heavy.numbers[0]),
            light=light.token,
            other_weight=percent(light.numbers[0]),
        ),
        receipt=_("Circuit {proof}; toy {toy_proof}").format(
            proof=proof(circuit.receipt), toy_proof=proof(toy.receipt)
        ),
        parts=[
            _(
                "A weight says where a head attends, not what the model does with it. In this decoder, made by hand "
                "with two layers of nine heads, it is known what each token does for the next word, and each is named "
                "after it. The last one, the query, attends to the others. What heads carry from one of them, weight "
                "times value, is taken out: how far does the prediction move?"
            ),
            _(
                "“one head” cuts the head that changes most alone, “cut here” all heads in the query's row, "
                "“everywhere” all rows. Any large cut changes something. So “equal weight” is the median of {n} cuts "
                "of other edges with the same total weight. A cut counts if it changes at least {ratio:g} times as "
                "much and lies above their spread, or, in the query's row, {small:g} times as much and far above it; "
                "and if it moves the prediction by {least} nats."
            ).format(n=CONTROLS, ratio=RATIO**2, small=SMALL_RATIO**2, least=LEAST_NATS),
            _table(
                _("The circuit: the query's weights, and changes of the prediction in nats"), kinds
            ),
            Table(
                _("What each token does, and what misleads"),
                [pgettext("column", "token"), _("what its heads do"), _("what misleads")],
                [(kind, *map(_, texts)) for kind, texts in KINDS.items()],
            ),
            _(
                "In a trained model nobody has written down what each token does, but it can be cut in the same way. "
                "toy reads “{sentence}”. The output is the last vector of “it”, and a change is the distance from it "
                "as a share of its length: {alike}."
            ).format(sentence=SENTENCE, alike=", ".join(alike)),
            _table(_("toy: the weights of “it”, and changes of its vector"), words),
        ],
        picture=[
            _matrix(_("The circuit: weights, and changes in nats"), kinds),
            _matrix(_("“it” in toy: weights, and changes of its vector"), words),
        ],
        # The heads of “copied” and of the decoy, and the one that changes “it” most.
        views=[
            common.row_view(records[0], (1, 0), circuit.output.rows[0]),
            common.row_view(records[0], (1, 3), circuit.output.rows[0]),
            common.row_view(records[1], toy.order[0], toy.output.rows[0], number=1),
        ],
        records=records,
    )


def _columns() -> list[str]:
    """Return the titles of the columns, in the order of a finding."""
    return [
        pgettext("column", "token"),
        pgettext("column", "weight"),
        _("one head"),
        pgettext("column", "cut here"),
        pgettext("column", "everywhere"),
        _("equal weight"),
        pgettext("column", "verdict"),
    ]


def _table(title: str, rows: Sequence[Finding]) -> Table:
    cells: list[list[Cell]] = [
        [row.token, percent(row.numbers[0]), *row.numbers[1:], verdict_name(row.verdict)]
        for row in rows
    ]
    return Table(title, _columns(), cells, digits=2)


def _matrix(title: str, rows: Sequence[Finding]) -> Matrix:
    """Return the numbers of the table as cells, with the verdicts beside the names of the rows."""
    values = np.array([row.numbers for row in rows])
    names = [f"{row.token}:\n{verdict_name(row.verdict)}" for row in rows]
    axes = _("token"), _("weight or change")
    return Matrix(title, values, names, _columns()[1:-1], *axes, limits=(0.0, DARKEST))
