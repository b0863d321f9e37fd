"""``attnviz.heatmap``, and what a record does for its user: arrays, tuples, frames, figures, files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

import attnviz
from attnviz.attention import NO_RECEIPT, Attention
from attnviz.errors import AttnvizError, RecordError, SelectionError
from tests.fixtures.pictures import all_texts

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from matplotlib.axes import Axes

ROWS = np.array([[0.75, 0.25], [0.5, 0.5], [0.125, 0.875]])


def words(ax: Axes) -> str:
    """All that is written on the figure of these axes."""
    return " ".join(" ".join(all_texts(ax.figure)).split())


def test_an_array_with_tokens() -> None:
    """Labels on both sides, and a mark that nothing proves the numbers."""
    ax = attnviz.heatmap(ROWS, (["a", "b", "c"], ["x", "y"]))
    assert [label.get_text() for label in ax.get_yticklabels()] == ["a", "b", "c"]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["x", "y"]
    assert NO_RECEIPT in words(ax)


@pytest.mark.parametrize("shape", [(3, 2), (1, 3, 2), (1, 1, 3, 2)])
def test_axes_may_be_missing(shape: tuple[int, ...]) -> None:
    """One head, or heads of one layer; without tokens they are numbered."""
    ax = attnviz.heatmap(ROWS.reshape(shape))
    assert [label.get_text() for label in ax.get_yticklabels()] == ["0", "1", "2"]


@pytest.mark.parametrize("kind", [np.array, list, torch.tensor])
def test_one_weight_a_word(kind: Callable[[np.ndarray], Any]) -> None:
    """Weights without queries are one row under the words; of several steps the rows are numbered if asked."""
    ax = attnviz.heatmap(kind(ROWS[0]), ["x", "y"])
    assert [label.get_text() for label in ax.get_xticklabels()] == ["x", "y"]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["0"]
    steps = [kind(row) for row in ROWS]
    with pytest.raises(RecordError, match=r"rows are no tokens, number them, tokens=\(None, tok"):
        attnviz.heatmap(steps, ["x", "y"])
    ax = attnviz.heatmap(steps, (None, ["x", "y"]))
    assert [label.get_text() for label in ax.get_xticklabels()] == ["x", "y"]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["0", "1", "2"]


def test_a_frame_names_its_rows_and_columns() -> None:
    """A frame of pandas brings its words; a series is one row."""
    import pandas

    frame = pandas.DataFrame(ROWS, index=["a", "b", "c"], columns=["x", "y"])
    for given, tokens, rows, columns in (
        (frame, None, ["a", "b", "c"], ["x", "y"]),
        (frame, (["d", "e", "f"], ["u", "v"]), ["d", "e", "f"], ["u", "v"]),
        (frame.loc["b"], None, ["0"], ["x", "y"]),
    ):
        ax = attnviz.heatmap(given, tokens)
        assert [label.get_text() for label in ax.get_yticklabels()] == rows
        assert [label.get_text() for label in ax.get_xticklabels()] == columns
    ax = attnviz.heatmap(frame, annot=True)
    assert [text.get_text() for text in ax.texts][:2] == ["75", "25"]


def test_virtual_tokens_are_named() -> None:
    """Keys of a prefix, and further tokens of prompt tuning: the message holds the line that draws them."""
    tokens = ["I", "love"]
    for shape in ((2, 5), (5, 5)):
        weights = (np.full((1, 2, *shape), 1 / 5),)
        with pytest.raises(RecordError, match=r"name .* tokens=") as error:
            attnviz.heatmap(weights, tokens)
        line = str(error.value).rpartition("tokens=")[2]
        ax = attnviz.heatmap(weights, eval(line), layer=0, head=1)
        named = ["virtual 0", "virtual 1", "virtual 2", "I", "love"]
        assert [label.get_text() for label in ax.get_xticklabels()] == named
        assert [label.get_text() for label in ax.get_yticklabels()] == named[-shape[0] :]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_tuple_of_output_attentions(dtype: torch.dtype) -> None:
    """Layers of (1, head, query, key), of any number format, with gradients or not."""
    torch.manual_seed(0)
    layers = tuple(
        torch.rand(1, 3, 4, 4, requires_grad=True).softmax(-1).to(dtype) for _ in range(2)
    )
    ax = attnviz.heatmap(layers, list("abcd"), layer=1, head=2, title=None, annot=False)
    shown = words(ax)
    assert "output_attentions" not in shown
    assert NO_RECEIPT in shown
    with pytest.raises(
        RecordError, match=r"of one sentence, but one has \(2, 3, 4, 4\): choose a sentence as in"
    ):
        attnviz.heatmap(tuple(torch.cat([layer, layer]) for layer in layers))


SUM = "each row must sum to 1: layer 0, head 0, row 0 sums to"
TRAINING = (
    r"; if the model was in training mode, call model.eval\(\) before it runs; .*seaborn.heatmap"
)


@pytest.mark.usefixtures("as_installed")
@pytest.mark.parametrize(
    ("attention", "tokens", "message"),
    [
        (ROWS * 1.25, None, f"{SUM} 1.25{TRAINING}"),
        (ROWS * -1, None, "weights must not be negative: .* row 0 holds -0.875; .*seaborn.heatmap"),
        (ROWS, ["a", "b", "c"], "expected 3 query tokens and 2 key tokens, not 3 and 3$"),
        (
            (np.full((1, 2, 4, 4), 0.25),),
            ["a", "b"],
            r"padding.*tuple\(layer\[:, :, :2, :2\] for layer in",
        ),
        (ROWS, (["a"], ["x"], ["y"]), "tokens must be a label for each token, or two such lists"),
        (ROWS[0] * 1.25, None, f"{SUM} 1.25"),
        (ROWS[:1].T, ["a", "b"], r"a weight for each token, give weights.squeeze\(\)$"),
        (np.ones((1,) * 5), None, r"numbers of shape \(key,\), .* of shape \(1, 1, 1, 1, 1\)$"),
        ((), None, "the model returned no weights: .*eager"),
        ((None, None), None, 'the model returned no weights: .*attn_implementation="eager"'),
        (((ROWS,), (ROWS,)), None, r"each step of generate\(\)"),
        ("text", None, "attention is a record, an array, a tensor or a tuple of these, not str"),
        ([[1.0], [0.5, 0.5]], None, "each must have a number for each key"),
        ((np.ones((1, 1, 2, 1)), np.ones((1, 1, 3, 1))), None, "the layers have other shapes"),
        (ROWS.astype(str), None, "expected numbers of shape"),
    ],
)
def test_refused(attention: np.ndarray, tokens: list[str] | None, message: str) -> None:
    """Arrays that are no attention are refused in one line."""
    with pytest.raises(RecordError, match=message) as error:
        attnviz.heatmap(attention, tokens)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("pieces", "labels"),
    [
        (["I", "Ġlove", "ĠìĤ¬ëŀĳ"], ["I", "love", "사랑"]),
        (["Ġbed", "ding", "Ċ", "."], ["bed", "·ding", r"\n", "."]),
        (["[CLS]", "em", "##bed", "##ding"], ["[CLS]", "em", "·bed", "·ding"]),
        (["▁She", "▁eat", "s", "</s>"], ["She", "eat", "·s", "</s>"]),
    ],
)
def test_entries_of_a_vocabulary_are_read_as_text(pieces: list[str], labels: list[str]) -> None:
    """Labels as `convert_ids_to_tokens` returns them."""
    axes = attnviz.heatmap(np.eye(len(pieces)), pieces)
    assert [label.get_text() for label in axes.get_yticklabels()] == labels


def test_one_scale_in_a_grid(make_record: Callable[..., Attention]) -> None:
    """In axes of one's own equal weights have equal colours, and only the outer axes say what they are."""
    from matplotlib.figure import Figure

    weights = np.zeros((2, 2, 2, 2), dtype=np.float32) + 0.5
    weights[1, 1] = np.eye(2)
    record, axes = make_record("a b", weights=weights, receipt=None), Figure().subplots(2, 2)
    for layer, head in np.ndindex(2, 2):
        attnviz.heatmap(record, head=f"{layer}.{head}", ax=axes[layer, head])
    with pytest.raises(SelectionError, match="layer 0, 2 heads: give layer and head"):
        attnviz.heatmap(record, 0, ax=axes[0, 0])
    half, whole = axes[0, 0].images[0].get_array(), axes[1, 1].images[0].get_array()
    assert (half[0, 0] != whole[0, 0]).any()
    assert (half == axes[1, 0].images[0].get_array()).all()
    flat_record = make_record("a b", weights=weights[:1, :1], receipt=None)
    flat = attnviz.heatmap(flat_record, ax=Figure().subplots()).images[0].get_array()
    assert (flat == half).all()  # a head without preference looks flat
    assert [bool(ax.get_xlabel()) for ax in axes.flat] == [False, False, True, True]
    assert [bool(ax.get_ylabel()) for ax in axes.flat] == [True, False, True, False]


def test_layer_and_head_by_position(make_record: Callable[..., Attention]) -> None:
    """Two numbers, a name such as "1.2", or the tokens of an array before them; a figure takes them too."""
    record = make_record()
    by_name = np.asarray(attnviz.heatmap(record, layer=1, head=2).images[0].get_array())
    axes = [
        attnviz.heatmap(record, 1, 2),
        attnviz.heatmap(record, "1.2"),
        attnviz.heatmap(record.weights, list("abcde"), 1, 2),
        record.figure(layer=1, head=2).axes[0],
        record.figure("1.2").axes[0],
    ]
    for ax in axes:
        np.testing.assert_array_equal(np.asarray(ax.images[0].get_array()), by_name)
    assert [label.get_text() for label in axes[2].get_xticklabels()] == list("abcde")
    assert "layer 1, mean" in words(attnviz.heatmap(record, 1, "mean"))


def test_ends_of_the_scale(make_record: Callable[..., Attention]) -> None:
    """Weights up to vmin are blank, those from vmax on have one colour, and the words say so."""
    weights = np.array([[0.1, 0.2, 0.3, 0.4]] * 4, dtype=np.float32)[None, None]
    record = make_record("a b c d", weights=weights, receipt=None)
    ax = attnviz.heatmap(record, vmin=0.15, vmax=0.3)
    blank, weak, strong, stronger = np.asarray(ax.images[0].get_array())[0].tolist()
    assert blank[:3] == [255, 255, 255]
    assert weak not in (blank, strong)
    assert strong == stronger
    assert "Weights: 15% to 30% (strongest colour above, up to 40%)" in words(ax)
    several = np.asarray(record.figure().axes[0].images[0].get_array())[0].tolist()
    assert several[2] != several[3]


def test_labels_of_the_ticks(make_record: Callable[..., Attention]) -> None:
    """Other labels for the keys, and none for the queries."""
    record = make_record()
    for layer in (1, None):
        ax = attnviz.heatmap(record, layer, xticklabels=list("vwxyz"), yticklabels=False)
        shown = words(ax).split()
        assert {*"vwxyz"} <= {*shown}
        assert "[SEP]" not in shown


@pytest.mark.usefixtures("as_installed")
@pytest.mark.parametrize(
    ("place", "more", "message"),
    [
        ((1.0, 2), {}, r"a layer is a whole number, not 1\.0$"),
        ((1, 2.0), {}, r"a head is a whole number, not 2\.0$"),
        ((1, 2), {"title": 3}, "'title': it must be text, not 3"),
        ((1, 2), {"dpi": "x"}, "'dpi': it must be a number"),
        ((1, 2), {"vmax": "a"}, "vmax is a number, not 'a'"),
        ((1, 2), {"palette": "teal", "cmap": "mako"}, "give one of them"),
        ((1, 2), {"head": 0}, "head is given twice"),
        ((1, 2, 3), {}, "at most layer and head are given by position, not 3"),
        (("x",), {}, "'x' is no head"),
        ((2,), {}, "no layer 2"),
        ((1, 2), {"style": "poster"}, "'poster' is not one of 'sheet', 'slides', 'paper'"),
        ((1, 2), {"figsize": (90, 9), "dpi": 2400}, "more than 30,000 dots across"),
        ((1, 2), {"ax": "x"}, "ax must be the axes of a Matplotlib figure, not 'x'"),
        ((1, 2), {"palette": "jets"}, "no palette 'jets'"),
        ((1, 2), {"vmin": 0.5, "vmax": 0.2}, "not from 0.5 to 0.2"),
        ((1, 2), {"vmin": -1}, "not from -1 to"),
        ((1, 2), {"vmax": float("nan")}, "to nan"),
        ((1, 2), {"xticklabels": ["a"]}, "a list of 5 labels"),
        ((1, 2), {"yticklabels": 2}, "a list of 5 labels"),
        ((1, 2), {"figsize": (5, 1)}, "too small"),
        ((), {"figsize": (3, 1)}, "too small"),
        ((), {"figsize": (0, 1)}, "between 0.5 and 100 inches"),
        ((), {"figsize": (1, 2, 3)}, "a width and a height"),
    ],
)
def test_arguments_that_do_not_fit(
    place: tuple[Any, ...],
    more: dict[str, Any],
    message: str,
    make_record: Callable[..., Attention],
) -> None:
    """Each is refused in one line."""
    with pytest.raises(AttnvizError, match=message) as error:
        attnviz.heatmap(make_record(), *place, **more)
    assert "\n" not in str(error.value)


def test_colours_of_ones_own(make_record: Callable[..., Attention]) -> None:
    """A list of colours, as seaborn's palettes are, and None for the usual ones."""
    from seaborn import color_palette

    record = make_record()
    drawn = [
        np.asarray(attnviz.heatmap(record, head="0.0", palette=cmap).images[0].get_array())
        for cmap in (None, "teal", color_palette("Blues"))
    ]
    assert (drawn[0] == drawn[1]).all()
    assert (drawn[1] != drawn[2]).any()


def test_a_record_gives_its_parts(make_record: Callable[..., Attention], tmp_path: Path) -> None:
    """``record[layer, head]`` is a pattern; the frame has a row a cell."""
    record = make_record()
    np.testing.assert_array_equal(record[1, 2], record.weights[1, 2])
    np.testing.assert_array_equal(record[-1, -1], record.weights[1, 2])
    np.testing.assert_array_equal(record["1.2"], record.weights[1, 2])
    for ending in (".png", ".html"):
        with pytest.raises(SelectionError, match="xx"):
            record.save(tmp_path / f"a{ending}", lang="xx")
    frame = record.to_frame()
    assert " ".join(frame.columns) == "layer head query key weight query_token key_token"
    assert len(frame) == record.weights.size
    cell = frame[
        (frame.layer == 1) & (frame["head"] == 2) & (frame["query"] == 3) & (frame.key == 0)
    ]
    assert cell.weight.item() == record[1, 2][3, 0]
    assert (cell.query_token.item(), cell.key_token.item()) == ("you", "[CLS]")


def test_a_record_is_used_as_an_array(make_record: Callable[..., Attention]) -> None:
    """Numbers are the model's, slices count what the record has, and a loop goes over layers."""
    whole = make_record(n_layers=4)
    record = whole.select(layers=[1, 3])
    np.testing.assert_array_equal(record[3], whole.weights[3])
    np.testing.assert_array_equal(record[-1, :2], whole.weights[3, :2])
    np.testing.assert_array_equal(record[1:2, 0], whole.weights[[3], 0])
    np.testing.assert_array_equal(record[:, -1], whole.weights[[1, 3], 2])
    np.testing.assert_array_equal(np.asarray(record), record.weights)
    assert np.asarray(record, dtype=np.float64).dtype == np.float64
    np.testing.assert_array_equal(np.stack(list(record)), record.weights)
    assert len(record) == 2
    for place in (0, (2, slice(None)), (slice(None), 3)):
        with pytest.raises(SelectionError, match="there is no"):
            record[place]
    with pytest.raises(ValueError, match="read-only"):
        record[1][:] = 0


def test_a_record_is_a_key(make_record: Callable[..., Attention]) -> None:
    """Equal records are one key of a dictionary; others are not."""
    names = {make_record(): "first", make_record(seed=8): "second"}
    assert names[make_record()] == "first"
    assert names[make_record(seed=8)] == "second"
