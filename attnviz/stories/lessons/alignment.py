"""English to Korean: which English word each decoding step attends to, and how often it is the right one."""

from __future__ import annotations

from itertools import islice, pairwise

from attnviz.attention import Attention
from attnviz.capture.attend import attend
from attnviz.capture.source import open_source
from attnviz.models.language import splits
from attnviz.models.language_models import TranslationTransformer
from attnviz.models.seq2seq import RecurrentTranslator
from attnviz.models.training import measure
from attnviz.models.training.files import ModelCard
from attnviz.models.training.measure import Head
from attnviz.stories import common
from attnviz.stories.record import Cell, Story, StoryView, Table
from attnviz.text.messages import _

RECURRENT, TRANSFORMER = "toy-seq2seq", "toy-transformer"
SHORT = "She is eating a green apple"
LONG = "The animal didn't cross the street because it was too wide"
# The right translations in the small language.
TARGETS = {
    SHORT: "그녀는 초록색 사과를 먹고 있다",
    LONG: "길이 너무 넓었기 때문에 동물은 건너지 않았다",
}
# The English words that each Korean word translates: 먹고 있다 is "is eating" as a whole, and
# 길이 ("the street") is what "it" refers to.
TRANSLATED = {
    "그녀는": {"She"},
    "초록색": {"green"},
    "사과를": {"apple"},
    "먹고": {"eating"},
    "있다": {"is", "eating"},
    "길이": {"it", "street"},
    "너무": {"too"},
    "넓었기": {"was", "wide"},
    "때문에": {"because"},
    "동물은": {"animal"},
    "건너지": {"cross"},
    "않았다": {"didn't"},
}
N_PAIRS = 200  # test pairs for measuring the alignment error rate


def best_head(card: ModelCard) -> Head:
    """Return the head with the best alignment on validation pairs, as the card of the model says."""
    return int(card.quality["alignment layer"]), int(card.quality["alignment head"])


def path_of(record: Attention, head: Head) -> list[int]:
    """Return the index of the English word that each Korean word attends to most."""
    keys: list[int] = record.pattern(*head).argmax(axis=-1).tolist()
    # The end token does not translate an English word.
    return [key for key, token in zip(keys, record.query_tokens, strict=True) if not token.special]


def verdict(record: Attention, head: Head) -> str:
    """Return in a sentence which Korean words attend most to an English word that they do not translate."""
    words = [token.text for token in record.query_tokens if not token.special]
    keys = [record.key_tokens[key].text for key in path_of(record, head)]
    wrong = [
        f"{word} → {key}"
        for word, key in zip(words, keys, strict=True)
        if key not in TRANSLATED[word]
    ]
    if not wrong:
        return _("Each word attends to the one it translates.")
    return _("Not to the word it translates: {links}.").format(links=", ".join(wrong))


def build_story() -> Story:
    """Show two sentences with another word order in Korean, and measure the alignment error rate."""
    card, recurrent = common.open_model(RECURRENT, RecurrentTranslator)
    other_card, transformer = common.open_model(TRANSFORMER, TranslationTransformer)
    head, other_head = best_head(card), best_head(other_card)
    source, other_source = open_source(RECURRENT), open_source(TRANSFORMER)
    short = attend(SHORT, source, target=TARGETS[SHORT])
    long = attend(LONG, source, target=TARGETS[LONG])
    other_long = attend(LONG, other_source, target=TARGETS[LONG])
    pairs = list(islice(splits.pairs("test"), N_PAIRS))
    error = float(measure.alignment_errors(recurrent, pairs)[head])
    other_error = float(measure.alignment_errors(transformer, pairs)[other_head])
    diagonal = measure.diagonal_error(pairs)
    path = path_of(long, head)

    patterns = [(short, head), (long, head), (other_long, other_head)]
    views = []
    for number, (record, head_shown) in enumerate(patterns):
        moves = [next_key - key for key, next_key in pairwise(path_of(record, head_shown))]
        # The view shows the step after the longest move to the left.
        farthest_back = 1 + moves.index(min(moves))
        views.append(common.row_view(record, head_shown, farthest_back, number))
    views.append(StoryView(text=_("All heads of toy-transformer."), record=2))
    return Story(
        title=_(
            "Each Korean word attends to the English word it translates: alignment error "
            "{recurrent:.3f}, along the diagonal {diagonal:.3f}"
        ).format(recurrent=error, diagonal=diagonal),
        receipt=_("toy-seq2seq {proof}; toy-transformer {other_proof}").format(
            proof=common.receipt_of(long), other_proof=common.receipt_of(other_long)
        ),
        parts=[
            _(
                "toy-seq2seq reads an English sentence and generates it in Korean, one word per step. "
                "At each step the decoder's state is the query, and the encoder's states, one for "
                "each English word, are the keys and the values. So the weights have a row for each "
                "step and a column for each English word, {n_steps} x {n_words} for “{sentence}”; "
                "keys and values are equally many. In toy-transformer this is cross attention. Both "
                "models are given the right Korean (teacher forcing), so that their steps can be "
                "compared."
            ).format(n_steps=len(long.query_tokens), n_words=len(long.key_tokens), sentence=LONG),
            Table(
                _("“{sentence}”, step by step").format(sentence=LONG),
                [
                    _("step"),
                    _("word"),
                    _("toy-seq2seq attends to"),
                    _("weight"),
                    _("toy-transformer attends to"),
                    _("weight"),
                ],
                [
                    (step, token.text, *_top(long, head, step), *_top(other_long, other_head, step))
                    for step, token in enumerate(long.query_tokens)
                ],
            ),
            _(
                "Korean puts the verb last, so the steps do not follow the English word order: "
                "toy-seq2seq attends to words {path} (counted from 0), and {backward} of {moves} "
                "moves go back to the left."
            ).format(
                path=", ".join(map(str, path)),
                backward=sum(next_key < key for key, next_key in pairwise(path)),
                moves=len(path) - 1,
            ),
            Table(
                _("Alignment error rate on {n} unseen pairs").format(n=N_PAIRS),
                ["", _("error rate")],
                [
                    (f"toy-seq2seq, {head[0]}.{head[1]}", error),
                    (f"toy-transformer, {other_head[0]}.{other_head[1]}", other_error),
                    (_("the diagonal"), diagonal),
                ],
            ),
            _(
                "The test sentences come with the right alignment, which no model was ever shown. The "
                "error rate (Och and Ney 2003) is 0 where the largest weights agree with it, and 1 "
                "where none does. The diagonal is the trivial baseline: step after step, word after "
                "word. A head need not attend to the very word that comes next, since the encoder may "
                "have carried its meaning elsewhere."
            ),
        ],
        picture=[
            common.translation_panel(
                _("{model}. {verdict}").format(
                    model=record.model, verdict=verdict(record, head_shown)
                ),
                record,
                head_shown,
            )
            for record, head_shown in patterns
        ],
        views=views,
        records=[record for record, _head in patterns],
    )


def _top(record: Attention, head: Head, step: int) -> tuple[Cell, Cell]:
    """Return the English word that a step attends to most, with its index, and its weight."""
    row = record.pattern(*head)[step]
    key = int(row.argmax())
    return f"{record.key_tokens[key].text} ({key})", float(row[key])
