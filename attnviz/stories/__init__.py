"""Short stories about attention, each computed live by the models that come with attnviz."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from attnviz.errors import SelectionError
from attnviz.text.phrase import LANGUAGES, Phrase

if TYPE_CHECKING:
    from attnviz.capture.source import Model
    from attnviz.stories.record import Story

DEMOS = {
    "positions": Phrase("where a word stands, as waves added to its vector", "단어의 위치를 벡터에 더하는 파동으로"),
    "library": Phrase("query, key and value, by the picture of a library", "도서관에 빗댄 쿼리, 키, 밸류"),
    "scaling": Phrase("why scores are divided by sqrt(d_k)", "스코어를 왜 sqrt(d_k)로 나누는가"),
    "self-attention": Phrase(
        "number by number: one head, four heads, and three projections as one",
        "수 하나하나 따라가기: 헤드 하나, 헤드 넷, 투영 셋을 하나로",
    ),
    "word-order": Phrase(
        "without positions attention cannot tell the order of words; with them it can",
        "위치가 없으면 어텐션은 단어의 순서를 모르고, 있으면 안다",
    ),
    "mask": Phrase(
        "the same sentence read both ways, and from left to right only",
        "같은 문장을 양방향으로, 그리고 왼쪽에서 오른쪽으로만",
    ),
    "pairs": Phrase(
        "which words look at each other: eating and apple, green and apple, eating and green",
        "어느 단어가 서로를 보는가: eating과 apple, green과 apple, eating과 green",
    ),
    "reference": Phrase("what 'it' looks at: tired against wide", "'it'은 무엇을 보는가: tired와 wide"),
    "layer": Phrase("what each part of a layer does to the words' vectors", "층의 각 부분이 단어 벡터에 하는 일"),
    "alignment": Phrase(
        "English to Korean: which word each decoding step looks at", "영어에서 한국어로: 디코딩 단계마다 보는 단어"
    ),
    "forcing": Phrase(
        "a decoder on the right words before, and on its own", "올바른 앞 단어를 읽는 디코더와 자기 단어를 읽는 디코더"
    ),
    "bottleneck": Phrase(
        "how translation falls with length, with attention and without",
        "문장이 길어질 때의 번역: 어텐션이 있을 때와 없을 때",
    ),
}
"""Each demo's name, and what it shows; in the order to be read."""

WITH_A_MODEL = ("word-order", "pairs", "reference")
"""Those that can be told with another model's numbers."""


def tell(name: str, lang: str = "en", model: Model = None) -> Story:
    """Compute one demo.

    Args:
        name: one of `DEMOS`.
        lang: the language of its texts, `en` or `ko`.
        model: another model to tell one of `WITH_A_MODEL` with, as `attnviz.attend` takes it; None for those that come
            with attnviz.

    Raises:
        SelectionError: there is no demo, or no language, of that name; or the demo takes no model.
        ModelError: the model cannot be used, or has no self-attention.
        InputError: the model knows none of the story's words, or cannot be shown word by word.
    """
    if name not in DEMOS:
        raise SelectionError(f"there is no demo {name!r}: there are {', '.join(DEMOS)}")
    if lang not in LANGUAGES:
        raise SelectionError(f"there is no language {lang!r}: choose one of {', '.join(LANGUAGES)}")
    check_model(name, model)
    module = import_module(f"attnviz.stories.{name.replace('-', '_')}")
    story: Story = module.tell() if model is None else module.tell(model)
    return story.translated(lang)


def check_model(name: str, model: object) -> None:
    """Refuse a model for a demo that takes none.

    Raises:
        SelectionError: it takes none.
    """
    if model is not None and name not in WITH_A_MODEL:
        raise SelectionError(
            f"the demo {name} is told with its own models: another --model goes with {', '.join(WITH_A_MODEL)}"
        )
