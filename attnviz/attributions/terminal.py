"""An attribution in a terminal: two sentences, a row for each token, and the heads of one."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from jaxtyping import Float64
from rich.text import Text

from attnviz.attributions.record import Attribution, Verdict
from attnviz.attributions.verdicts import LEAST, Comparison, Name
from attnviz.render.columns import Column
from attnviz.render.terminal.screen import Screen
from attnviz.render.terminal.table import table
from attnviz.render.terminal.text import spell, wrap
from attnviz.text.display import percent, with_particles
from attnviz.text.messages import N_, Message, _, pgettext
from attnviz.text.notes import proof, sentence

ROWS = 18  # most tokens in the table
BAR = 8  # characters of the longest bar
HEADS = 4  # most heads that are named
VERDICTS: dict[Name, Message] = {
    "used": N_("used"),
    "used together": N_("used together"),
    "used through other words": N_("used through other words"),
    "attended to, not used": N_("attended to, not used"),
    "not used": N_("not used"),
    "heads cancel": N_("not used: heads cancel"),
    "cannot tell": N_("cannot tell"),
}
STRONGLY: dict[Name, Message] = {
    "used": N_("strongly used"),
    "used together": N_("strongly used together"),
}


def draw(attribution: Attribution, screen: Screen) -> Iterator[Text]:
    """Yield the lines of an attribution."""

    def prose(text: str, style: str = "") -> list[Text]:
        return wrap(spell(with_particles(text), screen), screen, style)

    yield from prose(first_sentence(attribution), "bold")
    if second := second_sentence(attribution):
        yield from prose(second)
    yield Text()
    yield from table(_columns(attribution, screen), screen)
    left = len(attribution.tokens) - ROWS
    if left > 0:
        yield from prose(_("{n} further tokens, with smaller cuts or none").format(n=left), "dim")
    yield Text()
    yield from prose(heads_sentence(attribution))
    yield from prose(meaning(attribution), "dim")
    for note in attribution.notes:
        yield from prose(sentence(note), "dim")
    yield from prose(proof(attribution.receipt), "bold")


def amount(change: float, attribution: Attribution) -> str:
    """Return a change in words: a share in percent, or a divergence in nats."""
    if math.isnan(change):
        return ""
    if attribution.output.unit == "share":
        return percent(change if change > LEAST else 0.0)
    return f"{change:.1g}" if 1e-4 <= change < 0.01 else f"{change:.2f}"


def output_name(attribution: Attribution) -> str:
    """Return the name of the output."""
    output = attribution.output
    if output.kind == "sentence":
        return _("the sentence")
    if output.probability is None:
        return f"“{output.text}”"
    names = {
        "next": N_("the next word “{word}” ({chance})"),
        "hidden": N_("the hidden word “{word}” ({chance})"),
        "class": N_("the class “{word}” ({chance})"),
    }
    return _(names[output.kind]).format(word=output.text, chance=percent(output.probability))


def first_sentence(attribution: Attribution) -> str:
    """Return which token matters most for the output, with its numbers."""
    cuts = {
        place: verdict.counted
        for place, verdict in enumerate(attribution.verdicts)
        if verdict is not None and verdict.counted is not None
    }
    name = output_name(attribution)
    if not cuts:
        place = int(np.nanargmax(attribution.change))
        n = sum(verdict is not None for verdict in attribution.verdicts)
        largest = attribution.verdicts[place]
        if largest is None:
            text = _("The largest cut for {output}, of “{token}”, changes it by {change}.")
        elif largest.name == "cannot tell" and math.isnan(largest.alone):  # nothing was compared
            text = _(
                "It cannot be told what matters for {output}: no cut changes it by more than rounding does."
            )
        elif largest.name == "cannot tell":
            text = _(
                "It cannot be told what matters for {output}: the largest cut, of “{token}”, changes it by {change}, "
                "and there is too little to compare it with."
            )
        else:
            text = _(
                "None of {n} tested tokens matters clearly for {output}: the largest cut, of “{token}”, changes it by "
                "{change}."
            )
        return text.format(
            n=n,
            output=name,
            token=attribution.tokens[place].text,
            change=_with_unit(attribution.change[place], attribution),
        )
    place = max(cuts, key=lambda place: cuts[place].change)
    is_vector = attribution.output.probability is None
    text = _(
        N_(
            "“{token}” matters for {output}: without what it carries the vector changes by {change} ({controls})."
        )
        if is_vector
        else N_(
            "“{token}” matters for {output}: without what it carries the prediction changes by {change} "
            "({controls}), and “{word}” has {after}."
        )
    )
    return text.format(
        token=attribution.tokens[place].text,
        output=name,
        change=_with_unit(cuts[place].change, attribution),
        controls=controls_phrase(cuts[place], attribution),
        word=attribution.output.text,
        after="" if is_vector else percent(_after(attribution, place)),
    )


def _after(attribution: Attribution, place: int) -> float:
    """Return the probability of what is predicted, without what counts of a token."""
    verdict, after = attribution.verdicts[place], attribution.after
    assert verdict is not None
    assert after is not None
    is_here = verdict.counted is verdict.here and not np.isnan(attribution.here[place])
    return float(after[0 if is_here else 1, place])


def controls_phrase(found: Comparison, attribution: Attribution) -> str:
    """Return what the control cuts are, and how much they change."""
    words = _("all others together") if found.is_rest else _("cuts of equal weight")
    return f"{words}: {amount(found.controls, attribution)}"


def second_sentence(attribution: Attribution) -> str:
    """Return whether the token with the largest weight is used; empty if it was not tested."""
    place = int(attribution.weight.argmax())
    verdict = attribution.verdicts[place]
    token, share = attribution.tokens[place].text, percent(float(attribution.weight[place]))
    if attribution.head is not None:
        layer, head = attribution.head
        share = _("{share} in head {layer}.{head}").format(share=share, layer=layer, head=head)
    if verdict is None or verdict.here is None:
        return ""
    numbers = {
        "change": amount(verdict.here.change, attribution),
        "controls": controls_phrase(verdict.here, attribution),
    }
    if verdict.counted is not None:
        text = _("“{token}” gets most of the attention ({share}), and is used.")
    elif attribution.head is not None:  # the numbers are those of all heads
        text = _("“{token}” gets most of the attention ({share}), and is not used.")
    else:
        text = _(
            "“{token}” gets most of the attention ({share}), and is not used ({change}; {controls})."
        )
    return text.format(token=token, share=share, **numbers)


def heads_sentence(attribution: Attribution) -> str:
    """Return which heads carry the chosen token, alone and together, and which the output needs at all."""
    n = min(HEADS, len(attribution.together))
    sentence = _(
        "Heads that carry “{token}”, each cut alone: {heads}; these {n} together: {together}."
    ).format(
        token=attribution.tokens[attribution.chosen].text,
        heads=_largest_heads(attribution.heads, attribution),
        n=n,
        together=amount(float(attribution.together[n - 1]), attribution),
    )
    if attribution.without_head is None:
        return sentence
    largest = _largest_heads(attribution.without_head, attribution)
    at_all = (
        _("Without one head of the cross-attention, for any token: {heads}.")
        if attribution.kind == "cross"
        else _("Without one head at all, for any token: {heads}.")
    )
    return f"{sentence} {at_all.format(heads=largest)}"


def _largest_heads(changes: Float64[np.ndarray, "layer head"], attribution: Attribution) -> str:
    return ", ".join(
        f"{layer}.{head} {amount(change, attribution)}"
        for layer, head, change in attribution.ranked(changes)[:HEADS]
    )


def verdict_name(verdict: Verdict | None) -> str:
    """Return a verdict in words."""
    if verdict is None:
        return _("not tested")
    return _((VERDICTS | STRONGLY if verdict.is_strong else VERDICTS)[verdict.name])


def shown_tokens(attribution: Attribution, most: int = ROWS) -> list[int]:
    """Return the tokens that are shown, in their order: those with a verdict, and those with the largest cuts."""
    tested = [place for place, verdict in enumerate(attribution.verdicts) if verdict is not None]
    order = [*tested, *np.argsort(-np.nan_to_num(attribution.change), kind="stable").tolist()]
    return sorted([*dict.fromkeys(order)][:most])


def _with_unit(change: float, attribution: Attribution) -> str:
    text = amount(float(change), attribution)
    return text if attribution.output.unit == "share" else _("{number} nats").format(number=text)


def columns_of(attribution: Attribution) -> dict[str, Float64[np.ndarray, " token"]]:
    """Return the columns that are known, by their titles."""
    columns = {
        pgettext("column", "weight"): attribution.weight,
        pgettext("column", "carried"): attribution.carried,
        pgettext("column", "cut here"): attribution.here,
        pgettext("column", "everywhere"): attribution.everywhere,
        pgettext("column", "hidden"): attribution.hidden,
    }
    return {title: values for title, values in columns.items() if not np.isnan(values).all()}


def _columns(attribution: Attribution, screen: Screen) -> list[Column]:
    places, change = shown_tokens(attribution), attribution.change
    columns = [
        Column(
            pgettext("column", "token"),
            [attribution.tokens[place].text for place in places],
            least=6,
        )
    ]
    for title, values in columns_of(attribution).items():
        is_share = values is attribution.weight or values is attribution.carried
        cells = [
            percent(float(values[place])) if is_share else amount(float(values[place]), attribution)
            for place in places
        ]
        # A narrow terminal keeps the verdicts, and the cuts that they are about.
        order = [change, attribution.weight, attribution.everywhere, attribution.carried]
        spare = next((k for k, kept in enumerate(order) if kept is values), len(order))
        columns.append(Column(title, cells, right=True, spare=spare))
    verdicts = [spell(verdict_name(attribution.verdicts[place]), screen) for place in places]
    columns.append(Column(pgettext("column", "verdict"), verdicts))
    top = max(float(np.nanmax(change)), 1e-12)
    mark = "█" if screen.unicode else "#"
    bars = [mark * round(BAR * float(np.nan_to_num(change[place])) / top) for place in places]
    return [*columns, Column("", bars, spare=len(columns))]


def meaning(attribution: Attribution) -> str:
    """Return what a cut takes out, and what its number is."""
    if attribution.output.unit == "share":
        return _(
            "A cut takes out what the token carries, weight x value; its number is how far the vector moves, as a "
            "share of its length."
        )
    return _(
        "A cut takes out what the token carries, weight x value; its number is the divergence of the prediction, in "
        "nats."
    )
