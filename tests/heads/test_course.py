"""The lecture's four kinds of head, on its own sentence: which head has the link of each, and that head's role."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

import attnviz
from attnviz.heads.measures import MEASURES, RoleRule
from attnviz.heads.record import HeadComparison, Role
from attnviz.heads.relations import rule_of
from attnviz.heads.selection import KINDS, head_kinds
from attnviz.heads.settings import SurveySettings
from attnviz.heads.terminal import draw_overview
from attnviz.render.terminal.screen import Screen
from attnviz.text.messages import _

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.fixtures.command_line import Result

SENTENCE = "I love all you"
(NEXT,) = (one.role for one in MEASURES if one.name == "next" and one.role)


@pytest.fixture(scope="module")
def one() -> HeadComparison:
    """The lecture's sentence, with no roles."""
    return attnviz.compare_heads(SENTENCE, model="toy", settings=SurveySettings(controls=5))


def with_role(
    comparison: HeadComparison, place: int, rule: RoleRule, score: float = 0.9
) -> HeadComparison:
    """Return the comparison with a role for one head."""
    role = Role(
        rule=rule, measure=rule.name, score=score, low=score - 0.1, high=score + 0.05, controls=()
    )
    heads = list(comparison.heads)
    heads[place] = replace(heads[place], roles=(role, *heads[place].roles))
    return replace(comparison, heads=tuple(heads))


def test_the_link_of_each_kind_in_its_best_head(one: HeadComparison) -> None:
    """I to love, love to you, you to I, all to you: the largest weight of all heads, and the role of that head."""
    assert one.attention is not None
    weights = one.attention.weights
    tokens = [token.text for token in one.attention.key_tokens]
    largest = {}
    for name, query, key in KINDS:
        column = weights[:, :, tokens.index(query), tokens.index(key)]
        largest[_(name)] = int(column.argmax()), float(column.max())
    roles = with_role(one, largest["grammar"][0], rule_of("obj", reverse=True), 0.8)
    roles = with_role(roles, largest["position"][0], NEXT)
    found = head_kinds(roles, one.attention)
    assert [(_(kind), *words) for kind, *words in KINDS] == [
        ("grammar", "I", "love"),
        ("meaning", "love", "you"),
        ("pronoun", "you", "I"),
        ("position", "all", "you"),
    ]
    for kind, (name, query, key) in zip(found, KINDS, strict=True):
        place, weight = largest[_(name)]
        head = roles.heads[place]
        cell = tokens.index(query), tokens.index(key)
        assert kind.link == (query, key, weight, *head.place, *cell)
        assert kind.role == next((role for role in head.roles if role.established), None)
    lines = map(str, draw_overview(replace(one, roles_on=roles), Screen(width=80)))
    above, _title, _map = "\n".join(lines).partition("The word that")
    assert "I → love" in above
    assert "love → I" not in above


def test_the_command_measures_roles_on_many_sentences(
    typed: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One command, one screen: the table stands above the map of words."""
    monkeypatch.setattr("attnviz.heads.api.OWN", 100)
    shown = typed("compare-heads", SENTENCE, "--toy", "--roles", "-o", "a.csv")
    assert shown.status == 0
    assert "established on 100 sentences" in " ".join(shown.output.split())
    assert all(_(name) in shown.output for name, _query, _key in KINDS)
    assert shown.output.count("\n") < 50


def test_the_command_shows_the_roles_that_a_file_holds(
    typed: Callable[..., Result], refused: Callable[..., tuple[int, str]], one: HeadComparison
) -> None:
    """A sentence beside --load: nothing is measured again, and a file of another model is refused in a line."""
    path = str(with_role(one, 3, rule_of("obj", reverse=False)).save("one.json"))
    shown = typed("compare-heads", SENTENCE, "--toy", "--load", path, "-o", "a.csv")
    assert shown.status == 0, shown.errors
    assert "Four kinds of head" in shown.output
    assert "on 1 sentence" in shown.output
    status, line = refused("compare-heads", SENTENCE, "-m", "toy-random", "--load", path)
    assert status == 1
    assert "these roles are of toy (model: toy, not toy-random" in line
