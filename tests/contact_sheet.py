"""Draw one picture of all kinds of pictures, as slides in both themes, to be looked at before a release.

    python tests/contact_sheet.py

writes outputs/gallery/contact-sheet.png. Light slides stand at the left, the dark ones beside them.
"""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from PIL import Image

import attnviz
from attnviz.stories import DEMOS

ROOT = Path(__file__).parent.parent
TARGET = ROOT / "outputs" / "gallery" / "contact-sheet.png"
SLIDE = (480, 270)  # pixels of a slide on the sheet
ACROSS = 3  # pairs of slides in a row
GAP = 6  # pixels
SENTENCE = "The animal didn't cross the street because it was too tired."
# Each function computes what can be saved, with the options of its picture.
KINDS: list[tuple[Callable[[], Any], dict[str, Any]]] = [
    (lambda: attnviz.attend("I love all you", "toy"), {}),
    (lambda: attnviz.attend(SENTENCE, "toy"), {}),
    (lambda: attnviz.attend(SENTENCE, "toy").select([1], [3]), {}),
    (lambda: attnviz.attend("나는 너를 사랑해", "toy-ko"), {"lang": "ko"}),
    (lambda: attnviz.walkthrough(SENTENCE, model="toy", layer=1, head=3, query="it"), {}),
    (lambda: attnviz.walkthrough(example="seq2seq"), {}),
    (lambda: attnviz.generate("I love you", model="toy-seq2seq"), {}),
    (lambda: attnviz.compare_heads(model="toy"), {}),
    (lambda: attnviz.compare_heads(model="toy"), {"heads": ["1.3"]}),
    *((functools.partial(attnviz.tell, name), {}) for name in DEMOS),
]


def draw_slide(kind: Any, options: dict[str, Any], theme: str) -> Image.Image:
    """Return the slide of a kind of picture in a theme."""
    with tempfile.TemporaryDirectory() as folder:
        path = kind.save(Path(folder) / "slide.png", style="slides", theme=theme, **options)
        return Image.open(path).convert("RGB").resize(SLIDE)


def main() -> None:
    """Draw every kind of picture in both themes, and write the sheet."""
    pairs: list[list[Image.Image]] = []
    for compute, options in KINDS:
        kind = compute()
        pairs.append([draw_slide(kind, options, theme) for theme in ("light", "dark")])
    n_rows = -(-len(pairs) // ACROSS)
    width, height = 2 * SLIDE[0] + GAP, SLIDE[1]
    sheet = Image.new("RGB", (ACROSS * (width + 3 * GAP), n_rows * (height + 3 * GAP)), "#808080")
    for index, pair in enumerate(pairs):
        left = index % ACROSS * (width + 3 * GAP) + GAP
        top = index // ACROSS * (height + 3 * GAP) + GAP
        for column, slide in enumerate(pair):
            sheet.paste(slide, (left + column * (SLIDE[0] + GAP), top))
    sheet.save(TARGET, optimize=True)
    print(f"wrote {TARGET.relative_to(ROOT)}: {len(pairs)} pairs of slides")


if __name__ == "__main__":
    main()
