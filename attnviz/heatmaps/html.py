"""A record as one HTML page to explore; or a page in which a home-built encoder reads the sentences that one types.

Python writes the numbers of a page as bytes, and everything else that its scripts read as `labels` in JSON.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

import numpy as np

from attnviz.attention import (
    EXACT,
    GENERATED,
    QKV,
    Attention,
    MeanAxis,
    Token,
    TokenStatistics,
    is_trivial_link,
)
from attnviz.errors import SelectionError
from attnviz.heatmaps.finding import NO_CHANGE, Change, find
from attnviz.heatmaps.words import merged_tokens, token_level_summary, word_groups
from attnviz.look import DEFAULT_PALETTE, Look, Palette, Scale, Theme
from attnviz.models import registry
from attnviz.models.registry import HOME_BUILT, TOY, TOY_KOREAN
from attnviz.pages import WebPage
from attnviz.render.html import build, palettes, planes
from attnviz.render.sheet import KINDS, Sheet, pool, resolve
from attnviz.render.theme import theme_of
from attnviz.text.display import quoted, visible, with_particles
from attnviz.text.messages import N_, _
from attnviz.text.suggest import suggest

if TYPE_CHECKING:
    from attnviz.heatmaps.difference import Difference

SCRIPTS = Path(__file__).parent / "scripts"
_OWN_NAMES = (
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
OWN = tuple(SCRIPTS / name for name in _OWN_NAMES)
GUIDE = tuple(SCRIPTS / name for name in ("guide.js", "tour.css"))
"""Further scripts and styles of a page whose sentences set the views."""
MODEL = (*(SCRIPTS / name for name in ("toy.js", "tour.js")), *GUIDE)
"""Further scripts and styles of a page in which a model runs."""

NO_VECTORS = N_(
    "This page has no queries, keys and values: it has them for short texts and few heads, and not "
    "where a record was loaded from a file."
)
OTHER_SCORES = N_(
    "The scores of this model have more in them than q · k, such as relative positions or a cap: "
    "attnviz walkthrough shows each step."
)
"""The two reasons why a page cannot compute weights from queries and keys."""
SIGNS = N_("Red: more attention here than in the other; blue: less")
MOST_LINKS = 120_000  # about how many of the strongest weights a large page keeps exactly
CLOSE = 1e-5
"""How close the weights computed from queries and keys must be to the model's, so that a page shows the calculation."""
# Numbers of a page of a difference; if there are more, neighbouring tokens are pooled.
MOST_CHANGES = 2**21
MOST_WEIGHTS = 5 * 2**23  # of one page; if there are more, neighbouring tokens are pooled

MOST_STEPS = 3  # changes that a page of a difference tells

TOURS = (TOY, TOY_KOREAN)  # models that can run in a page
TOLERANCE, SENTENCES = 1e-5, 100
"""The largest difference of the page's weights from Python's, and on how many sentences the tests compare them."""

EXAMPLES = {
    TOY: "The animal didn't cross the street because it was too {}.",
    TOY_KOREAN: "동물은 길을 건너지 않았어요, 왜냐하면 그것이 너무 {} 때문이에요.",
}
"""The sentence on which the page of each model opens, without its last word."""


class _Pronoun(NamedTuple):
    """A pronoun in one of `EXAMPLES`, which refers to another noun if the last word of the sentence changes."""

    last_words: tuple[str, str]
    text: str
    nouns: tuple[str, str]  # what the pronoun refers to with each of the last words
    place: int  # the index of the pronoun in the sentence
    noun_place: int  # the index of the first noun


_PRONOUNS = {
    TOY: _Pronoun(("tired", "wide"), "it", ("animal", "street"), 7, 1),
    TOY_KOREAN: _Pronoun(("피곤했기", "넓었기"), "그것", ("동물", "길"), 8, 0),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StoryText:
    """A story that a page tells.

    A state is what the views of a page show: a head, a query, a way of drawing. The scripts read it as JSON.
    """

    title: str
    introduction: str
    # sentences, each with the state of the views that it sets
    views: Sequence[tuple[str, Mapping[str, object]]]
    # the records for the views; ``record`` in a state is the index of one. None if a model runs in the page
    records: Sequence[Attention] = ()

    @property
    def guide(self) -> dict[str, object]:
        """The sentences of the page, and the state that each one sets, for the scripts."""
        steps = [{"text": text, "state": state} for text, state in self.views]
        return {"told": [self.title, self.introduction], "steps": steps}

    def opening_state(self, record: int = 0) -> Mapping[str, object]:
        """Return the state in which a record opens, that of the first sentence about it."""
        return next((state for _, state in self.views if state.get("record", 0) == record), {})


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """The content of a page: its title, what the scripts read as JSON, and the numbers that they read."""

    title: str
    labels: dict[str, Any]
    data: bytes


def tour(model: str, look: Look) -> WebPage:
    """Make a page to type in, in which `toy` or `toy-ko` runs."""
    theme_of(look.theme, look.palette)
    return _page(_tour(model, look.palette, look.scale), look.theme, MODEL)


def page(record: Attention, look: Look) -> WebPage:
    """Make one HTML page of a record, which opens on the link that stands out most.

    Pages of generated texts open on the first new token, and those of pooled texts on all heads.
    """
    theme_of(look.theme, look.palette)
    content = _explore(record, look.palette, look.scale)
    labels = content.labels
    is_pooled = max(labels["cell"]) > 1
    finding = None if is_pooled or labels["steps"] else find(record)
    if finding is not None:
        labels["opens"] = {"head": f"{finding.layer}.{finding.head}", "query": finding.query}
        labels["finding"] = finding.sentence
    return _page(content, look.theme)


def _page(content: Content, theme: Theme, more: Sequence[Path] = (), after: str = "") -> WebPage:
    """Build a page of this content, with the scripts and styles in `more` before those of all heatmaps.

    `after` is HTML that follows it. What stands above the views can also be read without scripts.
    """
    labels = content.labels.get("records", [content.labels])[0]
    above = [
        ("finding", labels.get("finding", "")),
        ("model", " · ".join(labels[name] for name in ("model", "kind", "about"))),
        ("proof proved" if labels["proved"] else "proof", labels["proof"]),
        *(("note", note) for note in labels["notes"]),
    ]
    return WebPage(
        build(
            content.title,
            [line for line in above if line[1]],
            labels=content.labels,
            data=content.data,
            own=(*more, *OWN),
            theme=theme,
            after=after,
        )
    )


def story(
    text: StoryText,
    *,
    palette: str = DEFAULT_PALETTE,
    theme: Theme,
    after: str,
    own: Sequence[Path],
) -> WebPage:
    """Make a page of a story: sentences that set the views of its records, or of `toy`, which runs in the page.

    `after` is its text, HTML that follows the views, and `own` are its own scripts; the rest is as for `attnviz.page`.

    Raises:
        SelectionError: an unknown palette.
    """
    if not text.records:
        content = replace(_tour(TOY, palette, "shared", text), title=text.title)
        return _page(content, theme, (*own, *MODEL), after)
    contents = [_explore(record, palette, "shared") for record in text.records]
    opens = map(text.opening_state, range(len(contents)))
    content = _together(contents, opens, text.title, text.guide)
    return _page(content, theme, (*own, *GUIDE), after)


def _together(
    contents: Sequence[Content],
    opens: Iterable[Mapping[str, object]],
    title: str,
    guide: Mapping[str, object],
) -> Content:
    """Return the content of a page of several records, each of which opens in its own state."""
    labels = {
        "guide": guide,
        "bytes": [len(content.data) for content in contents],
        "records": [
            content.labels | {"at": index, "opens": state}
            for index, (content, state) in enumerate(zip(contents, opens, strict=True))
        ],
    }
    data = b"".join(content.data for content in contents)
    return Content(title=title, labels=labels, data=data)


def difference_page(difference: Difference, look: Look) -> WebPage:
    """Make one page of a difference, which opens on its largest change, and of its two records."""
    records = (difference.x, difference.y)
    sheet = difference.sheet(look.scale)
    contents = [_changes(sheet)]
    contents += [_explore(record, DEFAULT_PALETTE, look.scale) for record in records]
    changes = sheet.changes[:20]
    finding = changes[0].sentence if changes else _(NO_CHANGE)
    # What a query loses to one key and gains from another is one sentence.
    distinct = {replace(change, replaced="").sentence: change for change in reversed(changes)}
    steps: list[dict[str, object]] = [
        {"text": text, "state": {"record": 0, **_place_of(change)}}
        for text, change in [*distinct.items()][: -MOST_STEPS - 1 : -1]
    ] or [{"text": finding, "state": {"record": 0}}]
    names = (_("This: {title}"), _("The other: {title}"))
    for at, (name, record, content) in enumerate(zip(names, records, contents[1:], strict=True)):
        title = f"{content.title} · {visible(record.model)}"
        state: dict[str, object] = {"record": at + 1}
        if changes:  # the same head and the same two tokens, by their numbers in this record
            query = difference.queries[at][changes[0].query]
            key = difference.keys[at][changes[0].key]
            state |= _place_of(replace(changes[0], query=query, key=key))
        steps.append({"text": name.format(title=title), "state": state})
    opens = [_place_of(changes[0]) if changes else {}, {}, {}]
    contents[0].labels["finding"] = finding
    content = _together(contents, opens, contents[0].title, {"told": [], "steps": steps})
    return _page(content, look.theme, GUIDE)


def _place_of(change: Change) -> dict[str, object]:
    """Return the state of the views that shows a change."""
    name = _name_of((change.layer, change.head), change.averaged)
    return {"head": name, "query": change.query, "key": change.key}


def _name_of(place: tuple[int, int], averaged: Collection[MeanAxis]) -> str:
    """Return the name of a head on a page, in which a star stands for a mean."""
    pairs = zip(get_args(MeanAxis), place, strict=True)
    return ".".join("*" if axis in averaged else str(number) for axis, number in pairs)


def _changes(sheet: Sheet) -> Content:
    """Return the content of a page of a difference; a large one is pooled so far that all its numbers are exact."""
    most = int((MOST_CHANGES / len(sheet.panels)) ** 0.5)
    sheet = pool(sheet, most, most)
    matrices = np.stack([panel.matrix for panel in sheet.panels]).astype("<f4")
    labels = _labels_of(sheet) | {
        "model": sheet.model.rpartition(" · ")[0],
        "size": matrices.shape[1:],
        "tops": [float(np.abs(matrix).max()) for matrix in matrices],
        "signed": True,
        "notes": [_(SIGNS), *sheet.notes],
        "palette": palettes(signed=True),
    }
    return Content(title=sheet.sentence, labels=labels, data=planes(matrices.tobytes(), 4))


def _explore(record: Attention, palette: Palette, scale: Scale) -> Content:
    """Return the content of a page to explore a record; a large record is pooled, to groups of tokens."""
    most = int((MOST_WEIGHTS / record.weights[..., 0, 0].size) ** 0.5)
    sheet = pool(resolve(record, scale), most, most)
    packed, data = _pack_weights(
        np.stack([panel.matrix for panel in sheet.panels]).astype("<f4", copy=False)
    )
    labels = _labels_of(sheet) | packed | {"palette": palettes(palette)}
    if max(sheet.cell) > 1:
        labels |= {
            "absent": _(NO_VECTORS),
            "exact": [
                " · ".join(token_level_summary(record, panel.layer, panel.head))
                for panel in sheet.panels
            ],
        }
        if record.exact is not None and record.exact.link_keys.size:
            sides = record.exact.query_tokens, record.exact.key_tokens
            queries, keys = ([token.text for token in side] for side in sides)
            labels["tokens"] = {"queries": queries, "keys": None if queries == keys else keys}
            data += _token_links(record, record.exact)
    else:
        vectors, labels["absent"] = _exact_vectors(record)
        if vectors is not None:
            arrays = vectors.query, vectors.key, vectors.value
            labels["vectors"] = {
                "d_k": vectors.query.shape[-1],
                "d_v": vectors.value.shape[-1],
                "scaling": vectors.scaling,  # one per matrix
            }
            data += planes(b"".join(array.astype("<f4").tobytes() for array in arrays), 4)
        labels["command"] = _walkthrough_command(record)
        if record.kind != "encoder":
            tokens = enumerate(record.query_tokens)
            labels["steps"] = [row for row, token in tokens if token.segment == GENERATED]
    return Content(title=sheet.sentence or visible(record.model), labels=labels, data=data)


NO_TOKENS: dict[str, Any] = {
    name: {} if name == "names" else []
    for name in ("texts", "words", "names", "special", "segments", "glued")
}
# What the scripts read of every page; most pages have more.
USUAL: dict[str, Any] = {
    "links": 0,
    "masked": [],
    "first": (0, 0),
    "cell": (1, 1),
    "queries": NO_TOKENS,
    "keys": None,
    "proved": False,
    "command": "",
    "absent": "",
    "steps": [],
    "notes": [],
}


def _labels_of(sheet: Sheet) -> dict[str, Any]:
    """Return what a page says about a record: its model, sentence, heads, tokens and receipt."""
    record = sheet.record
    masked_from = sheet.masked_from.tolist()
    queries, keys = record.query_tokens, record.key_tokens
    has_same_tokens = queries == keys
    if max(sheet.cell) > 1:
        # a group of tokens, of which nothing but the name is known
        queries, keys = (
            tuple(Token(text=name, piece=name) for name in names)
            for names in (sheet.query_labels, sheet.key_labels)
        )
    return USUAL | {
        "model": visible(record.model),
        "kind": _(KINDS[record.kind]),
        "about": sheet.size,
        "sentence": sheet.sentence,
        "is": record.kind,
        "queries": _describe_tokens(queries, record),
        "keys": None if has_same_tokens else _describe_tokens(keys, record),
        # the first masked key of each query; empty if no key is masked
        "masked": masked_from if min(masked_from) < len(record.key_tokens) else [],
        "names": [_name_of(place, record.averaged) for place in record.places],
        "first": record.first,
        "cell": sheet.cell,
        "proof": sheet.proof,
        "proved": record.receipt is not None,
        "notes": sheet.notes,
        "scale": sheet.scale,
    }


def _exact_vectors(record: Attention) -> tuple[QKV | None, str]:
    """Return queries, keys and values if the weights follow from them alone, or None; and the reason for None."""
    vectors = record.vectors
    if vectors is None or vectors.query.shape[:3] + vectors.key.shape[2:3] != record.weights.shape:
        return None, _(NO_VECTORS)
    scaling = np.array(vectors.scaling).reshape(*record.weights.shape[:2], 1, 1)
    if sum(array.nbytes for array in (vectors.query, vectors.key, vectors.value)) > EXACT:
        return None, _(NO_VECTORS)
    scores = vectors.query.astype(np.float64) @ vectors.key.swapaxes(2, 3) * scaling
    if record.kind == "decoder":
        scores[..., np.triu(np.ones(scores.shape[2:], dtype=bool), 1)] = -np.inf
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    is_close = np.allclose(weights, record.weights, rtol=0, atol=CLOSE)
    return vectors if is_close else None, _(OTHER_SCORES)


def _walkthrough_command(record: Attention) -> str:
    """Return the walkthrough command that computes the record's numbers, without its query; empty if there is none.

    There is none if the model has no name that attnviz can load, or if the rows are no longer those of the sentence.
    """
    model = record.model.removesuffix(" (seed 0)")
    changes = {"part", "words_merged", "specials_hidden", "sinks_hidden"}
    is_changed = any(note.code in changes for note in record.notes)
    # A text that a decoder continued has no command: walkthrough takes a target only for models that translate.
    is_continued = record.target is not None and record.key_tokens[0].segment != GENERATED
    is_changed |= is_continued and record.kind == "decoder"
    if model not in HOME_BUILT or record.pair is not None or is_changed or not record.text:
        return ""
    command = f"attnviz walkthrough -m {model} {quoted(record.text)}"
    if record.kind != "encoder":
        command += f" --kind {record.kind}"
    if record.target is not None:
        command += f" --target {quoted(record.target)}"
    return command


def _pack_weights(weights: np.ndarray) -> tuple[dict[str, object], bytes]:
    """Return labels that say how to read the weights (head, query, key), and the weights as bytes.

    If all fit, they are float32. Otherwise only the few largest of each row are, with their keys (two bytes, from the
    largest to the smallest weight). Every other weight is one byte, in units of 1/255 of the head's largest weight.
    """
    n_heads, n_queries, n_keys = weights.shape
    tops = weights.max(axis=(1, 2))
    labels: dict[str, object] = {"size": [n_queries, n_keys], "tops": [float(top) for top in tops]}
    if weights.nbytes <= EXACT:
        return labels | {"links": 0}, planes(weights.astype("<f4").tobytes(), 4)
    k = min(n_keys, max(3, min(8, MOST_LINKS // (n_heads * n_queries))))
    strongest = np.argpartition(weights, n_keys - k, axis=-1)[..., n_keys - k :]
    order = np.argsort(-np.take_along_axis(weights, strongest, axis=-1), axis=-1, kind="stable")
    strongest = np.take_along_axis(strongest, order, axis=-1)
    exact = np.take_along_axis(weights, strongest, axis=-1)
    codes = np.empty(weights.shape, dtype=np.uint8)
    # head by head: all heads at once would need twice the memory more
    for code, weight, top in zip(codes, weights, tops, strict=True):
        code[...] = np.rint(weight * (255 / top if top else 0))
    np.put_along_axis(codes, strongest, np.uint8(0), axis=-1)
    parts = (
        planes(strongest.swapaxes(1, 2).astype("<u2").tobytes(), 2),  # (head, rank, query)
        planes(exact.swapaxes(1, 2).astype("<f4").tobytes(), 4),  # (head, rank, query)
        # key by key, because a key that all queries attend to compresses best
        codes.transpose(0, 2, 1).tobytes(),  # (head, key, query)
    )
    return labels | {"links": k}, b"".join(parts)


def _token_links(record: Attention, exact: TokenStatistics) -> bytes:
    """Return the strongest link of each token of a pooled record to another ordinary token: keys, then weights."""
    weights = np.where(is_trivial_link(record, exact.link_keys), np.float32(0), exact.link_weights)
    strongest = weights.argmax(axis=-1)[..., None]
    keys = np.take_along_axis(exact.link_keys, strongest, -1)
    key_weights = np.take_along_axis(weights, strongest, -1)
    packed_keys = planes(keys.astype("<u4").tobytes(), 4)
    return packed_keys + planes(key_weights.astype("<f4").tobytes(), 4)


def _describe_tokens(tokens: Sequence[Token], record: Attention) -> dict[str, object]:
    """Return what a page knows of the tokens along one side of a matrix.

    Returns:
        ``texts``: one per token. ``words``: the number of the word of each token. ``names``: the words of several
        pieces, by their first token. ``special``: the indices of special tokens. ``segments``: the sentence of each
        token. ``glued``: the indices of tokens without a space before them.
    """
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


def _tour(name: str, palette: str, scale: Scale, text: StoryText | None = None) -> Content:
    """Return the content of a page that runs a model, or of a story about that model.

    The data are the parameters of the model. Raises SelectionError: no model of this name runs in a page.
    """
    from safetensors import safe_open

    if name not in TOURS:
        known = " or ".join(TOURS)
        raise SelectionError(
            f"no model {name} runs in a page: expected {known}{suggest(name, TOURS)}"
        )
    path = Path(registry.__file__).parent / "weights" / f"{name}.safetensors"
    # imported here, so that other pages start without torch
    with safe_open(path, framework="numpy") as file:
        card = json.loads(file.metadata()["card"])
        names = sorted(name for name in file.keys() if name.startswith(("embedding", "encoder")))  # noqa: SIM118 - no dict
        parameters = {name: file.get_tensor(name) for name in names}
    config = card["config"]
    n_layers, n_heads = config["n_layers"], config["n_heads"]
    example = EXAMPLES[name].format(_PRONOUNS[name].last_words[0])
    if text is not None:
        example = str(text.views[0][1]["text"])
    checked = _(
        "the model runs in this page; on {n} sentences its weights matched Python's "
        'to within {tolerance:g}; for a receipt: attnviz heatmap -m {name} "..."'
    ).format(n=SENTENCES, tolerance=TOLERANCE, name=name)
    toy = {
        "words": card["source"],
        "sizes": [[part, tensor.size] for part, tensor in parameters.items()],
        "d_model": config["d_model"],
        "n_heads": n_heads,
        "n_layers": n_layers,
        "unknown": config["unknown"],
        "most": config["max_length"],
        "example": example,
    }
    labels = USUAL | {
        "model": name,
        "kind": _(KINDS["encoder"]),
        "is": "encoder",
        "sentence": example,
        "size": (0, 0),
        "about": _("{layers} layers x {heads} heads").format(layers=n_layers, heads=n_heads),
        "names": [f"{layer}.{head}" for layer in range(n_layers) for head in range(n_heads)],
        "tops": [0] * (n_layers * n_heads),
        "proof": checked,
        "toy": toy,
        "opens": text.opening_state() if text else {},
        "guide": text.guide if text else {"told": [], "steps": _guide(name)},
        "scale": scale,
        "palette": palettes(palette),
    }
    data = planes(b"".join(tensor.astype("<f4").tobytes() for tensor in parameters.values()), 4)
    return Content(title=f"attnviz · {name}", labels=labels, data=data)


def _guide(name: str) -> list[dict[str, object]]:
    """Return the sentences that guide the reader through the example of a model, each with the state that it sets."""
    pronoun = _PRONOUNS[name]
    first_end, last_end = pronoun.last_words
    first_noun, last_noun = pronoun.nouns
    text = EXAMPLES[name].format(first_end)
    changed_text = EXAMPLES[name].format(last_end)
    head = {"text": text, "head": "1.3", "view": "matrix", "toward": "from"}
    heads = _(
        "Each small picture is one head: rows are the words that look, columns the words looked at."
    )
    row = _("In layer 1, head 3, “{it}” attends most to “{noun}”, the noun it refers to.")
    changed = _("Change “{first}” to “{last}”, and it attends most to “{noun}”.")
    column = _("In reverse: which words attend to “{noun}”?")
    lines = _("The same weights as lines: the wider a line, the larger the weight.")
    steps = [
        (heads, {"text": text, "head": ""}),
        (row.format(it=pronoun.text, noun=first_noun), head | {"query": pronoun.place}),
        (
            changed.format(first=first_end, last=last_end, noun=last_noun),
            head | {"text": changed_text, "query": pronoun.place},
        ),
        (column.format(noun=first_noun), head | {"toward": "to", "key": pronoun.noun_place}),
        (lines, head | {"view": "lines", "query": pronoun.place}),
    ]
    return [{"text": with_particles(said), "state": state} for said, state in steps]
