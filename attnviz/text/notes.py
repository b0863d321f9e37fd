"""Notes in words: what a record's notes mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from attnviz.attention import SOFTMAX, Note, Receipt
from attnviz.text.display import rounding, visible
from attnviz.text.messages import N_, Message, _

# The notes that a text was cut to what the model reads, which come before all else.
CUT = ("input_truncated_words", "input_truncated_tokens")
# the sentence of each note code, with placeholders
Templates = Mapping[str, Message]
NOTES: Templates = {
    "text": N_("{text}"),
    "random_weights": N_(
        "Random weights: they show how attention is computed, not what a model has learned"
    ),
    "row_generates_word": N_("Each row is the step that generates its word"),
    "row_generates_token": N_("Each row is the step that generates its token"),
    "column_read_words": N_(
        "Each column is a word that the decoder has read: its start, then the words "
        "generated so far"
    ),
    "column_read_tokens": N_(
        "Each column is a token that the decoder has read: its start, then the tokens "
        "generated so far"
    ),
    "inputs": N_("The model also read {names}"),
    "input_truncated_words": N_("Input truncated: {kept:,} of {total:,} words"),
    "input_truncated_tokens": N_("Input truncated: {kept:,} of {total:,} tokens"),
    "generation_stopped": N_("Stopped after {n:,} tokens, before the end of the text"),
    "generation_cut": N_("Interrupted after {n:,} tokens"),
    "positions_end": N_("Stopped after {n:,} tokens: the model has no more positions"),
    "reads_no_more": N_("Stopped after {n:,} tokens: {why}"),
    "sampled": N_("Sampled: {how}"),
    "syllables_broken": N_(
        "The vocabulary has no Korean syllables, only their letters or bytes "
        "({syllable} is {n} tokens)"
    ),
    "reads_bytes": N_("No tokenizer was given: the module reads the bytes of the text"),
    "unknown_words": N_("Read as unknown words: {words}"),
    "unknown_tokens": N_("Unknown to the tokenizer: {n:,} of {total:,} tokens"),
    "sentences_run_together": N_("This model puts no token between the two sentences"),
    "vocabulary_smaller": N_(
        "The tokenizer has {pieces:,} tokens, the model {vectors:,} word vectors: "
        "they may not belong together"
    ),
    "sinks": N_("Heads have sinks: a row lacks the weight that its head gives to no token"),
    "no_softmax": N_(
        "This is no softmax: each weight is between 0 and 1, and a row sums to between {least} and {most}"
    ),
    "cut_of_long": N_("Of {total:,} tokens, the {n} with the largest weights or lengths were cut"),
    "rows_masked": N_("Rows that may attend to no key are empty: {n:,}"),
    "layers_unclear": N_("Left out, because their axes are not clear: {n:,} layers"),
    "layers_left_out": N_(
        "Left out, because they do not attend from all tokens to all: {n:,} layers"
    ),
    "dropout": N_("Dropout was on; these are the weights before dropout"),
    "words_merged": N_("Word pieces merged into words (sum over keys, mean over queries)"),
    "specials_hidden": N_("Special tokens hidden ({tokens}); rows are not renormalised"),
    "sinks_hidden": N_(
        "Without sinks ({tokens}): {percent}% of the attention goes there; rows are not "
        "renormalised"
    ),
    "no_sinks": N_("No token here is a sink, so nothing is left out"),
    "mean_of_heads": N_("Mean of {n} heads: no head attends like this itself"),
    "mean_of_layers": N_("Mean of {n} layers: no layer attends like this itself"),
    "pooled": N_(
        "Pooled: a cell is {cell} x {wide} of {n_queries:,} x {n_keys:,} tokens (sum "
        "over keys, mean over queries)"
    ),
    "part": N_(
        "Part of the text: queries {query_first:,} to {query_last:,} of "
        "{query_all:,}, keys {key_first:,} to {key_last:,} of {key_all:,} (counted "
        "from 0)"
    ),
    "rounded": N_("Rows sum only approximately to 1: the numbers in the file were rounded"),
}
"""The notes of records. A feature has more, for what it alone does."""


def sentence(note: Note, templates: Templates = NOTES) -> str:
    """Return the sentence of a note; a code without a template is returned unchanged."""
    fields = {
        name: visible(value) if isinstance(value, str) else value for name, value in note.fields
    }
    if note.code in templates:
        return _(templates[note.code]).format(**fields)
    named = [f"{visible(name)}: {value}" for name, value in fields.items()]
    text = ", ".join([visible(note.code), *named])
    return text


def question(word: str) -> str:
    """Return the line that names the command which tells whether attention matters, for a word."""
    text = _('Does it matter? attnviz attribute "..." --for {word}')
    return text.format(word=word)


def proof(receipt: Receipt | None) -> str:
    """Return the receipt in one sentence, the English as `str(receipt)` has it."""
    if receipt is None:
        return _("not verified: this record came without a receipt")
    if receipt.native == SOFTMAX:
        return _("✓ verified (the model's own softmax)")
    details = []
    if receipt.sums:
        details.append(_("in {sums} random sums of each row").format(sums=receipt.sums))
    if receipt.rows:
        details.append(_("weights in {rows} rows of each layer").format(rows=receipt.rows))
    return verified(receipt.max_difference, receipt.proves, details)


def verified(
    difference: float, proves: Literal["weights", "output"], details: Sequence[str] = ()
) -> str:
    """Return a receipt in one sentence; `details` say what was compared if that is not all."""
    if proves == "weights" and not difference:
        words = _("equal to the model's own weights")
    elif proves == "weights":
        words = _("largest difference {difference}").format(difference=rounding(difference))
    else:
        words = _("only the output; largest difference {difference}").format(
            difference=rounding(difference)
        )
    return _("✓ verified ({how})").format(how=", ".join([words, *details]))
