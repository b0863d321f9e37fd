"""Records as files: nothing is lost, nothing is half written, and no bad file is more than one clear line."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save as pack_safetensors

import attnviz
from attnviz.attention import Attention, Kind, Note, Receipt, ShortRows, Token
from attnviz.errors import AttnvizError, FileFormatError, OutputError, RecordError
from attnviz.results import load_record, save
from attnviz.storage.files import check_writable, write_whole
from attnviz.storage.record_files import to_json
from attnviz.text.display import visible

if TYPE_CHECKING:
    from collections.abc import Callable

SUFFIXES = (".safetensors", ".npz", ".json")

# ---------------------------------------------------------------------------------------------- records


TOKENS_SHOWN = tuple(
    Token(text=f"나{i}", piece=f"▁나{i}\n", id=i, span=(i, i + 1) if i else None, special=not i)
    for i in range(7)
)


def sample(**changes: Any) -> Attention:
    """A record with a receipt, of layers 3 and 5 and three heads, with some parts changed."""
    weights = np.random.default_rng(13).dirichlet(np.ones(7), size=(2, 3, 5))
    parts: dict[str, Any] = {
        "weights": weights.astype(np.float32),
        "query_tokens": TOKENS_SHOWN[:5],
        "key_tokens": TOKENS_SHOWN,
        "kind": "cross",
        "model": "a/model",
        "text": "line one\nline two 🙂",
        "pair": "두번째",
        "receipt": Receipt(
            native="sdpa", dtype="float32", tolerance=1e-5, layers=(3, 5), differences=(0.0, 2.5e-7)
        ),
        "layers": (3, 5),
        "heads": (0, 1, 7),
        "notes": (Note.of("text", text="cut to 7 tokens"),),
    }
    return Attention(**{**parts, **changes})


def as_dict(record: Attention) -> Any:
    """The content of a record's JSON file."""
    return json.loads(to_json(record))


LETTERS = st.characters(exclude_categories=["Cs"])
TEXT = st.text(LETTERS, max_size=5)
SHOWN = TEXT.map(visible).filter(lambda text: visible(text) == text)
"""What every view prints holds no control characters, ever."""
COUNTS = st.none() | st.integers(0, 2**40)
TOKENS = st.builds(
    Token,
    text=SHOWN,
    piece=TEXT,
    id=COUNTS,
    span=st.none() | st.tuples(st.integers(0, 99), st.integers(0, 99)),
    word=COUNTS,
    special=st.booleans(),
    segment=st.integers(0, 1),
)
SIZES = st.sampled_from([1, 2, 3, 5, 7])


NOTED = st.one_of(
    SHOWN.map(lambda text: ("text", (("text", text),))),
    st.tuples(
        SHOWN.filter(lambda code: code != "text"),
        st.lists(st.tuples(SHOWN, SHOWN | st.integers(-(2**31), 2**31)), max_size=2).map(tuple),
    ),
)
"""What notes are made of: sentences, and codes with fields."""


@st.composite
def record_parts(draw: st.DrawFn) -> dict[str, Any]:
    """The parts of any record: any axes and labels, rows that sum to 1 or less.

    Parts only: the type checker that runs in tests picks at random what it checks, which a strategy may not.
    """
    n_layers, n_heads, n_queries, n_keys = (draw(SIZES) for _ in range(4))
    weights = np.random.default_rng(draw(st.integers(0, 99))).dirichlet(
        np.full(n_keys, draw(st.sampled_from([0.001, 1]))), size=(n_layers, n_heads, n_queries)
    )
    short_rows = draw(st.lists(st.sampled_from(get_args(ShortRows)), unique=True))
    if short_rows:
        weights *= 0.99 if "rounded" in short_rows else draw(st.floats(0, 1))
    return {
        "weights": weights.astype(np.float32),
        "query_tokens": tuple(draw(TOKENS) for _ in range(n_queries)),
        "key_tokens": tuple(draw(TOKENS) for _ in range(n_keys)),
        "kind": draw(st.sampled_from(get_args(Kind))),
        "model": draw(SHOWN),
        "text": draw(TEXT),
        "pair": draw(st.none() | TEXT),
        "layers": tuple(range(0, 3 * n_layers, 3)),
        "heads": tuple(range(2, 2 + n_heads)),
        "short_rows": tuple(short_rows),
        "notes": tuple(draw(st.lists(NOTED, max_size=2))),
    }


# ------------------------------------------------------------------------------------------- round trips


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for all examples of a property."""
    return tmp_path_factory.mktemp("storage")


@pytest.mark.parametrize("suffix", SUFFIXES)
@given(parts=record_parts(), difference=st.none() | st.floats(0, 1e-5), native=SHOWN)
def test_a_record_comes_back_as_it_went(
    folder: Path, suffix: str, parts: dict[str, Any], difference: float | None, native: str
) -> None:
    """Every format keeps every bit of the weights and every label."""
    path = folder / f"record{suffix}"
    notes, layers = tuple(Note(*made) for made in parts.pop("notes")), parts["layers"]
    receipt = None
    if difference is not None:
        differences = (difference,) * len(layers)
        receipt = Receipt(
            native=native, dtype="float32", tolerance=1e-5, layers=layers, differences=differences
        )
    record = Attention(**parts, notes=notes, receipt=receipt)
    assert save(record, path) == path
    found = load_record(path)
    assert found == record
    assert found.weights.tobytes() == record.weights.tobytes()


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_pooled_record_comes_back(tmp_path: Path, suffix: str) -> None:
    """With its links and statistics, which cannot be changed either."""
    record = attnviz.attend("I love all you " * 9, model="toy", memory=20_000)
    assert record.exact is not None
    path = record.save(tmp_path / f"record{suffix}")
    found = load_record(path)
    assert found == record
    assert found.exact == record.exact
    assert found.links(1, 2) == record.links(1, 2)
    fields = json.loads(to_json(record))
    fields["link_weights"][0][0][0][0] /= 2
    (tmp_path / "other.json").write_text(json.dumps(fields), "utf-8")
    with pytest.raises(FileFormatError, match="were changed after the receipt was issued"):
        load_record(tmp_path / "other.json")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"link_keys": [[1]]}, "its link_keys must be numbers of a layer, head, query and link"),
        ({"link_keys": ...}, "its link_keys must be numbers"),
        ({"link_keys": [[[[0], [0, 1]]]]}, "its link_keys must be numbers"),
        ({"exact": 3}, "exact must be an object, not 3"),
        ({"exact": {}}, "it lacks query_tokens"),
        ({"link_keys": [[[[0]]]], "link_weights": [[[[0.5]]]]}, "links must be of"),
    ],
)
def test_links_that_do_not_fit(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    """Each is one line that says what is wrong."""
    record = attnviz.attend("I love all you " * 9, model="toy", memory=20_000)
    fields = json.loads(record.save(tmp_path / "whole.json").read_text("utf-8"))
    path = tmp_path / "bad.json"
    path.write_bytes(changed(fields, **change))
    with pytest.raises(FileFormatError, match=message):
        load_record(path)


def test_json_is_plain_to_read() -> None:
    """Another program finds the labels by their names, in letters, and short numbers."""
    record = sample(weights=np.full((2, 3, 5, 7), 0.1, np.float32), short_rows=("sink",))
    fields = as_dict(record)
    assert (fields["format"], fields["version"], fields["kind"]) == ("attnviz", 2, "cross")
    assert fields["query_tokens"][1] == {
        "text": "나1",
        "piece": "▁나1\n",
        "id": 1,
        "span": [1, 2],
        "word": None,
        "special": False,
        "segment": 0,
    }
    assert fields["weights"][1][2][4] == [0.1] * 7
    assert "나1" in to_json(record)
    assert "\n" not in to_json(record)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_nothing_a_terminal_obeys_is_read(tmp_path: Path, suffix: str) -> None:
    """A label that every view prints arrives with its control characters spelled out."""
    record = sample()
    assert record.receipt
    wicked = replace(
        record,
        model="a\x1b[2Jmodel",
        notes=(Note.of("text", text="one\ntwo"),),
        key_tokens=tuple(replace(token, text="\u202ereversed") for token in record.key_tokens),
        receipt=replace(record.receipt, native="\x07sdpa"),
    )
    found = load_record(save(wicked, tmp_path / f"wicked{suffix}"))
    assert (found.model, found.notes) == (r"a\x1b[2Jmodel", (Note.of("text", text=r"one\ntwo"),))
    assert found.key_tokens[0].text == r"\u202ereversed"
    assert found.receipt
    assert found.receipt.native == r"\x07sdpa"


def test_what_no_file_can_hold_is_refused(tmp_path: Path) -> None:
    """Half a character is refused before anything is written."""
    for suffix in SUFFIXES:
        with pytest.raises(
            RecordError, match="a label of the record cannot be written: "
        ) as caught:
            save(sample(text="half \ud83d"), tmp_path / f"record{suffix}")
        assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["record.txt", "record", ".json", "a\nb.dat"])
def test_other_endings_are_refused(tmp_path: Path, name: str) -> None:
    """Saving and loading name the three formats there are."""
    with pytest.raises(
        OutputError, match=r"saved as .*, \.csv, \.json, \.npz or \.safetensors, not '"
    ) as saving:
        save(sample(), tmp_path / name)
    with pytest.raises(
        FileFormatError, match=r"read from \.safetensors, \.npz or \.json, not '"
    ) as loading:
        load_record(tmp_path / name)
    for message in (str(saving.value), str(loading.value)):
        assert visible(name) in message
        assert "\n" not in message


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("a.npy", r'attnviz\.heatmap\(numpy\.load\("weights\.npy"\), words\) draws it'),
        ("a.csv", r"attnviz\.heatmap\(numpy\.loadtxt\("),
        ("a.pt", r"my_model\.py:build"),
        ("a.gguf", "gguf_file=name"),
        ("a.onnx", "exported from"),
    ],
)
def test_files_of_other_programs_are_named(name: str, said: str) -> None:
    """As a model and as a record: what it is, and what to do with it."""
    for open_it in (load_record, attnviz.open_source):
        with pytest.raises(AttnvizError, match=said) as caught:
            open_it(name)
        assert "\n" not in str(caught.value)


# ------------------------------------------------------------------------------------------- the receipt


def pack_npz(**arrays: Any) -> bytes:
    """An .npz file of these arrays."""
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def written(fields: dict[str, Any], suffix: str) -> bytes:
    """The fields of a JSON file as a file of any format."""
    if suffix == ".json":
        return json.dumps(fields).encode()
    meta = json.dumps({name: value for name, value in fields.items() if name != "weights"})
    weights = np.array(fields["weights"], np.float32)
    if suffix == ".npz":
        return pack_npz(weights=weights, meta=np.array(meta))
    return pack_safetensors({"weights": weights}, {"meta": meta})


def swap_two_weights(fields: dict[str, Any]) -> None:
    """Two weights of a row change places; it still sums to 1."""
    row = fields["weights"][1][2][3]
    row[0], row[1] = row[1], row[0]


EDITS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "a weight": swap_two_weights,
    "a token": lambda fields: fields["key_tokens"][2].update(text="other"),
    "a span": lambda fields: fields["query_tokens"][2].update(span=[0, 1]),
    "the model": lambda fields: fields.update(model="another"),
    "the layers": lambda fields: fields.update(layers=[3, 4]),
    "a note": lambda fields: fields.update(notes=[]),
    "the receipt": lambda fields: fields["receipt"].update(tolerance=1e-9),
    "a difference": lambda fields: fields["receipt"].update(differences=[0, 1e-9]),
    "the digest": lambda fields: fields.update(digest="0" * 64),
    "no digest": lambda fields: fields.pop("digest"),
    "no receipt": lambda fields: fields.update(receipt=None),
    "digest of another kind": lambda fields: fields.update(digest=7),
}


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_an_edit_after_the_receipt_is_refused(
    tmp_path: Path, suffix: str, edit: Callable[[dict[str, Any]], Any]
) -> None:
    """A receipt holds for the very numbers and labels it was issued for."""
    path = tmp_path / f"record{suffix}"
    fields = as_dict(sample())
    path.write_bytes(written(fields, suffix))
    assert load_record(path) == sample()
    edit(fields)
    path.write_bytes(written(fields, suffix))
    with pytest.raises(
        FileFormatError, match=r"changed after the receipt was issued|a receipt are from|the layers"
    ):
        load_record(path)


def test_without_receipt_and_digest_a_record_is_unverified(tmp_path: Path) -> None:
    """Whoever takes the receipt away may edit the file, and the record says that nothing is proved."""
    path = tmp_path / "record.json"
    fields = as_dict(sample())
    del fields["digest"]
    path.write_text(json.dumps({**fields, "receipt": None, "model": "edited"}))
    assert load_record(path) == replace(sample(), receipt=None, model="edited")
    assert "not verified" in load_record(path).proof


# ---------------------------------------------------------------------------------- made by another program

SQUARE = np.tril(np.ones((5, 5))) / np.arange(1, 6)[:, None]
FULL = np.full((5, 5), 0.2)
NAMES = ["I", "love", "all", "of", "you"]


@pytest.mark.parametrize(
    ("shape", "name", "dtype"),
    [
        ((5, 5), "weights", "float16"),
        ((3, 5, 5), "attention", "float32"),
        ((2, 3, 5, 5), "attentions", "float64"),
        ((5, 5), "w", ">f4"),
    ],
)
def test_arrays_of_numpy_are_read(
    tmp_path: Path, shape: tuple[int, ...], name: str, dtype: str
) -> None:
    """An .npz with weights of any float and the axes that there are, and tokens, is a record."""
    path = tmp_path / "mine.npz"
    np.savez(path, tokens=np.array(NAMES), **{name: np.broadcast_to(FULL, shape).astype(dtype)})  # type: ignore[arg-type]
    record = load_record(path)
    tokens = tuple(Token(text=name, piece=name) for name in NAMES)
    assert record.weights.shape == (1,) * (4 - len(shape)) + shape
    assert record.query_tokens == record.key_tokens == tokens
    assert (record.kind, record.model, record.text) == ("encoder", "mine.npz", "")
    assert (record.receipt, record.short_rows, record.notes) == (None, (), ())


def test_json_of_another_program_is_read(tmp_path: Path) -> None:
    """Tokens may be texts, or objects that say as much as is known; whole numbers are numbers."""
    path = tmp_path / "MINE.JSON"
    labels = ["a", {"text": "b", "id": 7, "span": [2, 3]}, {"piece": "##c", "special": True}]
    fields = {"weights": np.eye(3, dtype=int).tolist(), "tokens": labels, "model": "other"}
    path.write_text(json.dumps(fields))
    record = load_record(path)
    assert record.query_tokens == (
        Token(text="a", piece="a"),
        Token(text="b", piece="b", id=7, span=(2, 3)),
        Token(text="##c", piece="##c", special=True),
    )
    np.testing.assert_array_equal(record.weights, np.eye(3)[None, None])
    assert record.model == "other"


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"weights": FULL, "tokens": NAMES}, "encoder"),
        ({"weights": SQUARE, "tokens": NAMES}, "decoder"),
        ({"weights": [[1]], "tokens": ["a"]}, "encoder"),
        ({"weights": FULL, "query_tokens": NAMES, "key_tokens": NAMES}, "encoder"),
        ({"weights": SQUARE, "query_tokens": NAMES, "key_tokens": NAMES[::-1]}, "cross"),
        ({"weights": FULL[:3], "query_tokens": NAMES[:3], "key_tokens": NAMES}, "cross"),
        ({"weights": FULL[:3], "query_tokens": NAMES[:3], "tokens": NAMES}, "cross"),
        ({"weights": SQUARE, "tokens": NAMES, "kind": "encoder"}, "encoder"),
    ],
)
def test_the_kind_is_told_from_weights_and_tokens(
    tmp_path: Path, fields: dict[str, Any], kind: str
) -> None:
    """Two sequences make cross attention; nothing ahead of a token makes a decoder; else it is an encoder."""
    arrays = {name: np.asarray(value) for name, value in fields.items()}
    lists = {name: array.tolist() for name, array in arrays.items()}
    (tmp_path / "mine.npz").write_bytes(pack_npz(**arrays))
    (tmp_path / "mine.json").write_text(json.dumps(lists))
    for suffix in (".npz", ".json"):
        assert load_record(tmp_path / f"mine{suffix}").kind == kind


# ------------------------------------------------------------------------------------------- bad files

OURS = as_dict(replace(sample(), receipt=None))
MINE: dict[str, Any] = {"weights": FULL.tolist(), "tokens": NAMES}


def changed(fields: dict[str, Any], **changes: Any) -> bytes:
    """A JSON file with some fields changed; those changed to Ellipsis are missing."""
    kept = {name: value for name, value in {**fields, **changes}.items() if value is not ...}
    return json.dumps(kept).encode()


def endless() -> bytes:
    """An archive with an array that declares 10**13 numbers and holds none."""
    text = (
        "{'descr': '<f4', 'fortran_order': False, 'shape': (10000000000000,), }".ljust(117) + "\n"
    )
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("weights.npy", b"\x93NUMPY\x01\x00\x76\x00" + text.encode())
    return file.getvalue()


NPZ = pack_npz(weights=FULL, tokens=np.array(NAMES))
WEIGHTS = {"weights": sample().weights}
PACKED = pack_safetensors(WEIGHTS)
TEXTS = [["0.5", "0.5"]]
NO_TOKENS = "it holds no query_tokens: attnviz needs 'tokens', or both"

BAD_JSON: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "it is empty"),
    "not JSON": (b"I love all you", "it is not JSON: Expecting value: line 1 column 1"),
    "a list": (b"[1, 2]", "it must hold a JSON object, not a list"),
    "deep": (b"[" * 10**6, "it is nested too deeply to be a record"),
    "NaN": (b'{"weights": [[NaN]], "tokens": ["a"]}', "it is not JSON: NaN is no number"),
    # made by another program
    "no weights": (changed(MINE, weights=...), "no attention: name the attention 'weights'"),
    "no tokens": (changed(MINE, tokens=...), NO_TOKENS),
    "too few tokens": (changed(MINE, tokens=NAMES[:4]), "have 5 query_tokens, but 4 are named"),
    "ragged": (changed(MINE, weights=[[1, 0], [1]]), "its weights' rows differ in length"),
    "one axis": (changed(MINE, weights=[1, 0]), r"must have the axes .* but have shape \(2,\)"),
    "texts": (changed(MINE, weights=TEXTS), "its weights must be numbers, not an array of text"),
    "truths": (
        changed(MINE, weights=[[True]]),
        "its weights must be numbers, not an array of bool",
    ),
    "rows of 0.9": (
        changed(MINE, weights=(FULL * 0.9).tolist()),
        "each row must sum to 1: layer 0",
    ),
    "a token a number": (changed(MINE, tokens=["a", 2]), r"tokens\[1\] must be text, or an object"),
    "an unknown kind": (changed(MINE, kind="up"), "kind must be one of encoder, decoder, cross"),
    # ours
    "newer": (changed(OURS, version=3), "it is of version 3, but this attnviz reads version 2"),
    "older": (changed(OURS, version=1), "it was made by an earlier version of attnviz"),
    "missing fields": (changed(OURS, kind=..., pair=...), "it lacks kind, pair"),
    "too few layers": (changed(OURS, layers=[0]), "weights have 2 layers, but 1 are named"),
    "an empty receipt": (changed(OURS, receipt={}), "it lacks receipt.native"),
}
BAD_NPZ: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "it is empty"),
    "cut short": (NPZ[:-40], "it is not a readable .npz file: File is not a zip file"),
    "changed": (NPZ.replace(FULL.tobytes()[:8], bytes(8), 1), "not a readable .npz file: Bad CRC"),
    "objects": (
        pack_npz(weights=FULL, tokens=np.array(NAMES, object)),
        "its tokens.npy is an array",
    ),
    "two floats": (pack_npz(a=FULL, b=FULL), "it holds several arrays: name the attention"),
    "complex": (pack_npz(weights=FULL * 1j), "must be numbers, not an array of complex128"),
    "meta not JSON": (pack_npz(weights=FULL, meta="{"), "it is not JSON: "),
    "a shape of 10**13": (endless(), "it is too large for this computer's memory"),
}
BAD_SAFETENSORS: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "it is empty"),
    "text": (b"I love all you", "it is not a readable .safetensors file: "),
    "cut short": (PACKED[:-4], "it is not a readable .safetensors file: "),
    "no labels": (
        PACKED,
        "it holds no record of attnviz's; attention made elsewhere is read from .npz",
    ),
    "no weights": (pack_safetensors({}, {"meta": json.dumps(OURS)}), "no record of attnviz's"),
    "labels not JSON": (pack_safetensors(WEIGHTS, {"meta": "{"}), "it is not JSON: "),
    "labels of another": (pack_safetensors(WEIGHTS, {"meta": "{}"}), NO_TOKENS),
}
BAD = [
    pytest.param(f"bad{suffix}", content, message, id=f"{suffix[1:]}: {name}")
    for suffix, cases in ((".json", BAD_JSON), (".npz", BAD_NPZ), (".safetensors", BAD_SAFETENSORS))
    for name, (content, message) in cases.items()
]


def refusal(path: Path) -> str:
    """The error of `load` for a bad file: one line that names it."""
    with pytest.raises(FileFormatError) as caught:
        load_record(path)
    message = str(caught.value)
    assert message.startswith(visible(f"{path}: "))
    assert visible(message) == message
    return message


@pytest.mark.parametrize(("name", "content", "message"), BAD)
def test_a_bad_file_is_one_clear_line(
    tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    """Whatever a file holds, loading it says in one line which file it is and what is wrong."""
    path = tmp_path / name
    path.write_bytes(content)
    assert re.search(message, refusal(path))


def test_a_file_that_unpacks_to_too_much_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An archive packed far more than attention can be is not unpacked."""
    monkeypatch.setattr("attnviz.storage.record_files._LARGE", 2**16)
    path = tmp_path / "bomb.npz"
    np.savez_compressed(path, weights=np.zeros((1000, 1000), np.float32))
    assert "it would unpack to 4,000,128 bytes, which no attention does" in refusal(path)


def test_only_the_attention_of_an_archive_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An array that no record needs may be of any size: it is not unpacked."""
    monkeypatch.setattr("attnviz.storage.record_files._LARGE", 2**16)
    path = tmp_path / "attention.npz"
    tokens = np.array(["I", "love"])
    np.savez_compressed(path, hidden=np.zeros(10**6), weights=np.full((2, 2), 0.5), tokens=tokens)
    assert load_record(path).weights.shape == (1, 1, 2, 2)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_what_is_no_file_is_refused(tmp_path: Path, suffix: str) -> None:
    """A folder, a pipe, a missing file and one below a file are refused by name."""
    (tmp_path / f"folder{suffix}").mkdir()
    os.mkfifo(tmp_path / f"pipe{suffix}")
    (tmp_path / "file").touch()
    assert "it is a folder" in refusal(tmp_path / f"folder{suffix}")
    assert "it is not a regular file" in refusal(tmp_path / f"pipe{suffix}")
    assert "No such file or directory" in refusal(tmp_path / f"missing\n{suffix}")
    assert "Not a directory" in refusal(tmp_path / "file" / f"record{suffix}")
    assert "no file has such a name" in refusal(tmp_path / f"\0{suffix}")


# ------------------------------------------------------------------------------------------ whole or not


def test_permissions(tmp_path: Path) -> None:
    """A new file has those that open() gives, a private one stays private, and nothing else is left."""
    before = os.umask(0o027)
    try:
        path = save(sample(), tmp_path / "new" / "folder" / "record.json")
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o640
    path.chmod(0o600)
    save(sample(), path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("target", ["there.npz", "there.json", "there"])
def test_a_link_is_followed(tmp_path: Path, target: str) -> None:
    """Its target is replaced, not the link; the format is that of the path that was typed."""
    link = tmp_path / "link.npz"
    link.symlink_to(tmp_path / target)
    save(sample(), link)
    assert link.is_symlink()
    assert zipfile.is_zipfile(tmp_path / target)
    assert load_record(link) == sample()


@pytest.mark.parametrize(
    "fault", [KeyboardInterrupt(), ValueError("of the writer's"), SystemExit(1)]
)
@pytest.mark.parametrize("old", [b"the old file", None])
def test_an_interrupt_leaves_all_as_it_was(
    tmp_path: Path, fault: BaseException, old: bytes | None
) -> None:
    """Whatever stops the writer in the middle, the old file stays and nothing else does."""
    path = tmp_path / "record.json"
    if old is not None:
        path.write_bytes(old)

    def write(temporary: Path) -> None:
        temporary.write_bytes(b"half of the ne")
        raise fault

    with pytest.raises(type(fault)) as caught:
        write_whole(path, write)
    assert caught.value is fault
    assert [(file.name, file.read_bytes()) for file in tmp_path.iterdir()] == (
        [] if old is None else [("record.json", old)]
    )


@pytest.mark.parametrize("suffix", [*SUFFIXES, ".png", ".svg", ".pdf", ".html"])
def test_no_file_is_open_when_it_is_replaced(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    make_record: Callable[..., Attention],
    suffix: str,
) -> None:
    """Windows replaces no file that is open or mapped, and none by one that is."""
    path = tmp_path / f"record{suffix}"
    record = make_record()
    save(record, path)
    if suffix in SUFFIXES:
        record = load_record(path)
    replace_file, n_replaced = Path.replace, 0

    def check(temporary: Path, target: Path) -> Path:
        nonlocal n_replaced
        n_replaced += 1
        open_files = {os.path.realpath(link) for link in Path("/proc/self/fd").iterdir()}
        maps = Path("/proc/self/maps").read_text("utf-8")
        for file in (temporary, target):
            assert str(file) not in open_files
            assert str(file) not in maps
        return replace_file(temporary, target)

    monkeypatch.setattr(Path, "replace", check)
    save(record, path)
    assert n_replaced == 1


def unwritable(folder: Path) -> dict[Path, str]:
    """Paths that not even root can write, and why."""
    (folder / "file").touch()
    (folder / "folder.json").mkdir()
    os.mkfifo(folder / "pipe.json")
    (folder / "loop.json").symlink_to(folder / "loop.json")
    return {
        folder / "file" / "record.json": f"{folder}/file is not a folder",
        folder / "file" / "deeper" / "record.json": f"{folder / 'file'} is not a folder",
        folder / "folder.json": "it is a folder",
        folder / "pipe.json": "it is not a regular file",
        folder / "loop.json": "Too many levels of symbolic links",
        folder / f"{'long' * 99}.json": "File name too long",
        folder.joinpath(*["long" * 25] * 50) / "record.json": "File name too long",
    }


def test_what_cannot_be_written_is_refused(tmp_path: Path) -> None:
    """Saving and checking beforehand refuse the same paths, with the same line."""
    for path, reason in unwritable(tmp_path).items():
        for act in (lambda: save(sample(), path), lambda: check_writable(path)):  # noqa: B023  called at once
            with pytest.raises(OutputError) as caught:
                act()
            assert str(caught.value) == f"{path} cannot be written: {reason}"


def test_a_file_that_may_not_be_written_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A read-only file stays, although its folder would let it be replaced."""
    path = tmp_path / "record\n.json"
    path.write_bytes(b"the old file")
    # the tests may run as root, who may do anything
    monkeypatch.setattr("os.access", lambda *_: False)
    with pytest.raises(OutputError, match=r"record\\n\.json cannot be written: Permission denied"):
        save(sample(), path)
    assert path.read_bytes() == b"the old file"


def test_csv_has_a_line_for_each_weight(tmp_path: Path) -> None:
    """Numbers of layer, head, query and key, the weight as it is, and the tokens, which no spreadsheet runs."""
    record = attnviz.attend("I love =1+1", "toy").select([1], [2, 3])
    lines = list(csv.DictReader(record.save(tmp_path / "a.csv").read_text().splitlines()))
    assert len(lines) == record.weights.size
    for line in lines:
        layer, head, query, key = (int(line[name]) for name in ("layer", "head", "query", "key"))
        assert np.float32(line["weight"]) == record.pattern(layer, head)[query, key]
        assert line["query_token"].lstrip("'") == record.query_tokens[query].text
        assert not line["key_token"].startswith("=")
