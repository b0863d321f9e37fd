"""Treebanks: what is read is what is written, each mistake is named with its line, and ours has none."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import attnviz
from attnviz.storage.corpora.conllu import read_conllu
from attnviz.text.corpus import COREFERENCE, Annotation, BadLine, CorpusLine

TREEBANK = Path(__file__).parents[3] / "sample_inputs" / "treebank.conllu"

GOOD = """\
# sent_id = one
# text = The boy didn't lose his dog.
1	The	the	DET	_	Definite=Def|PronType=Art	2	det	_	Entity=(e1-person-2
2	boy	boy	NOUN	_	Number=Sing	5	nsubj	_	Entity=e1)
3-4	didn't	_	_	_	_	_	_	_	_
3	did	do	AUX	_	VerbForm=Fin	5	aux	_	_
4	n't	not	PART	_	Polarity=Neg	5	advmod	_	_
5	lose	lose	VERB	_	VerbForm=Inf	0	root	_	_
6	his	his	PRON	_	Poss=Yes|PronType=Prs	7	nmod:poss	_	Entity=(e2-animal-2(e1-person-1)
7	dog	dog	NOUN	_	Number=Sing	5	obj	_	Entity=e2)|SpaceAfter=No
8	.	.	PUNCT	_	_	5	punct	_	_

"""


def parsed(text: str) -> CorpusLine:
    """The only sentence, which must be a good one."""
    (found,) = read_conllu(text.splitlines())
    assert isinstance(found, CorpusLine), found
    return found


def annotation(found: CorpusLine) -> Annotation:
    """Where the words of a sentence lie, and which of them belong together."""
    assert found.annotated is not None
    return found.annotated


def referring(found: CorpusLine) -> list[tuple[int, int]]:
    """The mentions that are linked to one before them, and those."""
    links = annotation(found).links
    return [(link.query, link.key) for link in links if link.relation == COREFERENCE]


def rows(*words: str) -> str:
    """A sentence of words "form head relation", and perhaps what the last column says."""
    lines = []
    for number, word in enumerate(words, start=1):
        form, head, relation, *misc = word.split()
        lines.append(
            f"{number}\t{form}\t_\tX\t_\t_\t{head}\t{relation}\t_\t{misc[0] if misc else '_'}\n"
        )
    return "".join(lines) + "\n"


def test_a_sentence() -> None:
    """Words and their places, each dependency but the root's and punctuation's, mentions inside one another."""
    found = parsed("\n" + GOOD)
    assert (found.number, found.text) == (2, "The boy didn't lose his dog.")
    words, links = annotation(found).words, annotation(found).links
    assert " ".join(found.text[slice(*span)] for span in words) == "The boy did n't lose his dog ."
    assert words[3] == (11, 14)
    heads = {(link.query, link.key) for link in links if link.relation != COREFERENCE}
    assert heads == {(0, 1), (1, 4), (2, 4), (3, 4), (5, 6), (6, 4)}
    names = {"det", "nsubj", "aux", "advmod", "nmod:poss", "obj", COREFERENCE}
    assert ({link.relation for link in links}, len(links)) == (names, 7)
    assert referring(found) == [(5, 1)]


def test_the_nearest_mention_before() -> None:
    """A chain links neighbours; a pronoun inside a mention of the same one finds that mention's head."""
    chain = parsed(
        rows("he 2 a Entity=(x)", "saw 0 root", "his 2 b Entity=(x)", "him 2 c Entity=(x)")
    )
    assert referring(chain) == [(2, 0), (3, 2)]
    nested = parsed(rows("boy 3 a Entity=(x", "his 1 b Entity=(x)x)", "ran 0 root"))
    assert referring(nested) == [(1, 0)]


def test_text_made_from_the_words() -> None:
    """Without a text it is the words, with a space between them unless they say otherwise."""
    found = parsed(rows("Yes 0 root SpaceAfter=No", "! 1 punct"))
    assert (found.text, annotation(found).words) == ("Yes!", ((0, 3), (3, 4)))


MISTAKES: list[tuple[str, str, int, str]] = [
    ("\tdet\t_\t", "\tdet\t", 3, "9 columns where there must be 10"),
    ("5\tlose\tlose\tVERB", "5 lose lose VERB", 8, "7 columns where there must be 10"),
    ("2\tboy", "two\tboy", 1, "Failed parsing field 'id'"),
    ("2\tboy", "2\t", 1, "the text has"),
    ("2\tboy", "9\tboy", 1, "the words are not numbered 1, 2, 3"),
    ("3-4\t", "4-3\t", 1, "Failed parsing field 'id'"),
    ("3-4\t", "3-99\t", 1, "the text goes on after the last word"),
    ("\t2\tdet", "\t9\tdet", 1, "word 1 (The) has no head in the sentence"),
    ("\t2\tdet", "\t_\tdet", 1, "word 1 (The) has no head in the sentence"),
    ("\t2\tdet", "\t1\tdet", 1, "the heads run in a circle"),
    ("\t5\tobj", "\t6\tobj", 1, "the heads run in a circle"),
    ("\t7\tnmod:poss", "\t0\tnmod:poss", 1, "the head of exactly one word, the root, must be 0"),
    ("\t0\troot", "\t7\troot", 1, "the head of exactly one word, the root, must be 0"),
    ("his dog.", "her dog.", 1, "the text has “her dog.” where “his” should be"),
    ("his dog.", "his dog. Oh", 1, "the text goes on after the last word: “Oh”"),
    ("Entity=e1)\n", "_\n", 1, "the bracket of entity e1 does not close in its sentence"),
    ("Entity=e1)\n", "Entity=e3)\n", 1, "the bracket of entity e3 closes but was not opened"),
    ("nsubj", "_", 1, "word 2 (boy) has no relation to its head"),
]


@pytest.mark.parametrize(("old", "new", "line", "reason"), MISTAKES)
def test_a_mistake_is_named(old: str, new: str, line: int, reason: str) -> None:
    """With its line, or that of its sentence, and nothing a terminal obeys; the sentences around it are read."""
    assert old in GOOD
    bad = GOOD.replace(old, new, 1)
    before, found, after = read_conllu((GOOD + bad + GOOD).splitlines(keepends=True))
    assert isinstance(before, CorpusLine)
    assert isinstance(after, CorpusLine)
    assert isinstance(found, BadLine)
    assert found.reason.startswith(reason), found.reason
    assert found.number == line + 12
    assert found.reason.isprintable()


def test_no_words() -> None:
    """A sentence of empty nodes alone is a mistake; comments alone are no sentence."""
    (found,) = read_conllu(["# only = this", "1.1\tx\t_\t_\t_\t_\t_\t_\t_\t_"])
    assert found == BadLine(number=1, reason="the words are not numbered 1, 2, 3")
    assert list(read_conllu(["# a comment", "", "# another"])) == []


def test_entities_as_others_write_them() -> None:
    """The declared field names the entity; of two pieces the first is kept; the head is the top of the tree."""
    declared = "# newdoc id = x\n# global.Entity = etype-eid-head\n" + rows(
        "a 2 x Entity=(person-e7-1)", "b 0 root Entity=(animal-e7-1)", "c 2 x Entity=(person-e8-1)"
    )
    assert referring(parsed(declared)) == [(1, 0)]
    pieces = rows(
        "take 0 root",
        "it 1 x Entity=(e1[1/2]-x)",
        "and 4 cc",
        "off 2 x Entity=(e1[2/2])",
        "b 1 x Entity=(e1)",
    )
    assert referring(parsed(pieces)) == [(4, 1)]
    top = rows("a 3 x Entity=(e1", "b 1 x Entity=e1)", "c 0 root", "d 3 x Entity=(e1)")
    assert referring(parsed(top)) == [(3, 0)]
    crossing = rows(
        "a 0 root Entity=(e1", "b 1 x Entity=(e2", "c 1 x Entity=e1)", "d 1 x Entity=e2)(e1)"
    )
    assert referring(parsed(crossing)) == [(3, 0)]


def test_ours() -> None:
    """The packaged treebank is the one among the sample inputs: no mistakes, no sentence twice, pronouns linked."""
    packaged = Path(attnviz.__file__).parent / "text" / "treebank.conllu"
    assert packaged.read_bytes() == TREEBANK.read_bytes()
    with TREEBANK.open(encoding="utf-8") as file:
        sentences = list(read_conllu(file))
    by_text = {found.text: found for found in sentences if isinstance(found, CorpusLine)}
    assert len(by_text) == len(sentences) >= 300
    tired = by_text["The animal didn't cross the street because it was too tired."]
    (pronoun, noun), *_ = referring(tired)
    places = annotation(tired).words
    assert [tired.text[slice(*places[word])] for word in (pronoun, noun)] == ["it", "animal"]


PIECES = [*"12_0-.a|é\t\n\x1b", "\n\n", "(e1", "e1)", "[1/2]", "Entity=", "# text = "]


@given(
    st.lists(st.sampled_from(PIECES), max_size=80).map("".join)
    | st.text(st.characters(codec="utf-8"))
)
def test_any_text(text: str) -> None:
    """Whatever a file holds, each line that is wrong is one of its lines, and the message can be printed."""
    lines = text.split("\n")
    for found in read_conllu(lines):
        if isinstance(found, BadLine):
            assert 1 <= found.number <= len(lines)
            assert found.reason.isprintable()
