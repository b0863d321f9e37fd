"""The choice of fonts for every script, without changing Matplotlib's settings."""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

# In the names of sans-serif fonts: Noto Sans and Hiragino Sans, Yu and Malgun Gothic, Microsoft YaHei, PingFang.
SANS_SERIF = re.compile("Sans|Gothic|Hei|PingFang")

BASE = "DejaVu Sans"  # comes with Matplotlib: Latin, Greek, Cyrillic, Arabic, Hebrew, symbols

KOREAN = Path(__file__).parent / "typefaces" / "NanumGothicCoding.ttf"
"""A font that comes with attnviz: all 11,172 Korean syllables, single Korean letters, Japanese kana."""


@dataclass(frozen=True, slots=True)
class Typefaces:
    """The fonts for a picture."""

    families: tuple[str, ...]  # font names; each character is drawn by the first font that has it
    missing: str  # the characters that no font has


def typefaces_for(texts: Iterable[str]) -> Typefaces:
    """Return fonts for all characters of these texts, as far as this machine has such fonts.

    The search stops when every character has a font. It begins with Matplotlib's own font, followed by the Korean font
    that comes with attnviz, the font of the extra ``cjk``, and the installed fonts.
    """
    from matplotlib import get_data_path

    needed = {character for text in texts for character in text if _is_drawn(character)}
    families = [BASE]
    needed -= _drawn_by(
        str(Path(get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf"), frozenset(needed)
    )
    extra = find_spec("noto_cjk_sans_jp_regular")  # the package of the extra ``cjk``
    folders = (extra and extra.submodule_search_locations) or ()
    for file in (
        str(KOREAN),
        *(str(Path(folder) / "NotoSansCJKjp-Regular.otf") for folder in folders),
    ):
        if covered := _drawn_by(file, frozenset(needed)):
            families.append(_family(file))
            needed -= covered
    while needed:
        family, covered = _best_installed(frozenset(needed))
        if not covered:
            break
        families.append(family)
        needed -= covered
    return Typefaces(families=tuple(families), missing="".join(sorted(needed)))


def advice(missing: str) -> str:
    """Return a message that names the characters without a font, and the fonts to install."""
    return (
        f"no installed font has {' '.join(missing)}: the picture shows a box there; install the Noto fonts (on Debian "
        "or Ubuntu fonts-noto-core, fonts-noto-cjk and fonts-symbola), or for East Asian text pip install attnviz[cjk]"
    )


def boxes(missing: str) -> str:
    """Return the note in a picture about characters that no font has; it names them by their code points."""
    return f"boxes: no font here has {' '.join(f'U+{ord(character):04X}' for character in missing)}"


def _is_drawn(character: str) -> bool:
    """Return whether a character is visible, unlike spaces, joiners and variation selectors."""
    return (
        unicodedata.category(character) not in {"Cc", "Cf", "Zs"}
        and not "\ufe00" <= character <= "\ufe0f"
    )


@functools.cache
def _drawn_by(file: str, needed: frozenset[str]) -> frozenset[str]:
    """Return the characters among `needed` that a font really draws.

    The font's character table is not enough: some fonts list thousands of characters but leave their glyphs blank.
    Fonts of coloured bitmaps cannot be used in a figure at all.
    """
    if not needed:
        return needed
    from matplotlib.ft2font import FT2Font

    try:
        font = FT2Font(file)
        if not font.scalable:
            return frozenset()
        font.set_size(12, 72)
        return frozenset(
            character
            for character in needed
            if font.get_char_index(ord(character))
            for x_min, _, x_max, _ in [font.load_char(ord(character)).bbox]
            if x_max > x_min
        )
    except (OSError, RuntimeError):
        return frozenset()


@functools.cache
def _family(file: str) -> str:
    """Register a font file with Matplotlib and return its family name; no setting changes."""
    from matplotlib.font_manager import fontManager
    from matplotlib.ft2font import FT2Font

    fontManager.addfont(file)
    return str(FT2Font(file).family_name)


@functools.cache
def _best_installed(needed: frozenset[str]) -> tuple[str, frozenset[str]]:
    """Return the name of the installed font that draws most of these characters, and the characters that it draws."""
    from matplotlib.font_manager import findSystemFonts, fontManager

    def best(fonts: Mapping[str, str]) -> tuple[int, bool, str]:
        """Return the best font as (number of characters it draws, whether it is a sans-serif font, its file)."""
        covered = [
            (len(_drawn_by(file, needed)), bool(SANS_SERIF.search(name)), file)
            for file, name in fonts.items()
        ]
        return max(covered, key=lambda entry: entry[:2], default=(0, False, ""))

    # Only upright fonts of normal weight, without "Last Resort", which draws a box for every character.
    known_fonts = {
        entry.fname: entry.name
        for entry in fontManager.ttflist
        if entry.style == "normal" and str(entry.weight) in {"400", "regular", "normal", "book"}
        if not entry.name.startswith("Last Resort")
    }
    n_drawn, _, file = best(known_fonts)
    if n_drawn < len(needed):
        # Matplotlib caches its list of fonts, so fonts that were installed later are not in it.
        known_files = {entry.fname for entry in fontManager.ttflist}
        new_fonts = {file: Path(file).stem for file in findSystemFonts() if file not in known_files}
        n_drawn_by_new, _, new_file = best(new_fonts)
        if n_drawn_by_new > n_drawn:
            return _family(new_file), _drawn_by(new_file, needed)
    return (known_fonts[file], _drawn_by(file, needed)) if n_drawn else ("", frozenset())
