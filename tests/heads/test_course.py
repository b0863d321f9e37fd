"""The lecture's four sorts of heads, on its own sentence: which heads are so, and what they look at there."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

import attnviz
from attnviz.heads.measures import MEASURES, Measure, RoleRule
from attnviz.heads.record import HeadComparison, Role
from attnviz.heads.relations import rule_of
from attnviz.heads.selection import KINDS, head_kinds
from attnviz.heads.settings import SurveySettings
from attnviz.heads.terminal import draw_overview
from attnviz.render.terminal.screen import Screen

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.fixtures.command_line import Result

SENTENCE = "I love all you"


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
    heads[place] = replace(heads[place], roles=(*heads[place].roles, role))
    return replace(comparison, heads=tuple(heads))


def rule(name: str) -> RoleRule:
    """The role of a measure."""
    (found,) = (
        one.role for one in MEASURES if isinstance(one, Measure) and one.name == name and one.role
    )
    return found


def test_the_best_established_head_of_each_sort(one: HeadComparison) -> None:
    """Grammar is told by subjects and objects, position by offsets; their weights are the model's own."""
    assert one.attention is not None
    roles = with_role(one, 3, rule_of("obj", reverse=True), 0.8)
    roles = with_role(roles, 5, rule_of("obj", reverse=False), 0.95)
    roles = with_role(roles, 7, rule_of("det", reverse=False), 0.99)
    roles = with_role(roles, 9, rule_of("coreference", reverse=False))
    roles = with_role(with_role(roles, 11, rule("next")), 13, rule("meaning"))
    found = {str(each.name): each for each in head_kinds(roles, one.attention)}
    places = {name: each.head and each.head.name for name, each in found.items()}
    assert places == {"grammar": "0.5", "meaning": "2.1", "pronoun": "1.3", "position": "1.5"}
    weights = one.attention.weights
    tokens = [token.text for token in one.attention.key_tokens]
    i, love, everybody, you = (tokens.index(word) for word in SENTENCE.split())
    expected = {"grammar": (love, you), "meaning": (love, you), "pronoun": (you, i)}
    expected |= {"position": (everybody, you)}
    for name, link in expected.items():
        layer, head = map(int, str(places[name]).split("."))
        lecture = found[name].lecture
        assert lecture is not None
        weight = weights[layer, head][link]
        if name == "grammar":  # the larger of two links
            weight = max(weight, weights[layer, head][love, i])
        assert lecture.weight == pytest.approx(weight)


def test_without_such_a_head_the_largest_weight_of_any(one: HeadComparison) -> None:
    """A sort that no head is of says so, and which head gives the lecture's link most."""
    assert one.attention is not None
    bare = replace(one, heads=tuple(replace(head, roles=()) for head in one.heads))
    for each in head_kinds(bare, one.attention):
        assert each.head is None
        assert each.strongest is None
        assert each.lecture is not None
        tokens = [token.text for token in one.attention.key_tokens]
        query, key = tokens.index(each.lecture.query), tokens.index(each.lecture.key)
        column = one.attention.weights[:, :, query, key]
        assert each.lecture.weight == pytest.approx(column.max())
        assert np.isclose(column[each.lecture.layer, each.lecture.head], column.max())
    shown = [str(line) for line in draw_overview(replace(one, roles_on=bare), Screen(width=80))]
    assert sum("no such head" in line for line in shown) == len(KINDS)
    assert max(map(len, shown)) <= 80


def test_the_command_measures_roles_on_many_sentences(
    typed: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One command, one screen: the table stands above the map of words."""
    monkeypatch.setattr("attnviz.heads.api.OWN", 100)
    shown = typed("compare-heads", SENTENCE, "--toy", "--roles", "--controls", "10", "-o", "a.csv")
    assert shown.status == 0
    assert "established on 100 sentences" in " ".join(shown.output.split())
    assert all(str(name) in shown.output for name, _words, _is_kind in KINDS)
    assert shown.output.count("\n") < 50


def test_the_command_shows_the_roles_that_a_file_holds(
    typed: Callable[..., Result], refused: Callable[..., tuple[int, str]], one: HeadComparison
) -> None:
    """A sentence beside --load: nothing is measured again, and a file of another model is refused in a line."""
    path = str(with_role(one, 3, rule_of("obj", reverse=False)).save("one.stats"))
    shown = typed(
        "compare-heads", SENTENCE, "--toy", "--load", path, "--controls", "5", "-o", "a.csv"
    )
    assert shown.status == 0, shown.errors
    assert "Four kinds of head" in shown.output
    assert "on 1 sentence" in shown.output
    status, line = refused("compare-heads", SENTENCE, "-m", "toy-random", "--load", path)
    assert status == 1
    assert line.startswith("attnviz: the roles are those of toy (encoder, 3 layers x 6 heads), ")
    status, line = refused("head", "0.1", SENTENCE, "--toy", "--load", path)
    assert status == 2
    assert "give one of a sentence and --load" in line
