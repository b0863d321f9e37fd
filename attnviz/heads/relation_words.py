"""The relations of Universal Dependencies by name, with the words that describe heads that find them."""

from __future__ import annotations

from attnviz.text.messages import _, pgettext

# The relations of Universal Dependencies 2 (https://universaldependencies.org/u/dep/), without "root", which links to
# no other word, and two relations of attnviz ("agreement", "coreference"). Each has its governor, the word that the
# dependent belongs to, in the form of short names; and a description of the dependent.
RELATIONS = {
    "acl": ("noun", pgettext("acl", "clause")),
    "acl:relcl": ("noun", _("relative clause")),
    "advcl": ("verb", _("adverbial clause")),
    "advmod": ("word", _("adverb")),
    "agreement": ("subject", _("verb")),
    "amod": ("noun", _("adjective")),
    "appos": ("noun", _("apposition")),
    "aux": ("verb", _("auxiliary")),
    "aux:pass": ("verb", _("passive auxiliary")),
    "case": ("noun", _("preposition or case marker")),
    "cc": ("conjunct", _("conjunction")),
    "ccomp": ("verb", pgettext("ccomp", "clause")),
    "clf": ("numeral", _("classifier")),
    "compound": ("head", _("part of a compound")),
    "compound:prt": ("verb", _("particle")),
    "conj": ("first", _("joined word")),
    "cop": ("predicate", _("copula")),
    "coreference": ("referent", _("pronoun or later mention")),
    "csubj": ("verb", pgettext("csubj", "clause")),
    "csubj:pass": ("verb", pgettext("csubj:pass", "clause")),
    "dep": ("head", pgettext("dep", "word")),
    "det": ("noun", _("determiner")),
    "discourse": ("clause", _("interjection")),
    "dislocated": ("clause", _("dislocated phrase")),
    "expl": ("verb", _("expletive")),
    "fixed": ("first", _("later word of a set phrase")),
    "flat": ("first", _("later word of a name")),
    "goeswith": ("rest", _("split-off piece")),
    "iobj": ("verb", _("indirect object")),
    "list": ("first", _("item of a list")),
    "mark": ("clause", _("conjunction that subordinates")),
    "nmod": ("noun", _("noun")),
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
# the governors in the form of sentences
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
# the dependent in short names, if it is not the name of the relation
DEPENDENTS = {"agreement": "verb", "coreference": "pronoun"}
# other names that users may type for a relation
ALSO = {
    "amod": ("adjective",),
    "coreference": ("coref",),
    "det": ("determiner",),
    "nmod:poss": ("poss",),
    "nsubj": ("subject",),
    "obj": ("object", "dobj"),
    "obl:agent": ("agent",),
}
# the colours of the relations that heads find most often
COLOURS = {
    "advmod": "#8c2807",
    "agreement": "#f20c6c",
    "amod": "#d90bb6",
    "aux": "#94d90b",
    "case": "#9a41d9",
    "cop": "#d9830b",
    "coreference": "#b90cf2",
    "det": "#0c46f2",
    "mark": "#f20c32",
    "nmod:poss": "#078c07",
    "nsubj": "#0077bb",
    "obj": "#f2460c",
    "obl": "#3309b2",
}
