"""The page of a record in a real browser: what it shows is the record, its views are linked, nothing gets in or out."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from playwright.sync_api import expect

import attnviz
from attnviz import page
from attnviz.attention import Attention, Note, Token
from attnviz.errors import OutputError
from attnviz.heatmaps import html
from attnviz.heatmaps.words import hide_special, merge_words
from attnviz.text.display import number_text
from tests.fixtures.browser import OPTIONS, barriers, downloaded, state

if TYPE_CHECKING:
    from playwright.sync_api import Page

Make = Callable[..., Attention]
Open = Callable[..., "Page"]

GALLERY = Path(__file__).parents[2] / "outputs" / "gallery"
SENTENCE = "[CLS] I love all you [SEP]"


@pytest.fixture
def show(show_page: Callable[..., Page]) -> Open:
    """Open the page of a record."""

    def open_page(record: Attention | str, fragment: str = "", **look: Any) -> Page:
        options = {name: look.pop(name) for name in OPTIONS if name in look}
        return show_page(
            record if isinstance(record, str) else page(record, **look).html, fragment, **options
        )

    return open_page


def go(shown: Page, fragment: str) -> Page:
    """Show another view of the page that is open."""
    shown.evaluate("fragment => { location.hash = fragment || 'find=none'; }", fragment)
    shown.wait_for_timeout(30)
    return shown


def share(text: str) -> float:
    """A percentage as a share of 1."""
    return float(text.strip().lstrip("≈").rstrip("%")) / 100


def table(shown: Page) -> list[dict[str, str]]:
    """The CSV of the view."""
    return [*csv.DictReader(io.StringIO(downloaded(shown, "CSV").decode("utf-8-sig"), newline=""))]


def matrix(shown: Page) -> np.ndarray:
    """The CSV of the view as a matrix of weights."""
    rows = table(shown)
    n = len({row["query"] for row in rows})
    return np.array([float(row["weight"]) for row in rows], dtype=np.float32).reshape(n, -1)


def listed(shown: Page) -> dict[str, float]:
    """The table of the chosen word: each token and its weight."""
    rows = shown.locator("table.row tbody tr").all_inner_texts()
    return {name.strip(): share(weight) for name, weight in (row.split("\t") for row in rows)}


# ------------------------------------------------------------------------------------------- the numbers


def test_every_weight_is_the_records(show: Open, fixed_record: Make) -> None:
    """The saved table equals the record to the bit, head by head; drawn numbers are percents."""
    record = fixed_record(SENTENCE, n_layers=2, n_heads=3)
    shown = show(record, "head=")
    rows = table(shown)
    assert [row["head"] for row in rows[::36]] == ["0.0", "0.1", "0.2", "1.0", "1.1", "1.2"]
    weights = np.array([float(row["weight"]) for row in rows], dtype=np.float32)
    assert np.array_equal(weights.reshape(record.weights.shape), record.weights)
    assert {row["exact"] for row in rows} == {"1"}
    drawn = re.findall(r">(\d+)</text>", downloaded(go(shown, "head=1.2"), "SVG").decode())
    assert drawn == [number_text(weight) for weight in record[1, 2].ravel() if weight >= 0.005]


def test_a_large_record_is_rounded_and_says_so(
    show: Open, fixed_record: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of each row the strongest links are exact; all others are within half a 255th of their head's largest."""
    monkeypatch.setattr(html, "EXACT", 0)
    record = fixed_record([f"w{i}" for i in range(40)], n_layers=1, n_heads=2)
    shown = show(record, "head=0.1")
    rows = table(shown)
    ours = np.array([float(row["weight"]) for row in rows]).reshape(40, 40)
    exact = np.array([row["exact"] == "1" for row in rows]).reshape(40, 40)
    theirs = record[0, 1].astype(np.float64)
    assert (exact.sum(axis=1) == 8).all()
    assert np.array_equal(ours[exact].astype(np.float32), record[0, 1][exact])
    assert (
        theirs[~exact].reshape(40, -1).max(axis=1) <= np.where(exact, theirs, np.inf).min(axis=1)
    ).all()
    assert np.abs(ours - theirs).max() <= theirs.max() / 255 / 2 * 1.001
    assert "8 largest of each row are exact" in shown.inner_text(".legend")
    shown.locator(".word").first.click()
    values = shown.locator("table.row .value").all_inner_texts()
    assert [value.startswith("≈") for value in values] == [False] * 8 + [True] * 4


def test_means_words_and_specials(show: Open, real_model: str) -> None:
    """Means over heads and layers, merged words and hidden specials are those that Python computes."""
    record = attnviz.attend("An unfathomable tokenization", real_model)
    shown = show(record)
    for head, mean in (
        ("2.*", record.weights[2].mean(axis=0)),
        ("*.3", record.weights[:, 3].mean(axis=0)),
        ("*.*", record.weights.mean(axis=(0, 1))),
    ):
        np.testing.assert_allclose(matrix(go(shown, f"head={head}")), mean, atol=1e-6)
    for fragment, seen in (
        ("words=1", merge_words(record)),
        ("special=1", hide_special(record)),
        ("words=1&special=1", hide_special(merge_words(record))),
    ):
        go(shown, f"head=2.3&{fragment}")
        np.testing.assert_allclose(matrix(shown), seen[2, 3], atol=1e-6)
        names = [row["key_token"] for row in table(shown)][: len(seen.key_tokens)]
        assert names == [token.text for token in seen.key_tokens]


def test_sentence_pairs(show: Open, real_model: str) -> None:
    """From the first sentence to the second: its queries and its keys alone, each special with the sentence before."""
    record = attnviz.attend("i love you", real_model, pair="you love me")
    shown = show(record, "head=0.0&part=AB")
    rows = table(shown)
    queries, keys = (
        dict.fromkeys(row[f"{side}_token"] for row in rows) for side in ("query", "key")
    )
    assert [*queries] == ["[CLS]", "i", "love", "you", "[SEP]"]
    assert [*keys] == ["you", "love", "me", "[SEP]"]
    assert np.array_equal(matrix(go(shown, "head=0.0&part=BA")), record[0, 0][5:, :5])


# ------------------------------------------------------------------------------------------- linked views


def test_a_page_opens_on_the_link_that_stands_out(show: Open) -> None:
    """The sentence says it, its head is large, its word is chosen and the words that it attends to are shaded."""
    text = "The animal didn't cross the street because it was too tired."
    shown = show(attnviz.attend(text, "toy"))
    finding = "“it” attends most to “animal”: 81% (layer 2, head 4)"
    assert shown.inner_text("header .finding") == finding
    assert shown.inner_text(".title h2") == "head 2.4"
    assert shown.inner_text("#row-title") == "“it” attends to"
    assert listed(shown)["animal"] == pytest.approx(0.811, abs=5e-4)
    assert shown.locator(".thumb[aria-current]").get_attribute("aria-label") == "head 2.4"
    shaded = shown.get_by_role("button", name="animal", exact=True).first
    assert shaded.evaluate("word => word.style.background") != ""
    shown.get_by_role("button", name="All heads").click()
    assert shown.evaluate("document.body.className") == "all"
    shown.reload()
    assert shown.evaluate("document.body.className") == "all"


def test_chosen_heads_stand_at_their_places(show: Open) -> None:
    """Exactly these, with the means of several; keys go through them, and the calculation is the head's own."""
    record = attnviz.attend("I love all you", "toy", heads=["0.1", "1.2", "1.3"])
    shown = show(record, "head=1.2&query=2")
    names = [thumb.get_attribute("aria-label") for thumb in shown.locator(".thumb").all()]
    means = ["mean over the heads of layer 1", "mean over layers and heads"]
    assert names == ["head 0.1", "head 1.2", "head 1.3", *means]
    assert [one * 100 for one in listed(shown).values()] == pytest.approx(
        sorted(record["1.2"][2] * 100, reverse=True), abs=0.06
    )
    assert float(re.findall(r"weights to (\S+)\.", shown.inner_text(".calculation"))[0]) < 1e-5
    for key, head in (("ArrowLeft", "0.1"), ("ArrowDown", "1.2"), ("ArrowRight", "1.3")):
        shown.locator("body").press(key)
        assert state(shown)["head"] == head
    go(shown, "head=*.*&query=2")
    mean = record.weights[0, :, 2].mean(axis=0)
    assert [*listed(shown).values()] == pytest.approx(sorted(mean, reverse=True), abs=6e-4)


@pytest.fixture
def no_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    """No link stands out in any record, so that pages open on all heads."""
    monkeypatch.setattr(html, "find", lambda _record: None)


@pytest.mark.usefixtures("no_finding")
def test_a_choice_in_one_view_shows_in_all(show: Open, fixed_record: Make) -> None:
    """A thumbnail opens its head; a word lights its row, fills the table and the address, and the lines keep it."""
    record = fixed_record(SENTENCE, n_layers=2, n_heads=3)
    words = SENTENCE.split()
    shown = show(record)
    assert not shown.locator("canvas[role=img]").is_visible()
    shown.get_by_role("button", name="head 1.2").click()
    assert shown.inner_text(".title h2") == "head 1.2"
    shown.get_by_role("button", name="love", exact=True).first.click()
    assert state(shown) == {"head": "1.2", "query": "2"}
    assert shown.inner_text("#row-title") == "“love” attends to"
    row, column = record[1, 2][2], record[1, 2][:, 2]
    assert listed(shown) == pytest.approx(dict(zip(words, row, strict=True)), abs=6e-4)
    assert share(shown.inner_text("table.row tfoot td")) == pytest.approx(1)
    shown.get_by_role("button", name="What attends to it").click()
    assert state(shown) == {"head": "1.2", "toward": "to", "key": "2"}
    assert listed(shown) == pytest.approx(dict(zip(words, column, strict=True)), abs=6e-4)
    shown.get_by_role("button", name="Lines").click()
    assert shown.locator("svg.lines path").count() == int((record[1, 2] >= 0.005).sum())
    assert shown.locator("svg.lines text[font-weight='600']").text_content() == "love"
    go(shown, "head=0.0&view=lines&least=.05")
    assert shown.locator("svg.lines path").count() == int((record[0, 0] >= 0.05).sum())
    shown.get_by_role("button", name="0.2", exact=True).click()
    assert state(shown)["more"] == "0.2"
    paths = shown.locator("svg.lines path")
    colours = paths.evaluate_all("all => all.map((one) => one.getAttribute('stroke'))")
    assert len(colours) == int((record.weights[0, [0, 2]] >= 0.05).sum())
    assert len(set(colours)) == 2


def test_the_pointer_reads_the_matrix(show: Open, fixed_record: Make) -> None:
    """The value under the pointer is told with both words; a click keeps the cell, and plus enlarges around it."""
    record = fixed_record(SENTENCE)
    shown = show(record)
    canvas = shown.locator("canvas[role=img]")
    box = canvas.bounding_box()
    assert box is not None
    shown.mouse.move(box["x"] + box["width"] - 45, box["y"] + box["height"] - 12)
    said = shown.locator(".value-here")
    said.filter(has_text="→").wait_for()
    words = re.fullmatch(r"(\S+) → (\S+): ([\d.e-]+%)", said.inner_text())
    assert words is not None
    row, column = (SENTENCE.split().index(word) for word in words.groups()[:2])
    assert row == 5
    assert column >= 4
    assert share(words[3]) == pytest.approx(record.weights[0, 0, row, column], rel=0.05)
    canvas.click(position={"x": box["width"] - 45, "y": box["height"] - 12})
    assert state(shown) == {"query": str(row), "key": str(column)}
    shown.keyboard.press("+")
    first, last = map(int, state(shown)["rows"].split("-"))
    assert first <= row <= last
    assert last - first + 1 < 6
    shown.keyboard.press("0")
    assert "rows" not in state(shown)


def test_a_mean_and_its_scale(show: Open) -> None:
    """Each layer's mean is a thumbnail, named as a mean; a click opens it. The scale is Python's, or another."""
    shown = show(attnviz.attend("I love all you", "toy").mean("heads"), scale="log")
    assert shown.locator(".thumbs thead th").all_inner_texts() == ["mean"]
    shown.locator(".thumb").nth(2).click()
    assert shown.inner_text(".title h2") == "mean over the heads of layer 2"
    assert "Weights: 0.01% to" in shown.inner_text(".legend")
    shown.locator(".options summary").click()
    shown.locator("label.scale select").select_option("panel")
    assert shown.inner_text(".legend").startswith("Weights: 0 to ")


def numbers_of(cells: list[str]) -> list[float]:
    """Numbers as they are read."""
    return [float(cell.replace("\N{MINUS SIGN}", "-")) for cell in cells]


@pytest.mark.parametrize(
    ("model", "query", "key"), [("toy-decoder", 2, 0), ("toy-transformer", 3, 1)]
)
def test_the_calculation_is_the_models(show: Open, model: str, query: int, key: int) -> None:
    """From q, K and V to each weight and the context, as numpy computes them; a key that is chosen is spelled out."""
    record = attnviz.attend("I love all you", model=model)
    vectors = record.vectors
    assert vectors is not None
    shown = show(record, f"head=1.2&query={query}&step=context")
    n = query + 1 if model == "toy-decoder" else 4
    q, k, v = vectors.query[1, 2, query], vectors.key[1, 2, :n], vectors.value[1, 2, :n]
    weights = record[1, 2][query, :n]
    rows = [row.split("\t") for row in shown.locator(".steps-table tbody tr").all_inner_texts()]
    assert [row[0] for row in rows] == [token.text for token in record.key_tokens[:n]]
    wanted = np.stack([k @ q, k @ q * vectors.scaling[1], weights], axis=1)
    np.testing.assert_allclose([numbers_of(row[-3:]) for row in rows], wanted, atol=6e-4)
    assert (
        float(re.findall(r"weights to (\S+)\.", shown.inner_text(".calculation"))[0]) < html.CLOSE
    )
    shown.get_by_role("button", name=record.key_tokens[key].text, exact=True).last.click()
    assert state(shown)["key"] == str(key)
    assert shown.evaluate(
        "document.activeElement.closest('.steps-table tr[aria-current]') !== null"
    )  # the focus stays
    spelled = [
        row.split("\t")[1:]
        for row in shown.locator("details[open] .numbers tbody tr").all_inner_texts()
    ]
    wanted = np.stack([v[key], v[key] * weights[key], weights @ v])
    np.testing.assert_allclose([numbers_of(row) for row in spelled], wanted, atol=6e-4)
    shown.locator(".calculation summary").first.press("Enter")
    expect(shown).to_have_url(re.compile("step=score"))
    spelled = [
        row.split("\t")[1:]
        for row in shown.locator("details[open] .numbers tbody tr").all_inner_texts()
    ]
    np.testing.assert_allclose(
        [numbers_of(row) for row in spelled], np.stack([q, k[key], q * k[key]]), atol=6e-4
    )
    shown.get_by_role("button", name=re.compile("How this row is computed")).click()
    assert shown.evaluate("document.activeElement.id") == "calculation-title"
    assert barriers(shown) == []
    shown.set_viewport_size({"width": 360, "height": 640})
    assert shown.evaluate("document.documentElement.scrollWidth") <= 360


def test_a_calculation_that_is_not_all_is_not_shown(show: Open) -> None:
    """Where more goes into the scores than q and k the page says so; of means, and of many heads, there is none."""
    record = attnviz.attend("I love all you", model="toy")
    assert record.vectors is not None
    other = replace(record, vectors=replace(record.vectors, scaling=(0.5,) * 18))
    shown = show(other, "head=1.2&query=2")
    assert shown.locator(".calculation").is_hidden()
    assert "more in them than q" in shown.inner_text(".steps")
    assert show(record, "head=1.*&query=2").locator(".calculation").is_hidden()
    assert attnviz.attend("I love all you " * 20, model="toy").vectors is None
    assert record.select([1], [2]).vectors is not None
    assert record.part(slice(1, 3)).vectors is None


@pytest.mark.parametrize("model", ["toy-decoder", "toy-seq2seq"])
def test_a_generation_goes_step_by_step(show: Open, model: str) -> None:
    """It opens on the first new token: the text as far as it was, its row; the slider, a key and time go on."""
    record = attnviz.generate("The big animal", model)
    is_decoder = model == "toy-decoder"
    shown = show(record, lang="en")
    slider, n = shown.get_by_role("slider", name="Generated token"), len(record.query_tokens)

    def step() -> int:
        at = int(slider.input_value())
        word = record.query_tokens[at].text
        assert shown.inner_text(".generation output") == f"{at + 1} of {n}: “{word}”"
        there = shown.locator(".words").first.locator(".word:not(.later)").all_inner_texts()
        assert [text.strip() for text in there] == [
            token.text for token in record.query_tokens[: at + 1]
        ]
        seen = 3 + at if is_decoder else len(record.key_tokens)
        read = shown.locator(".words").last.locator(".word:not(.later)").all_inner_texts()
        assert [text.strip() for text in read] == [t.text for t in record.key_tokens[:seen]]
        weights = record.weights.mean(axis=(0, 1))[at, :seen]
        found = listed(shown)
        assert len(found) == min(12, len({token.text for token in record.key_tokens[:seen]}))
        assert max(found.values()) == pytest.approx(weights.max(), abs=1e-3)
        return at

    assert step() == 0
    slider.press("ArrowRight")
    assert step() == 1
    slider.press("End")
    assert step() == n - 1
    assert shown.locator(".word.later").count() == 0
    shown.keyboard.press("Home")
    shown.locator("canvas").first.press("p")
    expect(slider).to_have_value("1")
    shown.get_by_role("button", name="Pause").click()
    assert step() >= 1


# ------------------------------------------------------------------------------------------- keyboard, address, search


@pytest.mark.usefixtures("no_finding")
def test_everything_by_keyboard(show: Open, fixed_record: Make) -> None:
    """Arrows change layer and head, past the last the mean; Shift moves the cell; letters do what the list says."""
    shown = show(fixed_record(SENTENCE, n_layers=2, n_heads=3))
    for key, expected in (
        ("ArrowRight", {"head": "0.1"}),
        ("ArrowDown", {"head": "1.1"}),
        ("ArrowDown", {"head": "*.1"}),
        ("ArrowUp", {"head": "1.1"}),
        ("ArrowLeft", {"head": "1.0"}),
        ("ArrowLeft", {"head": "1.*"}),
        ("ArrowRight", {"head": "1.0"}),
        ("Shift+ArrowDown", {"head": "1.0", "query": "0", "key": "0"}),
        ("Shift+ArrowDown", {"head": "1.0", "query": "1", "key": "0"}),
        ("Shift+ArrowRight", {"head": "1.0", "query": "1", "key": "1"}),
        ("l", {"view": "lines"}),
        ("m", {}),
        ("d", {"toward": "to"}),
        ("s", {"special": "1"}),
        ("s", {}),
        ("Escape", {"head": "1.0"}),
        ("Escape", {}),
    ):
        shown.keyboard.press(key)
        assert expected.items() <= state(shown).items(), (key, state(shown))
    assert "head" not in state(shown)
    shown.keyboard.press("?")
    assert "find a word" in shown.get_by_role("dialog").inner_text()
    shown.keyboard.press("Escape")
    assert not shown.get_by_role("dialog").is_visible()


def test_search(show: Open, fixed_record: Make) -> None:
    """A slash goes to the field; what is typed is marked and counted, and Enter chooses the next."""
    shown = show(fixed_record("the cat saw the dog"))
    shown.keyboard.press("/")
    shown.keyboard.type("THE")
    assert shown.inner_text(".find output") == "2 found"
    assert shown.locator(".word.found").count() == 2
    for expected in ("0", "3", "0"):
        shown.keyboard.press("Enter")
        assert state(shown)["query"] == expected


def test_the_address_brings_back_what_was_seen(show: Open, fixed_record: Make) -> None:
    """An address opened anew shows the same."""
    told = "head=1.*&view=lines&key=3&toward=to&special=1&scale=panel&least=.02&find=ove"
    shown = show(fixed_record(SENTENCE, n_layers=2, n_heads=3), told)
    assert shown.inner_text(".title h2") == "mean over the heads of layer 1"
    shown.keyboard.press("s")
    shown.keyboard.press("s")
    expected = dict(part.split("=") for part in told.split("&")) | {
        "least": "0.02",
        "special": state(shown).get("special"),
    }
    assert state(shown) | {"special": None} == expected | {"special": None}


def test_an_address_by_somebody_else(show: Open, fixed_record: Make) -> None:
    """A head that is not there, or no head at all: the page opens as without an address, and nothing runs."""
    record = fixed_record(SENTENCE, n_layers=2, n_heads=3)
    shown = show(record, "head=<img src=x onerror=alert(1)>")
    opened = shown.inner_text(".title h2")
    for fragment in (
        "head=9.9",
        "%",
        "__proto__=1&constructor=2",
        "query=99999&key=99999&rows=90-99&keys=5-1&part=AB",
        "x" * 5000,
        "=&=&&",
    ):
        assert go(shown, fragment).inner_text(".title h2") == opened, fragment


# ------------------------------------------------------------------------------------------- hostile text, no way out

HOSTILE = [
    "</script><img src=x onerror=alert(1)>",
    "<!--",
    "]]>",
    "\"'&lt;&amp;",
    "a\u2028b\u2029c",
    "nul\0byte",
    "\u202eabc\u2066",
    "{{7*7}}${1}",
    "שלום",
    "👩‍👩‍👧‍👦",
    "javascript:alert(1)",
    "x" * 10_000,
]


def test_hostile_texts_are_texts(show: Open, fixed_record: Make) -> None:
    """Whatever tokens, model and sentence hold is shown as text, in every view and in what is saved; nothing runs."""
    tokens = tuple(Token(text=text, piece=text) for text in HOSTILE)
    model = "<b onmouseover=alert(1)>m</b></title><script>alert(2)</script>"
    record = fixed_record(
        HOSTILE,
        model=model,
        text="".join(HOSTILE),
        query_tokens=tokens,
        key_tokens=tokens,
        notes=(Note.of("text", text=model),),
    )
    shown = show(record, "query=0")
    assert shown.locator("img, b, iframe, script[src]").count() == 0
    assert HOSTILE[0] in shown.locator(".word").all_inner_texts()
    assert model in shown.inner_text(".model")
    assert "\\u202eabc\\u2066" in shown.inner_text(".sentence")
    assert "nul\\x00byte" in shown.inner_text(".sentence")
    import xml.etree.ElementTree as ET

    drawn = downloaded(shown, "SVG").decode()
    assert any(HOSTILE[0][:10] in (one.text or "") for one in ET.fromstring(drawn).iter())
    assert table(shown)[0]["query_token"] == HOSTILE[0]
    shown.keyboard.press("l")
    assert shown.locator("svg.lines text").count() == 2 * len(HOSTILE)
    assert shown.evaluate("document.documentElement.scrollWidth") <= 1280


def test_nothing_can_be_asked_of_the_network(show: Open, fixed_record: Make) -> None:
    """The page's own policy refuses every request, script and style that is not its own."""
    shown = show(fixed_record(SENTENCE))
    policy = shown.get_attribute("meta[http-equiv=Content-Security-Policy]", "content") or ""
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy
    refused = """async () => {
      const said = [];
      document.addEventListener("securitypolicyviolation", (event) => said.push(event.effectiveDirective));
      await fetch("https://example.org/").catch(() => 0);
      document.body.append(Object.assign(new Image(), { src: "https://example.org/x.png" }));
      document.body.append(Object.assign(document.createElement("script"), { textContent: "alert(1)" }));
      document.body.append(Object.assign(document.createElement("style"), { textContent: "* { color: red }" }));
      await new Promise((done) => setTimeout(done, 100));
      return said.sort();
    }"""
    assert shown.evaluate(refused) == [
        "connect-src",
        "img-src",
        "script-src-elem",
        "style-src-elem",
    ]


def test_an_old_browser_and_a_damaged_page(show: Open, fixed_record: Make) -> None:
    """A sentence says that the browser cannot unpack the numbers, or that they are damaged."""
    for lang, words in (("en", "Firefox 113"), ("ko", "이 브라우저는")):
        html = page(fixed_record(SENTENCE), lang=lang).html
        shown = show(html, before="delete window.DecompressionStream")
        assert words in shown.inner_text("#page")
    damaged = re.sub(r'(id="data">.{40}).{40}', r"\1", html)
    quiet = "addEventListener('unhandledrejection', (event) => event.preventDefault())"
    shown = show(damaged, before=quiet)
    shown.get_by_text("이 페이지 안의 수가 손상되었습니다").wait_for(timeout=5000)


# ------------------------------------------------------------------------------------------- for every reader


def test_every_window(show: Open, fixed_record: Make) -> None:
    """However narrow it is, nothing stands beyond the edge, axe-core finds no barrier, and a tap is a click."""
    record = fixed_record(" ".join([SENTENCE, SENTENCE]), n_layers=6, n_heads=12)
    shown = show(record, viewport={"width": 360, "height": 740}, has_touch=True)
    for width in (1920, 1152, 768, 360):
        shown.set_viewport_size({"width": width, "height": 740})
        for fragment in ("head=", "head=1.2&query=1", "head=1.2&view=lines&more=1.1"):
            go(shown, fragment)
            assert shown.evaluate("document.documentElement.scrollWidth") <= width, fragment
            if width == 1152:
                assert barriers(shown) == []
    shown.locator(".word").nth(4).tap()
    assert state(shown)["query"] == "4"


def test_pictures_that_are_saved(show: Open, fixed_record: Make) -> None:
    """PNG and SVG of the overview, the matrix and the lines open, and say the model, the head and the receipt."""
    from PIL import Image

    for fragment in ("", "head=0.1", "head=0.1&view=lines"):
        shown = show(fixed_record(SENTENCE, n_heads=2), fragment)
        with Image.open(io.BytesIO(downloaded(shown, "PNG"))) as image:
            assert len(image.convert("RGB").getcolors(maxcolors=2**24) or ()) > 10
        drawn = downloaded(shown, "SVG").decode()
        assert "xmlns=" in drawn
        if fragment:
            assert "made by hand · head 0.1 · ✓ verified (largest difference 2e-07)" in drawn


def test_in_a_notebook(show: Open, fixed_record: Make) -> None:
    """Two pages on one sheet, each in a frame of its own that can reach neither the sheet nor the other."""
    frames = [
        page(fixed_record(words, n_heads=2))._repr_html_()
        for words in ("I love you", "나는 너를 사랑해")
    ]
    shown = show(f"<!doctype html><meta charset=utf-8>{'<hr>'.join(frames)}", before="0;")
    for place, word in enumerate(("love", "너를")):
        shown.locator("iframe").nth(place).scroll_into_view_if_needed()
        frame = shown.frame_locator("iframe").nth(place)
        frame.get_by_role("button", name="head 0.1").click()
        frame.get_by_role("button", name=word, exact=True).first.click()
        assert word in frame.locator("#row-title").inner_text()
    assert 'sandbox="allow-scripts allow-downloads"' in frames[0]


# ------------------------------------------------------------------------------------------- the file


def test_the_file(fixed_record: Make, tmp_path: Path) -> None:
    """A record always makes the same bytes; 16 tokens of 6 x 12 heads take 250 KB."""
    record = fixed_record([f"word{i}" for i in range(16)], n_layers=6, n_heads=12)
    made = attnviz.page(record, tmp_path / "a.html").html
    assert (tmp_path / "a.html").read_text(encoding="utf-8") == made == page(record).html
    record.save(tmp_path / "b.html")
    attnviz.save(record, tmp_path / "c.html")
    assert {(tmp_path / name).read_bytes() for name in ("a.html", "b.html", "c.html")} == {
        made.encode()
    }
    assert len(made.encode()) <= 250_000
    with pytest.raises(OutputError, match="a page is saved as"):
        attnviz.page(record, tmp_path / "a.pdf")


def test_long_texts_go_together(
    show: Open, fixed_record: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A record of more weights than a page holds is pooled, and the page says so."""
    monkeypatch.setattr(html, "MOST_WEIGHTS", 800)
    record = fixed_record([f"w{i}" for i in range(60)], n_heads=2)
    shown = show(record, "head=0.1")
    assert "Pooled" in shown.inner_text("header")
    assert matrix(shown).shape == (20, 20)
    np.testing.assert_allclose(matrix(shown).sum(axis=1), 1, atol=1e-5)
    (query, key, weight), *_ = record.links(0, 1)
    assert (
        f"Strongest links between tokens: w{query} ({query}) → w{key} ({key}) {weight:.1%}"
        in shown.inner_text(".steps")
    )
    assert show(record, "head=0.*").inner_text(".steps") == ""


@pytest.mark.parametrize("name", ["toy-decoder", "toy-seq2seq"])
def test_a_group_shows_what_its_tokens_look_at(show: Open, name: str) -> None:
    """Of a pooled record the strongest link of each token of the chosen group, as all weights have it."""
    text = "the animal crossed the street " * 9
    more: dict[str, Any] = {"target": "동물이 길을 건넜다"} if name == "toy-seq2seq" else {}
    whole = attnviz.attend(text, model=name, **more)
    record = attnviz.attend(text, model=name, memory=whole.weights.nbytes // 2, **more)
    assert record.exact is not None
    shown = show(record, "head=1.2&query=1" if name != "toy-seq2seq" else "head=0.0&query=1")
    layer, head = (1, 2) if name != "toy-seq2seq" else (0, 0)
    weights = whole[layer, head].copy()
    if name != "toy-seq2seq":
        np.fill_diagonal(weights, 0)
    weights[:, [token.special for token in whole.key_tokens]] = 0
    weights[[token.special for token in whole.query_tokens]] = 0
    rows = [row.split("\t") for row in shown.locator(".tokens tbody tr").all_inner_texts()]
    places = [
        at for at in range(record.cell, min(2 * record.cell, len(weights))) if weights[at].any()
    ]
    places.sort(key=lambda at: -weights[at].max())
    assert [row[0] for row in rows] == [f"{whole.query_tokens[at].text} ({at})" for at in places]
    for row, at in zip(rows, places, strict=True):
        assert share(row[2]) == pytest.approx(weights[at].max(), rel=0.05)
        key = int(re.findall(r"\((\d+)\)$", row[1])[0])
        assert weights[at, key] == pytest.approx(weights[at].max(), abs=1e-6)
    assert barriers(shown) == []
    shown.set_viewport_size({"width": 360, "height": 640})
    assert shown.evaluate("document.documentElement.scrollWidth") <= 360


def test_the_picture_of_the_gallery(show: Open, request: pytest.FixtureRequest) -> None:
    """The page that the docs show, on its word *it*; `--rewrite-golden` takes the picture anew."""
    from PIL import Image

    shown = show((GALLERY / "page.html").read_text(encoding="utf-8"), "head=1.3&query=7")
    picture = shown.screenshot()
    if request.config.getoption("--rewrite-golden"):
        (GALLERY / "page.png").write_bytes(picture)
    with Image.open(io.BytesIO(picture)) as taken, Image.open(GALLERY / "page.png") as kept:
        assert taken.size == kept.size
    assert listed(shown)["animal"] == pytest.approx(0.774, abs=1e-3)
