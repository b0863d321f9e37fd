"""English sentences: their gold facts, held against a grammar written a second time, as regular expressions."""

from __future__ import annotations

import itertools
import re

import pytest

from attnviz.models.language import english, lexicon, splits, vocabulary
from attnviz.models.language.english import English, generate
from tests.models.language.conftest import seeded


def _any(*words: str) -> str:
    return f"(?:{'|'.join(map(re.escape, words))})"


ANIMAL = _any(*(noun.one for noun in lexicon.ANIMALS))
PLACE = _any(*(noun.one for noun in lexicon.PLACES))
PLACES = _any(*(noun.many for noun in lexicon.PLACES))
LIVING, LIVINGS = (
    _any(*(getattr(noun, form) for noun in lexicon.PEOPLE + lexicon.ANIMALS)) for form in ("one", "many")
)
SIZE = _any(*(adjective.english for adjective in lexicon.COLOURS_AND_SIZES))
FEELING = _any(*(adjective.english for adjective in lexicon.FEELINGS))
SHAPE = _any(*(adjective.english for adjective in lexicon.SHAPES))
MOVE = _any("cross", "pass", "leave", "visit")
ONE = rf"(?:the|a(?! [aeiou])|an(?= [aeiou])) (?:{SIZE} )?"
MANY = rf"(?:the|two) (?:{SIZE} )?"
PRONOUN = _any("i", "you", "he", "she", "we", "they")


def _actions() -> str:
    """Each verb with its forms and what it takes."""
    said = []
    for verb in lexicon.VERBS:
        nouns = lexicon.OBJECTS[verb.objects]
        one, many = _any(*(noun.one for noun in nouns)), _any(*(noun.many for noun in nouns))
        thing = rf"(?:{ONE}{one}|{MANY}{many})"
        third, plain = rf"(?:he|she|{ONE}{LIVING})", rf"(?:i|you|we|they|{MANY}{LIVINGS})"
        said += [
            rf"{third} (?:{verb.third}|(?:does not|doesn't|didn't|couldn't) {verb.base}|{verb.past}) {thing} \.",
            rf"{plain} (?:{verb.base}|(?:do not|don't|didn't|couldn't) {verb.base}|{verb.past}) {thing} \.",
            rf"(?:i (?:am|was)|{third} (?:is|was)|(?!i )(?:{plain}) (?:are|were)) {verb.ing} {thing} \.",
        ]
    return "|".join(said)


LOVE, LOVES = _any("love", "see", "like", "find", "draw"), _any("loves", "sees", "likes", "finds", "draws")
EXISTING = lexicon.PEOPLE + lexicon.ANIMALS + lexicon.FOOD + lexicon.THINGS
A_THING = rf"(?!the ){ONE}{_any(*(noun.one for noun in EXISTING))}"
TWO_THINGS = f"two {_any(*(noun.many for noun in EXISTING))}"
EXAM = f"{_any('last', 'this')} {_any('toefl', 'test', 'exam')}"
ENTER = rf"{_any('get', 'stay')} in the (?:(?:ph\.d|master) program|(?:summer|science|language) (?:program|school))"
SCORE = "(?:95|90|80|70)"

GRAMMAR = {
    "reference": rf"the (?:{SIZE} )?{ANIMAL} (?:didn't|couldn't) {MOVE} the (?:{SIZE} )?{PLACE} "
    rf"because it was (?:too|very) (?:{FEELING}|{SHAPE}) \.",
    "copula": rf"the (?:{LIVING}(?: near the (?:{PLACE}|{PLACES}))? is|"
    rf"{LIVINGS}(?: near the (?:{PLACE}|{PLACES}))? are) (?:{SIZE}|{FEELING}) \.",
    "action": _actions(),
    "reflexive": rf"the (?:{SIZE} )?(?:(?:princess|queen|girl) {LOVES} herself|(?:prince|king|boy) {LOVES} himself"
    rf"|(?:princesses|queens|girls|princes|kings|boys) {LOVE} themselves) \.",
    "all": rf"(?:i|you|we|they) {LOVE} all (?:you|them|us) \.",
    "existence": rf"there is {A_THING} \.|there are {TWO_THINGS} \.|is there {A_THING} \?|are there {TWO_THINGS} \?",
    "although": rf"although (?P<who>{PRONOUN}) (?:did not get {SCORE} in {EXAM} , (?P=who) could|"
    rf"did get {SCORE} in {EXAM} , (?P=who) could not) {ENTER} \.",
}
SENTENCE = re.compile("|".join(f"(?:{part})" for part in GRAMMAR.values()))


@pytest.fixture(scope="module")
def many() -> dict[str, list[English]]:
    """3,000 sentences of each kind."""
    random = seeded(1)
    return {kind: [generate(random, kind) for _ in range(3000)] for kind in english.KINDS}


class TestGrammar:
    """What is made is what was meant."""

    @pytest.mark.parametrize("kind", english.KINDS)
    def test_follows_the_second_grammar(self, many: dict[str, list[English]], kind: str) -> None:
        """Agreement, articles, objects: each sentence is one of its kind's regular expression."""
        own = re.compile(GRAMMAR[kind])
        for sentence in many[kind]:
            assert own.fullmatch(" ".join(sentence.words)), sentence.words
            assert sentence.kind == kind

    @pytest.mark.parametrize(
        "wrong",
        [
            "the dogs near the house is big .",
            "the dogs is big .",
            "she are eating a green apple .",
            "she is eating an green apple .",
            "the girl sees himself .",
            "there are a prince .",
            "there is a prince ?",
            "i does not see the dog .",
            "i doesn't see the dog .",
            "they was seeing the dog .",
            "i were seeing the dog .",
            "she crosses the dog .",
            "although i did get 95 in last toefl , i could not get in the ph.d school .",
            "although i did not get 95 in last toefl , i could not get in the ph.d program .",
        ],
    )
    def test_second_grammar_refuses(self, wrong: str) -> None:
        """It could fail: what is wrong is no sentence."""
        assert not SENTENCE.fullmatch(wrong)

    def test_words_are_in_the_vocabulary(self, many: dict[str, list[English]]) -> None:
        """No sentence has a word without a number, and no number is that of a word that never comes up."""
        said = {word for sentence in itertools.chain.from_iterable(many.values()) for word in sentence.words}
        assert said == set(vocabulary.english().words) - set(vocabulary.SPECIAL)

    def test_any_kind(self) -> None:
        """Without a kind all of them come up."""
        random = seeded(2)
        assert {generate(random).kind for _ in range(500)} == set(english.KINDS)


class TestDecided:
    """Where the grammar decides the word."""

    @pytest.mark.parametrize("kind", english.KINDS)
    def test_no_other_word_would_do(self, many: dict[str, list[English]], kind: str) -> None:
        """In a decided place, each other word of the vocabulary makes what the grammar cannot make."""
        for sentence in many[kind][:6]:
            for place in sentence.decided:
                words = list(sentence.words)
                fits = []
                for word in vocabulary.english().words:
                    words[place] = word
                    if SENTENCE.fullmatch(" ".join(words)):
                        fits.append(word)
                assert fits == [sentence.words[place]], (sentence.words, place)

    def test_by_hand(self, many: dict[str, list[English]]) -> None:
        """The words that agree, and those that always stand there."""

        def decided(kind: str, pattern: str) -> list[str]:
            found = next(s for s in many[kind] if re.fullmatch(pattern, " ".join(s.words)))
            return [found.words[place] for place in sorted(found.decided)]

        assert decided("copula", r"the dogs near the \w+ are \w+ \.") == ["are"]
        assert decided("action", r"she is eating .*") == []
        assert decided("action", r"they do not love .*") == ["do", "not"]
        assert decided("action", r"he saw .*") == []
        assert decided("reflexive", r"the girl sees herself \.") == ["herself"]
        assert decided("existence", r"is there a prince \?") == ["is", "there", "?"]
        assert decided("reference", r"the animal .* too tired \.") == ["because", "it", "was"]
        assert " ".join(decided("although", r"although i did not .*")) == ("although did not get in , could in the")


class TestReference:
    """What "it" stands for."""

    def test_the_last_word_decides(self, many: dict[str, list[English]]) -> None:
        """Feelings are the animal's, shapes the place's; both come up."""
        animals, places = ({noun.one for noun in nouns} for nouns in (lexicon.ANIMALS, lexicon.PLACES))
        feelings, shapes = ({word.english for word in words} for words in (lexicon.FEELINGS, lexicon.SHAPES))
        assert feelings.isdisjoint(shapes)
        counts = {True: 0, False: 0}
        for sentence in many["reference"]:
            reference = sentence.reference
            assert reference is not None
            assert sentence.words[reference.pronoun] == "it"
            noun, other = sentence.words[reference.noun], sentence.words[reference.other]
            lives = sentence.words[-2] in feelings
            assert lives != (sentence.words[-2] in shapes)
            assert noun in (animals if lives else places)
            assert other in (places if lives else animals)
            counts[lives] += 1
        assert min(counts.values()) > 1350

    @pytest.mark.parametrize(("last", "noun", "other"), [("tired", 1, 5), ("wide", 5, 1)])
    def test_the_animal_and_the_street(self, last: str, noun: int, other: int) -> None:
        """The animal was too tired, the street too wide."""
        random, wanted = seeded(0), f"the animal didn't cross the street because it was too {last} .".split()
        made = (generate(random, "reference") for _ in range(200_000))
        found = next(sentence for sentence in made if list(sentence.words) == wanted)
        assert found.reference == english.Reference(pronoun=7, noun=noun, other=other)

    def test_only_where_it_is_the_point(self, many: dict[str, list[English]]) -> None:
        """No other kind has one."""
        assert all(s.reference is None for kind, made in many.items() if kind != "reference" for s in made)


LIGHT = {"the", "a", "an", "two", ".", "?"}


class TestSplits:
    """Training, validation and test."""

    @pytest.mark.parametrize("language", ["english", "korean"])
    def test_share_nothing(self, language: str) -> None:
        """Of 5,000 sentences each (1,000 pairs), no two splits share one, nor one that differs in its articles only."""
        seen: dict[str, set[tuple[str, ...]]] = {}
        for split in ("train", "validation", "test"):
            if language == "english":
                made = [s.words for s in itertools.islice(splits.sentences(split), 5000)]
            else:
                made = [p.english for p in itertools.islice(splits.pairs(split), 1000)]
            seen[split] = {tuple(word for word in words if word not in LIGHT) for words in made}
            assert len(seen[split]) > 500
        for one, other in itertools.combinations(seen.values(), 2):
            assert one.isdisjoint(other)

    def test_by_content_words(self) -> None:
        """Articles, "two" and what ends a sentence change no split; every other word may."""
        same = ("the dog sees a cat .", "a dog sees the cat", "two dog sees cat ?")
        assert len({splits.split_of(sentence.split()) for sentence in same}) == 1
        animals = [f"the {noun.one} sees a cat .".split() for noun in lexicon.ANIMALS]
        assert len({splits.split_of(words) for words in animals}) > 1

    def test_shares(self) -> None:
        """About eight in ten, one and one."""
        random = seeded(0)
        found = [splits.split_of(generate(random).words) for _ in range(5000)]
        assert 0.75 < found.count("train") / 5000 < 0.85
        assert 0.07 < found.count("validation") / 5000 < 0.13
        assert 0.07 < found.count("test") / 5000 < 0.13

    def test_of_a_kind(self) -> None:
        """Sentences of a kind, and pairs of a number of clauses, can be asked for."""
        assert {s.kind for s in itertools.islice(splits.sentences("test", kind="copula"), 20)} == {"copula"}
        for pair in itertools.islice(splits.pairs("test", clauses=3), 20):
            assert pair.english.count("and") == 2

    def test_seeds(self) -> None:
        """The same seed makes the same sentences, another seed others."""

        def first(seed: int) -> list[object]:
            return [
                *itertools.islice(splits.sentences("train", seed), 20),
                *itertools.islice(splits.pairs("train", seed), 20),
            ]

        assert first(3) == first(3)
        assert first(3) != first(4)

    def test_pinned(self) -> None:
        """The same on every machine and version: what was trained on them can be trained again."""
        assert " ".join(next(splits.sentences("train")).words) == PINNED[0]
        pair = next(splits.pairs("test"))
        assert (" ".join(pair.english), " ".join(pair.korean)) == PINNED[1:]


PINNED = (
    "the student was passing the red river .",
    "she is drawing the egg and a bird is red and a small horse didn't see him",
    "그녀는 달걀을 그리고 있다 그리고 새가 빨갛다 그리고 작은 말이 그를 보지 않았다",
)
