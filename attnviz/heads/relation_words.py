"""The relations of Universal Dependencies by name, with the words that describe heads that find them."""

from __future__ import annotations

from attnviz.text.messages import N_, NC_

# The relations of Universal Dependencies 2 (https://universaldependencies.org/u/dep/), without "root", which links to
# no other word, and two relations of attnviz ("agreement", "coreference"). Each has its governor, the word that the
# dependent belongs to, by its key in `HEAD_WORDS`; and the name of the dependent. Both make the name of a role, such as
# "adjective to noun", so no two relations have the same pair.
RELATIONS = {
    "acl": ("noun", NC_("acl", "clause")),
    "acl:relcl": ("noun", N_("relative clause")),
    "advcl": ("verb", N_("adverbial clause")),
    "advmod": ("word", N_("adverb")),
    "agreement": ("subject", N_("agreeing verb")),
    "amod": ("noun", N_("adjective")),
    "appos": ("noun", N_("apposition")),
    "aux": ("verb", N_("auxiliary")),
    "aux:pass": ("verb", N_("passive auxiliary")),
    "case": ("noun", N_("preposition")),  # also a case marker, such as a Korean particle
    "cc": ("conjunct", N_("conjunction")),
    "ccomp": ("verb", N_("clausal object")),
    "clf": ("numeral", N_("classifier")),
    "compound": ("head", N_("compound part")),
    "compound:prt": ("verb", N_("particle")),
    "conj": ("first", N_("joined word")),
    "cop": ("predicate", N_("copula")),
    "coreference": ("referent", N_("pronoun")),  # or another later mention
    "csubj": ("verb", N_("clausal subject")),
    "csubj:pass": ("verb", N_("passive clausal subject")),
    "dep": ("head", NC_("dep", "word")),
    "det": ("noun", N_("determiner")),
    "discourse": ("clause", N_("interjection")),
    "dislocated": ("clause", N_("dislocated phrase")),
    "expl": ("verb", N_("expletive")),
    "fixed": ("first", N_("set phrase word")),
    "flat": ("first", N_("name part")),
    "goeswith": ("rest", N_("split-off piece")),
    "iobj": ("verb", N_("indirect object")),
    "list": ("first", N_("list item")),
    "mark": ("clause", N_("subordinating conjunction")),
    "nmod": ("noun", N_("modifying noun")),
    "nmod:poss": ("possessed", N_("possessor")),
    "nsubj": ("verb", N_("subject")),
    "nsubj:pass": ("verb", N_("passive subject")),
    "nummod": ("noun", NC_("nummod", "number")),
    "obj": ("verb", N_("object")),
    "obl": ("verb", N_("oblique noun")),
    "obl:agent": ("verb", N_("agent")),
    "orphan": ("stand-in", N_("orphan")),
    "parataxis": ("clause", N_("side clause")),
    "punct": ("word", N_("punctuation mark")),
    "reparandum": ("repair", N_("slip of the tongue")),
    "vocative": ("clause", N_("name called")),
    "xcomp": ("verb", N_("open clause")),
}
# the governors in words
HEAD_WORDS = {
    "noun": NC_("relation", "noun"),
    "verb": NC_("relation", "verb"),
    "word": NC_("relation", "word"),
    "subject": NC_("relation", "subject"),
    "conjunct": NC_("relation", "conjunct"),
    "numeral": NC_("relation", "numeral"),
    "head": NC_("relation", "head word"),
    "first": NC_("relation", "first word"),
    "predicate": NC_("relation", "predicate"),
    "referent": NC_("relation", "referent"),
    "clause": NC_("relation", "clause"),
    "rest": NC_("relation", "rest of the word"),
    "possessed": NC_("relation", "possessed noun"),
    "stand-in": NC_("relation", "word that stands in"),
    "repair": NC_("relation", "repair"),
}
