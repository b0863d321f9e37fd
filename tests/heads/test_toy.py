"""The home-built encoder's head of reference is found and named, by a tool that was not told; agreement stays open."""

from __future__ import annotations

import pytest

from attnviz.capture.source import open_source
from attnviz.heads.compare import compare
from attnviz.heads.settings import SurveySettings
from attnviz.models.language.splits import corpus_lines
from tests.heads.surveys import survey_model

pytestmark = pytest.mark.usefixtures("whole_corpora")


def test_reference_is_found_and_agreement_is_not_established() -> None:
    """The head that was found when the model was made has the role; agreement is not claimed.

    Chosen on one half and scored on the other, agreement is right in 0.91; so may random weights be, on the few links
    of their sample.
    """
    found = compare(
        survey_model(corpus_lines(600), open_source("toy"), SurveySettings()), corpus="its own"
    )
    roles = {role.name: role for role in found.head(1, 3).roles}
    assert roles["relation_coreference"].established
    assert roles["relation_coreference"].score > 0.85
    assert not any("agreement" in role.name for head in found.heads for role in head.roles)
    relations = {relation.name: relation for relation in found.relations}
    assert relations["coreference"].role.established
    assert relations["coreference"].role.score > 0.85
    assert relations["agreement"].role.score > 0.7
    doubt = relations["agreement"].role.doubt
    assert doubt is not None
    assert (doubt.code, dict(doubt.fields)["control"]) == ("control_does_as_much", "untrained")
