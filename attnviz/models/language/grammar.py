"""Sentences made up from a grammar file and a seed, as lines of text with their gold facts.

A grammar is a YAML file beside this one. Its rules have four forms:

- A text: ``the <animal> [is] big .`` Each ``<name>`` is replaced by the variable, the phrase or the word of that
  name; from a group of words one is drawn. ``<verb.past>`` is one form of a word, ``<verb.person>`` the form that
  the variable ``person`` names, ``<people|animals>`` a word of either group, ``<people other than who>`` any word of
  a group but one. ``a(n)`` becomes a or an, and ``<+object>`` the Korean particle of that role, 을 or 를.
- A list: ``[was, is]`` draws one of its rules, after all of them were filled in. ``[30%: was, 70%: is]`` draws one by
  its share, and fills in only that one. What the shares leave of 100% says nothing.
- A case: ``{case: number, one: is, many: are}`` follows the value of a variable.
- Steps: ``{noun: <people>, say: the <noun>}`` set variables, one after another, and then say a text. A variable is
  known from then on in the whole sentence.

Words are listed in groups by their forms: where the forms are one/many, ``man/men`` is a noun. Verbs are listed by the
nouns that they take, adjectives with the nouns that they go with.

`attnviz.models.language.sentences` explains the marks and tags of a finished line. The shipped models were trained on
these very sentences: any change of the order of draws changes all sentences of a seed.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, TypeAlias

from attnviz.models.language.vocabulary import PIECE

Word: TypeAlias = dict[str, Any]
"""The forms of a word, by name; of a noun also its adjectives, of a verb its objects."""

PARTICLES = {
    "topic": ("은", "는"),
    "subject": ("이", "가"),
    "object": ("을", "를"),
    "with": ("과", "와"),
    "is": ("이에요", "예요"),
    "was": ("이었어요", "였어요"),
    "too": ("도", "도"),
    "to": ("으로", "로"),
    "at": ("에서", "에서"),
    "in": ("에", "에"),
    "whom": ("에게", "에게"),
}
"""Korean particles by their role: after a final consonant, and after a vowel."""
RIEUL = 8  # number of the final consonant ㄹ
SIDES = ("english", "korean")  # language of each side of a pair
_NO_STEPS = frozenset(("say", "mark", *SIDES))  # keys of a step that are not variables


def particle(noun: str, role: str) -> str:
    """Return the Korean particle that a noun takes in this role; before 로 a final ㄹ counts as none.

    A Korean syllable's number is ((initial * 21) + vowel) * 28 + final, counted from U+AC00; final 0 is none
    (The Unicode Standard, section 3.12).
    """
    final = (ord(noun[-1]) - 0xAC00) % 28
    after_consonant, after_vowel = PARTICLES[role]
    if final == 0 or (role == "to" and final == RIEUL):
        return after_vowel
    return after_consonant


@dataclass(frozen=True)
class Grammar:
    """A grammar: its rules as the file has them, and its words by group."""

    rules: dict[str, Any]  # content of the grammar file
    words: dict[str, Any]

    def sentence(self, random: Random, kind: str | None = None) -> str:
        """Return a random sentence of this kind (None: any kind) in the format of `parse_sentence`."""
        kind = kind or _draw(random, self.rules["kinds"])
        draft = _Draft(self, random)
        text = _finish(draft.text(draft.fill(self.rules["sentences"][kind])))
        reference, link = (draft.variables.get(name, "") for name in ("refers", "link"))
        return f"{kind}\t{text}\t{reference}\t{link}"

    def pair(self, random: Random, clauses: int | None = None) -> str:
        """Return a random sentence and its translation in the format of `parse_pair`.

        Without a number of clauses, most pairs have one.
        """
        n = clauses or _draw(random, self.rules["clauses"])
        if n == 1 and clauses is None:
            rule = self.rules["sentences"][_draw(random, self.rules["kinds"])]
        else:
            rule = self.rules["several"][n]
        texts = _Draft(self, random).fill(rule)
        english, korean = (_finish(texts[side]) for side in SIDES)
        ends = random.random() < 0.7  # people often leave out the full stop
        if ends and not korean.endswith(tuple(self.rules["no full stop after"])):
            english, korean = f"{english} .", f"{korean} ./."
        return _align(english, korean)

    def alike(self) -> tuple[tuple[str, ...], ...]:
        """Return groups of words in the same form, such as all nouns in the plural."""
        same_form = []
        for groups, forms in self.rules["alike"].items():
            # A noun may be in several groups.
            words = {id(word): word for word in _words_of(self.words, groups)}.values()
            for form in forms:
                before, name, after = _split_slots(form)
                same_form.append(tuple(before + word[name] + after for word in words))
        return tuple(same_form)


class _Draft:
    """A sentence that is being generated, with the variables set so far."""

    def __init__(self, grammar: Grammar, random: Random) -> None:
        self.grammar, self.random = grammar, random
        self.variables: dict[str, Any] = {}
        self.side = SIDES[0]  # which side of a pair is being generated

    def fill(self, rule: Any) -> Any:
        """Return the result of a rule: a text, a word, or the two texts of a pair."""
        if isinstance(rule, str):
            return self._fill_text(rule) if "<" in rule else rule
        if isinstance(rule, list):
            return self._draw_one(rule)
        if "case" in rule:
            value = self.text(self._look_up(rule["case"]))
            return self.fill(rule[value] if value in rule else rule["else"])
        for name, step in rule.items():
            if name not in _NO_STEPS:
                self.variables[name] = self.fill(step)
        result = self.fill(rule["say"]) if "say" in rule else self._fill_sides(rule)
        if "mark" in rule:  # the tags of one clause must differ from those of another
            mark = rf"\g<0>{rule['mark']}"
            result = {side: re.sub("[/+]", mark, result[side]) for side in SIDES}
        return result

    def text(self, value: str | Word) -> str:
        """Return a text unchanged; for a word, its form for this side, or its first form."""
        if isinstance(value, str):
            return value
        form: str = value.get(self.side, next(iter(value.values())))
        return form

    def _draw_one(self, rules: list[Any]) -> Any:
        """Return the result of one rule of a list; an empty text for what the shares leave of 100%."""
        if not _has_share(rules[0]):
            return self.random.choice([self.fill(rule) for rule in rules])
        number, total = self.random.random(), 0
        for alternative in rules:
            ((share, rule),) = alternative.items()
            total += int(share.removesuffix("%"))
            if number < total / 100:
                return self.fill(rule)
        return ""

    def _fill_sides(self, rule: dict[str, Any]) -> dict[str, str]:
        """Return the text of each side of a pair."""
        texts = {}
        for side in SIDES:
            self.side = side
            texts[side] = self.text(self.fill(rule[side]))
        self.side = SIDES[0]
        return texts

    def _fill_text(self, rule: str) -> Any:
        """Return a text with its slots filled in; a rule that is one slot gives the word itself, with all its forms."""
        parts = _split_slots(rule)
        if len(parts) == 3 and not parts[0] and not parts[2]:
            return self._fill_slot(parts[1], "")
        text = parts[0]
        for slot, literal in zip(parts[1::2], parts[2::2], strict=True):
            text += self.text(self._fill_slot(slot, text)) + literal
        return text

    def _fill_slot(self, slot: str, before: str) -> Any:
        """Return the content of a slot, such as ``people other than who``; `before` is the text before it."""
        if slot.startswith("+"):
            return self._particle(slot[1:], before)
        name, _, exception = slot.partition(" other than ")
        value = self._look_up(name)
        if not isinstance(value, list):
            return value
        if not value:  # this noun takes no adjective
            return ""
        word = self.random.choice(value)
        while exception and word is self.variables[exception]:
            word = self.random.choice(value)
        return word

    def _look_up(self, name: str) -> Any:
        """Return a variable, a filled-in phrase, a group of words, or a form of one of these."""
        if "|" in name:
            return [word for part in name.split("|") for word in self._look_up(part)]
        name, _, form = name.partition(".")
        if name in self.variables:
            value = self.variables[name]
        elif name in self.grammar.rules["phrases"]:
            value = self.fill(self.grammar.rules["phrases"][name])
        else:
            value = self.grammar.words[name]
        if isinstance(value, str) or not form:
            return value
        word = self.random.choice(value) if isinstance(value, list) else value
        if form not in word:
            form = self.text(self.variables[form])
        return word[form] if form in word else word["many"]  # "i" goes with "they", but for "be"

    def _particle(self, role: str, before: str) -> str:
        """Return the Korean particle of the noun at the end of `before`, as a piece of its own after a space."""
        if role not in PARTICLES:
            role = self.text(self.variables[role])
        noun = before.rstrip("[ ").rpartition(" ")[2].partition("/")[0]
        return (PIECE if before[-1] in "[ " else "") + particle(noun, role)


@functools.cache
def load_grammar(name: str) -> Grammar:
    """Read the grammar ``english``, ``korean`` or ``translation``."""
    import yaml

    text = Path(__file__).with_name(f"{name}.yaml").read_text("utf-8")
    rules = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return Grammar(rules, _read_words(rules))


def _read_words(rules: dict[str, Any]) -> dict[str, Any]:
    """Return the words of a grammar by group, and those of the agreement by name."""
    words: dict[str, Any] = dict(rules.get("agreement", {}))
    nouns: dict[str, Word] = {}  # a noun of several groups is one and the same word
    for group, entries, forms in _groups_of(rules["nouns"]):
        listed = [word | {"adjectives": []} for word in _read_list(entries, forms)]
        words[group] = [nouns.setdefault(noun[forms[0]], noun) for noun in listed]
    for block in rules["words"]:
        for group, entries, forms in _groups_of(block):
            words[group] = _read_list(entries, forms)
    for group, parts, forms in _groups_of(rules["verbs"]):
        words[group] = []
        for takes, entries in (item for part in parts for item in part.items()):
            facts = {"group": group, "takes": takes}  # what the verbs take: an object, a place
            verbs = [word | facts for word in _read_list(entries, forms)]
            words[group] += verbs
            words.setdefault(f"{group} taking {takes}", []).extend(verbs)
    for group, union in rules.get("groups", {}).items():
        words[group] = _words_of(words, union)
    # The objects of verbs may be any of the groups read so far.
    for group, _, _ in _groups_of(rules["verbs"]):
        for verb in words[group]:
            verb["objects"] = _words_of(words, rules["objects"].get(verb["takes"], ""))
    for group, adjectives, forms in _groups_of(rules.get("adjectives", {})):
        words[group] = _read_list(" ".join(adjectives), forms)
        for adjective, names in zip(words[group], adjectives.values(), strict=True):
            # The nouns that it goes with are named one by one or by group.
            for name in names.split():
                for noun in [nouns[name]] if name in nouns else words[name]:
                    noun["adjectives"].append(adjective)
                    noun.setdefault(group, []).append(adjective)
    words["nouns with adjectives"] = [noun for noun in nouns.values() if noun["adjectives"]]
    return words


def _groups_of(block: dict[str, Any]) -> Iterator[tuple[str, Any, list[str]]]:
    """Yield each group of a block with what is listed in it, and the names of the forms of its words."""
    for group, entries in block.items():
        if group != "forms":
            yield group, entries, block["forms"].split("/")


def _read_list(entries: str, forms: list[str]) -> list[Word]:
    """Return words from their forms, with spaces between the words: ``man/men boy/boys``."""
    return [dict(zip(forms, entry.split("/"), strict=True)) for entry in entries.split()]


def _words_of(words: dict[str, Any], groups: str) -> list[Word]:
    """Return the words of several groups: ``people|animals``."""
    return [word for group in groups.split("|") if group for word in words[group]]


def _draw(random: Random, chances: dict[Any, float]) -> Any:
    """Draw a key by its relative frequency."""
    return random.choices(list(chances), list(chances.values()))[0]


def _has_share(rule: Any) -> bool:
    """Return whether a rule of a list begins with its share: ``30%: was``."""
    return isinstance(rule, dict) and len(rule) == 1 and next(iter(rule)).endswith("%")


@functools.cache
def _split_slots(text: str) -> list[str]:
    """Return the literals and the slots of a text in turn."""
    return re.split("<(.+?)>", text)


def _align(english: str, korean: str) -> str:
    """Return two tagged texts as a line with their word alignment."""
    source = [token.split("/") for token in english.split(" ")]
    target = [token.split("/") for token in korean.split(" ")]
    links = [
        f"{other}{mark}{position}"
        for position, (_, *tags) in enumerate(target)
        for mark, tagged in zip("-p", tags, strict=False)
        for other, word in enumerate(source)
        if word[-1] in tagged.split("+")
    ]
    texts = [" ".join(word for word, *_ in words) for words in (source, target)]
    return "\t".join([*texts, " ".join(links)])


def _finish(text: str) -> str:
    """Return a text with its articles, and without the tags of missing words."""
    tokens = [token for token in text.split() if not token.startswith("/")]
    for place, token in enumerate(tokens):
        if token.startswith("a(n)"):
            article = "an" if tokens[place + 1][0] in "aeiou" else "a"
            tokens[place] = token.replace("a(n)", article)
    return " ".join(tokens)
