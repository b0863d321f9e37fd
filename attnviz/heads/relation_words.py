"""The relations of Universal Dependencies by name, with the words that describe heads that find them."""

from __future__ import annotations

from attnviz.text.messages import _, pgettext

# The relations of Universal Dependencies 2 (https://universaldependencies.org/u/dep/), without "root", which links to
# no other word, and two relations of attnviz ("agreement", "coreference"). Each has its governor, the word that the
# dependent belongs to, by its key in `HEAD_WORDS`; and the name of the dependent. Both make the name of a role, such as
# "adjective to noun", so no two relations have the same pair.
RELATIONS = {
    "acl": ("noun", pgettext("acl", "clause")),
    "acl:relcl": ("noun", _("relative clause")),
    "advcl": ("verb", _("adverbial clause")),
    "advmod": ("word", _("adverb")),
    "agreement": ("subject", _("agreeing verb")),
    "amod": ("noun", _("adjective")),
    "appos": ("noun", _("apposition")),
    "aux": ("verb", _("auxiliary")),
    "aux:pass": ("verb", _("passive auxiliary")),
    "case": ("noun", _("preposition")),  # also a case marker, such as a Korean particle
    "cc": ("conjunct", _("conjunction")),
    "ccomp": ("verb", _("clausal object")),
    "clf": ("numeral", _("classifier")),
    "compound": ("head", _("compound part")),
    "compound:prt": ("verb", _("particle")),
    "conj": ("first", _("joined word")),
    "cop": ("predicate", _("copula")),
    "coreference": ("referent", _("pronoun")),  # or another later mention
    "csubj": ("verb", _("clausal subject")),
    "csubj:pass": ("verb", _("passive clausal subject")),
    "dep": ("head", pgettext("dep", "word")),
    "det": ("noun", _("determiner")),
    "discourse": ("clause", _("interjection")),
    "dislocated": ("clause", _("dislocated phrase")),
    "expl": ("verb", _("expletive")),
    "fixed": ("first", _("set phrase word")),
    "flat": ("first", _("name part")),
    "goeswith": ("rest", _("split-off piece")),
    "iobj": ("verb", _("indirect object")),
    "list": ("first", _("list item")),
    "mark": ("clause", _("subordinating conjunction")),
    "nmod": ("noun", _("modifying noun")),
    "nmod:poss": ("possessed", _("possessor")),
    "nsubj": ("verb", _("subject")),
    "nsubj:pass": ("verb", _("passive subject")),
    "nummod": ("noun", pgettext("nummod", "number")),
    "obj": ("verb", _("object")),
    "obl": ("verb", _("oblique noun")),
    "obl:agent": ("verb", _("agent")),
    "orphan": ("stand-in", _("orphan")),
    "parataxis": ("clause", _("side clause")),
    "punct": ("word", _("punctuation mark")),
    "reparandum": ("repair", _("slip of the tongue")),
    "vocative": ("clause", _("name called")),
    "xcomp": ("verb", _("open clause")),
}
OWN_RELATIONS = {"agreement", "coreference"}  # not in Universal Dependencies
# the governors in words
HEAD_WORDS = {
    "noun": pgettext("relation", "noun"),
    "verb": pgettext("relation", "verb"),
    "word": pgettext("relation", "word"),
    "subject": pgettext("relation", "subject"),
    "conjunct": pgettext("relation", "conjunct"),
    "numeral": pgettext("relation", "numeral"),
    "head": pgettext("relation", "head word"),
    "first": pgettext("relation", "first word"),
    "predicate": pgettext("relation", "predicate"),
    "referent": pgettext("relation", "referent"),
    "clause": pgettext("relation", "clause"),
    "rest": pgettext("relation", "rest of the word"),
    "possessed": pgettext("relation", "possessed noun"),
    "stand-in": pgettext("relation", "word that stands in"),
    "repair": pgettext("relation", "repair"),
}
