"""The home-built encoder's heads of reference and agreement are found and named, by a tool that was not told."""

from __future__ import annotations

from attnviz.capture.source import open_source
from attnviz.heads.capture.survey import survey_corpus
from attnviz.heads.compare import compare
from attnviz.heads.settings import SurveySettings
from attnviz.heads.terminal.table import draw_table
from attnviz.models.language.splits import corpus_lines
from attnviz.render.terminal.screen import Screen


def test_reference_and_agreement_are_found() -> None:
    """The head that was found when the model was made has the role of reference; another that of agreement."""
    found = compare(survey_corpus(corpus_lines(600), open_source("toy"), SurveySettings()), corpus="its own")
    roles = {role.name: role for role in found.head(1, 3).roles}
    assert roles["relation_coreference"].established
    assert roles["relation_coreference"].score > 0.85
    relations = {relation.name: relation for relation in found.relations}
    assert relations["coreference"].established
    assert relations["coreference"].accuracy > 0.85
    assert relations["agreement"].established
    assert relations["agreement"].accuracy > 0.8
    screen = Screen(width=80, colour=False, dark=True, unicode=True, palette="magma")
    shown = "\n".join(line.plain for line in draw_table(found, screen))
    assert "● pronoun > referent" in shown
    assert "● subject > verb" in shown


def test_random_weights_of_the_toy_have_no_relation() -> None:
    """Its architecture before any training finds neither."""
    found = compare(
        survey_corpus(corpus_lines(300), open_source("toy").untrained(seed=3), SurveySettings()), corpus="likewise"
    )
    assert not [role.name for head in found.heads for role in head.roles if role.name.startswith("relation")]
    assert not any(relation.established for relation in found.relations)
