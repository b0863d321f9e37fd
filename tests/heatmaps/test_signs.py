"""Signs of roles in the overview: those that are established, of the same model, in both languages."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

import attnviz
from attnviz.attention import Note
from attnviz.errors import SelectionError
from attnviz.heads.measures import RoleRule
from attnviz.heads.record import Role
from attnviz.render.sheet import HeadSign, HeadSigns
from attnviz.text.messages import Phrase
from tests.fixtures.browser import barriers

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Page

    from attnviz.attention import Attention
    from attnviz.heads.record import HeadComparison

SIGNS = HeadSigns(
    model="toy",
    kind="encoder",
    n_layers=3,
    n_heads=6,
    of={
        (0, 2): HeadSign("-1", "#332288", ("looks at the previous token", "이전 토큰을 봄")),
        (1, 3): HeadSign(
            Phrase("rel", "관계"), "#88ccee", ("finds <b>what</b> it is", "가리키는 말을 찾음")
        ),
        (2, 0): HeadSign("-1", "#332288", ("looks at the previous token", "이전 토큰을 봄")),
    },
)


class Measured:
    """Measurements of heads, made by hand."""

    signs = SIGNS


@pytest.fixture(scope="module")
def record() -> Attention:
    """A sentence as `toy` reads it."""
    return attnviz.attend("I love all you", model="toy")


@pytest.mark.parametrize("width", [360, 1280])
def test_signs_and_their_words(
    record: Attention, show_page: Callable[..., Page], width: int
) -> None:
    """Each head with a role has its sign, its name says the role too, and a legend has each role once."""
    viewport = {"width": width, "height": 800}
    shown = show_page(
        attnviz.page(record, roles=Measured()).html, viewport=viewport, color_scheme="dark"
    )
    assert shown.locator(".thumb .role-sign").all_inner_texts() == ["-1", "rel", "-1"]
    for place, name, title in (
        (0, "0.2", "looks at the previous token"),
        (1, "1.3", "finds <b>what</b> it is"),
    ):
        thumb = shown.locator(".thumb", has=shown.locator(".role-sign")).nth(place)
        assert thumb.get_attribute("aria-label") == f"head {name}: {title}"
        thumb.hover()
        below = shown.locator(".tip").inner_text().splitlines()
        assert below[0].startswith(f"{name}: ")
        assert below[1] == title
    assert shown.locator(".roles li").all_inner_texts()[1:] == [
        "-1 looks at the previous token",
        "rel finds <b>what</b> it is",
    ]
    assert shown.evaluate("document.documentElement.scrollWidth") == width
    assert barriers(shown) == []
    shown.locator(".lang").first.click()
    assert shown.locator(".roles li").last.inner_text() == "관계 가리키는 말을 찾음"
    assert shown.locator(".thumb .role-sign").all_inner_texts() == ["-1", "관계", "-1"]
    shown.locator(".thumb", has=shown.locator(".role-sign")).nth(1).click()
    assert (
        shown.locator(".thumb[aria-current]").get_attribute("aria-label")
        == "헤드 1.3: 가리키는 말을 찾음"
    )
    assert shown.evaluate("document.documentElement.scrollWidth") == width


@pytest.fixture(scope="module")
def measured() -> HeadComparison:
    """Measurements of `toy` on few sentences, which establish nothing."""
    words = ("you", "all", "cats", "dogs", "apples", "tea", "him", "her", "us", "them", "it")
    return attnviz.compare_heads([f"I love {word}" for word in words], model="toy")


def test_the_clearest_established_role_is_the_sign(measured: HeadComparison) -> None:
    """A role that something rules out gives no sign; of two that are established the first, which is the clearest."""
    rules = [RoleRule(name=name, words=f"does {name}", threshold=0.5) for name in ("one", "two")]
    sure, second = (
        Role(rule=rule, measure="self", score=0.9, low=0.8, high=1.0, controls=()) for rule in rules
    )
    unsure = replace(sure, doubt=Note("few_carry_it"))
    given = {(0, 1): (sure, second), (1, 4): (unsure,), (2, 0): (second, unsure)}
    heads = tuple(
        replace(head, roles=given.get((head.layer, head.head), ())) for head in measured.heads
    )
    signs = replace(measured, heads=heads).signs
    assert {place: sign.sign for place, sign in signs.of.items()} == {(0, 1): "one", (2, 0): "two"}
    assert signs.of[0, 1].words == ("does one", "does one")
    assert (signs.model, signs.kind, signs.n_layers, signs.n_heads) == ("toy", "encoder", 3, 6)


def test_from_a_file_and_by_the_command(
    measured: HeadComparison,
    tmp_path: Path,
    typed: Callable[..., Any],
    show_page: Callable[..., Page],
) -> None:
    """A file gives what the value gives; where nothing is established, the page says so."""
    record = attnviz.attend("I love you", model="toy")
    path = attnviz.save(measured, tmp_path / "heads.stats")
    done = typed(
        "heatmap", "I love you", "--toy", "-o", str(tmp_path / "a.html"), "--roles", str(path)
    )
    assert done.status == 0, done
    html = attnviz.page(record, roles=measured).html
    assert (tmp_path / "a.html").read_text(encoding="utf-8") == html
    assert attnviz.page(record, roles=str(path)).html == html
    done = typed("page", "-o", str(tmp_path / "tour.html"), "--roles", str(path))
    assert done.status == 0, done
    assert (tmp_path / "tour.html").read_text(encoding="utf-8") == attnviz.page(roles=measured).html
    assert measured.signs.of == {}
    assert "No head of this model has an established role" in show_page(html).inner_text(".roles")


@pytest.mark.parametrize(
    "other", [{"model": "toy-ko"}, {"kind": "decoder"}, {"n_layers": 2}, {"n_heads": 5}]
)
def test_roles_of_another_model_are_refused(record: Attention, other: dict[str, Any]) -> None:
    """One line says whose roles they are, and what they cannot be shown on."""
    measured = Measured()
    measured.signs = replace(SIGNS, **other)
    with pytest.raises(
        SelectionError, match=r"measured on .* but the record is of toy .*compare-heads"
    ) as error:
        attnviz.page(record, roles=measured)
    assert "\n" not in str(error.value)


def test_what_holds_no_roles(
    record: Attention, tmp_path: Path, refused: Callable[..., tuple[int, str]]
) -> None:
    """A record is no file of roles."""
    path = attnviz.save(record, tmp_path / "a.json")
    with pytest.raises(SelectionError, match="holds no roles"):
        attnviz.page(record, roles=record)
    with pytest.raises(SelectionError, match="holds no roles"):
        attnviz.page(record, roles=path)
    for name, wanted in (
        (str(path), "holds no roles of heads"),
        ("none.stats", "none.stats: it cannot be read"),
    ):
        for output in ("a.html", "a.png"):
            status, line = refused("heatmap", "I love you", "--toy", "--roles", name, "-o", output)
            assert status == 1
            assert wanted in line
