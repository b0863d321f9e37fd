"""Check texts before a model reads them, and make texts safe and readable for people."""

from __future__ import annotations

import math
import os
import re
import unicodedata
from collections.abc import Sequence
from contextlib import suppress

from attnviz.errors import InputError, SettingsError

# Zero-width joiners shape their neighbours (Persian, emoji), so they are kept after a character.
JOINERS = "\u200c\u200d"
UNITS = "%|nats?|pt|s|MB|GiB"  # units that follow a number after a space
HELD = "\ue000"  # replaces a non-breaking space while a library breaks lines at any Unicode space
# the endings of the files that attnviz reads
READ = (".json", ".npz", ".safetensors", ".txt", ".conllu")


def check_sentence(text: str | None) -> None:
    """Refuse a sentence that is the name of a file. Raises SettingsError."""
    if isinstance(text, str) and text.endswith(READ) and os.path.isfile(text):
        raise SettingsError(
            f"{text!r} is a file, not a sentence: load what was saved, or read sentences from it"
        )


def check_list(texts: object) -> None:
    """Refuse a text or a path in place of a list of sentences. Raises InputError."""
    if isinstance(texts, (str, bytes, os.PathLike)):
        raise InputError(
            f"expected a list of sentences, not {type(texts).__name__}: give one sentence as [text], and a file as "
            "open(path).read().splitlines()"
        )


def check_text(text: object, what: str = "the text") -> None:
    """Refuse a text that no model can read. Raises InputError: it is empty, blank, or has half a surrogate pair."""
    if not isinstance(text, str):
        raise InputError(f"{what} must be a string, not {type(text).__name__}")
    if not text.strip():
        raise InputError(f"{what} is empty" + (" (only spaces)" if text else ""))
    if half := re.search("[\ud800-\udfff]", text):
        place, code = half.start() + 1, ord(half[0])
        raise InputError(
            f"{what} is not valid Unicode: character {place} is a lone surrogate (\\u{code:04x})"
        )


def quoted(text: str) -> str:
    """Return a text in the quotation marks that a person would type in a shell, such as ``"I love all you"``."""
    # Between double quotation marks a shell replaces $ and `, and an interactive one ! before a letter.
    if re.search(r'["$`\\]|!(?=\S)', text):
        return "'" + text.replace("'", "'\\''") + "'"
    return f'"{text}"'


def visible(text: str) -> str:
    r"""Return the text with every control, format, surrogate, private and non-character spelled out, as in ``\x1b``.

    The result cannot move the cursor, change colours or reverse the direction of writing. Decomposed letters, as Macs
    store Korean, are composed.
    """
    if text.isascii() and text.isprintable():
        return text
    text = unicodedata.normalize("NFC", text)
    shown = "".join(_visible(character) for character in text)
    # A joiner without a character before it joins nothing, and would be an invisible label.
    return re.sub(rf"(?<!\S)[{JOINERS}]+", lambda joiners: _spelled(joiners[0]), shown)


def _visible(character: str) -> str:
    """Return a character, spelled out if it is a control, format, surrogate, private or non-character."""
    # The 66 noncharacters of Unicode, which no SVG file may contain.
    is_none = "\ufdd0" <= character <= "\ufdef" or ord(character) % 0x10000 in {0xFFFE, 0xFFFF}
    hidden = (
        unicodedata.category(character) in {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
        and character not in JOINERS
    )
    return _spelled(character) if hidden or is_none else character


def _spelled(characters: str) -> str:
    r"""Return the escape sequences of characters, such as ``\x1b``."""
    return characters.encode("unicode_escape").decode()


def decimals(value: float, digits: int) -> str:
    """Format a number with `digits` decimals, and no minus sign before zero."""
    text = f"{value:.{digits}f}"
    return text if text.strip("-0.") else text.removeprefix("-")


def percent(share: float) -> str:
    """Return a share in percent with two significant digits or whole percents: 85%, 100%, 8.5%, 0.01%."""
    value = 100 * share
    return f"{value:.0f}%" if value >= 9.95 else f"{value:.2g}%"


def number_text(weight: float, *, signed: bool = False) -> str:
    """Return the number in the cell of a weight, in percent: ``81``; of a `signed` change with its sign, ``+25``."""
    size = math.floor(100 * abs(weight) + 0.5)
    if not signed:
        return f"{size}"
    return f"−{size}" if weight < 0 else f"+{size}"


def hold_units(text: str, space: str = "\u00a0") -> str:
    """Return the text with non-breaking spaces between numbers and their units."""
    return re.sub(rf"(?<=\d) (?=(?:{UNITS})(?![a-zA-Z]))", space, text)


def line_words(text: str) -> list[str]:
    """Split a text at the places where a line may break; a number and its unit stay together."""
    return [word.replace(HELD, " ") for word in hold_units(text, HELD).split()]


HANGUL = re.compile("[\u1100-\u11ff\u3131-\u318e가-힣]")  # a Korean syllable or letter


def is_korean(text: str) -> bool:
    """Return whether most letters of a text are Korean."""
    return 2 * len(HANGUL.findall(text)) > sum(map(str.isalpha, text))


# Pairs of Korean particles, of which the first follows a consonant and the second a vowel.
PARTICLES = re.compile(r"([\w%])([”’\"'…)\]]*)(이/가|을/를|은/는|과/와)")
# The last letters of English words that end in a consonant in Korean, such as 애니멀, 타임, 잇.
CONSONANT = re.compile(r"(?:.[lmn]|.[lmn]e|ng|^.{1,2}[ptk])$", re.IGNORECASE)


def with_particles(text: str) -> str:
    """Return a Korean text with the particle of each pair, such as 이/가, that the sound before it takes."""

    def choose(match: re.Match[str]) -> str:
        last, marks, pair = match.groups()
        if "가" <= last <= "힣":
            ends_in_consonant = (ord(last) - ord("가")) % 28 > 0
        elif last.isdigit():
            ends_in_consonant = last in "013678"  # 영 일 삼 육 칠 팔
        else:
            word = re.search(r"\w+$", text[: match.start() + 1])
            ends_in_consonant = word is not None and bool(CONSONANT.search(word[0]))
        return f"{last}{marks}{pair[0] if ends_in_consonant else pair[2]}"

    return PARTICLES.sub(choose, text) if "/" in text else text


WIDE = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16", b"\x00\x00\xfe\xff": "UTF-32"}
"""The first bytes of files with two or four bytes a character, and the name of their encoding."""


def from_utf8(raw: bytes) -> str:
    """Decode UTF-8. Raises InputError, which says what encoding the bytes seem to have and how to convert them."""
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        reason = f"not UTF-8: byte {error.start + 1} is 0x{raw[error.start]:02x}"
    encoding = next((name for mark, name in WIDE.items() if raw.startswith(mark)), "")
    with suppress(UnicodeDecodeError):
        if not encoding and is_korean(raw.decode("cp949")):
            encoding = "cp949, the encoding of Korean Windows"
    if encoding:
        how = f"save it as UTF-8 in an editor, or by iconv -f {encoding.partition(',')[0]} -t UTF-8 FILE > NEW"
        reason = f"not UTF-8, but looks like {encoding}: {how}"
    raise InputError(reason)


def rounding(difference: float) -> str:
    """Return a difference that comes from rounding, such as ``1e-07``; exactly 0 is ``0``."""
    return f"{difference:.0e}" if difference else "0"


def inert(cell: str) -> str:
    """Return the text of a cell for a CSV file, such that no spreadsheet runs it as a formula."""
    return f"'{cell}" if cell.startswith(("=", "+", "-", "@", "\t", "\r")) else cell


def readable_pieces(pieces: Sequence[str]) -> list[str]:
    """Return the entries of a vocabulary as text: "Ġlove" as "love", "##ding" and "ding" after "Ġbed" as "·ding".

    Labels without the marks of a vocabulary stay as they are.
    """
    if any(piece.startswith("##") for piece in pieces):
        return [
            token_text(piece.removeprefix("##"), continues=True)
            if piece.startswith("##") and piece != "##"
            else piece
            for piece in pieces
        ]
    marks = [mark for mark in ("Ġ", "▁") if any(piece.startswith(mark) for piece in pieces)]
    if not marks:
        return list(pieces)
    decoded = [
        _from_bytes(piece) if marks[0] == "Ġ" else piece.replace("▁", " ") for piece in pieces
    ]
    labels = []
    for index, text in enumerate(decoded):
        # Entries such as "<s>" belong to no word.
        continues = index > 0 and text[:1].isalnum() and decoded[index - 1][-1:].isalnum()
        labels.append(token_text(text, continues=continues))
    return labels


def _from_bytes(piece: str) -> str:
    """Return the text of an entry in a vocabulary of bytes, in which each byte is written as a printable character.

    Source: Radford et al. 2019, the encoder of GPT-2. An entry with other characters, or with a part of a character,
    is returned unchanged.
    """
    printable = [
        *range(ord("!"), ord("~") + 1),
        *range(ord("¡"), ord("¬") + 1),
        *range(ord("®"), 256),
    ]
    others = [byte for byte in range(256) if byte not in printable]
    values = {chr(byte): byte for byte in printable}
    values |= {chr(256 + index): byte for index, byte in enumerate(others)}
    try:
        return bytes(values[character] for character in piece).decode()
    except (KeyError, UnicodeDecodeError):
        return piece


def token_text(
    decoded: str,  # the piece, without the marks of its vocabulary
    *,
    typed: str = "",  # the characters of the input that it covers
    # (number from 1, how many) if several tokens are the bytes of one character
    part: tuple[int, int] | None = None,
    continues: bool = False,  # whether it continues the word of the token before it
    unknown: bool = False,  # whether the model reads it as "unknown"
) -> str:
    r"""Return the text that is shown for one token.

    "love"; "·ing" for a piece that continues a word; "한 1/3" for bytes of a character; "🙂→[UNK]" for what the model
    does not know; "␣" for a space, "\n␣␣" for a line break with two.
    """
    if unknown:
        typed = typed.strip()
        if typed in {"", decoded}:
            return visible(decoded)
        return f"{visible(typed)}→{visible(decoded)}"
    if part is not None:
        # A "�" stands for bytes that belong to no known character of the input.
        return f"{visible(typed.strip()) or ('␣' if typed else '�')} {part[0]}/{part[1]}"
    text = visible(decoded).strip()
    if not decoded.strip():
        # A line break with 4 spaces is not one with 8: each space is shown, and each break is spelled.
        spaces = typed or decoded or " "
        return "".join(visible(space) if space in "\n\r\t" else "␣" for space in spaces)
    # Fonts cannot draw conjoining Korean letters on their own.
    return ("·" if continues else "") + "".join(_drawable(character) for character in text)


def _drawable(character: str) -> str:
    """Return a conjoining Korean letter in the form that fonts can draw on its own."""
    if not "\u1100" <= character <= "\u11ff":
        return character
    try:
        return unicodedata.lookup(
            re.sub("CHOSEONG|JUNGSEONG|JONGSEONG", "LETTER", unicodedata.name(character, ""))
        )
    except KeyError:
        return character


# Hundreds of emoji that are joined to one character are cut: they would need the room of hundreds.
LONGEST_CHARACTER = 16


def clip(text: str, length: int) -> str:
    """Cut a text to this many characters, as a person counts them; an ellipsis marks the cut."""
    if len(text) <= length:
        return text
    if text.isascii():
        return text[: max(0, length - 1)].rstrip() + "…"
    import regex

    # An emoji sequence, or a letter with its accents, counts as one character: a family of emoji has 11 of Unicode's.
    characters = [character[:LONGEST_CHARACTER] for character in regex.findall(r"\X", text)]
    if len(characters) <= length:
        return "".join(characters)
    return "".join(characters[: max(0, length - 1)]).rstrip() + "…"
