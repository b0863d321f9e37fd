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
from attnviz.walkthroughs.view import View

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

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


def read_text(folder: Path, text: str, query: str | int | None = None) -> Walkthrough:
    """The walkthrough of a file that holds this text, JSON or YAML."""
    path = folder / ("numbers.json" if text.startswith("{") else "numbers.yaml")
    path.write_text(text, encoding="utf-8")
    return read(path, query=query)


def softmax(scores: ArrayLike) -> np.ndarray:
    """Row by row, as the textbook has it."""
    powers = np.exp(scores)
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


@pytest.mark.parametrize(
    "more", ["", "causal: true", "mask: [[1, 0, 1], [1, 1, 0], [0, 0, 1]]", "scale: none"]
)
@pytest.mark.parametrize(("query", "row"), [("LOVE", 1), (0, 0)])
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
    ("more", "weights"),
    [
        ("", softmax([[1, 2]])),
        ("scale: none", softmax([[2, 4]])),
        ("scale: 0.25", softmax([[0.5, 1]])),
        ("score: dot", softmax([[2, 4]])),
        (
            "score: general\nW: [[1, 0, 0, 0], [0, 2, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]",
            softmax([[4, 4]]),
        ),
        (
            "score: additive\nW: [[1, 0, 0, 0]]\nU: [[0, 1, 1, 0]]\nv: [3]",
            softmax(3 * np.tanh([[5, 2]])),
        ),
        ("mask: [[1, 0]]", [[1, 0]]),
    ],
)
def test_scores(tmp_path: Path, more: str, weights: object) -> None:
    """Scaled by 1 / sqrt(d_k) unless something else is typed, by another function, or masked."""
    walk = read_text(tmp_path, DIRECT + more)
    assert walk.grids["weights"].values == pytest.approx(np.array(weights))
    assert ("scaled" in walk.grids) == (more in {"", "scale: 0.25", "mask: [[1, 0]]"})


def test_causal(tmp_path: Path) -> None:
    """No query attends to what comes later."""
    weights = read_text(tmp_path, INPUT + "causal: true").grids["weights"].values
    assert (np.triu(weights, 1) == 0).all()
    assert weights[0, 0] == 1
    assert "mask" not in read_text(tmp_path, INPUT + "causal: false").grids


def test_json(tmp_path: Path) -> None:
    """Tabs, emoji spelled as halves and numbers with exponents are JSON like any other."""
    fields = {"query": [1e1, -2.5], "keys": [[1, 2]], "title": "🙂 \\ud83d 한", "words": ["a\\/b"]}
    text = json.dumps(fields, indent="\t", ensure_ascii=True)
    walk = read_text(tmp_path, text.replace("10.0", "1e1"))
    assert walk.title == Note.of("text", text="🙂 \\ud83d 한")
    assert walk.grids["K"].rows == ("a\\/b",)
    assert walk.grids["q"].values.tolist() == [[10, -2.5]]


def test_the_guide(tmp_path: Path) -> None:
    """The file that the guide shows can be typed as it stands, and one of its words followed."""
    text = GUIDE.read_text(encoding="utf-8")
    (shown,) = re.findall(r"^```yaml\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert read_text(tmp_path, shown).grids["weights"].rows == ("I", "love", "you")
    assert read_text(tmp_path, shown, query="love").grids["alignment"].rows == ("I", "love", "you")
    table = (SAMPLES / "README.md").read_text(encoding="utf-8")
    assert [name for name in FIELDS if f"`{name}`" not in table] == []


QUERY, THREE = "[1, 2, 0, 1]", "3, 0]"  # parts of `DIRECT` that are replaced
MIXED = "values: [[1], [2]]\nweights: "
PICKLE = "query: !!python/object/apply:os.system ['true']"
NOT_TEXT = "line 2: keys[0][2] must be a number, not"
CLASH = "these shapes do not fit together:"
SAVED = '{"format": "attnviz-walkthrough", "version": 1}'
ANCHORS = "anchors and aliases (& and *) are not read: write the numbers out"

BAD = [
    ("", "it is empty"),
    ("query: [1, 2\nkeys: 3", "line 2: it is not YAML: did not find expected"),
    ("[1, 2]", "it must hold names with numbers, such as query, keys and values"),
    ("[1]: 2", "line 1: a name must be text"),
    ("query: [1]", "it lacks keys (a row for each key): give query, keys and values, or X"),
    (DIRECT.partition("values")[0] + "Wo: [[1]]", "line 5: Wo is of no use beside"),
    (DIRECT + INPUT, "line 1: query is of no use beside X, Wq, Wk"),
    (DIRECT + "vaules: [[1]]", "line 8: vaules is not known: did you mean values?"),
    (DIRECT + "query: [1]", "line 8: query is there twice"),
    (DIRECT.replace("[2, 0, 1, 2]", "[2, 0, 1]"), "line 2: keys[1] has 3 numbers, but row 0 has 4"),
    (DIRECT.replace(THREE, "'3', 0]"), f'{NOT_TEXT} "3"'),
    (DIRECT.replace(THREE, ".nan, 0]"), f'{NOT_TEXT} ".nan"'),
    (DIRECT.replace(QUERY, "[1e308, 9, 9, 9]"), "step scores leaves the range of numbers"),
    (DIRECT.replace(QUERY, "[1, 2]"), f"step scores (dot): {CLASH} q (1, 2), K (2, 4)"),
    (DIRECT + "words: [a]", "line 8: words has 1 word, but keys has 2 rows"),
    (DIRECT + "score: cosine", "line 8: score must be one of dot, scaled, general, additive, not "),
    (DIRECT + "score: general", "the score general needs a grid W"),
    (DIRECT + "scale: much", "line 8: scale must be one of sqrt, none, not"),
    (DIRECT + "mask: [[1]]", f"step mask (mask): {CLASH} scaled (1, 2)"),
    (DIRECT + "mask: [[1, 0.5]]", "line 8: mask holds 0 and 1 only: [0][1] is 0.5"),
    (DIRECT + "mask: [[0, 0]]", "all keys are masked: the query of row 0 has"),
    (DIRECT + "causal: true\nmask: [[1, 1]]", "line 8: causal and mask do not go together"),
    (DIRECT + "n_heads: 0", "line 8: n_heads must be a whole number from 1 to 128, not 0"),
    (DIRECT + "n_heads: 3", "there is no part 0 of 4 columns divided"),
    (DIRECT + "weights: [0.5, 0.5]", "line 1: query is of no use beside"),
    (MIXED + "[0.8, 0.4]", "line 2: weights must be from 0 to 1 and sum to 1: row 0 sums to 1.2"),
    (
        MIXED + "[1.2, -0.2]",
        "line 2: weights must be from 0 to 1 and sum to 1: row 0 sums to 1, and -0.2",
    ),
    ("a: &a [1, 1]\nb: &b [*a, *a]\nc: &c [*b, *b]\n", f"line 2: {ANCHORS}"),
    (PICKLE, "line 1: tags such as tag:yaml.org,2002:python/"),
    ("query: " + "[" * 500 + "]" * 500, "it is nested too deeply to be numbers"),
    ('{"query": [1],\n "keys": [[1, 2]]}', f"step scores (dot): {CLASH}"),
    ('{"query": [NaN],\n "keys": [[1]]}', "it is not JSON: NaN is no number"),
    ('{"query": [1],\n "keys": [["1"]]}', 'keys[0][0] must be a number, not "1"'),
    (SAVED, "it was saved by attnviz, not typed by hand: attnviz verify reads"),
    ('{"query": [1],\n "query": [1]}', "it is not JSON: 'query' is there twice"),
    ('{"a": ' + "[" * 100_000, "it is nested too deeply to be numbers"),
]


@pytest.mark.parametrize(("text", "line"), BAD, ids=[line[:40] for _, line in BAD])
def test_refused(tmp_path: Path, text: str, line: str) -> None:
    """One line that names the file, and the names and lines of what clashes."""
    with pytest.raises(FileFormatError) as caught:
        read_text(tmp_path, text)
    message = str(caught.value)
    assert message.partition(": ")[2].startswith(line)
    assert message.startswith(f"{tmp_path}/numbers.")
    assert message.isprintable()
    assert len(message) < len(str(tmp_path)) + 300
