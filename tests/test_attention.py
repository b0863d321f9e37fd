"""The record: it never changes, refuses what does not fit together, and finds layers by their numbers."""

from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytest

import attnviz
from attnviz import errors
from attnviz.attention import Attention, Note, Receipt, Token

if TYPE_CHECKING:
    from pathlib import Path

LAYERS, HEADS, QUERIES, KEYS = 2, 3, 5, 7


def tokens(count: int) -> tuple[Token, ...]:
    """So many different tokens."""
    return tuple(
        Token(text=f"word{i}", piece=f"▁word{i}", id=i, span=(i, i + 1), word=i)
        for i in range(count)
    )


def weights() -> np.ndarray:
    """Rows that sum to 1, on axes of different prime sizes."""
    rows = np.random.default_rng(11).dirichlet(np.ones(KEYS), size=(LAYERS, HEADS, QUERIES))
    return rows.astype(np.float32)


def record(**changes: Any) -> Attention:
    """A small record of cross attention, with some parts changed."""
    parts: dict[str, Any] = {
        "weights": weights(),
        "query_tokens": tokens(QUERIES),
        "key_tokens": tokens(KEYS),
        "kind": "cross",
        "model": "made-up",
    }
    return Attention(**{**parts, **changes})


def receipt(**changes: Any) -> Receipt:
    """A receipt for two layers, with some parts changed."""
    parts: dict[str, Any] = {
        "native": "sdpa",
        "dtype": "float32",
        "tolerance": 1e-5,
        "layers": (0, 1),
        "differences": (1e-7, 3e-7),
    }
    return Receipt(**{**parts, **changes})


def test_weights_are_a_read_only_copy() -> None:
    """Whoever made the array may go on using it, and nobody can change the record's."""
    given = weights()
    made = record(weights=given)
    given[0, 0, 0, 0] = 9
    assert made.weights[0, 0, 0, 0] != 9
    with pytest.raises(ValueError, match="read-only"):
        made.weights[0, 0, 0, 0] = 9
    with pytest.raises(ValueError, match="read-only"):
        made.pattern(0, 0)[0, 0] = 9


@pytest.mark.parametrize(
    ("part", "name"), [(record(), "layers"), (receipt(), "layers"), (tokens(1)[0], "text")]
)
def test_nothing_can_be_set(part: object, name: str) -> None:
    """A record, a receipt and a token are frozen."""
    with pytest.raises(FrozenInstanceError):
        setattr(part, name, "other")


def broken(at: tuple[int, int, int, int], value: float) -> np.ndarray:
    """The weights with one of them replaced."""
    made = weights()
    made[at] = value
    return made


@pytest.mark.usefixtures("as_installed")
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "sideways"}, "kind must be one of encoder, decoder, cross, not 'sideways'"),
        ({"short_rows": ("lazy",)}, "rows may be short for pooled, .*, not 'lazy'"),
        ({"weights": np.ones((3, 1))}, r"weights must have 4 axes .*, but have 2: \(3, 1\)"),
        ({"query_tokens": tokens(6)}, "weights have 5 query_tokens, but 6 are named"),
        ({"key_tokens": tokens(5)}, "weights have 7 key_tokens, but 5 are named"),
        ({"layers": (1,)}, "weights have 2 layers, but 1 are named"),
        ({"heads": (0, 1, 2, 3)}, "weights have 3 heads, but 4 are named"),
        ({"weights": weights()[:0]}, "a record needs at least one of each: there are no layers"),
        ({"weights": weights()[..., :0], "key_tokens": ()}, "one of each: there are no key_tokens"),
        ({"weights": broken((1, 2, 3, 4), np.nan)}, "layer 1, head 2, row 3 holds NaN or infinity"),
        ({"weights": broken((0, 1, 4, 0), np.inf)}, "must be finite: layer 0, head 1, row 4 holds"),
        (
            {"weights": broken((1, 0, 2, 0), -0.5), "layers": (6, 8), "short_rows": ("pooled",)},
            "must not be negative: layer 8, head 0, row 2 holds -0.5",
        ),
        ({"weights": broken((0, 0, 1, 6), 2)}, "must sum to 1: layer 0, head 0, row 1 sums to 2.*"),
        ({"weights": weights() * 0.99}, "sum to 1: layer 0, head 0, row 0 sums to 0.99"),
        (
            {"weights": weights() * 1.1, "short_rows": ("sink",)},
            "each row must sum to 1: .* to 1.1",
        ),
        ({"weights": weights() * 0.97, "short_rows": ("rounded",)}, "each row must .* to 0.97"),
    ],
)
def test_refuses_what_does_not_fit(changes: dict[str, Any], message: str) -> None:
    """Each fault is refused in one line that says what is wrong and where."""
    with pytest.raises(errors.RecordError, match=message) as caught:
        record(**changes)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("factor", [0.985, 1.015])
def test_rounded_rows_may_be_a_little_off(factor: float) -> None:
    """Numbers rounded for reading sum to a little less or more than 1."""
    record(weights=weights() * factor, short_rows=("rounded",))


def test_pattern_goes_by_the_models_numbers() -> None:
    """A record of some layers answers to the numbers they have in the model."""
    made = record(layers=(4, 9), heads=(1, 5, 6))
    np.testing.assert_array_equal(made.pattern(9, 5), weights()[1, 1])
    np.testing.assert_array_equal(made.pattern(-2, -1), weights()[0, 2])
    lacking = "there is no {}: this model has {}"
    for where, message in (
        ((2, 0), lacking.format("layer 2", r"layers 0 to 1 \(counted from 0\)")),
        ((-3, 0), lacking.format("layer -3", "layers 0 to 1")),
        ((0, 3), lacking.format("head 3", "heads 0 to 2")),
    ):
        with pytest.raises(errors.SelectionError, match=message):
            record().pattern(*where)


def test_select_keeps_the_models_numbers() -> None:
    """A selection is a record whose layers and heads still answer to their own numbers."""
    whole = receipt(layers=(4, 9))
    chosen = record(layers=(4, 9), heads=(1, 5, 6), receipt=whole).select(
        layers=[9], heads=range(5, 7)
    )
    assert (chosen.layers, chosen.heads) == ((9,), (5, 6))
    np.testing.assert_array_equal(chosen.weights, weights()[1:, 1:])
    assert chosen.receipt == receipt(layers=(9,), differences=whole.differences[1:])


@pytest.mark.parametrize(
    ("wanted", "heads"),
    [
        ([2, 0, 2], (0, 2)),
        ([-1], (2,)),
        ([-1, 2], (2,)),
        (range(3), (0, 1, 2)),
        ((1,), (1,)),
        (None, (0, 1, 2)),
    ],
)
def test_select_keeps_the_order_and_each_once(wanted: Any, heads: tuple[int, ...]) -> None:
    """Ranges, lists and numbers from the end all name the same heads, in the model's order."""
    chosen = record().select(heads=wanted)
    assert chosen.heads == heads
    np.testing.assert_array_equal(chosen.weights, weights()[:, list(heads)])


@pytest.mark.usefixtures("as_installed")
@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ([], "choose at least one head, by numbers such as"),
        (["0"], "'0' is no head: give its layer and its number, such as 1.2"),
        (["0.1", "2.1"], "there is no layer 2: this model has layers 0 to 1"),
        (["0.1", "1.3"], "there is no head 3: this model has heads 0 to 2"),
        ([1.0], r"a head is a whole number, not 1\.0"),
    ],
)
def test_select_takes_numbers(chosen: Any, message: str) -> None:
    """Selections that are no numbers, or empty, or name no head are refused."""
    with pytest.raises(errors.SelectionError, match=message):
        record().select(heads=chosen)
    with pytest.raises(errors.SelectionError, match="is no head: give its layer and its number"):
        record()[chosen]


def test_heads_with_their_layer() -> None:
    """A head is named as it is written, too, one without a list; with another layer beside it, it is none."""
    made, head = record(), cast("int", np.int64(2))
    assert made.select(1) == made.select([1])
    assert made.select(heads=head) == made.select(heads=[2])
    assert made.select(heads="1.2") == made.select(heads=["1.2"])
    assert (
        made.select(heads=["1.2", "1.0"])
        == made.select([1], [0, 2])
        == made.select([1], ["1.0", 2])
    )
    np.testing.assert_array_equal(made.pattern("1.2"), made.pattern(1, 2))
    assert made.links("1.2", n=3) == made.links(1, 2, 3)
    with pytest.raises(
        errors.SelectionError, match=r"heads \['1.2'\] name their layers, which are not \[0\]"
    ):
        made.select([0], ["1.2"])


def test_any_heads_stand_in_one_row(tmp_path: Path) -> None:
    """Heads that are no grid: exactly these, each under its name, in the record and in its files."""
    made = record()
    for named in (["1.2", "0.1", "0.1"], [(0, 1), (1, 2)], ("L0H1", "-1.-1")):
        chosen = made.select(heads=named)
        assert chosen.chosen == ((0, 1), (1, 2))
        np.testing.assert_array_equal(chosen.weights, weights()[[0, 1], [1, 2]][None])
    np.testing.assert_array_equal(chosen["1.2"], made["1.2"])
    assert chosen.links("1.2") == made.links("1.2")
    assert "heads 0.1, 1.2, 5 queries" in repr(chosen)
    frame, whole = chosen.to_frame(), made.to_frame()
    is_named = whole[["layer", "head"]].apply(tuple, axis=1).isin([(0, 1), (1, 2)])
    assert frame.equals(whole[is_named].reset_index(drop=True))
    for ending in ("json", "npz", "safetensors"):
        assert attnviz.load(chosen.save(tmp_path / f"a.{ending}")) == chosen
    lines = chosen.save(tmp_path / "a.csv").read_text().splitlines()
    assert {line[:4] for line in lines[1:]} == {"0,1,", "1,2,"}
    assert len(lines) == 1 + 2 * 5 * 7
    with pytest.raises(
        errors.SelectionError, match=r"no head 0.2: this record holds heads 0.1, 1.2"
    ):
        _ = chosen["0.2"]
    np.testing.assert_array_equal(chosen[:, 1:][0], made["1.2"][None])
    with pytest.raises(errors.SelectionError, match="name a head with its layer"):
        _ = chosen[0]


def test_parts_of_any_heads() -> None:
    """A number without a layer is that head of each layer; heads that are a grid are an ordinary record."""
    made = record()
    chosen = made.select(heads=[1, "1.2"])
    assert chosen.chosen == ((0, 1), (1, 1), (1, 2))
    assert chosen.select(heads=["0.1", "1.2"]).select(layers=1) == made.select(heads="1.2")
    assert chosen.select(layers=1) == made.select(heads=["1.1", "1.2"])
    assert chosen.select(heads=[1]) == made.select(heads=["0.1", "1.1"]) == made.select(heads=1)
    assert chosen.select(heads=["0.1", "1.2"]) == made.select(heads=["0.1", "1.2"])
    proved = record(receipt=receipt())
    assert proved.select(heads=["0.0", "1.2"]).receipt == proved.receipt


def test_the_mean_of_any_heads() -> None:
    """The mean of exactly these, with the receipt of their layers."""
    mean = record(receipt=receipt()).select(heads=["0.1", "1.2"]).mean()
    wanted = (weights()[0, 1] + weights()[1, 2]) / 2
    np.testing.assert_allclose(mean.weights, wanted[None, None], atol=1e-7)
    assert "mean of heads 0.1, 1.2" in repr(mean)
    assert mean.receipt == receipt()


def test_repr_is_one_short_line() -> None:
    """A record shows its size and proof, not its numbers."""
    assert repr(record()) == (
        "<Attention of 'made-up' (cross): 2 layers x 3 heads, 5 queries x 7 keys; "
        "not verified: this record came without a receipt>"
    )
    one_token = record().part(rows=slice(1), keys=slice(1))
    assert "1 query x 1 key;" in repr(one_token)


def test_records_are_equal_by_value() -> None:
    """Equal parts make equal records; any other label or number makes another."""
    assert record() == record()
    assert record() != "a record"
    others = {
        "weights": weights()[::-1],
        "query_tokens": tokens(QUERIES)[::-1],
        "key_tokens": tokens(KEYS)[::-1],
        "kind": "encoder",
        "model": "another",
        "text": "other",
        "pair": "",
        "receipt": receipt(),
        "layers": (0, 2),
        "heads": (0, 1, 3),
        "short_rows": ("pooled",),
        "notes": (Note("words_merged"),),
    }
    for name, value in others.items():
        assert record(**{name: value}) != record(), name


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"differences": (1e-7,)}, "one difference a layer: got 1 for 2 layers"),
        ({"layers": (), "differences": ()}, "one difference a layer: got 0 for 0 layers"),
        ({"differences": (1e-7, np.nan)}, "from 0 to its tolerance"),
        ({"differences": (1e-7, np.inf)}, "from 0 to its tolerance"),
        ({"differences": (1e-7, -1.0)}, "from 0 to its tolerance"),
        ({"differences": (1e-7, 5.0)}, "from 0 to its tolerance"),
        ({"tolerance": 1e-3}, "for float32 is at most 1e-05"),
        ({"tolerance": np.nan}, "for float32 is at most 1e-05"),
        ({"tolerance": 1e300, "dtype": "made up"}, "for made up is at most 1e-05"),
    ],
)
def test_refuses_a_receipt_that_proves_nothing(changes: dict[str, Any], message: str) -> None:
    """A receipt states one real difference for every layer compared."""
    with pytest.raises(errors.RecordError, match=message):
        receipt(**changes)


def test_a_receipt_is_of_its_layers_and_weights() -> None:
    """A record has the receipt of its own layers, and none for weights that were replaced."""
    made = attnviz.attend("I love all you", "toy")
    assert made.receipt is not None
    with pytest.raises(errors.RecordError, match="receipt is of the layers"):
        replace(made, receipt=replace(made.receipt, layers=(7, 8, 9)))
    other = np.array(made.weights)
    other[1, 3] = 0
    other[1, 3, :, 0] = 1
    assert "not verified" in replace(made, weights=other).proof
    assert replace(made, text="another").receipt == made.receipt
    assert replace(made, weights=made.weights.copy()).receipt == made.receipt
    chosen = made.select(layers=[2])
    assert chosen.receipt is not None
    assert chosen.receipt.layers == (2,)


def test_only_bfloat16_rounds_rows_to_such_sums() -> None:
    """Eight significant bits: a weight may be off by 1/512, and so may the sum of a row."""
    record(weights=weights() * 1.0017, receipt=receipt(dtype="bfloat16", tolerance=1.5e-2))
    for dtype, tolerance in (("float32", 1e-5), ("float16", 2e-3)):
        with pytest.raises(errors.RecordError, match="each row must sum to 1"):
            record(weights=weights() * 1.0017, receipt=receipt(dtype=dtype, tolerance=tolerance))


def test_copies_are_read_only() -> None:
    """A copy, and what comes from a pickle, is equal, and nobody can write into it either."""
    record = attnviz.attend("I love", "toy")
    for copied in (copy.copy(record), copy.deepcopy(record), pickle.loads(pickle.dumps(record))):
        assert copied == record
        assert copied.vectors is not None
        for array in (
            copied.weights,
            copied.vectors.query,
            copied.vectors.key,
            copied.vectors.value,
        ):
            with pytest.raises(ValueError, match="read-only"):
                array[...] = 0
