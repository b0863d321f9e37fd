"""Short stories about attention, each computed live by the models that come with attnviz."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING

from attnviz.errors import SelectionError
from attnviz.text.phrase import Phrase, entries, expect_language
from attnviz.text.suggest import suggest

if TYPE_CHECKING:
    from attnviz.capture.source import Model
    from attnviz.stories.record import Story

CHAPTERS: dict[Phrase, dict[str, Phrase]] = {}
"""Each demo's name and what it shows, by chapter; in the order to be read."""
_chapter: dict[str, Phrase] = {}
for *_name, _english, _korean in entries("""
Attention by its numbers | 수로 보는 어텐션
library | query, key and value, by the picture of a library | 도서관에 빗댄 쿼리, 키, 밸류
scaling | why scores are divided by sqrt(d_k) | 스코어를 왜 sqrt(d_k)로 나누는가
transpose | whether K transposed means something else | K를 전치하면 뜻이 달라지는가
self-attention | one head, four heads, three projections as one | 헤드 하나, 헤드 넷, 투영 셋을 하나로
Positions and order | 위치와 순서
positions | where a word stands, as waves | 파동으로 나타낸 단어의 위치
rotary | positions as rotations, beside waves and a table | 회전으로 나타낸 위치, 파동과 표에 견주어
word-order | what attention knows of order, without positions and with them | 위치가 없을 때와 있을 때, 순서를 아는가
Masks, layers, heads | 마스크, 층, 헤드
padding | a padded batch, with its mask and without | 패딩한 배치, 마스크가 있을 때와 없을 때
mask | both ways, and from left to right only | 양방향으로, 그리고 왼쪽에서 오른쪽으로만
layer | what each part of a layer does to the words | 층의 각 부분이 단어에 하는 일
pairs | eating and apple, green and apple: which heads link them | eating과 apple, green과 apple을 잇는 헤드
reference | what 'it' looks at: tired against wide | 'it'은 무엇을 보는가: tired와 wide
From English to Korean | 영어에서 한국어로
gradients | why attention: gradients that fade, and that do not | 왜 어텐션인가: 사라지는 기울기, 사라지지 않는 기울기
bottleneck | long sentences, with attention and without | 긴 문장, 어텐션이 있을 때와 없을 때
alignment | which English word each step looks at | 단계마다 보는 영어 단어
forcing | right words or its own words before | 올바른 앞 단어와 자기 앞 단어
"""):
    if _name:
        _chapter[_name[0]] = Phrase(_english, _korean)
    else:
        _chapter = CHAPTERS.setdefault(Phrase(_english, _korean), {})

# all of them
DEMOS = {name: about for chapter in CHAPTERS.values() for name, about in chapter.items()}
WITH_A_MODEL = (
    "word-order",
    "pairs",
    "reference",
)  # those that can be told with another model's numbers


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
        FileFormatError: the file of a home-built model is damaged.
        InputError: the model knows none of the story's words, or cannot be shown word by word.
    """
    expect_language(lang)
    check(name, model)
    module = import_module(f"attnviz.stories.lessons.{name.replace('-', '_')}")
    story: Story = module.tell() if model is None else module.tell(model)
    return replace(story, name=name).translated(lang)


def check(name: str, model: object = None) -> None:
    """Refuse a demo that is not there, or a model for one that takes none, by a SelectionError."""
    if name not in DEMOS:
        raise SelectionError(f"there is no demo {name!r}{suggest(name, DEMOS)}")
    if model is not None and name not in WITH_A_MODEL:
        demos = ", ".join(WITH_A_MODEL)
        raise SelectionError(
            f"the demo {name} is told with its own models: another model goes with {demos}"
        )
