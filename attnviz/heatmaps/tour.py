"""A home-built encoder as a page: the reader types a sentence, and the model runs in the browser."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from safetensors import safe_open

from attnviz.errors import SelectionError
from attnviz.models import registry
from attnviz.models.registry import HOME_BUILT, TOY, TOY_KOREAN
from attnviz.render.html import planes
from attnviz.render.sheet import KINDS
from attnviz.text.arguments import did_you_mean
from attnviz.text.phrase import Phrase

if TYPE_CHECKING:
    from attnviz.attention import Attention

TOURS = (TOY, TOY_KOREAN)  # the models that run in a page
TOLERANCE, SENTENCES = 1e-5, 100
"""How near the page's weights are to Python's at most, and on how many sentences the tests compare them."""

EXAMPLES = {
    TOY: "The animal didn't cross the street because it was too {}.",
    TOY_KOREAN: "동물은 길을 건너지 않았어요, 왜냐하면 그것이 너무 {} 때문이에요.",
}
_LAST = {TOY: ("tired", "wide"), TOY_KOREAN: ("피곤했기", "넓었기")}
_IT = {TOY: ("it", "animal", "street", 7, 1), TOY_KOREAN: ("그것", "동물", "길", 8, 0)}
"""The pronoun, what it stands for with the first last word and with the second, and where the first two stand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoryText:
    """A story that a page tells; every text in English and in Korean."""

    title: Sequence[str]
    introduction: Sequence[str]
    views: Sequence[tuple[Sequence[str], Mapping[str, object]]]  # sentences, each with the state that shows it
    records: Sequence[Attention] = ()  # what the views show, by the state's ``record``; none where a model runs

    @property
    def guide(self) -> dict[str, object]:
        """What the page says, and the view that each sentence sets."""
        steps = [{"texts": texts, "state": state} for texts, state in self.views]
        return {"told": [self.title, self.introduction], "steps": steps}

    def opens(self, number: int = 0) -> Mapping[str, object]:
        """The view that a record opens on: the first sentence about it."""
        return next((state for _, state in self.views if state.get("record", 0) == number), {})


def labels(name: str, text: StoryText | None = None) -> tuple[dict[str, object], bytes]:
    """What the page of a model must know to run it, and to tell a story or show the model; and its weights.

    Raises SelectionError: no model of this name runs in a page.
    """
    if name not in TOURS:
        known = " or ".join(TOURS)
        raise SelectionError(f"no model {name} runs in a page: expected {known}{did_you_mean(name, TOURS)}")
    path = HOME_BUILT[name].weights or Path(registry.__file__).parent / "weights" / f"{name}.safetensors"
    with safe_open(path, framework="numpy") as file:  # without torch, which a page need not wait for
        card = json.loads(file.metadata()["card"])
        names = sorted(name for name in file.keys() if name.startswith(("embedding", "encoder")))  # noqa: SIM118 - no dict
        parts = {name: file.get_tensor(name) for name in names}
    config = card["config"]
    n_layers, n_heads = config["n_layers"], config["n_heads"]
    example = str(text.views[0][1]["text"]) if text else EXAMPLES[name].format(_LAST[name][0])
    checked = Phrase(
        f"""the model runs in this page; on {SENTENCES} sentences its weights were Python's within {TOLERANCE:g};
        for a receipt: attnviz heatmap -m {name} "..." """,
        f"""모델이 이 페이지 안에서 실행됨; 문장 {SENTENCES}개에서 Python의 가중치와 차이 {TOLERANCE:g} 이내;
        검증 정보: attnviz heatmap -m {name} "..." """,
    )
    toy = {
        "words": card["source"], "sizes": [[part, tensor.size] for part, tensor in parts.items()],
        "d_model": config["d_model"], "n_heads": n_heads, "n_layers": n_layers, "unknown": config["unknown"],
        "most": config["max_length"], "example": example,
    }  # fmt: skip
    made: dict[str, object] = {
        "model": name, "kind": KINDS["encoder"], "is": "encoder", "sentence": example, "size": [0, 0], "links": 0,
        "about": [f"{n_layers} layers x {n_heads} heads", f"층 {n_layers}개 x 헤드 {n_heads}개"],
        "layers": [*range(n_layers)], "heads": [*range(n_heads)], "tops": [0] * (n_layers * n_heads),
        "queries": {"texts": [], "words": [], "names": {}, "special": [], "segments": [], "glued": []}, "keys": None,
        "first": [0, 0], "cell": [1, 1], "proof": [checked, checked.ko], "proved": False, "command": "",
        "absent": ["", ""], "steps": [], "notes": [[], []], "toy": toy, "opens": text.opens() if text else {},
        "guide": text.guide if text else {"told": [], "steps": _guide(name)},
    }  # fmt: skip
    return made, planes(b"".join(tensor.astype("<f4").tobytes() for tensor in parts.values()), 4)


def _guide(name: str) -> list[dict[str, object]]:
    first, second = (EXAMPLES[name].format(last) for last in _LAST[name])
    it, animal, street, place, at = _IT[name]
    head = {"text": first, "head": "1.3", "view": "matrix", "toward": "from"}
    steps = {
        (
            "Each small picture is one head: rows are the words that look, columns the words looked at.",
            "작은 그림 하나가 헤드 하나입니다. 행은 보는 단어, 열은 보이는 단어입니다.",
        ): {"text": first, "head": ""},
        (
            f"In head 1.3, “{it}” looks most at “{animal}”, the noun it stands for.",
            f"헤드 1.3에서 “{it}”은 자기가 가리키는 명사 “{animal}”을 가장 많이 봅니다.",
        ): head | {"query": place},
        (
            f"Say “{_LAST[name][1]}” instead of “{_LAST[name][0]}”, and it looks most at “{street}”.",
            f"“{_LAST[name][0]}” 대신 “{_LAST[name][1]}”라고 하면 “{street}”을 가장 많이 봅니다.",
        ): head | {"text": second, "query": place},
        (
            f"Turn it round: which words look at “{animal}”?",
            f"거꾸로 보면: 어떤 단어가 “{animal}”을 봅니까?",
        ): head | {"toward": "to", "key": at},
        (
            "The same weights as lines: the wider a line, the larger the weight.",
            "같은 가중치를 선으로: 선이 굵을수록 가중치가 큽니다.",
        ): head | {"view": "lines", "query": place},
    }
    return [{"texts": texts, "state": state} for texts, state in steps.items()]
