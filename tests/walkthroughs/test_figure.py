"""The picture of a walkthrough: the numbers and words that it has, where they stand, and its files."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO
from typing import TYPE_CHECKING, Any

import pytest

from attnviz.walkthroughs.examples import example, make
from attnviz.walkthroughs.hand import one_format
from attnviz.walkthroughs.record import Walkthrough
from attnviz.walkthroughs.view import View
from tests.fixtures.pictures import expect_apart, picture_of, text_contrasts
from tests.walkthroughs.by_hand import of_model, one_decoder_step, walks

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.transforms import Bbox


Texts = Callable[["Figure"], list[tuple[str, "Bbox"]]]
Words = Callable[..., list[str]]


@pytest.fixture
def words(texts_of: Texts) -> Words:
    """The texts of a drawn walkthrough."""

    def draw(walk: Walkthrough, **look: Any) -> list[str]:
        return [text for text, _ in texts_of(picture_of(walk, **look).figure)]

    return draw


def test_every_number_of_a_small_calculation_is_printed(words: Words) -> None:
    """Each cell of each matrix of the book's example, each matrix in one format."""
    walk = one_decoder_step()
    printed = words(walk, precision=8)
    expected = [
        one_format(grid.values, 8)(float(value))
        for grid in walk.grids.values()
        for value in grid.values.ravel()
    ]
    assert {"60", "2.86251858e-20", "6.94397194e-11"} <= set(expected)
    for number in set(expected) - {"1", "4"}:  # which number steps, too
        assert printed.count(number) == expected.count(number)


def test_a_score_stands_where_its_query_meets_its_key(texts_of: Texts) -> None:
    """K is drawn transposed: the name of a key, its score and its weight are in one column, and q is beside."""
    walk = one_decoder_step()
    places: dict[str, Bbox] = {}
    for text, box in texts_of(picture_of(walk).figure):
        places.setdefault(text, box)
    middle = {text: (box.x0 + box.x1) / 2 for text, box in places.items()}
    assert middle["second"] == pytest.approx(middle["60"], abs=1)
    assert middle["second"] == pytest.approx(middle["1.000"], abs=1)
    assert "Kᵀ (3, 4)" in places
    assert places["q (1, 3)"].y0 == pytest.approx(places["scores = q Kᵀ"].y0, abs=3)
    assert places["q (1, 3)"].x1 < places["scores = q Kᵀ"].x0


def test_a_blank_cell_is_a_line_to_write_on(words: Words) -> None:
    """Its number is not there, nor a finding that gives it away; the solution of an exercise fills all in."""
    blanks = frozenset({("scores", 0, 1), ("weights", 0, 0), ("context", 0, 1)})
    printed = words(one_decoder_step(), blanks=blanks)
    assert printed.count("____") == 3
    assert "60" not in printed
    assert printed[0] == "made by hand"
    walk = make(7)
    blank, solved = words(walk, blanks=walk.blanks()), words(walk)
    assert any(text.startswith("Name: ____") for text in blank)
    assert blank.count("____") == len(walk.blanks())
    assert {f"{value:.3f}" for value in walk.grids["weights"].values[0]} <= set(solved)


def test_the_sheet_says_what_it_shows(words: Words) -> None:
    """First what was found; the whole formula, the sentence, the steps, and how it was checked."""
    texts = words(of_model())
    weights = of_model().grids["weights"]
    key = weights.columns[weights.values[0].argmax()]
    assert texts[0] == f"“모두를” attends most to “{key}” ({weights.values.max():.2f})"
    printed = " ".join(texts)
    for part in (
        "one head · “나는 너희 모두를 사랑해”",
        "context = softmax(mask(q Kᵀ / √8)) V",
        "The recomputed context matches the model's to 3e-08",
        "1–4 Input and projections",
        "q = x Wq + bq   (1, 8)",
        "K = X Wk + bk   (7, 8)",
        "5 Attention scores",
        "scores = q Kᵀ",
        "alignment = weightsᵀ ⊙ V   (7, 8)",
        "⊙ multiplies cell by cell",
    ):
        assert part in printed
    assert "어텐션" not in printed
    assert {"어텐션 스코어", "컨텍스트 벡터"} <= set(words(of_model(), lang="ko"))


def test_of_a_long_text_the_largest_weights_are_drawn(words: Words) -> None:
    """The key that wins is among the columns, wherever it stands, and dots stand for the others."""
    walk = of_model(60)
    printed = words(walk)
    assert f"{walk.grids['weights'].values.max():.3f}" in printed
    assert "…" in printed
    assert any(text.startswith("… stands for numbers left out") for text in printed)


DRAWN: dict[str, tuple[Walkthrough, dict[str, Any]]] = {
    "book": (example("seq2seq-word"), {}),
    "operations": (walks()["layer"], {}),
    "heads": (of_model(n_heads=3), {"lang": "ko"}),
    "slide of queries": (of_model(16, one=False), {"style": "slides"}),
    "long paper": (of_model(40), {"style": "paper", "lang": "ko"}),
}


@pytest.mark.parametrize(("walk", "look"), DRAWN.values(), ids=DRAWN)
@pytest.mark.filterwarnings("ignore:the letters are")
def test_texts_keep_clear(texts_of: Texts, walk: Walkthrough, look: dict[str, Any]) -> None:
    """No text covers another, and none is cut off."""
    figure = picture_of(walk, **look).figure
    expect_apart(texts_of(figure), figure)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_texts_can_be_read(theme: str) -> None:
    """Every text has a contrast of 4.5 with what lies below it."""
    contrasts = text_contrasts(picture_of(of_model(one=False), theme=theme).figure)
    assert min(contrasts.values()) >= 4.5, min(contrasts, key=lambda text: contrasts[text])


def test_files_are_always_the_same() -> None:
    """Twice the same bytes, with every character drawn, Korean included."""
    written = []
    for _ in range(2):
        buffer = BytesIO()
        picture = picture_of(of_model(), lang="ko")
        assert picture.typefaces.missing == ""
        picture.write(buffer, ".pdf")
        written.append(buffer.getvalue())
    assert written[0] == written[1]
    assert b"/Type3" not in written[0]


def test_a_slide_has_the_steps_of_attention(words: Words) -> None:
    """The finding, the weights, the context and the receipt, without the projections."""
    walk = of_model()
    view, texts = View(walk=walk), words(walk, style="slides")
    assert {view.heading[0], "Softmax", "Context vector"} <= set(texts)
    assert "Input and projections" not in texts
    assert view.receipt in " ".join(texts)


def test_too_many_numbers_for_the_size() -> None:
    """One line says how large the letters are, and what helps."""
    with pytest.warns(UserWarning, match="the letters are .* pt: show less"):
        picture_of(of_model(), figsize=(3, 2))
