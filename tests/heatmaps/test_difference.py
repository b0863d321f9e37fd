"""The difference of two records: what aligns, its numbers, and how the terminal, pictures and the page show it."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
import pytest
from rich.cells import cell_len

import attnviz
from attnviz.attention import Attention
from attnviz.errors import OutputError, SelectionError, SettingsError
from attnviz.heatmaps.terminal import draw
from attnviz.render.terminal.screen import Screen
from attnviz.text.messages import language
from tests.fixtures.pictures import all_texts, print_lines

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.fixtures.command_line import Result

Make = Callable[..., Attention]
TIRED = "The animal didn't cross the street because it was too tired."
WIDE = "The animal didn't cross the street because it was too wide."


@pytest.fixture(scope="module")
def change() -> attnviz.Difference:
    """Two sentences in one model: “it” refers to another noun in the first one."""
    return attnviz.difference(attnviz.attend(WIDE, "toy"), attnviz.attend(TIRED, "toy"))


class TestNumbers:
    """What is compared, and the numbers."""

    def test_two_sentences(self, change: attnviz.Difference) -> None:
        """The first minus the second; two words that stand at the same place stand for one another."""
        expected = change.x.weights - change.y.weights
        np.testing.assert_array_equal(change.weights, expected)
        assert change.queries == change.keys == (tuple(range(12)), tuple(range(12)))
        assert [token.text for token in change.key_tokens][-3:] == ["too", "tired → wide", "."]
        assert change.notes == ()

    def test_words_that_only_one_has(self, make_record: Make) -> None:
        """They are left out, with their rows and columns, and notes say so."""
        change = attnviz.difference(make_record("I do love you"), make_record("I love all you"))
        assert [token.text for token in change.key_tokens] == ["I", "love", "you"]
        assert change.keys == ((0, 2, 3), (0, 1, 3))
        said = " ".join(change.sheet().notes)
        assert "the other has no such word: “do”" in said
        assert "only the other has it: “all”" in said
        assert "need not sum to 0" in said

    def test_the_largest_changes_come_first(self, change: attnviz.Difference) -> None:
        """Each with both weights, and a sentence that says which way it went."""
        changes = change.largest(5)
        sizes = [abs(one.difference) for one in changes]
        assert sizes == sorted(sizes, reverse=True)
        assert sizes[0] == pytest.approx(np.abs(change.weights).max())
        for one in changes:
            at = one.query, one.key
            assert one.difference == pytest.approx(change[one.layer, one.head][at], abs=1e-6)
            rows = (
                record.pattern(one.layer, one.head)[one.query] for record in (change.y, change.x)
            )
            old, new = (int(row.argmax()) for row in rows)
            way = "more" if one.difference > 0 else "less"
            if old != new and one.key in (old, new):
                way = f"from “{change.y.key_tokens[old].text}”"
            assert way in one.sentence
            assert f"layer {one.layer}, head {one.head}" in one.sentence
        assert change.largest(0) == []

    def test_special_tokens_are_not_named(self, make_record: Make) -> None:
        """They are in the numbers, but the largest change is between words."""
        change = attnviz.difference(make_record(seed=1), make_record(seed=2))
        named = {word for one in change.largest(1000) for word in one.words}
        assert named == {"I", "love", "you"}
        # Both rows sum to 1, and nothing is left out.
        np.testing.assert_allclose(change.weights.sum(axis=-1), 0, atol=1e-5)
        assert change.notes == ()
        only = attnviz.difference(make_record("[CLS] [SEP]", seed=1), make_record("[CLS] [SEP]"))
        assert only.largest(1)[0].words[0].startswith("[")

    def test_equal_records(self, make_record: Make) -> None:
        """Nothing changed, which every view can say."""
        change = attnviz.difference(make_record(), make_record())
        assert not change.weights.any()
        assert change.largest() == []
        assert "no weight differs" in repr(change)
        for full in (False, True):
            shown = print_lines(
                draw(change.sheet(), Screen(colour=False), full=full), Screen(colour=False)
            )
            assert "No weight differs" in shown
        assert "No weight differs" in " ".join(all_texts(change.figure()))
        assert "No weight differs" in change.page().html

    def test_layers_and_heads_that_both_have(self, make_record: Make) -> None:
        """A deeper model is compared as far as the other goes, and a note says so."""
        shallow = make_record(n_layers=2, n_heads=4, model="shallow")
        deep = make_record(n_layers=5, n_heads=3, model="deep")
        change = attnviz.difference(deep, shallow)
        assert (change.layers, change.heads) == ((0, 1), (0, 1, 2))
        assert "which both have" in change.sheet().notes[0]
        with pytest.raises(SelectionError, match="no layer or no head in common"):
            attnviz.difference(shallow.select([0]), deep.select([1]))

    def test_two_tokenizers(self, make_record: Make) -> None:
        """Word pieces are merged, and upper and lower case are equal."""

        def split(record: Attention, words: tuple[int, ...]) -> Attention:
            tokens = tuple(
                replace(token, word=word)
                for token, word in zip(record.key_tokens, words, strict=True)
            )
            return replace(record, query_tokens=tokens, key_tokens=tokens)

        pieces = split(make_record("un ·known words", model="pieces"), (0, 0, 1))
        others = split(make_record("Unknown wo ·rds", model="others"), (0, 1, 1))
        change = attnviz.difference(others, pieces)
        assert [token.text for token in change.key_tokens] == ["Unknown", "words"]
        assert "words are compared" in change.sheet().notes[0]
        a, b = attnviz.merge_words(pieces), attnviz.merge_words(others)
        np.testing.assert_array_equal(change.weights, b.weights - a.weights)

    def test_means_and_copies(self, make_record: Make) -> None:
        """The difference of two means is a difference; a copy is equal."""
        a, b = make_record(seed=1), make_record(seed=2)
        mean = attnviz.difference(b.mean("heads"), a.mean("heads"))
        expected = (b.weights - a.weights).mean(axis=1, keepdims=True)
        np.testing.assert_allclose(mean.weights, expected, atol=1e-6)
        assert str(mean.largest(1)[0].sentence).endswith(", mean")
        both = attnviz.difference(a.mean(), b.mean())
        assert str(both.largest(1)[0].sentence).endswith("mean of the heads")
        change = attnviz.difference(a, b)
        assert pickle.loads(pickle.dumps(change)) == change

    def test_refused(self, make_record: Make) -> None:
        """Each in one line."""
        record = make_record()
        causal = attnviz.attend("I love you", "toy-decoder")
        pooled = attnviz.attend("the animal crossed the street " * 9, "toy", memory=40_000)
        for a, b, words in (
            (record, causal, "encoder attention and the second decoder"),
            (record, pooled, "pooled"),
            (record, make_record("quite different"), "no token in common"),
            (record, record.mean("heads"), "mean of both"),
        ):
            with pytest.raises(SelectionError, match=words) as refusal:
                attnviz.difference(a, b)
            assert "\n" not in str(refusal.value)
        with pytest.raises(SettingsError, match=r"expected a record.*not ndarray"):
            attnviz.difference(record, record.weights)  # type: ignore[arg-type]
        change = attnviz.difference(record, make_record(seed=1))
        with pytest.raises(SelectionError, match="mean of both"):
            change.figure(layer="mean")
        with pytest.raises(SelectionError, match="no head 9"):
            change.figure(1, 9)
        with pytest.raises(SelectionError, match="palette"):
            attnviz.heatmap(change, palette="mako")
        with pytest.raises(SelectionError, match="logarithm"):
            change.figure(scale="log")


class TestViews:
    """The terminal, pictures and the page."""

    def test_a_picture_names_the_change(self, change: attnviz.Difference, tmp_path: Path) -> None:
        """Both inputs, the largest change first, signs in the cells and along the colour bar, both receipts."""
        figure = change.figure(layer=1, head=3)
        figure.canvas.draw()
        texts = all_texts(figure)
        shown = " ".join(" ".join(texts).split())
        assert "“it” moves from “animal” (77%) to “street” (88%): layer 1, head 3" in shown
        assert f"“{TIRED}” → “{WIDE}”" in shown
        assert {"+84", "−74", "+50%", "−50%", "tired → wide"} <= {*texts}
        assert shown.count("✓ verified (") == 2
        for ending in (".png", ".svg", ".pdf"):
            assert change.save(tmp_path / f"change{ending}").stat().st_size > 1000
        with pytest.raises(OutputError):
            change.save(tmp_path / "change.npz")

    def test_red_is_more_and_blue_is_less(self, change: attnviz.Difference) -> None:
        """On light and on dark paper; 0 has the colour of the paper."""
        matrix = change[1, 3]
        themes: tuple[Literal["light", "dark"], ...] = ("light", "dark")
        for theme in themes:
            axes = attnviz.heatmap(change, 1, 3, theme=theme)
            pixels = np.asarray(axes.images[0].get_array())[..., :3].astype(int)
            more = pixels[np.unravel_index(matrix.argmax(), matrix.shape)]
            less = pixels[np.unravel_index(matrix.argmin(), matrix.shape)]
            least = pixels[np.unravel_index(np.abs(matrix).argmin(), matrix.shape)]
            assert more[0] > more[2] + 50
            assert less[2] > less[0] + 50
            paper = np.array(axes.figure.get_facecolor()[:3]) * 255
            assert np.abs(least - paper).max() < 5

    @pytest.mark.parametrize("unicode", [True, False])
    def test_a_difference_without_colour(
        self, change: attnviz.Difference, golden: Callable[[str], None], unicode: bool
    ) -> None:
        """Signs tell more from less; every head has its thumbnail."""
        screen = Screen(width=80, colour=False, unicode=unicode, encoding="ascii")
        golden(print_lines(draw(change.sheet(), screen), screen))

    @pytest.mark.parametrize(("width", "colour"), [(40, True), (60, False)])
    def test_it_fits(self, change: attnviz.Difference, width: int, colour: bool) -> None:
        """No line is wider than the screen, of all heads or of some."""
        screen = Screen(width=width, colour=colour)
        for part in (change, change.select([1], [3])):
            for full in (True, False):
                lines = draw(part.sheet(), screen, full=full)
                assert max(cell_len(line.plain) for line in lines) <= width

    def test_a_long_text_is_pooled(self) -> None:
        """In the terminal and in pictures; the sums of the two records still agree."""
        a, b = (
            attnviz.attend(f"the animal {verb} the street " * 24, "toy")
            for verb in ("crossed", "saw")
        )
        change = attnviz.difference(a, b)
        screen = Screen(width=60)
        lines = draw(change.sheet(), screen)
        assert max(cell_len(line.plain) for line in lines) <= 60
        shown = " ".join(line.plain for line in lines)
        assert "More: --head " in shown  # in place of thumbnails, which would show groups of tokens
        assert "“the animal crossed" in shown
        assert "“the animal saw" in shown
        change.page()

    def test_the_page(self, change: attnviz.Difference, show_page: Callable[..., Page]) -> None:
        """It opens on the largest change; the two records are its other views."""
        page = show_page(change.page().html)
        assert "tired → wide: “it” moves from “tired” (100%)" in page.inner_text("header")
        assert "head 0.2" in page.inner_text("h2[aria-live]")
        assert "it → tired → wide: −99.8%" in page.inner_text(".value-here")
        assert page.locator(".thumb").count() == 4 * 7  # the means at the ends too
        assert page.locator(".tabs.view").count() == 0
        page.get_by_role("button", name="This").click()
        assert WIDE[-5:-1] in page.inner_text(".sentence")
        assert page.locator(".tabs.view").count() == 1

    def test_percentages_differ(self, make_record: Make) -> None:
        """A small change has as many decimals as tell the two weights apart."""
        record = make_record(n_layers=1, n_heads=2)
        weights = record.weights.copy()
        weights[0, 0, 2, 2:4] += (0.0004, -0.0004)
        change = attnviz.difference(record.derive(weights=weights, exact=None), record)
        before, after = re.findall(r"[\d.]+%", str(change.largest(1)[0].sentence))
        assert before != after

    def test_korean(self, change: attnviz.Difference, tmp_path: Path) -> None:
        """In every view."""
        with language("ko"):
            assert "검증" in change.sheet().proof
        assert "빨강" in change.page("ko").html


class TestCommand:
    """``attnviz heatmap --against``."""

    def test_another_sentence(self, typed: Callable[..., Result], here: Path) -> None:
        """First what was subtracted, then the change; the picture shows its head, the page has all."""
        outputs = ("-o", "a.png", "-o", "a.html")
        result = typed("heatmap", "--toy", WIDE, "--against", TIRED, *outputs)
        assert result.status == 0
        first, change = " ".join(result.output.split()).split(" tired → wide: ", 1)
        assert first == f"This sentence minus the sentence “{TIRED}”"
        moves = "“it” moves from “tired” (100%) to “street” (83%): layer 0, head 2"
        assert change.startswith(moves)
        assert "Largest changes, by head: 0.2 (-100%)" in " ".join(result.output.split())
        assert (here / "a.png").stat().st_size > 1000
        assert moves in (here / "a.html").read_text(encoding="utf-8")

    def test_another_model(self, typed: Callable[..., Result], here: Path) -> None:
        """The first line says that it is one, both are named, and so is the file."""
        model = "toy-random:seed=1"
        result = typed("heatmap", "--toy", "I love all you", "--against", model, "--head", "1.2")
        assert result.status == 0
        assert result.output.startswith(f"This model minus the model {model}\n")
        assert "→ toy" in result.output
        assert "head 1.2" in result.output
        (file,) = (here / "outputs").iterdir()
        assert "against-toy-random" in file.name

    @pytest.mark.parametrize(
        ("against", "options", "words"),
        [
            ("I love all you", ["-o", "x.npz"], "png, svg, pdf, html"),
            ("I love all you", ["--palette", "mako"], "palette"),
            ("I love all you", ["--rows", "0-2"], "cannot be combined with"),
            ("I love all you", ["--scale", "log"], "sign"),
            ("I love all you", ["--head", "9.9"], "no layer 9"),
            ("", [], "the sentence of --against is empty"),
            ("the street", [], "no token in common"),
            ("toy-decoder", [], "encoder attention and the second decoder"),
        ],
    )
    def test_refused(
        self, typed: Callable[..., Result], against: str, options: list[str], words: str
    ) -> None:
        """In one line, and nothing is written."""
        result = typed("heatmap", "--toy", "I love you", "--against", against, *options)
        assert result.status != 0
        assert words in result.errors
        assert result.errors.count("\n") == 1
