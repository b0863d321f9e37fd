"""English sentences: their gold facts, held against a grammar written a second time, as regular expressions."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest

from attnviz.models.language import english, lexicon, splits, vocabulary
from attnviz.models.language.english import GoldSentence, generate
from tests.models.language.conftest import seeded


def _any(*words: str, plain: bool = False) -> str:
    """One of these words; `plain` of these patterns."""
    return f"(?:{'|'.join(words if plain else map(re.escape, words))})"


def _one(*groups: tuple[lexicon.Noun, ...]) -> str:
    return _any(*(noun.one for nouns in groups for noun in nouns))


def _many(*groups: tuple[lexicon.Noun, ...]) -> str:
    return _any(*(noun.many for nouns in groups for noun in nouns))


ANIMAL, PLACE, PLACES = _one(lexicon.ANIMALS), _one(lexicon.PLACES), _many(lexicon.PLACES)
LIVING, LIVINGS = _one(lexicon.PEOPLE, lexicon.ANIMALS), _many(lexicon.PEOPLE, lexicon.ANIMALS)
SIZE, TRAIT, FEELING, SHAPE = (
    _any(*(adjective.english for adjective in adjectives))
    for adjectives in (lexicon.QUALITIES, lexicon.TRAITS, lexicon.FEELINGS, lexicon.SHAPES)
)
MOVE = _any("cross", "pass", "leave", "visit", "explore", "avoid")
PRONOUN, WHOM = (
    _any("i", "you", "he", "she", "we", "they"),
    _any("me", "you", "him", "her", "us", "them"),
)
NAME, OWNER = _any(*lexicon.NAMES), _any("my", "your", "his", "her", "our", "their")
NUMBER = _any("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "twenty")
MODAL = _any("can", "can't", "will", "won't", "must", "should", "may")
PAST, OFTEN, NOW = (
    "(?:yesterday|last night|this morning)",
    "(?:often|every (?:day|morning))",
    "(?:now|today)",
)
HOW = _any("well", "again", "together", "quickly", "slowly", "quietly", "alone")


def _phrases(nouns: tuple[lexicon.Noun, ...], *, definite: bool = True) -> tuple[str, str]:
    """A noun with its article, and several with "the" or a number; perhaps with an adjective."""
    the = "the|" if definite else ""
    return (
        rf"(?:{the}a(?! [aeiou])|an(?= [aeiou])) (?:(?:{SIZE}|{TRAIT}) )?{_one(nouns)}",
        rf"(?:the|{NUMBER}) (?:(?:{SIZE}|{TRAIT}) )?{_many(nouns)}",
    )


THE_ONE, THE_MANY = _phrases(lexicon.PEOPLE + lexicon.ANIMALS)
HE = rf"(?:he|she|{NAME}|{OWNER} {LIVING})"
WE = rf"(?:i|you|we|they|{NAME} and {NAME}|{OWNER} {LIVINGS})"


def _object(takes: str) -> tuple[str, str]:
    """What a verb takes after somebody known, and what it takes anyway."""
    nouns = lexicon.OBJECTS.get(takes, ())
    thing = _any(*_phrases(nouns), plain=True)
    match takes:
        case "any" | "people":
            known = _any(WHOM, NAME, plain=True)
        case "food":
            known = _any(*lexicon.SUBSTANCES)
        case "subjects":
            return (_any(*lexicon.SUBJECTS),) * 2
        case "drinks":
            known = _any(*lexicon.LIQUIDS)
        case _:
            known = rf"{OWNER} {_any(_one(nouns), _many(nouns), plain=True)}"
    return _any(known, thing, plain=True), thing


def _forms(verbs: tuple[lexicon.Verb, ...]) -> tuple[str, str, str, str]:
    base, third, past, ing = (
        _any(*(getattr(v, f) for v in verbs)) for f in ("base", "third", "past", "ing")
    )
    return base, third, past, ing


def _actions(takes: str) -> str:
    """Subject, verb and object of the verbs that take the same."""
    base, third, past, ing = _forms(tuple(verb for verb in lexicon.VERBS if verb.objects == takes))
    said = []
    for he, we, thing in zip((HE, THE_ONE), (WE, THE_MANY), _object(takes), strict=True):
        said += [
            rf"{he} (?:{third}|(?:does not|doesn't|didn't|couldn't|{MODAL}) {base}|{past}) {thing}",
            rf"{we} (?:{base}|(?:do not|don't|didn't|couldn't|{MODAL}) {base}|{past}) {thing}",
            rf"(?:i (?:am|was)|{he} (?:is|was)|(?!i )(?:{we}) (?:are|were)) {ing} {thing}",
        ]
    return "|".join(said)


def _events(he: str, we: str, verbs: tuple[lexicon.Verb, ...], rest: str) -> str:
    """A subject, one of these verbs in any form, the rest, and perhaps a time that goes with the form, or how."""
    base, third, past, ing = _forms(verbs)
    return "|".join(
        (
            rf"(?:{he} {third}|{we} {base}) {rest}(?: (?:{OFTEN}|{HOW}))?",
            rf"(?:{he}|{we}) {past} {rest}(?: (?:{PAST}|{HOW}))?",
            rf"(?:i am|{he} is|(?!i )(?:{we}) are) {ing} {rest}(?: (?:{NOW}|{HOW}))?",
            rf"(?:i was|{he} was|(?!i )(?:{we}) were) {ing} {rest}(?: (?:{PAST}|{HOW}))?",
            rf"(?:{he} (?:doesn't|didn't)|{we} (?:don't|didn't)|(?:{he}|{we}) {MODAL}) {base} {rest}(?: {HOW})?",
        )
    )


ACTION = "|".join(_actions(takes) for takes in sorted({verb.objects for verb in lexicon.VERBS}))
LOVE, LOVES = (
    _any("love", "see", "like", "find", "draw"),
    _any("loves", "sees", "likes", "finds", "draws"),
)
EXISTING = lexicon.PEOPLE + lexicon.ANIMALS + lexicon.FOOD + lexicon.THINGS
A_THING, SOME_THINGS = _phrases(EXISTING, definite=False)
EXAM = f"{_any('last', 'this')} {_any('toefl', 'test', 'exam')}"
ENTER = rf"{_any('get', 'stay')} in the (?:(?:ph\.d|master) program|(?:summer|science|language) (?:program|school))"
SCORE = "(?:95|90|80|70)"
TOWN, CITY = _any(*lexicon.TOWNS), _any(*lexicon.TOWNS[2:])
AREA, AREAS = _one(lexicon.PLACES, lexicon.ROOMS), _many(lexicon.PLACES, lexicon.ROOMS)
SPOT, SPOTS = _one(lexicon.SPOTS), _many(lexicon.SPOTS)
WHERE = (
    rf"(?:in {CITY}|at (?:school|work|home)|in the (?:{AREA}|{AREAS})"
    rf"|(?:on|over|under|behind|beside|near) the (?:{SPOT}|{SPOTS}))"
)
ANY_HE, ANY_WE = rf"(?:{HE}|{THE_ONE})", rf"(?:{WE}|{THE_MANY})"
BE = rf"(?:i am|{HE} is|(?!i )(?:{WE}) are)"
AM = rf"(?:am i|is {HE}|are (?!i )(?:{WE}))"
WHO_ONE, WHO_MANY = _phrases(lexicon.PEOPLE)
SOME = SOME_THINGS.replace(NUMBER, "some", 1)
QUESTION_VERBS = _forms(lexicon.ACTIONS)
TAKES = {
    takes: _forms(tuple(verb for verb in lexicon.ACTIONS if verb.objects == takes))
    for takes in sorted({verb.objects for verb in lexicon.ACTIONS})
}
ASKED = "|".join(
    rf"(?:(?:do|did) {WE}|(?:does|did) {HE}) {base} {_object(takes)[0]}|who (?:{third}|{past}) {_object(takes)[0]}"
    for takes, (base, third, past, _) in TAKES.items()
)
GOAL = rf"(?:to|from) (?:{TOWN}|the {AREA})(?: with (?:{WHOM}|{NAME}))?"
GIVEN = rf"(?:{WHOM}|{NAME}|{OWNER} {_one(lexicon.PEOPLE)}) {_phrases(lexicon.TOOLS)[0]}"
SO = rf"(?:(?:so|too|very) )?(?:{FEELING}|{TRAIT})"
WHO, WHOS = (
    rf"(?:my best friend|{OWNER} {_one(lexicon.PEOPLE)}|{WHO_ONE})",
    rf"(?:my best friends|{OWNER} {_many(lexicon.PEOPLE)}|{WHO_MANY})",
)

GRAMMAR = {
    "reference": rf"the (?:{SIZE} )?{ANIMAL} (?:didn't|couldn't) {MOVE} the (?:{SIZE} )?{PLACE} "
    rf"because it was (?:too|very) (?:{FEELING}|{SHAPE}) \.",
    "copula": rf"the (?:{LIVING}(?: near the (?:{PLACE}|{PLACES}))? is|"
    rf"{LIVINGS}(?: near the (?:{PLACE}|{PLACES}))? are) (?:{SIZE}|{TRAIT}|{FEELING}) \.",
    "action": rf"(?:{ACTION}) \.",
    "reflexive": rf"the (?:(?:{SIZE}|{TRAIT}) )?"
    rf"(?:(?:princess|queen|girl) {LOVES} herself|(?:prince|king|boy) {LOVES} himself"
    rf"|(?:princesses|queens|girls|princes|kings|boys) {LOVE} themselves) \.",
    "all": rf"(?:i|you|we|they) {LOVE} all (?:you|them|us) \.",
    "existence": rf"there is {A_THING} \.|there are {SOME_THINGS} \.|is there {A_THING} \?|"
    rf"are there {SOME_THINGS} \?",
    "although": rf"although (?P<who>{PRONOUN}) (?:did not get {SCORE} in {EXAM} , (?P=who) could|"
    rf"did get {SCORE} in {EXAM} , (?P=who) could not) {ENTER} \.",
    "joined": rf"(?:{ACTION}) (?:and|but|or) (?:{ACTION}) \.",
    "stay": rf"(?:{_events(ANY_HE, ANY_WE, lexicon.STAYS, WHERE)}) \.",
    "go": rf"(?:{_events(ANY_HE, ANY_WE, lexicon.GOES, GOAL)}) \.",
    "give": rf"(?:{_events(HE, WE, lexicon.GIVES, GIVEN)}) \.",
    "be": rf"(?:{BE} (?:{SO}|{WHERE})|i am {WHO}|{HE} is {WHO}|(?!i )(?:{WE}) are {WHOS}) \."
    rf"|(?:(?:i|{HE}) was|(?!i )(?:{WE}) were) (?:{SO}|{WHERE}) {PAST} \."
    rf"|(?:(?:i|{HE}) was {WHO}|(?!i )(?:{WE}) were {WHOS}) {PAST} \.",
    "have": rf"(?:{HE} (?:has|had|needs)|{WE} (?:have|had|need)) (?:{A_THING}|{SOME_THINGS}|{SOME}) \.",
    "reason": rf"(?P<she>{PRONOUN}) (?:(?:{_forms(lexicon.GOES)[2]}|didn't {_forms(lexicon.GOES)[0]}) to {TOWN}"
    rf"|(?:{_forms(lexicon.STAYS)[2]}|didn't {_forms(lexicon.STAYS)[0]}) {WHERE}) because (?P=she) "
    rf"(?:(?<=i |e )was|(?<!i )were) (?:(?:too|very) )?{FEELING} \.",
    "question": rf"where {AM} \?|where is the (?:{_one(lexicon.PEOPLE, lexicon.ANIMALS, lexicon.TOOLS)}) \?"
    rf"|(?:who|what|why) (?:(?:do|did) {WE}|(?:does|did) {HE}) {QUESTION_VERBS[0]} \?|(?:{ASKED}) \?"
    rf"|(?:where|when|why) (?:(?:do|did) {WE}|(?:does|did) {HE}) (?:go|live|sleep|work) \?"
    rf"|who is {OWNER} {_one(lexicon.PEOPLE)} \?|what is (?:this|that|it|your name|my name) \?"
    rf"|how (?:old )?{AM} \?|{AM} {FEELING} \?",
    "this": rf"(?:this|that) is (?:{OWNER} {_one(EXISTING)}|{_phrases(EXISTING)[0]}) \.|(?:these|those) are {OWNER} "
    rf"{_many(EXISTING)} \.|{OWNER} name is {NAME} \.|"
    rf"(?:hello|goodbye|good (?:morning|night)|please|sorry|yes|no|thank you) , {NAME} [.!]",
    "weather": "|".join(
        rf"(?:the {_one(lexicon.NATURE)} {be} {SIZE}|it {be} (?:raining|snowing|sunny|cold|hot|warm))(?: {when})? \."
        for be, when in (("is", NOW), ("was", PAST))
    ),
}


@pytest.fixture(scope="module")
def whole() -> re.Pattern[str]:
    """The grammar of all kinds; to compile it takes seconds."""
    return re.compile("|".join(f"(?:{part})" for part in GRAMMAR.values()))


@pytest.fixture(scope="module")
def many() -> dict[str, list[GoldSentence]]:
    """3,000 sentences of each kind."""
    random = seeded(1)
    return {kind: [generate(random, kind) for _ in range(3000)] for kind in english.KINDS}


class TestGrammar:
    """What is made is what was meant."""

    @pytest.mark.parametrize("kind", english.KINDS)
    def test_follows_the_second_grammar(
        self, many: dict[str, list[GoldSentence]], kind: str
    ) -> None:
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
    def test_second_grammar_refuses(self, whole: re.Pattern[str], wrong: str) -> None:
        """It could fail: what is wrong is no sentence."""
        assert not whole.fullmatch(wrong)

    def test_words_are_in_the_vocabulary(self, many: dict[str, list[GoldSentence]]) -> None:
        """No sentence has a word without a number, and no number is that of a word that never comes up."""
        random = seeded(5)
        rest = (generate(random) for _ in range(80_000))
        said = {
            word for sentence in itertools.chain(*many.values(), rest) for word in sentence.words
        }
        assert said == set(vocabulary.english().words) - set(vocabulary.SPECIAL)

    def test_adjectives_go_with_their_nouns(self, many: dict[str, list[GoldSentence]]) -> None:
        """Read off the file of words once more: what is green, what is ripe."""
        text = Path(english.__file__).with_name("words.txt").read_text("utf-8").replace("\n  ", " ")
        lines = dict(line.split(": ", 1) for line in text.splitlines() if not line.startswith("#"))
        fitting = {
            what.removeprefix("what is "): set(nouns.split()) for what, nouns in lines.items()
        }
        people = {noun.one for noun in lexicon.PEOPLE}
        nouns = {form: noun.one for noun in lexicon.NOUNS for form in (noun.one, noun.many)}
        adjectives = {adjective.english for adjective in lexicon.QUALITIES}
        seen = set()
        for sentence in itertools.chain(*many.values()):
            for adjective, noun in itertools.pairwise(sentence.words):
                if adjective in adjectives and noun in nouns:
                    fits = fitting[adjective]
                    assert nouns[noun] in fits or (nouns[noun] in people and "people" in fits), (
                        sentence.words
                    )
                    seen.add(adjective)
        assert seen == adjectives

    def test_any_kind(self) -> None:
        """Without a kind all of them come up."""
        random = seeded(2)
        assert {generate(random).kind for _ in range(500)} == set(english.KINDS)


class TestDecided:
    """Where the grammar decides the word."""

    @pytest.mark.parametrize("kind", english.KINDS)
    def test_no_other_word_would_do(
        self, whole: re.Pattern[str], many: dict[str, list[GoldSentence]], kind: str
    ) -> None:
        """In a decided place, each other word of the vocabulary makes what the grammar cannot make."""
        for sentence in many[kind][:6]:
            for place in sentence.decided:
                words = list(sentence.words)
                fits = []
                for word in vocabulary.english().words:
                    words[place] = word
                    if whole.fullmatch(" ".join(words)):
                        fits.append(word)
                assert fits == [sentence.words[place]], (sentence.words, place)

    def test_by_hand(self, many: dict[str, list[GoldSentence]]) -> None:
        """The words that agree, and those that always stand there."""

        def decided(kind: str, pattern: str) -> list[str]:
            found = next(s for s in many[kind] if re.fullmatch(pattern, " ".join(s.words)))
            return [found.words[place] for place in sorted(found.decided)]

        assert decided("copula", r"the dogs near the \w+ are \w+ \.") == ["are"]
        assert decided("action", r"she is eating .*") == []
        assert decided("action", r"they do not \w+ .*") == ["do", "not"]
        assert decided("action", r"he \w+ed .*") == []
        assert decided("reflexive", r"the girl sees herself \.") == ["herself"]
        assert decided("existence", r"is there a \w+ \?") == ["is", "there", "?"]
        assert decided("existence", r"there is a \w+ \.") == ["is", "."]  # she is one too
        assert decided("existence", r"there are two \w+ \.") == ["there", "are", "."]
        assert decided("question", r"where is the \w+ \?") == ["?"]
        assert decided("reference", r"the animal .* too \w+ \.") == ["because", "it", "was"]
        assert " ".join(decided("although", r"although i did not .*")) == (
            "although did not get in , could in the"
        )


class TestReference:
    """What "it" stands for."""

    def test_the_last_word_decides(self, many: dict[str, list[GoldSentence]]) -> None:
        """Feelings are the animal's, shapes the place's; both come up."""
        animals, places = (
            {noun.one for noun in nouns} for nouns in (lexicon.ANIMALS, lexicon.PLACES)
        )
        feelings, shapes = (
            {word.english for word in words} for words in (lexicon.FEELINGS, lexicon.SHAPES)
        )
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
    def test_the_animal_and_the_street(
        self, monkeypatch: pytest.MonkeyPatch, last: str, noun: int, other: int
    ) -> None:
        """The animal was too tired, the street too wide; of the first words of each group, to be made soon."""
        for group in ("ANIMALS", "PLACES", "MOVES", "FEELINGS", "SHAPES"):
            monkeypatch.setattr(lexicon, group, getattr(lexicon, group)[:2])
        random, wanted = (
            seeded(0),
            f"the animal didn't cross the street because it was too {last} .".split(),
        )
        made = (generate(random, "reference") for _ in range(2000))
        found = next(sentence for sentence in made if list(sentence.words) == wanted)
        assert found.reference == english.Reference(pronoun=7, noun=noun, other=other)

    def test_only_where_it_is_the_point(self, many: dict[str, list[GoldSentence]]) -> None:
        """No other kind has one."""
        assert all(
            s.reference is None for kind, made in many.items() if kind != "reference" for s in made
        )


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
        assert {s.kind for s in itertools.islice(splits.sentences("test", kind="copula"), 20)} == {
            "copula"
        }
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
    "the girls find themselves .",
    "she is drawing the egg and a bird is red and a small horse didn't see him",
    "그녀는 달걀을 그리고 있다 그리고 새가 빨갛다 그리고 작은 말이 그를 보지 않았다",
)
