"""Lines of words on a figure: measured word by word, as full as if they were measured whole."""

from __future__ import annotations

from itertools import pairwise

import pytest

from attnviz.render.figure.export import blank_figure, usual_settings

TEXTS = {
    "English": "The animal didn't cross the street because it was too tired. AVATAR To Ty “WAVE” office ffl 7.1e-07",
    "Korean": "동물은 길을 건너지 않았어요, 왜냐하면 그것이 너무 피곤했기 때문이에요. The animal",
    "Arabic and Hebrew": "أحبكم جميعا صِف خَلقَ אני אוהב את כולכם and you",
    "a long word": "I love Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft all you",
}


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("width", [0.5, 1.0, 2.3, 4.7])
@pytest.mark.parametrize("size", [6.0, 7.5, 20.0])
def test_lines_are_as_full_as_can_be(name: str, width: float, size: float) -> None:
    """No line is wider than it may be, none has room for the word after it, and nothing is lost."""
    with usual_settings():
        pen = blank_figure([TEXTS[name]])
        lines = pen.wrap(TEXTS[name], width, size)
        assert "".join("".join(lines).split()) == "".join(TEXTS[name].split())
        assert all(pen.width(line, size) <= width + 1e-9 or len(line) == 1 for line in lines)
        for line, after in pairwise(lines):
            assert (
                pen.width(f"{line} {after.split()[0]}", size) > width
                or after.split()[0] not in TEXTS[name].split()
            )
        assert pen.wrap(TEXTS[name], width, size, most=2) == lines[:2]
