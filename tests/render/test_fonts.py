"""A font for every script: glyphs that are really there, and a word to the user where there are none."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest
from babel.messages.pofile import read_po
from fontTools.fontBuilder import FontBuilder  # type: ignore[import-untyped]  # comes with Matplotlib
from fontTools.pens.ttGlyphPen import TTGlyphPen  # type: ignore[import-untyped]

from attnviz.attention import Attention
from attnviz.render import fonts
from attnviz.render.fonts import BASE, advice, typefaces_for
from attnviz.render.picture import STYLES, break_lines, new_figure, settings
from attnviz.render.theme import LIGHT
from attnviz.text.messages import LOCALE

if TYPE_CHECKING:
    from pathlib import Path

Make = Callable[..., Attention]

SCRIPTS = {
    "Korean": "나는 너희 모두를 사랑해 똠방각하 뷁 ㅋㅋㅋ ㅠㅠ",
    "Cyrillic": "Съешь ещё этих мягких французских булок",
    "Greek": "Ξεσκεπάζω τὴν ψυχοφθόρα βδελυγμία",
    "Arabic": "أحبكم جميعا صِف خَلقَ",
    "Hebrew": "אני אוהב את כולכם",
    "kana": "わたしは みんなが だいすき アイシテル",
    "Vietnamese": "Tôi yêu tất cả các bạn",
    "marks of attnviz": "·ing ␣ “” … → � ▁",
}

THAI = "ฉันรัก"


@pytest.fixture
def fresh() -> Iterator[None]:
    """Forget cached fonts before and after a test."""

    def forget() -> None:
        for name in ("_best_installed", "_drawn_by", "_family"):
            getattr(fonts, name).cache_clear()

    forget()
    yield
    forget()


@pytest.fixture
def no_other_fonts(fresh: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with no fonts but those that come with Matplotlib and with attnviz."""
    from matplotlib import font_manager, get_data_path

    assert fresh is None
    own = [
        entry
        for entry in font_manager.fontManager.ttflist
        if entry.fname.startswith(get_data_path())
    ]
    monkeypatch.setattr(font_manager.fontManager, "ttflist", own)
    monkeypatch.setattr(font_manager, "findSystemFonts", lambda *_, **__: [])
    monkeypatch.setitem(sys.modules, "noto_cjk_sans_jp_regular", None)  # nor the one of the extra


def box_glyph(size: int = 500) -> object:
    """A square."""
    pen = TTGlyphPen(None)
    pen.moveTo((0, 0))
    for point in ((0, size), (size, size), (size, 0)):
        pen.lineTo(point)
    pen.closePath()
    return pen.glyph()


def build_font(file: Path, family: str, text: str, *, ink: bool = True) -> Path:
    """A font that has the characters of a text, as squares or as nothing at all."""
    names = {ord(character): f"u{ord(character):04x}" for character in sorted(set(text))}
    order = [".notdef", *names.values()]
    builder = FontBuilder(1000, isTTF=True)
    builder.setupGlyphOrder(order)
    builder.setupCharacterMap(names)
    empty = TTGlyphPen(None).glyph()
    builder.setupGlyf({name: box_glyph() if ink or name == ".notdef" else empty for name in order})
    builder.setupHorizontalMetrics(dict.fromkeys(order, (600, 0)))
    builder.setupHorizontalHeader(ascent=800, descent=-200)
    builder.setupNameTable({"familyName": family, "styleName": "Regular"})
    builder.setupOS2()
    builder.setupPost()
    builder.save(file)
    return file


def install(monkeypatch: pytest.MonkeyPatch, *added: tuple[Path, str]) -> None:
    """Make fonts known as Matplotlib's list of the machine's fonts would."""
    from matplotlib.font_manager import FontEntry, fontManager

    entries = [
        FontEntry(fname=str(file), name=name, style="normal", stretch="normal", size="scalable")
        for file, name in added
    ]
    monkeypatch.setattr(fontManager, "ttflist", [*fontManager.ttflist, *entries])


@pytest.mark.usefixtures("no_other_fonts")
@pytest.mark.parametrize("script", SCRIPTS)
def test_scripts_need_no_installed_font(script: str) -> None:
    """These are drawn on a fresh machine: every character is in Matplotlib's font or in the one shipped here."""
    text = SCRIPTS[script]
    chosen = typefaces_for([text])
    assert not chosen.missing
    assert chosen.families in [(BASE,), (BASE, "NanumGothicCoding")]


@pytest.mark.usefixtures("no_other_fonts")
def test_korean_messages_have_one_korean_typeface() -> None:
    """A picture in Korean mixes no second Korean font into its titles and labels."""
    with (LOCALE / "ko" / "LC_MESSAGES" / "attnviz.po").open("rb") as file:
        catalogue = read_po(file, locale="ko")
    chosen = typefaces_for([str(message.string) for message in catalogue])
    assert chosen.families == (BASE, "NanumGothicCoding")
    assert not chosen.missing


@pytest.mark.usefixtures("no_other_fonts")
@pytest.mark.parametrize(
    ("text", "missing"), [("爱我们", "们我爱"), (THAI, "กฉนรั"), ("a😀b", ""), ("a🙂b", "🙂")]
)
def test_what_no_font_has_is_missing(text: str, missing: str) -> None:
    """Chinese, Thai and newer emoji on a fresh machine: exactly these are missing, each once, in order."""
    chosen = typefaces_for([text, text])
    assert chosen.missing == missing
    assert chosen.families[0] == BASE


def test_advice_names_characters_and_packages() -> None:
    """The advice is one line that says which characters and what to install."""
    line = advice("我爱")
    assert "\n" not in line
    for part in ("我 爱", "fonts-noto-cjk", "pip install attnviz[cjk]"):
        assert part in line


@pytest.mark.usefixtures("no_other_fonts")
def test_the_font_of_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The font of attnviz[cjk] is used where shipped fonts lack characters."""
    package = tmp_path / "noto_cjk_sans_jp_regular"
    package.mkdir()
    (package / "__init__.py").touch()
    build_font(package / "NotoSansCJKjp-Regular.otf", "Chinese Squares", "我爱")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "noto_cjk_sans_jp_regular")
    chosen = typefaces_for(["我爱 love 너"])
    assert chosen.families == (BASE, "NanumGothicCoding", "Chinese Squares")
    assert not chosen.missing


@pytest.mark.usefixtures("no_other_fonts")
def test_an_installed_font_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Characters that the shipped fonts lack come from a font of the machine that has them."""
    install(monkeypatch, (build_font(tmp_path / "thai.ttf", "Thai Squares", THAI), "Thai Squares"))
    chosen = typefaces_for([THAI])
    assert chosen.families == (BASE, "Thai Squares")
    assert not chosen.missing


@pytest.mark.usefixtures("no_other_fonts")
@pytest.mark.parametrize("name", ["Yu Gothic", "PingFang SC"])
def test_a_sans_serif_font_is_preferred(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Of fonts with the same characters, the one of Windows or macOS that fits the other letters is taken."""
    names = ("SimSun", name, "Hiragino Mincho ProN")
    install(
        monkeypatch, *((build_font(tmp_path / f"{one}.ttf", one, "我爱"), one) for one in names)
    )
    assert typefaces_for(["我爱"]).families[-1] == name


TEXTS = {
    "English": "The animal didn't cross the street because it was too tired. AVATAR To Ty “WAVE” office ffl 7.1e-07",
    "Korean": "동물은 길을 건너지 않았어요, 왜냐하면 그것이 너무 피곤했기 때문이에요. The animal",
    "Arabic and Hebrew": "أحبكم جميعا صِف خَلقَ אני אוהב את כולכם and you",
    "a long word": "I love Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft all you",
}


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize(("width", "size"), [(0.5, 6.0), (2.3, 7.5), (4.7, 20.0)])
def test_lines_fit(name: str, width: float, size: float) -> None:
    """No line is wider than it may be, as Matplotlib draws it, and nothing is lost."""
    text = TEXTS[name]
    typefaces = typefaces_for([text])
    lines = [line.text for line in break_lines([text], width, size)]
    assert "".join("".join(lines).split()) == "".join(text.split())
    with settings(STYLES["sheet"], LIGHT, typefaces):
        figure = new_figure(10, 10)
        for line in lines:
            drawn = figure.text(0, 0, line, fontsize=size).get_window_extent()
            assert drawn.width / figure.dpi <= width * 1.02 or len(line) == 1, line
    cut = [line.text for line in break_lines([text], width, size, most=2)]
    assert cut[:1] == lines[:1]
    assert len(cut) <= 2
