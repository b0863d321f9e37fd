"""A generation as a film: a picture a token, the text so far shaded by what it attends to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from attnviz.attention import Attention
from attnviz.generations.record import Step, running_text, steps_of, whose
from attnviz.render.figure.export import blank_figure, usual_settings
from attnviz.render.figure.film import Reel, even, expect_writer, pixels_of, write_film
from attnviz.render.figure.page import Page, page_of
from attnviz.render.figure.pen import BLACK, GREY, POINT, Pen
from attnviz.render.palette import DEFAULT, colours, has_blanks, hexed, ink, levels
from attnviz.render.sheet import KINDS, blank_below
from attnviz.text.display import visible
from attnviz.text.notes import proof

WIDE, EDGE = 9.0, 0.3  # how wide a picture is, and what stays free at its sides, in inches
LARGE, SMALL = 17.0, 10.0  # the letters of the text, and of all else, in points
LINE, ROW = 0.42, 0.26  # from line to line of the text, and of the tokens that are named, in inches
TOP, BAR = 5, 3.2  # so many tokens are named, with bars so wide for the whole weight, in inches
SECONDS, LAST = 1.0, 4.0  # how long a token is shown, and the last one
Box = tuple[
    str, float, int
]  # a token, and where it stands in the text: its left edge in inches, and its line


class Scene:
    """What all pictures of a film share."""

    def __init__(
        self, record: Attention, steps: Sequence[Step], palette: str, language: str
    ) -> None:
        keys, generated = running_text(steps[-1].keys), running_text(steps[-1].so_far)
        self.korean, self.table = language == "ko", colours(palette)
        self.title = f"{visible(record.model)} · {KINDS[record.kind][self.korean]} · {whose(steps[0], language)}"
        self.proof = proof(record.receipt, language)
        self.pen = blank_figure([self.title, self.proof, *keys, *generated])
        self.boxes = _placed(
            keys, self.pen
        )  # the tokens that can be attended to, as they stand at the end
        # What is generated, of a model that translates.
        self.written = _placed(generated, self.pen) if record.kind == "cross" else []
        n_lines = _n_lines(self.boxes) + _n_lines(self.written)
        self.height = (
            2 * EDGE + 2 * ROW + (n_lines + bool(self.written) * 0.4) * LINE + (TOP + 2.2) * ROW
        )


def film(record: Attention, *, cmap: str = DEFAULT, lang: str = "en") -> Callable[[Path], str]:
    """What fills a file with a film of a generation, and returns the characters that no font has.

    Raises SelectionError: no token was generated, or there is no such palette or language; then OutputError: no ffmpeg.
    """
    steps = list(steps_of(record))

    def fill(path: Path) -> str:
        expect_writer(path.suffix.lower())
        with usual_settings():
            scene = Scene(record, steps, cmap, lang)
            reel = Reel(
                pictures=[pixels_of(_draw(scene, step)) for step in steps],
                seconds=SECONDS,
                last=LAST,
            )
            write_film([reel], path)
        return scene.pen.typefaces.missing

    return fill


def _placed(parts: Sequence[str], pen: Pen) -> list[Box]:
    boxes: list[Box] = []
    left, line, space = EDGE, 0, 0.8 * LARGE * POINT / 2
    for part in parts:
        bare = part.lstrip(" ")
        wide = pen.width(bare, LARGE)
        left += space if bare != part and left > EDGE else 0.0
        if left + wide > WIDE - EDGE and left > EDGE:
            left, line = EDGE, line + 1
        boxes.append((bare, left, line))
        left += wide
    return boxes


def _n_lines(boxes: Sequence[Box]) -> int:
    return 1 + max((line for _, _, line in boxes), default=-1)


def _draw(scene: Scene, step: Step) -> Page:
    scene.pen.figure.clear()
    page = page_of(scene.pen, even(WIDE), even(scene.height))
    mean = step.mean
    highest = float(mean.max())
    page.text(EDGE, EDGE, scene.title, SMALL, va="center", color=GREY)
    count = f"{'토큰' if scene.korean else 'token'} {step.number} / {step.most}"
    page.text(WIDE - EDGE, EDGE, count, SMALL, va="center", ha="right", color=GREY)
    top = EDGE + 1.6 * ROW
    white = ink(scene.table)
    newest = len(step.keys) - 1 if step.kind == "decoder" else None
    steps = levels(mean, highest)
    for place, ((text, left, line), weight) in enumerate(zip(scene.boxes, mean, strict=False)):
        middle, wide = top + (line + 0.5) * LINE, scene.pen.width(text, LARGE)
        colour = BLACK
        if weight >= blank_below(highest) or not has_blanks(scene.table):
            level = steps[place]
            page.box(
                (left - 0.03, middle - 0.17, wide + 0.06, 0.34),
                facecolor=hexed(scene.table[level]),
                linewidth=0,
            )
            colour = "white" if white[level] else "black"
        page.text(left, middle, text, LARGE, va="center", color=colour)
        if place == newest:
            page.ax.plot([left, left + wide], [middle + 0.19] * 2, color=BLACK, linewidth=1.4)
    top += _n_lines(scene.boxes) * LINE
    if scene.written:
        top += 0.4 * LINE
        for text, left, line in scene.written[: step.number]:
            page.text(left, top + (line + 0.5) * LINE, text, LARGE, va="center")
        top += _n_lines(scene.written) * LINE
    _draw_top(page, scene, step, top + 0.5 * ROW)
    page.text(EDGE, scene.height - EDGE, scene.proof, SMALL, va="center", color=GREY)
    return page


def _draw_top(page: Page, scene: Scene, step: Step, top: float) -> None:
    said = f"“{step.token.text}”의 어텐션:" if scene.korean else f"“{step.token.text}” attends to:"
    page.text(EDGE, top + ROW / 2, said, SMALL, va="center")
    beside = EDGE + 1.6
    for row, (token, weight) in enumerate(step.top(TOP), start=1):
        middle = top + (row + 0.5) * ROW
        page.text(beside - 0.1, middle, token.text, SMALL, va="center", ha="right")
        page.box(
            (beside, middle - 0.08, BAR * weight, 0.16),
            facecolor=hexed(scene.table[190]),
            linewidth=0,
        )
        page.text(
            beside + BAR * weight + 0.06, middle, f"{weight:.2f}", SMALL, va="center", color=GREY
        )
