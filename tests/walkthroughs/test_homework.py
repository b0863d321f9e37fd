"""Numbers typed by hand: read as they are meant, and what does not fit is named with its lines."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import jaxtyping
import numpy as np
import pytest
import torch

from attnviz.attention import Note
from attnviz.errors import FileFormatError
from attnviz.walkthroughs.homework import FIELDS, read
from attnviz.walkthroughs.verify import verify
from attnviz.walkthroughs.view import View

if TYPE_CHECKING:
    from attnviz.walkthroughs.record import Walkthrough

SAMPLES = Path(__file__).parents[2] / "sample_inputs"
GUIDE = SAMPLES.parent / "docs" / "walkthroughs.md"

DIRECT = """query: [1, 2, 0, 1]
keys:
  - [0, 1, 3, 0]
  - [2, 0, 1, 2]
values:
  - [4, 0]
  - [0, 8]
"""

INPUT = """X: [[1, 0], [0, 2], [1, 1]]
Wq: [[1, 0], [0, 1]]
Wk: [[0, 1], [1, 0]]
Wv: [[2, 0, 1], [0, 2, 1]]
"""


@pytest.fixture(autouse=True)
def as_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the tests' own type checks, which would speak before the files' refusals do."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


def read_text(
    folder: Path, text: str, name: str = "numbers.yaml", query: str | int | None = None
) -> Walkthrough:
    """The walkthrough of a file that holds this text."""
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return read(path, query=query)


def softmax(scores: np.ndarray) -> np.ndarray:
    """Row by row, as the textbook has it."""
    powers = np.exp(scores)
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


@pytest.mark.parametrize(
    "more", ["", "causal: true", "mask: [[1, 0, 1], [1, 1, 0], [0, 0, 1]]", "scale: none"]
)
@pytest.mark.parametrize(("query", "row"), [("LOVE", 1), ("-1", 2), (0, 0)])
def test_one_row_from_the_input_on(tmp_path: Path, more: str, query: str | int, row: int) -> None:
    """One word is followed, through the alignment vectors, to the same numbers that all at once come to."""
    text = f"{INPUT}bq: [1, -1]\nWo: [[1, 0], [0, 1], [1, 1]]\nwords: [I, love, you]\n{more}"
    whole, one = read_text(tmp_path, text), read_text(tmp_path, text, query=query)
    assert (one.query, one.grids["q"].rows) == (row, (("I", "love", "you")[row],))
    assert one.grids["q"].values.tolist() == whole.grids["Q"].values[row : row + 1].tolist()
    for name in ("scores", "weights", "context", "output"):
        assert one.grids[name].values == pytest.approx(whole.grids[name].values[row : row + 1])
    context = whole.grids["context"].values[row]
    assert one.grids["alignment"].values.sum(axis=0) == pytest.approx(context)


@pytest.mark.parametrize("text", [DIRECT.partition("values")[0], INPUT.partition("Wv")[0]])
def test_without_values(tmp_path: Path, text: str) -> None:
    """The weights need none: the calculation ends there, says so, and can be verified."""
    walk = read_text(tmp_path, text)
    whole = read_text(tmp_path, DIRECT if "keys" in text else INPUT)
    assert walk.steps[-1].name == "softmax"
    assert walk.grids["weights"].values.tolist() == whole.grids["weights"].values.tolist()
    assert (walk.notes, whole.notes) == ((Note("no_values"),), ())
    assert verify(walk.save(tmp_path / "walk.json")).fault == ""


@pytest.mark.parametrize("query", [None, 1])
def test_several_heads(tmp_path: Path, query: int | None) -> None:
    """Each head works on its own columns; side by side and through Wo they are PyTorch's own multi-head attention."""
    draw = np.random.default_rng(5)
    shapes = {"X": (3, 4), "Wq": (4, 6), "Wk": (4, 6), "Wv": (4, 6), "Wo": (6, 5)}
    grids = {name: draw.normal(size=shape) for name, shape in shapes.items()}
    text = "".join(f"{name}: {grid.tolist()}\n" for name, grid in grids.items())
    walk = read_text(tmp_path, text + "n_heads: 2\n", query=query)
    x, *projections, wo = grids.values()
    q, k, v = (torch.from_numpy(x @ w).reshape(3, 2, 3).transpose(0, 1) for w in projections)
    heads = torch.nn.functional.scaled_dot_product_attention(q, k, v)
    contexts = heads.transpose(0, 1).flatten(1).numpy()
    rows = slice(None) if query is None else slice(query, query + 1)
    np.testing.assert_allclose(walk.grids["concatenated"].values, contexts[rows], rtol=1e-12)
    np.testing.assert_allclose(walk.grids["output"].values, (contexts @ wo)[rows], rtol=1e-12)
    assert walk.distributions() == ("weights_0", "weights_1")
    without_output = read_text(tmp_path, text.replace("Wo", "# ") + "n_heads: 2\n")
    assert without_output.steps[-1].result == "concatenated"


def test_weights_that_are_given(tmp_path: Path) -> None:
    """Values are mixed by them: alignment vectors and their sum; of several rows all at once, or one of them."""
    text = "weights: [0.8, 0.2]\nvalues: [[10, 0], [0, 10]]\nwords: [a, b]\n"
    walk = read_text(tmp_path, text)
    assert walk.grids["alignment"].values.tolist() == [[8, 0], [0, 2]]
    assert walk.grids["context"].values.tolist() == [[8, 2]]
    assert (walk.distributions(), walk.query) == (("weights",), 0)
    assert walk.to_frame().weights.tolist() == [0.8, 0.2]
    assert View(walk=walk).finding == ""  # the query has no name
    several = text.replace("[0.8, 0.2]", "[[0.8, 0.2], [0, 1]]") + "query_words: [x, y]\n"
    assert read_text(tmp_path, several).grids["context"].values.tolist() == [[8, 2], [0, 10]]
    one = read_text(tmp_path, several, query="y")
    assert one.grids["context"].values.tolist() == [[0, 10]]
    assert View(walk=one).finding == "“y” attends most to “b” (1.00)"


@pytest.mark.parametrize(
    ("more", "factor"),
    [("", 0.5), ("scale: none", 1), ("scale: 0.25", 0.25), ("score: dot", 1)],
)
def test_scaling(tmp_path: Path, more: str, factor: float) -> None:
    """By 1 / sqrt(d_k) unless something else is typed."""
    walk = read_text(tmp_path, DIRECT + more)
    assert walk.grids["weights"].values == pytest.approx(softmax(np.array([[2.0, 4.0]]) * factor))
    assert ("scaled" in walk.grids) == (factor != 1)


def test_other_scores(tmp_path: Path) -> None:
    """A projection between query and key, and a small network on their sum."""
    base = "query: [1, 2]\nkeys: [[1, 0, 1], [0, 1, 1]]\nvalues: [[1], [2]]\n"
    general = read_text(tmp_path, base + "score: general\nW: [[1, 0, 2], [0, 1, 0]]")
    assert general.grids["scores"].values.tolist() == [[3, 4]]
    additive = read_text(tmp_path, base + "score: additive\nW: [[1, 0]]\nU: [[0, 1, 1]]\nv: [3]")
    assert additive.grids["scores"].values == pytest.approx(3 * np.tanh([[2, 3]]))


def test_masks(tmp_path: Path) -> None:
    """A matrix of 0 and 1, or none of what comes later."""
    masked = read_text(tmp_path, DIRECT + "mask: [[1, 0]]")
    assert masked.grids["weights"].values.tolist() == [[1, 0]]
    causal = read_text(tmp_path, INPUT + "causal: true")
    assert (np.triu(causal.grids["weights"].values, 1) == 0).all()
    assert causal.grids["weights"].values[0, 0] == 1
    assert "mask" not in read_text(tmp_path, INPUT + "causal: false").grids


def test_json_and_yaml_are_the_same(tmp_path: Path) -> None:
    """Tabs, emoji spelled as halves and numbers with exponents are JSON like any other."""
    fields = {
        "query": [1e1, -2.5],
        "keys": [[1, 2]],
        "values": [[3]],
        "title": "🙂 \\ud83d 한",
        "words": ["a\\/b"],
    }
    for ascii_only in (True, False):
        text = json.dumps(fields, indent="\t", ensure_ascii=ascii_only)
        walk = read_text(tmp_path, text.replace("10.0", "1e1"), "numbers.json")
        assert walk.title == Note.of("text", text="🙂 \\ud83d 한")
        assert walk.grids["K"].rows == ("a\\/b",)
        assert walk.grids["q"].values.tolist() == [[10, -2.5]]


def test_the_guide_s(tmp_path: Path) -> None:
    """The file that the guide shows can be typed as it stands, and one of its words followed."""
    (shown,) = re.findall(
        r"^```yaml\n(.*?)^```$", GUIDE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    assert read_text(tmp_path, shown).grids["weights"].rows == ("I", "love", "you")
    assert read_text(tmp_path, shown, query="love").grids["alignment"].rows == ("I", "love", "you")
    table = (SAMPLES / "README.md").read_text(encoding="utf-8")
    assert [name for name in FIELDS if f"`{name}`" not in table] == []


BAD = {
    "empty": ("", "it is empty"),
    "not yaml": ("query: [1, 2\nkeys: 3", "line 2: it is not YAML: did not find expected"),
    "no keys": (
        "query: [1]",
        "it lacks keys (a row for each key): give query, keys and values, or X",
    ),
    "Wo alone": (DIRECT.partition("values")[0] + "Wo: [[1]]", "line 5: Wo is of no use beside"),
    "both": (DIRECT + INPUT, "line 1: query is of no use beside X, Wq, Wk"),
    "unknown": (DIRECT + "vaules: [[1]]", "line 8: vaules is not known: did you mean values?"),
    "twice": (DIRECT + "query: [1]", "line 8: query is there twice"),
    "ragged": (DIRECT.replace("[2, 0, 1, 2]", "[2, 0, 1]"), "line 2: keys[1] has 3 numbers, but"),
    "text": (
        DIRECT.replace("3, 0]", "'3', 0]"),
        'line 2: keys[0][2] must be a number, not "3"',
    ),
    "nan": (DIRECT.replace("3, 0]", ".nan, 0]"), 'line 2: keys[0][2] must be a number, not ".nan"'),
    "too large": (
        DIRECT.replace("3, 0]", "1e999, 0]"),
        "line 2: keys[0][2] must be a number, not Infinity",
    ),
    "sums too large": (
        DIRECT.replace("[1, 2, 0, 1]", "[1e200, 2, 0, 1]").replace("[0, 1, 3", "[1e200, 1, 3"),
        "step scores leaves the range of numbers",
    ),
    "query and keys": (
        DIRECT.replace("[1, 2, 0, 1]", "[1, 2, 0]"),
        "step scores (dot): these shapes do not fit together: q (1, 3), K (2, 4)",
    ),
    "one number": (
        DIRECT.replace("[2, 0, 1, 2]", "[2]"),
        "line 2: keys[1] has 1 number, but row 0 has 4",
    ),
    "words": (DIRECT + "words: [a]", "line 8: words has 1 word, but keys has 2 rows"),
    "score": (
        DIRECT + "score: cosine",
        'line 8: score must be one of dot, scaled, general, additive, not "cos',
    ),
    "general without W": (DIRECT + "score: general", "the score general needs a grid W"),
    "scale": (DIRECT + "scale: much", "line 8: scale must be one of sqrt, none, not"),
    "mask": (
        DIRECT + "mask: [[1]]",
        "step mask (mask): these shapes do not fit together: scaled (1, 2)",
    ),
    "a mask of halves": (DIRECT + "mask: [[1, 0.5]]", "line 8: mask holds 0 and 1 only: [0][1]"),
    "all masked": (DIRECT + "mask: [[0, 0]]", "all keys are masked: the query of row 0 has"),
    "no heads": (
        DIRECT + "n_heads: 0",
        "line 8: n_heads must be a whole number from 1 to 128, not 0",
    ),
    "20,000 heads": (
        DIRECT + "n_heads: 20000",
        "line 8: n_heads must be a whole number from 1 to 128",
    ),
    "heads that do not divide": (DIRECT + "n_heads: 3", "there is no part 0 of 4 columns divided"),
    "weights and a query": (DIRECT + "weights: [0.5, 0.5]", "line 1: query is of no use beside"),
    "weights that are no shares": (
        "weights: [[1, 0], [0.8, 0.4]]\nvalues: [[1], [2]]",
        "line 1: weights must be from 0 to 1 and sum to 1: row 1 sums to 1.2",
    ),
    "weights below 0": (
        "weights: [1.2, -0.2]\nvalues: [[1], [2]]",
        "line 1: weights must be from 0 to 1 and sum to 1: row 0 sums to 1, and -0.2 is below 0",
    ),
    "bomb": (
        "a: &a [1, 1]\nb: &b [*a, *a]\nc: &c [*b, *b]\n",
        "line 2: anchors and aliases (& and *) are not read: write the numbers out",
    ),
    "a tag": (
        "query: !!python/object/apply:os.system ['true']",
        "line 1: tags such as tag:yaml.org,2002:python/",
    ),
    "deep": ("query: " + "[" * 500 + "]" * 500, "it is nested too deeply to be numbers"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_yaml(tmp_path: Path, name: str) -> None:
    """One line that names the file, and the names and lines of what clashes."""
    text, line = BAD[name]
    with pytest.raises(FileFormatError) as caught:
        read_text(tmp_path, text)
    message = str(caught.value)
    assert message.startswith(f"{tmp_path / 'numbers.yaml'}: {line}")
    assert message.isprintable()
    assert len(message) < len(str(tmp_path)) + 300


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            '{"query": [1],\n "keys": [[1, 2]],\n "values": [[1]]}',
            "step scores (dot): these shapes do not fit together",
        ),
        ('{"query": [NaN],\n "keys": [[1]], "values": [[1]]}', "it is not JSON: NaN is no number"),
        (
            '{"query": [1],\n "keys": [["1"]], "values": [[1]]}',
            'keys[0][0] must be a number, not "1"',
        ),
        (
            '{"format": "attnviz-walkthrough", "version": 1}',
            "it was saved by attnviz, not typed by hand: attnviz verify",
        ),
        ('{"query": [1],\n "query": [1]}', "it is not JSON: 'query' is there twice"),
        ('{"query": [1,]}', "it is not JSON: "),
        ("query: [1]", "it is not JSON: "),
        ('{"a": ' + "[" * 100_000, "it is nested too deeply to be numbers"),
    ],
)
def test_bad_json(tmp_path: Path, text: str, line: str) -> None:
    """JSON is refused in its own terms."""
    with pytest.raises(FileFormatError) as caught:
        read_text(tmp_path, text, "numbers.json")
    assert str(caught.value).startswith(f"{tmp_path / 'numbers.json'}: {line}")
