"""A font for every script, without touching Matplotlib's settings."""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

BASE = "DejaVu Sans"  # comes with Matplotlib: Latin, Greek, Cyrillic, Arabic, Hebrew, symbols

KOREAN = Path(__file__).parent / "typefaces" / "NanumGothicCoding.ttf"
"""Comes with attnviz: all 11,172 Korean syllables, single Korean letters, Japanese kana."""


@dataclass(frozen=True, slots=True)
class Typefaces:
    """The fonts for a picture."""

    families: tuple[str, ...]  # their names, in the order in which each character is looked for
    missing: str  # the characters that none of them has


def typefaces_for(texts: Iterable[str]) -> Typefaces:
    """Return fonts that have every character of these texts, as far as this machine has them.

    They are sought no further than needed: first Matplotlib's own font, then the Korean one shipped here, then the
    one of the extra ``cjk``, then those installed.
    """
    from matplotlib import get_data_path

    needed = {character for text in texts for character in text if _is_drawn(character)}
    families = [BASE]
    needed -= _drawn_by(
        str(Path(get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf"), frozenset(needed)
    )
    extra = find_spec("noto_cjk_sans_jp_regular")  # what the extra ``cjk`` brings
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


PACKAGES = {"East Asian": "fonts-noto-cjk", "emoji": "fonts-symbola", "": "fonts-noto-core"}
"""The Debian and Ubuntu packages that have what is missing."""


def advice(missing: str, so: str = "the picture shows a box there") -> str:
    """Return advice for missing characters: which they are, and what to install."""
    groups = dict.fromkeys(_group(character) for character in missing)
    extra = "pip install attnviz[cjk], or " if "East Asian" in groups else ""
    return (
        f"no installed font has {' '.join(missing)}: {so}; {extra}on Debian or Ubuntu install "
        f"{' and '.join(PACKAGES[group] for group in groups)}, elsewhere the Noto fonts"
    )


def boxes(missing: str) -> str:
    """Return the note in a picture about characters that no font has: their numbers, which it can show."""
    return f"boxes: no font here has {' '.join(f'U+{ord(character):04X}' for character in missing)}"


def _group(character: str) -> str:
    if unicodedata.name(character, "").startswith(
        ("CJK", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO")
    ):
        return "East Asian"
    return "emoji" if character >= "\U0001f000" else ""


def _is_drawn(character: str) -> bool:
    """Return whether a character has a shape; joiners, variation selectors and the like have none."""
    return (
        unicodedata.category(character) not in {"Cc", "Cf", "Zs"}
        and not "\ufe00" <= character <= "\ufe0f"
    )


@functools.cache
def _drawn_by(file: str, needed: frozenset[str]) -> frozenset[str]:
    """Return those of the characters that a font really draws.

    A font's own list is not enough: some name thousands of characters and leave them blank. Fonts of coloured bitmaps
    cannot be used in a figure at all.
    """
    if not needed:
        return needed
    from matplotlib.ft2font import FT2Font, LoadFlags

    try:
        font = FT2Font(file)
        if not font.scalable:
            return frozenset()
        font.set_size(12, 72)
        return frozenset(
            character
            for character in needed
            if font.get_char_index(ord(character))
            for left, _, right, _ in [
                font.load_char(ord(character), flags=LoadFlags.NO_HINTING).bbox
            ]
            if right > left
        )
    except (OSError, RuntimeError):
        return frozenset()


@functools.cache
def _family(file: str) -> str:
    """Register a font file with Matplotlib and return its family name. No setting changes."""
    from matplotlib.font_manager import fontManager
    from matplotlib.ft2font import FT2Font

    fontManager.addfont(file)
    return str(FT2Font(file).family_name)


@functools.cache
def _best_installed(needed: frozenset[str]) -> tuple[str, frozenset[str]]:
    """Return the installed font that has most of these characters, and those it has."""
    from matplotlib.font_manager import findSystemFonts, fontManager

    def best(fonts: Mapping[str, str]) -> tuple[int, bool, str]:
        """Return the best font: how many characters it draws, whether it has no serifs, and its file."""
        covered = [
            (len(_drawn_by(file, needed)), "Sans" in name, file) for file, name in fonts.items()
        ]
        return max(covered, key=lambda one: one[:2], default=(0, False, ""))

    # Upright ones of normal weight, and not the one that draws boxes for what is missing.
    listed = {
        entry.fname: entry.name
        for entry in fontManager.ttflist
        if entry.style == "normal" and str(entry.weight) in {"400", "regular", "normal", "book"}
        if not entry.name.startswith("Last Resort")
    }
    n_drawn, _, file = best(listed)
    if n_drawn < len(needed):
        # Matplotlib lists the machine's fonts once and for all: what was installed since is not among them.
        known = {entry.fname for entry in fontManager.ttflist}
        new = {file: Path(file).stem for file in findSystemFonts() if file not in known}
        n_new, _, later = best(new)
        if n_new > n_drawn:
            return _family(later), _drawn_by(later, needed)
    return (listed[file], _drawn_by(file, needed)) if n_drawn else ("", frozenset())
