"""Suggestions in error messages: for misspelled names, and for files of other programs."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

# Files of other programs that people give as a model or as a record: what they are, and how they are converted.
_PICKLED = (
    "holds weights without the code of their model: give a file of code with a function that builds the model and "
    "loads them, -m my_model.py:build"
)
FOREIGN = {
    ".npy": 'is an array without its tokens: in Python, attnviz.heatmap(numpy.load("weights.npy"), words) draws it, '
    'and numpy.savez("weights.npz", weights=numpy.load("weights.npy"), tokens=words) writes a file for --load',
    ".csv": "is a table, which attnviz writes for other programs: save .json, .npz or .safetensors too, to read them "
    'again; a matrix is drawn in Python by attnviz.heatmap(numpy.loadtxt("weights.csv", delimiter=","), words)',
    ".gguf": "is a model for llama.cpp: in Python, AutoModelForCausalLM.from_pretrained(folder, gguf_file=name)"
    ".save_pretrained(new_folder), and the same with AutoTokenizer, write a folder that -m reads",
    ".onnx": "is a graph of operations without the code of its model: give the model that it was exported from",
    ".pt": _PICKLED,
    ".pth": _PICKLED,
    ".ckpt": _PICKLED,
}


def suggest(typed: str, known: Iterable[str], shown: Iterable[str] | None = None) -> str:
    """Return the end of a message: the most similar known name, or a list of names.

    Such as ": did you mean heatmap?" or ": there are png, svg, pdf". Case is ignored.
    """
    names = {name.casefold(): name for name in reversed([*known])}
    meant = typed.strip().casefold()
    near = [meant] if meant in names else difflib.get_close_matches(meant, names, 1)
    if near:
        return f": did you mean {names[near[0]]}?"
    listed = ", ".join(reversed(names.values()) if shown is None else shown)
    return f": there are {listed}" if listed else ""
