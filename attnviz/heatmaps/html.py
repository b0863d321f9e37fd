"""A record as one page to explore: all heads, each matrix, lines between words, the shaded sentence."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from jaxtyping import UInt8

from attnviz.attention import GENERATED, Attention, Exact, Note, Token, Vectors
from attnviz.errors import SelectionError
from attnviz.heatmaps.exact import exactly
from attnviz.heatmaps.words import merged_tokens, word_groups
from attnviz.models.registry import HOME_BUILT, TOY
from attnviz.pages import WebPage
from attnviz.render.html import build, palettes, planes
from attnviz.render.palette import DEFAULT
from attnviz.render.sheet import KINDS, Scale, Sheet, pool, resolve
from attnviz.render.signs import HeadSigns
from attnviz.text.display import visible
from attnviz.text.notes import proof, sentence
from attnviz.text.phrase import LANGUAGES, Phrase, expect_language, joined

if TYPE_CHECKING:
    from attnviz.heatmaps.tour import StoryText

SCRIPTS = Path(__file__).parent / "scripts"
_NAMES = (
    "words.js", "weights.js", "state.js", "overview.js", "matrix.js", "lines.js", "text.js", "row.js",
    "calculation.js", "generation.js", "pattern.js", "controls.js", "main.js", "views.css", "calculation.css",
    "generation.css",
)  # fmt: skip
OWN = tuple(SCRIPTS / name for name in _NAMES)
GUIDE = tuple(SCRIPTS / name for name in ("guide.js", "tour.css"))
"""What a page has besides in which sentences set the views."""
MODEL = (*(SCRIPTS / name for name in ("toy.js", "tour.js")), *GUIDE)
"""What a page has besides in which a model runs."""

EXACT = 2**21
"""Bytes of float32 up to which a page has every weight as it is; above, the picture has a byte for each."""
HELD = Phrase(
    """This page has no queries, keys and values: it has them for short texts and few heads (--layer, --head), and not
    where a record was loaded from a file.""",
    """이 페이지에는 쿼리, 키, 값 벡터가 없습니다. 짧은 글과 적은 헤드(--layer, --head)일 때만 있고, 파일에서 불러온
    기록에는 없습니다.""",
)
MORE = Phrase(
    """The scores of this model have more in them than q · k, such as relative positions or a cap: attnviz walkthrough
    shows each step.""",
    """이 모델의 점수에는 q · k 말고도 상대 위치나 상한 같은 것이 더 있습니다. attnviz walkthrough가 단계마다
    보여 줍니다.""",
)
"""Why a page has no calculation."""
LINKS = 120_000
"""About how many of the strongest weights such a page has as they are."""
NEAR = 1e-5
"""How near to the model's weights those must be that the page computes from queries and keys; else it has none."""
MOST = 5 * 2**23
"""Weights of one page; where there are more, tokens go together."""


Roles: TypeAlias = Any
"""What was measured of heads, which has the `signs` of those with a role, or the path of its file; or None."""


def tour(
    model: str = TOY, *, palette: str = DEFAULT, scale: Scale = "shared", lang: str = "en", roles: Roles = None
) -> WebPage:
    """A page to type in, in which `toy` or `toy-ko` runs; the rest is as for `attnviz.page`."""
    return _page(_signed(_tour(model, palette, scale, lang), model, roles), MODEL)


def page(
    record: Attention, *, palette: str = DEFAULT, scale: Scale = "shared", lang: str = "en", roles: Roles = None
) -> WebPage:
    """A record as one HTML page to explore; the rest is as for `attnviz.page`."""
    return _page(_signed(_explore(record, palette, scale, lang), record.model, roles))


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What a page holds, by the names that `build` has for it."""

    title: str
    head: list[tuple[str, str]]
    labels: dict[str, Any]
    data: bytes


def _page(content: Content, more: Sequence[Path] = ()) -> WebPage:
    given = {name: getattr(content, name) for name in ("labels", "data")}
    return WebPage(build(content.title, content.head, own=(*more, *OWN), language=content.labels["lang"], **given))


def _signed(content: Content, model: str, roles: Roles) -> Content:
    """With what the overview must know to show signs of roles: each once, and which of them each head has."""
    if roles is None:
        return content
    measured = roles
    if isinstance(roles, str | os.PathLike):
        from attnviz.results import load

        measured = load(roles)
    known, signs = content.labels, getattr(measured, "signs", None)
    if not isinstance(signs, HeadSigns):
        raise SelectionError(f"{visible(str(roles))} holds no roles of heads: attnviz compare-heads writes them")
    of = signs.among(model, known["is"], known["layers"], known["heads"])
    once = list(dict.fromkeys(of.values()))
    shown = {
        "signs": [{"sign": one.sign, "colour": one.colour, "words": one.words} for one in once],
        "roles": {f"{layer}.{head}": once.index(sign) for (layer, head), sign in of.items()},
    }
    return replace(content, labels=known | shown)


def _tour(model: str, palette: str, scale: Scale, lang: str, told: StoryText | None = None) -> Content:
    """The page in which a model runs."""
    from attnviz.heatmaps.tour import labels

    expect_language(lang)
    known, data = labels(model, told)
    known |= {"lang": lang, "scale": scale, "palette": palettes(palette)}
    about = [(name, str(known[name][lang == "ko"])) for name in ("about", "proof")]  # type: ignore[index]
    head = [("model", f"{model} · {about[0][1]}"), about[1]]
    return Content(title=f"attnviz · {model}", head=head, labels=known, data=data)


def story(
    told: StoryText, *, palette: str = DEFAULT, lang: str = "en", more: Mapping[str, object], own: Sequence[Path]
) -> WebPage:
    """A story as a page: sentences that set the views of its records, or of `toy`, which then runs in it.

    Args:
        told: its title, what comes first, and the sentences.
        palette: as for `page`.
        lang: likewise.
        more: further labels, which its own scripts read.
        own: these scripts and their styles.

    Raises:
        SelectionError: a palette that is not there.
    """
    title = told.title[lang == "ko"]
    if not told.records:
        content = _tour(TOY, palette, "shared", lang, told)
        return _page(replace(content, title=title, labels={**content.labels, **more}), (*own, *MODEL))
    contents = [_explore(record, palette, "shared", lang) for record in told.records]
    labels = {
        "lang": lang, "guide": told.guide, "bytes": [len(one.data) for one in contents],
        "records": [one.labels | {"at": at, "opens": told.opens(at)} for at, one in enumerate(contents)],
    }  # fmt: skip
    data = b"".join(one.data for one in contents)
    return _page(Content(title=title, head=contents[0].head, labels={**labels, **more}, data=data), (*own, *GUIDE))


def _explore(record: Attention, palette: str, scale: Scale, lang: str) -> Content:
    """The page of a record."""
    expect_language(lang)
    most = int((MOST / record.weights[..., 0, 0].size) ** 0.5)
    sheet = pool(resolve(record, scale, lang), most, most)
    is_pooled = max(sheet.cell) > 1
    weights = record.weights
    if is_pooled:
        weights = np.stack([one.matrix for one in sheet.panels]).astype(np.float32)
    labels, data = _packed(weights.reshape(-1, *weights.shape[-2:]))
    vectors, absent = (None, HELD) if is_pooled else _vectors(record)
    if vectors is not None:
        data += planes(
            b"".join(part.astype("<f4").tobytes() for part in (vectors.query, vectors.key, vectors.value)), 4
        )
        labels["vectors"] = {
            "d_k": vectors.query.shape[-1], "d_v": vectors.value.shape[-1], "scaling": vectors.scaling,
        }  # fmt: skip
    same = record.query_tokens == record.key_tokens
    sides = (
        [_groups(sheet.query_labels), _groups(sheet.key_labels)]
        if is_pooled
        else [_side(record.query_tokens, record), _side(record.key_tokens, record)]
    )
    labels |= {
        "lang": lang, "scale": scale, "model": visible(record.model), "kind": KINDS[record.kind],
        "about": [replace(sheet, language=language).size for language in LANGUAGES],
        "sentence": sheet.sentence, "is": record.kind, "layers": record.layers, "heads": record.heads,
        "queries": sides[0], "keys": None if same else sides[1], "first": sheet.first, "cell": sheet.cell,
        "proof": [proof(record.receipt, language) for language in LANGUAGES], "proved": sheet.is_proved,
        "steps": [] if is_pooled or record.kind == "encoder" else _steps(record),
        "absent": [absent, absent.ko], "command": "" if is_pooled else _walkthrough(record),
        "notes": [[sentence(note, language) for note in _notes(record, sheet)] for language in LANGUAGES],
        "palette": palettes(palette),
    }  # fmt: skip
    if is_pooled:
        said = (joined(exactly(record, panel.layer, panel.head), " · ") for panel in sheet.panels)
        labels["exact"] = [[one, one.ko] for one in said]
        if record.exact is not None and record.exact.link_keys.size:
            texts = [[token.text for token in side] for side in (record.exact.query_tokens, record.exact.key_tokens)]
            labels["tokens"] = {"queries": texts[0], "keys": None if texts[0] == texts[1] else texts[1]}
            data += _token_links(record.exact, None if record.kind == "cross" else record.first[0] - record.first[1])
    title = sheet.sentence or visible(record.model)
    return Content(title=title, head=_said(sheet), labels=labels, data=data)


def _vectors(record: Attention) -> tuple[Vectors | None, Phrase]:
    """What the weights are computed from, where softmax(query key^T * scaling) alone gives them; else None, and why."""
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


def _steps(record: Attention) -> list[int]:
    """The rows of what the model generated, one a step."""
    return [place for place, token in enumerate(record.query_tokens) if token.segment == GENERATED]


def _walkthrough(record: Attention) -> str:
    """The command that computes a row from the model on; empty where nobody can tell by its name which model it was."""
    model = record.model.removesuffix(" (seed 0)")
    changed = {note.code for note in record.notes} & {"part", "words_merged", "specials_hidden", "tokens_shuffled"}
    if model not in HOME_BUILT or record.pair is not None or changed or not record.text:
        return ""
    more = [*(["--kind", record.kind] if record.kind != "encoder" else [])]
    more += [] if record.target is None else ["--target", record.target]
    return shlex.join(["attnviz", "walkthrough", "-m", model, record.text, *more])


def _said(sheet: Sheet) -> list[tuple[str, str]]:
    """What stands under the heading."""
    return [
        ("model", f"{sheet.model} · {sheet.size}"),
        ("proof proved" if sheet.is_proved else "proof", sheet.proof),
        *(("note", note) for note in sheet.notes),
    ]


def _notes(record: Attention, sheet: Sheet) -> list[Note]:
    """The record's notes, with how many tokens go together on the page."""
    if max(sheet.cell) == 1:
        return list(record.notes)
    (tall, wide), (rows, columns) = sheet.cell, sheet.tokens
    pooled = Note.of("pooled", cell=tall, wide=wide, n_queries=rows, n_keys=columns)
    return [*(note for note in record.notes if note.code != "pooled"), pooled]


def _packed(weights: np.ndarray) -> tuple[dict[str, object], bytes]:
    """Weights (head, query, key) as bytes, and what a reader must know to read them.

    Where all fit, they are float32. Else the few largest of each row are, with their keys (two bytes, from the largest
    to the smallest), and each weight that is none of these is a byte: a 255th of its head's largest is 1.
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
    codes = _codes(weights, tops)
    np.put_along_axis(codes, strongest, np.uint8(0), axis=-1)
    by_rank = [np.ascontiguousarray(np.moveaxis(one, -1, 1)) for one in (strongest, exact)]  # (head, rank, query)
    return about | {"links": k}, b"".join([
        planes(by_rank[0].astype("<u2").tobytes(), 2),
        planes(by_rank[1].astype("<f4").tobytes(), 4),
        codes.transpose(0, 2, 1).tobytes(),  # key by key: a key that all queries look at packs best
    ])  # fmt: skip


def _token_links(found: Exact, itself: int | None) -> bytes:
    """Of each token of a pooled record its strongest link to another that is no special one: keys, then weights.

    `itself` is how far ahead of a query's number that of the same token is among the keys; None where there is none.
    """
    queries, keys = (np.array([token.special for token in side]) for side in (found.query_tokens, found.key_tokens))
    hidden = queries[:, None] | keys[found.link_keys]
    if itself is not None:
        hidden |= found.link_keys == np.arange(len(queries))[:, None] + itself
    weights = np.where(hidden, np.float32(0), found.link_weights)
    best = weights.argmax(axis=-1)[..., None]
    sides = np.take_along_axis(found.link_keys, best, -1), np.take_along_axis(weights, best, -1)
    return b"".join(planes(one.astype(kind).tobytes(), 4) for one, kind in zip(sides, ("<u4", "<f4"), strict=True))


def _codes(weights: np.ndarray, tops: np.ndarray) -> UInt8[np.ndarray, "head query key"]:
    """Each weight as a byte, head by head: all at once would take the memory of the weights again, twice."""
    codes = np.empty(weights.shape, dtype=np.uint8)
    for code, weight, top in zip(codes, weights, tops, strict=True):
        code[...] = np.rint(weight * (255 / top if top else 0))
    return codes


def _side(tokens: Sequence[Token], record: Attention) -> dict[str, object]:
    """The tokens of the rows, or of the columns: their texts, words and sentences."""
    groups = word_groups(tokens)
    words = [number for number, group in enumerate(groups) for _ in group]
    names = zip(groups, merged_tokens(tokens, groups, record), strict=True)
    spans = [token.span for token in tokens]
    return {
        "texts": [visible(token.text) for token in tokens],
        "words": words,
        "names": {group[0]: visible(word.text) for group, word in names if len(group) > 1},
        "special": [i for i, token in enumerate(tokens) if token.special],
        "segments": _segments(tokens),
        "glued": [i for i in range(1, len(spans)) if _touch(spans[i - 1], spans[i])],
    }


def _segments(tokens: Sequence[Token]) -> list[int]:
    """The sentence of each token; one that stands between or after sentences is of the one before it."""
    segments: list[int] = []
    for token in tokens:
        segments.append(segments[-1] if token.special and segments else token.segment)
    return segments


def _groups(names: Sequence[str]) -> dict[str, object]:
    """Groups of tokens, of which nothing but their names is known."""
    n = len(names)
    return {
        "texts": [visible(name) for name in names], "words": list(range(n)), "names": {}, "special": [],
        "segments": [0] * n, "glued": [],
    }  # fmt: skip


def _touch(before: tuple[int, int] | None, after: tuple[int, int] | None) -> bool:
    """Whether nothing stands between two tokens in the sentence as it was typed."""
    return before is not None and after is not None and before[1] == after[0]
