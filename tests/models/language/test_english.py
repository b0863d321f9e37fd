"""English sentences: agreement, articles, objects and reference, and the words that the grammar decides."""

from __future__ import annotations

import itertools
import re

import pytest

from attnviz.models.language.grammar import load_grammar
from attnviz.models.language.sentences import GoldSentence, Reference, parse_sentence
from attnviz.models.language.vocabulary import SPECIAL, load_vocabulary
from tests.models.language.conftest import seeded

GRAMMAR = load_grammar("english")
WORDS = GRAMMAR.words


def forms(groups: str, *names: str) -> set[str]:
    """These forms of the words of some groups."""
    return {word[name] for group in groups.split() for word in WORDS[group] for name in names}


ONE, MANY = (
    forms("people animals places food things rooms spots", form) for form in ("one", "many")
)


@pytest.fixture(scope="module")
def many() -> dict[str, list[GoldSentence]]:
    """800 sentences of each kind."""
    random = seeded(1)
    return {
        kind: [parse_sentence(GRAMMAR.sentence(random, kind)) for _ in range(800)]
        for kind in GRAMMAR.kinds
    }


class TestAgreement:
    """Words that go together have the same number and person."""

    def test_verbs(self, many: dict[str, list[GoldSentence]]) -> None:
        """I am, she is, we are; he does, they do; and every other verb right after a pronoun."""
        for_one = {"is", "was", "does", "doesn't", "has", "needs"}
        for_many = {"are", "were", "do", "don't", "have", "need"}
        for_i = {"am", "was", "do", "don't", "have", "need"}
        agrees = {"i": for_i, "he": for_one, "she": for_one} | dict.fromkeys(
            ("you", "we", "they"), for_many
        )
        verbs = "actions moves stays goes gives"
        thirds, bases = forms(verbs, "one"), forms(verbs, "many") - forms(verbs, "past")
        seen = set()
        for sentence in itertools.chain(*many.values()):
            subject, verb = sentence.words[:2]
            if subject in agrees:
                if verb in for_one | for_many | for_i:
                    assert verb in agrees[subject], sentence.words
                elif subject in {"he", "she"}:
                    assert verb not in bases, sentence.words
                else:
                    assert verb not in thirds, sentence.words
                seen.add(subject)
        assert seen == set(agrees)

    def test_reflexives(self, many: dict[str, list[GoldSentence]]) -> None:
        """Herself is a princess, a queen or a girl; themselves are several."""
        for sentence in many["reflexive"]:
            (link,) = sentence.links
            word, noun = sentence.words[link.query], sentence.words[link.key]
            if noun in MANY:
                assert word == "themselves"
            else:
                assert word == ("herself" if noun in {"princess", "queen", "girl"} else "himself")

    def test_articles(self, many: dict[str, list[GoldSentence]]) -> None:
        """It is "an" before a vowel, "a" before any other sound, and neither before several."""
        for sentence in itertools.chain(*many.values()):
            for article, word in itertools.pairwise(sentence.words):
                if article in {"a", "an"}:
                    assert (article == "an") == (word[0] in "aeiou")
                    assert word not in MANY - ONE

    def test_adjectives_go_with_their_nouns(self, many: dict[str, list[GoldSentence]]) -> None:
        """Adjectives go with the nouns that the grammar lists; all of them come up."""
        qualities = GRAMMAR.rules["adjectives"]["qualities"]
        nouns = {
            form: noun["one"]
            for group in (
                "people",
                "animals",
                "places",
                "rooms",
                "spots",
                "food",
                "things",
                "nature",
            )
            for noun in WORDS[group]
            for form in (noun["one"], noun["many"])
        }
        people, seen = forms("people", "one"), set()
        for sentence in itertools.chain(*many.values()):
            for adjective, noun in itertools.pairwise(sentence.words):
                if adjective in qualities and noun in nouns:
                    fits = qualities[adjective].split()
                    assert nouns[noun] in fits or (nouns[noun] in people and "people" in fits)
                    seen.add(adjective)
        assert seen == set(qualities)


def test_words_are_in_the_vocabulary(many: dict[str, list[GoldSentence]]) -> None:
    """No sentence has a word without a number, and no number is that of a word that never comes up."""
    random = seeded(1)
    rest = (parse_sentence(GRAMMAR.sentence(random)) for _ in range(20_000))
    said = {word for sentence in itertools.chain(*many.values(), rest) for word in sentence.words}
    assert said == set(load_vocabulary("english").words) - set(SPECIAL)


def test_decided_words(many: dict[str, list[GoldSentence]]) -> None:
    """The words that agree, and those that always stand there."""

    def decided(kind: str, pattern: str) -> str:
        found = next(s for s in many[kind] if re.fullmatch(pattern, " ".join(s.words)))
        return " ".join(found.words[place] for place in sorted(found.decided))

    assert decided("copula", r"the dogs near the \w+ are \w+ \.") == "are"
    assert decided("action", r"she is \w+ing .*") == ""  # she may have been
    assert decided("action", r"they do not \w+ .*") == "do not"
    assert decided("action", r"he \w+ed .*") == ""
    assert decided("reflexive", r"the girl sees herself \.") == "herself"
    assert decided("existence", r"is there a \w+ \?") == "is there ?"
    assert decided("existence", r"there is a \w+ \.") == "is ."  # she is one too
    assert decided("existence", r"there are two \w+ \.") == "there are ."
    assert decided("question", r"where is the \w+ \?") == "?"
    assert decided("reference", r"the animal .* too \w+ \.") == "because it was"
    assert decided("although", r"although i did not .*") == "although did not get in , could in the"


class TestReference:
    """The referent of "it"."""

    def test_the_last_word_decides(self, many: dict[str, list[GoldSentence]]) -> None:
        """Feelings are the animal's, shapes the place's; both come up equally often."""
        animals, places = forms("animals", "one"), forms("places", "one")
        feelings, shapes = forms("feelings", "word"), forms("shapes", "word")
        n_animals = 0
        for sentence in many["reference"]:
            assert sentence.reference is not None
            pronoun, noun, other = (
                sentence.words[place]
                for place in (
                    sentence.reference.pronoun,
                    sentence.reference.noun,
                    sentence.reference.other,
                )
            )
            assert pronoun == "it"
            lives = sentence.words[-2] in feelings
            assert lives != (sentence.words[-2] in shapes)
            assert noun in (animals if lives else places)
            assert other in (places if lives else animals)
            n_animals += lives
        assert 340 < n_animals < 460

    @pytest.mark.parametrize(("last", "noun", "other"), [("tired", 1, 5), ("wide", 5, 1)])
    def test_the_animal_and_the_street(self, last: str, noun: int, other: int) -> None:
        line = (
            "reference\tthe animal/animal didn't cross the street/place [because] [it/it] [was] too "
            f"{last} .\tit {'animal place' if last == 'tired' else 'place animal'}\t"
        )
        assert parse_sentence(line).reference == Reference(pronoun=7, noun=noun, other=other)
