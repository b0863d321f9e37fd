"""The generator, of grammars small enough to be read at a glance."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from attnviz.models.language.grammar import Grammar
from tests.models.language.conftest import seeded

DOG: dict[str, Any] = {"one": "dog", "many": "dogs", "adjectives": [{"word": "big"}]}
OWL: dict[str, Any] = {"one": "owl", "many": "owls", "adjectives": []}
WORDS: dict[str, Any] = {
    "animals": [DOG, OWL],
    "names": [{"word": "kim"}],
    "be": {"i": "am", "one": "is", "many": "are"},
}


def said(rule: Any, n: int = 200, **phrases: Any) -> Counter[str]:
    """How often each text comes up."""
    rules = {"kinds": {"only": 1}, "sentences": {"only": rule}, "phrases": phrases}
    grammar, random = Grammar(rules, WORDS), seeded(0)
    return Counter(grammar.sentence(random).split("\t")[1] for _ in range(n))


@pytest.mark.parametrize(
    ("rule", "texts"),
    [
        ("the <animals> .", {"the dog .", "the owl ."}),
        ("<animals.many> <be.many>", {"dogs are", "owls are"}),
        ("<animals|names>", {"dog", "owl", "kim"}),
        ("a(n) <animals>", {"a dog", "an owl"}),
        (["was", "is"], {"was", "is"}),
        (["30%: was"], {"30%: was"}),
        ([{"30%": "was"}], {"was", ""}),
        ({"number": ["one", "many"], "say": "<be.number>"}, {"is", "are"}),
        ({"name": "<names>", "say": {"case": "name", "kim": "yes", "else": "no"}}, {"yes"}),
        (
            {"it": "<animals>", "other": "<animals other than it>", "say": "<it> <other>"},
            {"dog owl", "owl dog"},
        ),
        ({"it": "<animals>", "say": "<it.adjectives> <it>"}, {"big dog", "owl"}),
        ({"it": ["책", "차"], "say": "<it><+object>"}, {"책을", "차를"}),
        ({"it": ["길", "역"], "say": "<it> [<+to>]"}, {"길 [##로]", "역 [##으로]"}),
        ({"role": ["topic", "is"], "say": "책 <+role>"}, {"책 ##은", "책 ##이에요"}),
    ],
)
def test_forms_of_rules(rule: Any, texts: set[str]) -> None:
    """Texts, lists, shares, cases and steps."""
    assert set(said(rule)) == texts


def test_facts_follow_the_text() -> None:
    """The kind before it, the reference and the link after it."""
    rules = {
        "kinds": {"only": 1},
        "phrases": {},
        "sentences": {"only": {"say": "a/x b/y c/z", "refers": "x y z", "link": "x y agreement"}},
    }
    line = Grammar(rules, WORDS).sentence(seeded(0))
    assert line == "only\ta/x b/y c/z\tx y z\tx y agreement"
