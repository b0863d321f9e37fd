"""Text that a model can read, that a person can read, and that no terminal obeys."""

from __future__ import annotations

import re
import unicodedata

from attnviz.errors import InputError

JOINERS = "\u200c\u200d"
"""Zero-width characters that shape their neighbours (Persian, Indic scripts, emoji): behind a character they stay."""

_NAMED = {"\n": r"\n", "\t": r"\t", "\r": r"\r"}


def check_text(text: str, what: str = "the text") -> None:
    """Refuse a text that no model can read.

    Raises:
        InputError: it is empty, only spaces, or holds half a character.
    """
    if not text.strip():
        raise InputError(f"{what} is empty" + (" (only spaces)" if text else ""))
    for index, character in enumerate(text):
        if "\ud800" <= character <= "\udfff":
            raise InputError(
                f"{what} is not valid Unicode: character {index + 1} is a lone surrogate (\\u{ord(character):04x})"
            )


def visible(text: str) -> str:
    r"""The text with every control, format, surrogate, private and non-character spelled out, as in ``\x1b``.

    Nothing that comes back can move a cursor, change a colour or turn the direction of writing. Letters that were typed
    in parts, as Macs store Korean, are put together.
    """
    if text.isascii() and text.isprintable():
        return text
    text = unicodedata.normalize("NFC", text)
    shown = "".join(_visible(character) for character in text)
    # A joiner with nothing before it joins nothing, and would be a label that nobody sees.
    return re.sub(rf"(?<!\S)[{JOINERS}]+", lambda joiners: _spelled(joiners[0]), shown)


def _visible(character: str) -> str:
    if character in _NAMED:
        return _NAMED[character]
    category = unicodedata.category(character)
    hidden = category in {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"} and character not in JOINERS
    return _spelled(character) if hidden or _is_noncharacter(character) else character


def _spelled(characters: str) -> str:
    return characters.encode("unicode_escape").decode()


def _is_noncharacter(character: str) -> bool:
    """The 66 code points that are no characters, by definition; no SVG file may hold them."""
    return "\ufdd0" <= character <= "\ufdef" or ord(character) % 0x10000 in {0xFFFE, 0xFFFF}


HANGUL = re.compile("[\u1100-\u11ff\u3131-\u318e가-힣]")
"""A Korean syllable or letter."""


def is_korean(text: str) -> bool:
    """Whether most letters of a text are Korean."""
    return 2 * len(HANGUL.findall(text)) > sum(map(str.isalpha, text))


def token_text(
    decoded: str,
    *,
    typed: str = "",
    part: tuple[int, int] | None = None,
    continues: bool = False,
    unknown: bool = False,
) -> str:
    """What to show for one token.

    Args:
        decoded: the piece without its vocabulary's marks.
        typed: the characters of the input that it stands for.
        part: (number from 1, how many), where several tokens are the bytes of one character.
        continues: whether it continues the word of the token before it.
        unknown: whether the model reads it as "unknown".

    Returns:
        "love"; "·ing" for a piece that continues a word; "한 1/3" for bytes of a character; "🙂→[UNK]" for
        what the model does not know; "␣" for white space.
    """
    if unknown:
        typed = typed.strip()
        return f"{visible(typed)}→{visible(decoded)}" if typed not in {"", decoded} else visible(decoded)
    if part is not None:
        return f"{visible(typed.strip()) or ('␣' if typed else '�')} {part[0]}/{part[1]}"
    text = visible(decoded).strip()
    if not text:
        return "␣" * max(1, len(typed or decoded))
    return ("·" if continues else "") + "".join(_whole_letter(character) for character in text)


def _whole_letter(character: str) -> str:
    """A Korean letter that stands alone, in the form that fonts draw alone.

    Vocabularies that take Korean syllables apart hold conjoining letters (U+1100 to U+11FF), which are drawn as
    empty boxes unless their neighbours are there.
    """
    if not "\u1100" <= character <= "\u11ff":
        return character
    name = unicodedata.name(character, "")
    for place in ("CHOSEONG", "JUNGSEONG", "JONGSEONG"):
        name = name.replace(place, "LETTER")
    try:
        return unicodedata.lookup(name)
    except KeyError:
        return character


def clip(text: str, length: int) -> str:
    """The text cut to so many characters as a person counts them, the last an ellipsis where something was cut."""
    if len(text) <= length:
        return text
    if text.isascii():
        characters = list(text)
    else:
        import regex  # a family of emoji, or a letter with its accents, is one character

        characters = regex.findall(r"\X", text)
    return text if len(characters) <= length else "".join(characters[: max(0, length - 1)]).rstrip() + "…"
