"""The words of the small language: each with its forms, so that no rule of spelling has to be right."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Noun:
    """A noun in English and Korean.

    Attributes:
        one: singular.
        many: plural.
        korean: without particle; Korean does not need a plural.
    """

    one: str
    many: str
    korean: str


@dataclass(frozen=True, slots=True)
class Adjective:
    """An adjective in English and Korean.

    Attributes:
        english: its one form.
        before: Korean before a noun (큰).
        is_so: Korean as a sentence's end (크다).
        being: Korean before 때문에, "because" (크기).
    """

    english: str
    before: str
    is_so: str
    being: str


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb in English and Korean.

    Attributes:
        base: as after "did not".
        third: with he, she, it.
        past: past tense.
        ing: as after "is".
        present: Korean present (먹는다).
        did: Korean past (먹었다).
        going: Korean before 있다, "is doing" (먹고).
        not_: Korean before 않는다, "does not" (먹지).
        doing: Korean before 때문에, "because" (먹기).
        objects: which nouns it takes.
    """

    base: str
    third: str
    past: str
    ing: str
    present: str
    did: str
    going: str
    not_: str
    doing: str
    objects: str = "any"


PEOPLE = (
    Noun("prince", "princes", "왕자"),
    Noun("princess", "princesses", "공주"),
    Noun("king", "kings", "왕"),
    Noun("queen", "queens", "여왕"),
    Noun("boy", "boys", "소년"),
    Noun("girl", "girls", "소녀"),
    Noun("teacher", "teachers", "선생님"),
    Noun("student", "students", "학생"),
    Noun("doctor", "doctors", "의사"),
    Noun("friend", "friends", "친구"),
)

ANIMALS = (
    Noun("animal", "animals", "동물"),
    Noun("dog", "dogs", "개"),
    Noun("cat", "cats", "고양이"),
    Noun("horse", "horses", "말"),
    Noun("bird", "birds", "새"),
    Noun("lion", "lions", "사자"),
    Noun("tiger", "tigers", "호랑이"),
    Noun("bear", "bears", "곰"),
    Noun("fox", "foxes", "여우"),
    Noun("rabbit", "rabbits", "토끼"),
    Noun("monkey", "monkeys", "원숭이"),
    Noun("elephant", "elephants", "코끼리"),
)

PLACES = (
    Noun("street", "streets", "길"),
    Noun("river", "rivers", "강"),
    Noun("bridge", "bridges", "다리"),
    Noun("field", "fields", "들판"),
    Noun("road", "roads", "도로"),
    Noun("garden", "gardens", "정원"),
    Noun("park", "parks", "공원"),
    Noun("forest", "forests", "숲"),
    Noun("desert", "deserts", "사막"),
    Noun("valley", "valleys", "계곡"),
    Noun("lake", "lakes", "호수"),
    Noun("island", "islands", "섬"),
)

FOOD = (
    Noun("apple", "apples", "사과"),
    Noun("orange", "oranges", "오렌지"),
    Noun("egg", "eggs", "달걀"),
    Noun("cake", "cakes", "케이크"),
    Noun("banana", "bananas", "바나나"),
    Noun("fish", "fish", "생선"),
    Noun("bread", "breads", "빵"),
    Noun("potato", "potatoes", "감자"),
)

DRINKS = (
    Noun("coffee", "coffees", "커피"),
    Noun("tea", "teas", "차"),
    Noun("juice", "juices", "주스"),
    Noun("cola", "colas", "콜라"),
)

WRITINGS = (
    Noun("book", "books", "책"),
    Noun("letter", "letters", "편지"),
    Noun("story", "stories", "이야기"),
    Noun("poem", "poems", "시"),
)

THINGS = (
    *DRINKS,
    *WRITINGS,
    Noun("picture", "pictures", "그림"),
    Noun("song", "songs", "노래"),
)

COLOURS_AND_SIZES = (
    Adjective("green", "초록색", "초록색이다", "초록색이기"),
    Adjective("red", "빨간", "빨갛다", "빨갛기"),
    Adjective("big", "큰", "크다", "크기"),
    Adjective("small", "작은", "작다", "작기"),
    Adjective("old", "오래된", "오래되었다", "오래되었기"),
    Adjective("new", "새로운", "새롭다", "새롭기"),
    Adjective("good", "좋은", "좋다", "좋기"),
    Adjective("beautiful", "아름다운", "아름답다", "아름답기"),
)

FEELINGS = (
    # What only someone who lives can be. `being` is the past: "because it was too tired".
    Adjective("tired", "피곤한", "피곤하다", "피곤했기"),
    Adjective("hungry", "배고픈", "배고프다", "배고팠기"),
    Adjective("sleepy", "졸린", "졸리다", "졸렸기"),
    Adjective("sick", "아픈", "아프다", "아팠기"),
    Adjective("afraid", "겁난", "겁나다", "겁났기"),
    Adjective("angry", "화난", "화나다", "화났기"),
    Adjective("lazy", "게으른", "게으르다", "게을렀기"),
    Adjective("sad", "슬픈", "슬프다", "슬펐기"),
    Adjective("weak", "약한", "약하다", "약했기"),
    Adjective("thirsty", "목마른", "목마르다", "목말랐기"),
)

SHAPES = (
    # What only a place can be.
    Adjective("wide", "넓은", "넓다", "넓었기"),
    Adjective("long", "긴", "길다", "길었기"),
    Adjective("deep", "깊은", "깊다", "깊었기"),
    Adjective("narrow", "좁은", "좁다", "좁았기"),
    Adjective("steep", "가파른", "가파르다", "가팔랐기"),
    Adjective("muddy", "질척한", "질척하다", "질척했기"),
    Adjective("dark", "어두운", "어둡다", "어두웠기"),
    Adjective("icy", "얼어붙은", "얼어붙었다", "얼어붙었기"),
    Adjective("crowded", "붐비는", "붐빈다", "붐볐기"),
    Adjective("dangerous", "위험한", "위험하다", "위험했기"),
)

MOVES = (
    # What one does to a place.
    Verb("cross", "crosses", "crossed", "crossing", "건넌다", "건넜다", "건너고", "건너지", "건너기", "places"),
    Verb("pass", "passes", "passed", "passing", "지나간다", "지나갔다", "지나가고", "지나가지", "지나가기", "places"),
    Verb("leave", "leaves", "left", "leaving", "떠난다", "떠났다", "떠나고", "떠나지", "떠나기", "places"),
    Verb(
        "visit", "visits", "visited", "visiting", "방문한다", "방문했다", "방문하고", "방문하지", "방문하기", "places"
    ),
)

ACTIONS = (
    Verb("love", "loves", "loved", "loving", "사랑한다", "사랑했다", "사랑하고", "사랑하지", "사랑하기"),
    Verb("see", "sees", "saw", "seeing", "본다", "보았다", "보고", "보지", "보기"),
    Verb("like", "likes", "liked", "liking", "좋아한다", "좋아했다", "좋아하고", "좋아하지", "좋아하기"),
    Verb("find", "finds", "found", "finding", "찾는다", "찾았다", "찾고", "찾지", "찾기"),
    Verb("draw", "draws", "drew", "drawing", "그린다", "그렸다", "그리고", "그리지", "그리기"),
    Verb("eat", "eats", "ate", "eating", "먹는다", "먹었다", "먹고", "먹지", "먹기", "food"),
    Verb("drink", "drinks", "drank", "drinking", "마신다", "마셨다", "마시고", "마시지", "마시기", "drinks"),
    Verb("write", "writes", "wrote", "writing", "쓴다", "썼다", "쓰고", "쓰지", "쓰기", "writings"),
    Verb("buy", "buys", "bought", "buying", "산다", "샀다", "사고", "사지", "사기", "goods"),
)

VERBS = ACTIONS + MOVES

OBJECTS = {
    "any": PEOPLE + ANIMALS + FOOD + THINGS,
    "food": FOOD,
    "drinks": DRINKS,
    "writings": WRITINGS,
    "goods": FOOD + THINGS,
    "places": PLACES,
}
"""Which nouns a verb takes."""

PRONOUNS = {
    # English subject: (Korean as topic, English object, Korean object, Korean as subject)
    "i": ("나는", "me", "나를", "내가"),
    "you": ("너는", "you", "너를", "네가"),
    "he": ("그는", "him", "그를", "그가"),
    "she": ("그녀는", "her", "그녀를", "그녀가"),
    "we": ("우리는", "us", "우리를", "우리가"),
    "they": ("그들은", "them", "그들을", "그들이"),
}

SCORES = ("95", "90", "80", "70")
EXAMS = {"toefl": "토플", "test": "시험", "exam": "고사"}
WHEN = {"last": "지난", "this": "이번"}
PROGRAMS = {
    # English: (Korean, what it can be a program or a school of)
    "ph.d": ("박사", ("program",)),
    "master": ("석사", ("program",)),
    "summer": ("여름", ("program", "school")),
    "science": ("과학", ("program", "school")),
    "language": ("언어", ("program", "school")),
}
COURSES = {"program": "과정에", "school": "학교에"}
ENTER = {"get": "들어갈", "stay": "머물"}
"""To get in, and to stay in: Korean before 수 있다, "can"."""
JOINTS = {"because": "때문에", "before": "전에"}
ALL = {"you": "너희", "them": "그들", "us": "우리"}
"""Before 모두를: all of you."""
HOW = {"too": "너무", "very": "매우"}
FAILED = {"didn't": "않았다", "couldn't": "못했다"}
"""What did not happen, in one word: Korean after a verb's form in 지."""


def am_is_are(subject: str, *, many: bool) -> str:
    """The form of "be" that a subject takes."""
    return "am" if subject == "i" else "are" if many else "is"


def was_were(subject: str, *, many: bool) -> str:
    """The past of "be" that a subject takes: I was, you were."""
    return "were" if many and subject != "i" else "was"


def takes_plural(pronoun: str) -> bool:
    """Whether a pronoun takes the verb's plain form: I love, they love, but she loves."""
    return pronoun not in {"he", "she"}


def ends_in_consonant(word: str) -> bool:
    """Whether the last syllable of a Korean word has a final consonant.

    A Korean syllable's number is ((initial * 21) + vowel) * 28 + final, counted from U+AC00; final 0 is none
    (The Unicode Standard, section 3.12).
    """
    return (ord(word[-1]) - 0xAC00) % 28 != 0


def with_particle(noun: str, role: str) -> str:
    """A Korean noun with its particle, by its final consonant: topic 은/는, subject 이/가, object 을/를."""
    after_consonant, after_vowel = {"topic": ("은", "는"), "subject": ("이", "가"), "object": ("을", "를")}[role]
    return noun + (after_consonant if ends_in_consonant(noun) else after_vowel)
