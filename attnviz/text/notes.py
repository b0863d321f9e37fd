"""Notes in words: what a record's notes mean."""

from __future__ import annotations

from collections.abc import Mapping

from attnviz.attention import SOFTMAX, Note, Receipt
from attnviz.text.display import visible
from attnviz.text.messages import Phrase, _

# by a note's code its sentence, with places for fields
Templates = Mapping[str, Phrase]
NOTES: Templates = {
    "text": _("{text}"),
    "random_weights": _(
        "random weights: they show how attention is computed, not what a model has learned"
    ),
    "row_generates_word": _("each row is the step that generates its word"),
    "row_generates_token": _("each row is the step that generates its token"),
    "column_read_words": _(
        "each column is what the decoder has read: its start, then the words generated before"
    ),
    "column_read_tokens": _(
        "each column is what the decoder has read: its start, then the tokens generated before"
    ),
    "input_truncated_words": _("input truncated: {kept:,} of {total:,} words"),
    "input_truncated_tokens": _("input truncated: {kept:,} of {total:,} tokens"),
    "target_truncated": _("target truncated: {kept:,} of {total:,} tokens"),
    "generation_stopped": _("stopped after {n:,} tokens: it had not come to an end"),
    "generation_cut": _("cut: the keyboard stopped it after {n:,} tokens"),
    "positions_end": _("stopped after {n:,} tokens, where the model's positions end"),
    "reads_no_more": _("stopped after {n:,} tokens: {why}"),
    "sampled": _("sampled: {how}"),
    "syllables_broken": _(
        "the vocabulary lacks Korean syllables: it has only their letters or bytes ({syllable} "
        "is {n} tokens)"
    ),
    "reads_bytes": _("this module came without a tokenizer: it reads the bytes of the text"),
    "never_saw": _(
        "built unlike all sentences that this model was trained on: what it generates may be wrong"
    ),
    "unknown_words": _("read as unknown words: {words}"),
    "sentences_run_together": _(
        "the two sentences run together: this model puts no token between them"
    ),
    "vocabulary_smaller": _(
        "the tokenizer has {pieces:,} tokens, the model {vectors:,} word vectors: they may not "
        "belong together"
    ),
    "sinks": _("heads have sinks: a row sums to less than 1 where its head looks at nothing"),
    "dropout": _("dropout was on: these are the weights before it set some of them to zero"),
    "tokens_shuffled": _("its tokens are shuffled"),
    "words_merged": _("word pieces merged: to a word the sum over its pieces, from it the mean"),
    "specials_hidden": _(
        "special tokens hidden ({tokens}); rows not renormalised: what they lack went there"
    ),
    "pooled": _(
        "pooled: a cell is {cell} x {wide} of {n_queries:,} x {n_keys:,} tokens (to a group the "
        "sum, from it the mean)"
    ),
    "part": _(
        "a part: queries {query_first:,} to {query_last:,} of {query_all:,}, keys {key_first:,} "
        "to {key_last:,} of {key_all:,} (counted from 0)"
    ),
    "rounded": _("the rows sum to 1 only roughly: the file's numbers were rounded"),
}
"""The notes of records. A feature has more, for what it alone does."""


def sentence(note: Note, templates: Templates = NOTES) -> Phrase:
    """Return a note in words; a code without a template as it is."""
    fields = {
        name: visible(value) if isinstance(value, str) else value for name, value in note.fields
    }
    if note.code in templates:
        return templates[note.code].format(**fields)
    named = [f"{visible(name)}: {value}" for name, value in fields.items()]
    text = ", ".join([visible(note.code), *named])
    return Phrase(text, text)


def proof(receipt: Receipt | None) -> Phrase:
    """Return the receipt in one line, the English as `str(receipt)` has it."""
    if receipt is None:
        return _("not verified: this record came without a receipt")
    n = len(receipt.layers)
    layers = _("1 layer") if n == 1 else _("{n} layers").format(n=n)
    if receipt.native == SOFTMAX:
        return _("verified: the model's own softmax in {layers}").format(layers=layers)
    largest = receipt.max_difference
    difference = f"{largest:.1e}" if largest else "0"
    if receipt.sums:
        sentence = _(
            "verified: max difference {difference} over {layers}, in {sums} random sums of each row"
        )
    else:
        sentence = _("verified: max difference {difference} over {layers}")
    return sentence.format(difference=difference, layers=layers, sums=receipt.sums)
