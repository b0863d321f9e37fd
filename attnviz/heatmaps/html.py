"""A record as one page to explore; or a page in which a home-built encoder runs.

Or a home-built encoder: the reader types a sentence, and the model runs in the browser.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from attnviz.attention import (
    EXACT,
    GENERATED,
    QKV,
    Attention,
    Token,
    TokenStatistics,
    is_trivial_link,
)
from attnviz.errors import SelectionError
from attnviz.heatmaps.words import exactly, merged_tokens, word_groups
from attnviz.models import registry
from attnviz.models.registry import HOME_BUILT, TOY, TOY_KOREAN
from attnviz.pages import WebPage
from attnviz.render.html import build, palettes, planes
from attnviz.render.palette import DEFAULT, Palette
from attnviz.render.sheet import (
    KINDS,
    HeadSigns,
    Scale,
    Sheet,
    check_scale,
    pool,
    pooled_note,
    resolve,
)
from attnviz.text.display import visible
from attnviz.text.messages import (
    LANGUAGES,
    Phrase,
    _,
    both,
    expect_language,
    in_language,
    join_phrases,
)
from attnviz.text.notes import proof, sentence
from attnviz.text.suggest import suggest

SCRIPTS = Path(__file__).parent / "scripts"
_NAMES = (
    "words.js",
    "weights.js",
    "state.js",
    "overview.js",
    "matrix.js",
    "lines.js",
    "text.js",
    "row.js",
    "calculation.js",
    "generation.js",
    "pattern.js",
    "controls.js",
    "main.js",
    "views.css",
    "calculation.css",
    "generation.css",
)
OWN = tuple(SCRIPTS / name for name in _NAMES)
GUIDE = tuple(SCRIPTS / name for name in ("guide.js", "tour.css"))
"""Further scripts and styles of a page whose sentences set the views."""
MODEL = (
    *(SCRIPTS / name for name in ("toy.js", "tour.js")),
    *GUIDE,
)  # more scripts and labels for a page in which a model runs

HELD = _(
    "This page has no queries, keys and values: it has them for short texts and few heads, and not "
    "where a record was loaded from a file."
)
MORE = _(
    "The scores of this model have more in them than q · k, such as relative positions or a cap: "
    "attnviz walkthrough shows each step."
)
"""Why a page has no calculation."""
LINKS = 120_000  # about how many of the strongest weights a pooled page keeps exactly
NEAR = 1e-5
"""How near to the model's weights those must be that the page computes from queries and keys; else it has none."""
MOST = 5 * 2**23  # weights of one page; if there are more, neighbouring tokens are pooled


TOURS = (TOY, TOY_KOREAN)  # models that can run in a page
TOLERANCE, SENTENCES = 1e-5, 100
"""How near the page's weights are to Python's at most, and on how many sentences the tests compare them."""

EXAMPLES = {
    TOY: "The animal didn't cross the street because it was too {}.",
    TOY_KOREAN: "동물은 길을 건너지 않았어요, 왜냐하면 그것이 너무 {} 때문이에요.",
}
_LAST = {TOY: ("tired", "wide"), TOY_KOREAN: ("피곤했기", "넓었기")}
_IT = {TOY: ("it", "animal", "street", 7, 1), TOY_KOREAN: ("그것", "동물", "길", 8, 0)}
"""The pronoun, what it stands for with the first last word and with the second, and where the first two stand."""

Roles: TypeAlias = Any
"""A `HeadComparison`, the path of its file, or None."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoryText:
    """A story that a page tells; every text in English and in Korean."""

    title: Sequence[str]
    introduction: Sequence[str]
    # sentences, each with the state of the views that shows it
    views: Sequence[tuple[Sequence[str], Mapping[str, object]]]
    # records for the views, by the state's ``record``; none if a model runs in the page
    records: Sequence[Attention] = ()

    @property
    def guide(self) -> dict[str, object]:
        """Return the sentences of the page, and the view that each one sets."""
        steps = [{"texts": texts, "state": state} for texts, state in self.views]
        return {"told": [self.title, self.introduction], "steps": steps}

    def opens(self, number: int = 0) -> Mapping[str, object]:
        """Return the view on which a record opens, that of the first sentence about it."""
        return next((state for _, state in self.views if state.get("record", 0) == number), {})


def tour(
    model: str = TOY,
    *,
    palette: str = DEFAULT,
    scale: Scale = "shared",
    lang: str = "en",
    roles: Roles = None,
) -> WebPage:
    """Make a page to type in, in which `toy` or `toy-ko` runs; the arguments are as for `attnviz.page`."""
    return _page(_signed(_tour(model, palette, scale, lang), model, roles), MODEL)


def page(
    record: Attention,
    *,
    palette: Palette | None = None,
    scale: Scale = "shared",
    lang: str = "en",
    roles: Roles = None,
) -> WebPage:
    """Make one HTML page of a record; the arguments are as for `attnviz.page`."""
    expect_language(lang)
    content = _explore(record, DEFAULT if palette is None else palette, scale, lang)
    return _page(_signed(content, record.model, roles))


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """The content of a page, by the names of the arguments of `build`."""

    title: str
    head: list[tuple[str, str]]
    labels: dict[str, Any]
    data: bytes


def _page(content: Content, more: Sequence[Path] = ()) -> WebPage:
    own, labels = (*more, *OWN), content.labels
    return WebPage(
        build(
            content.title,
            content.head,
            labels=labels,
            data=content.data,
            own=own,
            language=labels["lang"],
        )
    )


def _signed(content: Content, model: str, roles: Roles) -> Content:
    """Add the signs of roles, each once, and the index of each head's sign."""
    if roles is None:
        return content
    measured = roles
    if isinstance(roles, str | os.PathLike):
        from attnviz.results import load

        measured = load(roles)
    known, signs = content.labels, getattr(measured, "signs", None)
    if not isinstance(signs, HeadSigns):
        raise SelectionError(
            f"{visible(str(roles))} holds no roles of heads: attnviz compare-heads writes them"
        )
    of = signs.among(model, known["is"], known["layers"], known["heads"])
    once = list(dict.fromkeys(of.values()))
    shown = {
        "signs": [{"sign": one.sign, "colour": one.colour, "words": one.words} for one in once],
        "roles": {f"{layer}.{head}": once.index(sign) for (layer, head), sign in of.items()},
    }
    return replace(content, labels=known | shown)


def story(
    text: StoryText,
    *,
    palette: str = DEFAULT,
    lang: str = "en",
    more: Mapping[str, object],
    own: Sequence[Path],
) -> WebPage:
    """Make a page of a story: sentences that set the views of its records, or of `toy`, which runs in the page.

    Its `own` scripts read `more` labels; the rest is as for `attnviz.page`.

    Raises:
        SelectionError: an unknown palette.
    """
    title = text.title[lang == "ko"]
    if not text.records:
        content = _tour(TOY, palette, "shared", lang, text)
        return _page(
            replace(content, title=title, labels={**content.labels, **more}), (*own, *MODEL)
        )
    contents = [_explore(record, palette, "shared", lang) for record in text.records]
    labels = {
        "lang": lang,
        "guide": text.guide,
        "bytes": [len(one.data) for one in contents],
        "records": [
            one.labels | {"at": at, "opens": text.opens(at)} for at, one in enumerate(contents)
        ],
    }
    data = b"".join(one.data for one in contents)
    return _page(
        Content(title=title, head=contents[0].head, labels={**labels, **more}, data=data),
        (*own, *GUIDE),
    )


def _explore(record: Attention, palette: Palette, scale: Scale, lang: str) -> Content:
    """Return the content of a page to explore a record; a large record is pooled."""
    most = int((MOST / record.weights[..., 0, 0].size) ** 0.5)
    sheet = pool(resolve(record, scale, lang), most, most)
    is_pooled = max(sheet.cell) > 1
    weights = record.weights
    if is_pooled:
        weights = np.stack([panel.matrix for panel in sheet.panels]).astype(np.float32)
    labels, data = _pack(weights.reshape(-1, *weights.shape[-2:]))
    vectors, absent = (None, HELD) if is_pooled else _vectors(record)
    if vectors is not None:
        labels["vectors"], packed_vectors = _pack_vectors(vectors)
        data += packed_vectors
    queries, keys = record.query_tokens, record.key_tokens
    has_same_tokens = queries == keys
    notes = list(record.notes)
    if is_pooled:
        notes = [*(note for note in notes if note.code != "pooled"), pooled_note(sheet)]
        queries, keys = _named_tokens(sheet.query_labels), _named_tokens(sheet.key_labels)
    steps = [row for row, token in enumerate(queries) if token.segment == GENERATED]
    labels |= _labels_of(record, sheet)
    labels |= {
        "lang": lang,
        "scale": scale,
        "queries": _side(queries, record),
        "keys": None if has_same_tokens else _side(keys, record),
        "steps": [] if record.kind == "encoder" else steps,
        "absent": both(absent),
        "command": "" if is_pooled else _walkthrough(record),
        "notes": [
            [in_language(sentence(note), language) for note in notes] for language in LANGUAGES
        ],
        "palette": palettes(palette),
    }
    if is_pooled:
        labels["exact"] = [
            both(join_phrases(exactly(record, panel.layer, panel.head), " · "))
            for panel in sheet.panels
        ]
    if is_pooled and record.exact is not None and record.exact.link_keys.size:
        labels["tokens"] = _token_texts(record.exact)
        data += _token_links(record, record.exact)
    head = [
        ("model", f"{sheet.model} · {sheet.size}"),
        ("proof proved" if sheet.is_proved else "proof", sheet.proof),
    ]
    head += [("note", note) for note in sheet.notes]
    return Content(
        title=sheet.sentence or visible(record.model), head=head, labels=labels, data=data
    )


def _labels_of(record: Attention, sheet: Sheet) -> dict[str, object]:
    """Return what a page says about a record: its model, sentence, heads and receipt."""
    return {
        "model": visible(record.model),
        "kind": both(KINDS[record.kind]),
        "about": [replace(sheet, language=language).size for language in LANGUAGES],
        "sentence": sheet.sentence,
        "is": record.kind,
        "layers": record.layers,
        "heads": record.heads,
        "first": sheet.first,
        "cell": sheet.cell,
        "proof": both(proof(record.receipt)),
        "proved": sheet.is_proved,
    }


def _pack_vectors(vectors: QKV) -> tuple[dict[str, object], bytes]:
    """Return the sizes of queries, keys and values, and their numbers as bytes."""
    sizes: dict[str, object] = {
        "d_k": vectors.query.shape[-1],
        "d_v": vectors.value.shape[-1],
        "scaling": vectors.scaling,
    }
    parts = (vectors.query, vectors.key, vectors.value)
    return sizes, planes(b"".join(part.astype("<f4").tobytes() for part in parts), 4)


def _named_tokens(names: Sequence[str]) -> tuple[Token, ...]:
    """Return tokens that stand for groups, of which nothing but the name is known."""
    return tuple(Token(text=name, piece=name) for name in names)


def _token_texts(exact: TokenStatistics) -> dict[str, object]:
    """Return the texts of the single tokens of a pooled record; keys are None if they equal the queries."""
    queries = [token.text for token in exact.query_tokens]
    keys = [token.text for token in exact.key_tokens]
    return {"queries": queries, "keys": None if queries == keys else keys}


def _vectors(record: Attention) -> tuple[QKV | None, Phrase]:
    """Return queries, keys and values if the weights follow from them alone; otherwise None and the reason."""
    vectors = record.vectors
    if vectors is None or vectors.query.shape[:3] + vectors.key.shape[2:3] != record.weights.shape:
        return None, HELD
    scaling = np.array(vectors.scaling)[:, None, None, None]
    scores = vectors.query.astype(np.float64) @ vectors.key.swapaxes(2, 3) * scaling
    if record.kind == "decoder":
        scores[..., np.triu(np.ones(scores.shape[2:], dtype=bool), 1)] = -np.inf
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    return (vectors if np.allclose(weights, record.weights, rtol=0, atol=NEAR) else None), MORE


def _walkthrough(record: Attention) -> str:
    """Return the walkthrough command for a row; empty if the model has no name that attnviz can load."""
    model = record.model.removesuffix(" (seed 0)")
    changed = {note.code for note in record.notes} & {
        "part",
        "words_merged",
        "specials_hidden",
        "tokens_shuffled",
    }
    if model not in HOME_BUILT or record.pair is not None or changed or not record.text:
        return ""
    more = [] if record.kind == "encoder" else ["--kind", record.kind]
    more += [] if record.target is None else ["--target", record.target]
    return shlex.join(["attnviz", "walkthrough", "-m", model, record.text, *more])


def _pack(weights: np.ndarray) -> tuple[dict[str, object], bytes]:
    """Return weights (head, query, key) as bytes, and how to read them.

    If all fit, they are float32. Otherwise only the few largest of each row are, with their keys (two bytes, from the
    largest to the smallest weight). Every other weight is one byte, in units of 1/255 of the head's largest weight.
    """
    n_heads, n_queries, n_keys = weights.shape
    tops = weights.max(axis=(1, 2))
    about: dict[str, object] = {"size": [n_queries, n_keys], "tops": [float(top) for top in tops]}
    if weights.nbytes <= EXACT:
        return about | {"links": 0}, planes(weights.astype("<f4").tobytes(), 4)
    k = min(n_keys, max(3, min(8, LINKS // (n_heads * n_queries))))
    strongest = np.argpartition(weights, n_keys - k, axis=-1)[..., n_keys - k :]
    order = np.argsort(-np.take_along_axis(weights, strongest, axis=-1), axis=-1, kind="stable")
    strongest = np.take_along_axis(strongest, order, axis=-1)
    exact = np.take_along_axis(weights, strongest, axis=-1)
    codes = np.empty(weights.shape, dtype=np.uint8)
    # head by head: all heads at once would need twice the memory more
    for code, weight, top in zip(codes, weights, tops, strict=True):
        code[...] = np.rint(weight * (255 / top if top else 0))
    np.put_along_axis(codes, strongest, np.uint8(0), axis=-1)
    return about | {"links": k}, b"".join(
        [  # the first two as (head, rank, query)
            planes(strongest.swapaxes(1, 2).astype("<u2").tobytes(), 2),
            planes(exact.swapaxes(1, 2).astype("<f4").tobytes(), 4),
            # key by key, because a key that all queries attend to compresses best
            codes.transpose(0, 2, 1).tobytes(),
        ]
    )


def _token_links(record: Attention, found: TokenStatistics) -> bytes:
    """Return the strongest link of each token of a pooled record to another ordinary token: keys, then weights."""
    weights = np.where(is_trivial_link(record, found.link_keys), np.float32(0), found.link_weights)
    best = weights.argmax(axis=-1)[..., None]
    sides = np.take_along_axis(found.link_keys, best, -1), np.take_along_axis(weights, best, -1)
    return b"".join(
        planes(one.astype(kind).tobytes(), 4)
        for one, kind in zip(sides, ("<u4", "<f4"), strict=True)
    )


def _side(tokens: Sequence[Token], record: Attention) -> dict[str, object]:
    """Return the texts, words and sentences of the tokens along one side."""
    words = word_groups(tokens)
    names = zip(words, merged_tokens(tokens, words, record), strict=True)
    pairs = enumerate(pairwise([token.span for token in tokens]), start=1)
    return {
        "texts": [visible(token.text) for token in tokens],
        "words": [number for number, word in enumerate(words) for _ in word],
        "names": {word[0]: visible(name.text) for word, name in names if len(word) > 1},
        "special": [i for i, token in enumerate(tokens) if token.special],
        "segments": _segments(tokens),
        "glued": [i for i, (before, after) in pairs if before and after and before[1] == after[0]],
    }


def _segments(tokens: Sequence[Token]) -> list[int]:
    """Return the sentence of each token; a special token between two sentences belongs to the one before it."""
    segments: list[int] = []
    for token in tokens:
        segments.append(segments[-1] if token.special and segments else token.segment)
    return segments


def _tour(
    name: str, palette: str, scale: Scale, lang: str, text: StoryText | None = None
) -> Content:
    """Return the labels and the weights with which a page runs a model.

    Raises SelectionError: no model of this name runs in a page, or no such scale or language.
    """
    from safetensors import safe_open

    expect_language(lang)
    check_scale(scale)
    if name not in TOURS:
        known = " or ".join(TOURS)
        raise SelectionError(
            f"no model {name} runs in a page: expected {known}{suggest(name, TOURS)}"
        )
    path = (
        HOME_BUILT[name].weights
        or Path(registry.__file__).parent / "weights" / f"{name}.safetensors"
    )
    # imported here, so that other pages start without torch
    with safe_open(path, framework="numpy") as file:
        card = json.loads(file.metadata()["card"])
        names = sorted(name for name in file.keys() if name.startswith(("embedding", "encoder")))  # noqa: SIM118 - no dict
        parts = {name: file.get_tensor(name) for name in names}
    config = card["config"]
    n_layers, n_heads = config["n_layers"], config["n_heads"]
    example = str(text.views[0][1]["text"]) if text else EXAMPLES[name].format(_LAST[name][0])
    checked = _(
        "the model runs in this page; on {n} sentences its weights matched Python's "
        'to within {tolerance:g}; for a receipt: attnviz heatmap -m {name} "..."'
    ).format(n=SENTENCES, tolerance=TOLERANCE, name=name)
    sizes = _("{layers} layers x {heads} heads").format(layers=n_layers, heads=n_heads)
    toy = {
        "words": card["source"],
        "sizes": [[part, tensor.size] for part, tensor in parts.items()],
        "d_model": config["d_model"],
        "n_heads": n_heads,
        "n_layers": n_layers,
        "unknown": config["unknown"],
        "most": config["max_length"],
        "example": example,
    }
    labels: dict[str, object] = {
        "model": name,
        "kind": both(KINDS["encoder"]),
        "is": "encoder",
        "sentence": example,
        "size": [0, 0],
        "links": 0,
        "about": both(sizes),
        "layers": [*range(n_layers)],
        "heads": [*range(n_heads)],
        "tops": [0] * (n_layers * n_heads),
        "queries": {
            "texts": [],
            "words": [],
            "names": {},
            "special": [],
            "segments": [],
            "glued": [],
        },
        "keys": None,
        "first": [0, 0],
        "cell": [1, 1],
        "proof": both(checked),
        "proved": False,
        "command": "",
        "absent": ["", ""],
        "steps": [],
        "notes": [[], []],
        "toy": toy,
        "opens": text.opens() if text else {},
        "guide": text.guide if text else {"told": [], "steps": _guide(name)},
        "lang": lang,
        "scale": scale,
        "palette": palettes(palette),
    }
    head = [
        ("model", f"{name} · {in_language(sizes, lang)}"),
        ("proof", in_language(checked, lang)),
    ]
    data = planes(b"".join(tensor.astype("<f4").tobytes() for tensor in parts.values()), 4)
    return Content(title=f"attnviz · {name}", head=head, labels=labels, data=data)


def _guide(name: str) -> list[dict[str, object]]:
    first, second = (EXAMPLES[name].format(last) for last in _LAST[name])
    it, animal, street, place, at = _IT[name]
    head = {"text": first, "head": "1.3", "view": "matrix", "toward": "from"}
    heads = _(
        "Each small picture is one head: rows are the words that look, columns the words looked at."
    )
    row = _("In layer 1, head 3, “{it}” attends most to “{noun}”, the noun it refers to.")
    turned = _("Change “{first}” to “{last}”, and it attends most to “{noun}”.")
    column = _("In reverse: which words attend to “{noun}”?")
    lines = _("The same weights as lines: the wider a line, the larger the weight.")
    first_end, last_end = _LAST[name]
    steps = {
        heads: {"text": first, "head": ""},
        row.format(it=it, noun=animal): head | {"query": place},
        turned.format(first=first_end, last=last_end, noun=street): head
        | {"text": second, "query": place},
        column.format(noun=animal): head | {"toward": "to", "key": at},
        lines: head | {"view": "lines", "query": place},
    }
    return [{"texts": both(text), "state": state} for text, state in steps.items()]
