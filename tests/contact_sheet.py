"""Draw one picture of all kinds of pictures, as slides in both themes, to be looked at before a release.

    python tests/contact_sheet.py

writes outputs/gallery/contact-sheet.png. Light slides stand at the left, the dark ones beside them.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

from attnviz.stories import DEMOS

ROOT = Path(__file__).parent.parent
TARGET = ROOT / "outputs" / "gallery" / "contact-sheet.png"
SLIDE = (480, 270)  # pixels of a slide on the sheet
ACROSS = 3  # pairs of slides in a row
GAP = 6  # pixels
SENTENCE = "The animal didn't cross the street because it was too tired."
COMMANDS = [
    ["heatmap", "I love all you", "--toy"],
    ["heatmap", SENTENCE, "--toy"],
    ["heatmap", SENTENCE, "--toy", "--head", "1.3"],
    ["heatmap", "나는 너를 사랑해", "-m", "toy-ko", "--lang", "ko"],
    ["walkthrough", SENTENCE, "--toy", "--head", "1.3", "--query", "it"],
    ["walkthrough", "--example", "seq2seq"],
    ["generate", "I love you", "-m", "toy-seq2seq"],
    ["compare-heads", "--toy"],
    ["head", "1.3", "--toy"],
    *(["demo", name] for name in DEMOS),
]


def slides(words: list[str], theme: str, folder: Path) -> list[Path]:
    """Return the slides that a command draws in a theme; a long walkthrough has several."""
    options = ["--style", "slides", "--theme", theme, "-o", str(folder / "slide.png"), "-q"]
    command = [sys.executable, "-m", "attnviz", *words, *options]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return sorted(folder.glob("slide*.png"))


def main() -> None:
    """Draw every command in both themes, and write the sheet."""
    pairs: list[list[Image.Image]] = []
    for words in COMMANDS:
        drawn = []
        for theme in ("light", "dark"):
            with tempfile.TemporaryDirectory() as folder:
                paths = slides(words, theme, Path(folder))
                drawn.append([Image.open(path).convert("RGB").resize(SLIDE) for path in paths])
        pairs += [list(pair) for pair in zip(*drawn, strict=True)]
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
