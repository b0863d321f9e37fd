"""Which token is followed: a word as typed, or a number."""

from __future__ import annotations

from collections.abc import Sequence

from attnviz.attention import Token
from attnviz.errors import SelectionError
from attnviz.text.display import clip, visible


def chosen_query(tokens: Sequence[Token], wanted: str | int | None) -> int:
    """The number of the token that a person means.

    Args:
        tokens: those that look.
        wanted: a word, as it stands in the sentence or as it is shown; or a number counted from 0, negative from the
            end, as a number or in digits. None is the first token that the tokenizer did not add.

    Raises:
        SelectionError: there is none, or there are several.
    """
    n = len(tokens)
    if wanted is None:
        return next((number for number, token in enumerate(tokens) if not token.special), 0)
    if isinstance(wanted, str):
        found = _meant(tokens, wanted.strip())
        if len(found) == 1:
            return found[0]
        if found:
            raise SelectionError(
                f"several tokens are {clip(visible(wanted), 40)!r}: choose one by its number: {_listed(tokens, found)}"
            )
        digits = wanted.strip().removeprefix("-")
        if not (digits.isascii() and digits.isdigit() and len(digits) <= 9):
            raise SelectionError(
                f"there is no word {clip(visible(wanted), 40)!r} to follow: there are {_listed(tokens, range(n))}"
            )
        wanted = int(wanted)
    if not -n <= wanted < n:
        raise SelectionError(f"there is no token {wanted}: there are {_listed(tokens, range(n))}")
    return wanted % n


def _meant(tokens: Sequence[Token], word: str) -> list[int]:
    """The tokens that are this word, exactly where any is, else whatever the size of its letters."""
    for fold in (str, str.casefold):
        meant = fold(visible(word))
        exact = [
            number
            for number, token in enumerate(tokens)
            if meant in {fold(token.text), fold(token.text.removeprefix("·")), fold(visible(token.piece))}
        ]
        # A word in pieces: "walkthrough" is walk and ·through.
        whole: dict[tuple[int, int], list[int]] = {}
        for number, token in enumerate(tokens):
            if token.word is not None:
                whole.setdefault((token.segment, token.word), []).append(number)
        pieces = [
            number
            for run in whole.values()
            if len(run) > 1 and fold("".join(tokens[number].text.removeprefix("·") for number in run)) == meant
            for number in run
        ]
        found = sorted({*exact, *pieces})
        if found:
            return found
    return []


def _listed(tokens: Sequence[Token], numbers: Sequence[int]) -> str:
    """Tokens with their numbers, those in the middle left out where there are many."""
    shown = [f"{number} {tokens[number].text}" for number in numbers]
    most = 16
    if len(shown) > most:
        shown = [*shown[: most - 2], "…", shown[-1]]
    return clip(", ".join(shown), 400)
