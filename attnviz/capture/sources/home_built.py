"""The home-built models as sources: those that were trained, and the one with random weights."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from attnviz.attention import Kind, Note, Receipt, Token
from attnviz.capture.observers import Batch, Observer, Sentence, expect_kind
from attnviz.capture.projections import calls_shown
from attnviz.capture.receipt import digest_of
from attnviz.capture.stream import ForwardPass, Scoring
from attnviz.errors import InputError, ModelError, TooLongError
from attnviz.models.attention import AttendFunction, scaled_dot_product_attention
from attnviz.models.config import ToyConfig
from attnviz.models.embedding import after_start, sinusoidal_positions
from attnviz.models.language.vocabulary import END, START, Vocabulary
from attnviz.models.registry import KINDS
from attnviz.models.toy import ToyEncoder, word_vector
from attnviz.models.training.files import load_home_built
from attnviz.models.training.tasks import new_model, pad_numbers
from attnviz.models.transformer import pad
from attnviz.models.wholes import LanguageDecoder, LanguageEncoder, TranslationTransformer
from attnviz.text.display import clip, visible
from attnviz.text.words import split_words

MOST_WEIGHTS = 50_000_000
"""What a model made up on the spot may have: seconds to draw, 200 MB to hold."""

NOTES = (Note("random_weights"),)

ROW_GENERATES = Note("row_generates_word")
COLUMN_READ = Note("column_read_words")


class ToySource:
    """The home-built encoder; a word is a token.

    Args:
        config: its sizes and seed.
        device: where it runs.
        dtype: its number format; None is float32.

    Raises:
        ModelError: sizes that do not fit together, or too large.
    """

    def __init__(
        self,
        config: ToyConfig | None = None,
        *,
        device: torch.device | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        config = config or ToyConfig()
        n_weights = config.n_layers * (4 * config.d_model**2 + 2 * config.d_model * config.d_ff)
        if n_weights > MOST_WEIGHTS:
            raise ModelError(f"these sizes make {n_weights:,} weights: at most {MOST_WEIGHTS:,} are drawn")
        usual = ToyConfig()
        other = [
            f", {size} {getattr(config, size)}"
            for size in ("d_model", "n_heads", "n_layers")
            if getattr(config, size) != getattr(usual, size)
        ]
        self.name = f"toy-random (seed {config.seed}{''.join(other)})"
        self.has_sinks = False
        self.kinds = KINDS["random"]
        self.generates = False
        self._device = device or torch.device("cpu")
        self._model = ToyEncoder(config).to(self._device, dtype or torch.float32)

    def encode(
        self,
        texts: Sequence[str],
        pairs: Sequence[str | None] | None = None,
        *,
        truncate: bool = False,
        kind: Kind | None = None,
        targets: Sequence[str | None] | None = None,
    ) -> Batch:
        """Split sentences into words; there is no longest sentence, so nothing is ever truncated.

        Raises:
            InputError: a sentence has no word.
            SelectionError: another kind of attention than that of an encoder, or a target.
        """
        del truncate
        expect_kind(self, kind, targets)
        sentences = []
        for text, pair in zip(texts, pairs or [None] * len(texts), strict=True):
            tokens = _words(text, 0, 0)
            tokens += _words(pair or "", 1, len(tokens))
            if not tokens:
                raise InputError(f"there is no word in this text: {visible(text)[:40]!r}")
            sentences.append(Sentence(text=text, pair=pair, tokens=tuple(tokens), notes=NOTES))
        lengths = torch.tensor([len(sentence.tokens) for sentence in sentences])
        return Batch(
            sentences=tuple(sentences),
            inputs={},
            real=torch.arange(int(lengths.max())) < lengths[:, None],
        )

    def stream(self, batch: Batch, observers: Sequence[Observer]) -> Receipt:
        """Run the model once; every observer sees every block of rows.

        Raises:
            NotVerifiedError: a layer's weights are not proved to be the model's own.
        """
        run = ForwardPass(batch=batch, observers=observers, native="home-built")
        with torch.inference_mode(), calls_shown(self._model, observers):
            vectors = [self._model.embed([token.piece for token in s.tokens]) for s in batch.sentences]
            x, mask = pad(vectors)
            self._model.encoder(x, None if batch.real.all() else mask, attend=_watched(run))
        return run.receipt(self.name)

    def digest(self) -> str:
        """What tells the model's weights from others."""
        return digest_of(self._model)

    def untrained(self, seed: int = 0) -> ToySource:
        """The same sizes, other random weights."""
        config = replace(self._model.config, seed=self._model.config.seed + 1 + seed)
        weight = next(self._model.parameters())
        return ToySource(config, device=self._device, dtype=weight.dtype)

    def embedded(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """The vectors of the first sentence's words, and those of their positions: each [token, d_model]."""
        words, config = [token.piece for token in batch.sentences[0].tokens], self._model.config
        vectors = torch.stack([word_vector(word, config.d_model, config.seed) for word in words])
        return vectors, sinusoidal_positions(len(words), config.d_model)


class TrainedSource:
    """A trained home-built model; a word is a token.

    Args:
        name: as in `registry.HOME_BUILT`.
        device: where it runs.
        dtype: its number format; None is float32.
    """

    def __init__(self, name: str, *, device: torch.device | None = None, dtype: torch.dtype | None = None) -> None:
        self.name = name
        self.has_sinks = False
        self._device = device or torch.device("cpu")
        self._card, model = load_home_built(name)
        self._model = model.to(self._device, dtype or torch.float32)
        self.kinds = KINDS[self._card.plan.kind]
        self.generates = self._card.target is not None

    def encode(
        self,
        texts: Sequence[str],
        pairs: Sequence[str | None] | None = None,
        *,
        truncate: bool = False,
        kind: Kind | None = None,
        targets: Sequence[str | None] | None = None,
    ) -> Batch:
        """Split sentences into words; a model that translates generates its own translation where no target is given.

        Raises:
            InputError: a sentence has no word that the model knows.
            TooLongError: a sentence has more words than the model takes, and may not be truncated.
            SelectionError: a kind of attention that the model has not, or a target for one that generates nothing.
        """
        shown = expect_kind(self, kind, targets)
        sentences = [
            self._sentence(text, pair, truncate) for text, pair in zip(texts, pairs or [None] * len(texts), strict=True)
        ]
        source = _numbers([sentence.tokens for sentence in sentences]).to(self._device)
        if not self.generates:
            return Batch(sentences=tuple(sentences), inputs={"words": source}, real=source != 0, kind=shown)
        targets = targets or [None] * len(texts)
        generated = [self._target(row[row != 0], given, truncate) for row, given in zip(source, targets, strict=True)]
        target = _numbers(generated).to(self._device)
        whole = []
        for sentence, tokens in zip(sentences, generated, strict=True):
            one = replace(sentence, target=" ".join(token.piece for token in tokens if not token.special))
            if shown != "encoder":
                start = Token(text=START, piece=START, id=self._card.plan.config.start, special=True, segment=2)
                keys = sentence.tokens if shown == "cross" else (start, *tokens[:-1])
                notes = (*sentence.notes, ROW_GENERATES, *((COLUMN_READ,) if shown == "decoder" else ()))
                one = replace(one, tokens=tokens, keys=keys, notes=notes)
            whole.append(one)
        return Batch(
            sentences=tuple(whole),
            inputs={"source": source, "target": target},
            real=(source if shown == "encoder" else target) != 0,
            real_keys=(target if shown == "decoder" else source) != 0,
            kind=shown,
        )

    def stream(self, batch: Batch, observers: Sequence[Observer]) -> Receipt:
        """Run the model once; every observer sees every block of rows of the batch's kind.

        Raises:
            NotVerifiedError: a layer's weights are not proved to be the model's own.
        """
        run = ForwardPass(batch=batch, observers=observers, native="home-built")
        model, inputs = self._model, batch.inputs
        with torch.inference_mode(), calls_shown(model, observers):
            if isinstance(model, LanguageEncoder | LanguageDecoder):
                model(inputs["words"], attend=_watched(run))
            elif isinstance(model, TranslationTransformer):
                hooks: dict[str, AttendFunction] = {f"attend_{batch.kind}": _watched(run)}
                model(inputs["source"], inputs["target"], **hooks)
            elif model.attention is not None:
                steps = _Steps()
                model(inputs["source"], inputs["target"], attend=steps.watched(model.attention.attend))
                steps.show(run)
        return run.receipt(self.name)

    def digest(self) -> str:
        """What tells the model's weights from others."""
        return digest_of(self._model)

    def untrained(self, seed: int = 0) -> TrainedSource:
        """The same architecture with its first weights, drawn from a seed."""
        other = copy.copy(self)
        plan = self._card.plan
        first = new_model(replace(plan, recipe=replace(plan.recipe, seed=seed)))
        weight = next(self._model.parameters())
        other.name = f"{self.name} with random weights"
        other._model = first.to(weight.device, weight.dtype).eval()  # noqa: SLF001 - its own
        return other

    def embedded(self, batch: Batch) -> tuple[Tensor, Tensor] | None:
        """The vectors of the first sentence's words, and those of their positions: each [token, d_model].

        They are those of the words that the first layer of the batch's kind reads; None where none reads words.
        """
        model, inputs = self._model, batch.inputs
        if isinstance(model, LanguageEncoder | LanguageDecoder):
            embedding, words = model.embedding, inputs["words"]
        elif isinstance(model, TranslationTransformer) and batch.kind == "encoder":
            embedding, words = model.source_embedding, inputs["source"]
        elif isinstance(model, TranslationTransformer) and batch.kind == "decoder":
            embedding, words = model.target_embedding, after_start(inputs["target"], model.config.start)
        else:
            return None
        with torch.inference_mode():
            vectors: Tensor = embedding(words[:1], positions=False)[0]
        return vectors, sinusoidal_positions(*vectors.shape).to(vectors)

    def _sentence(self, text: str, pair: str | None, truncate: bool) -> Sentence:  # noqa: FBT001
        tokens = _words(text, 0, 0, self._card.source)
        tokens += _words(pair or "", 1, len(tokens), self._card.source)
        if not tokens:
            raise InputError(f"there is no word in this text: {visible(text)[:40]!r}")
        notes: tuple[Note, ...] = ()
        limit = self._card.plan.config.max_length
        is_cut = len(tokens) > limit
        if is_cut:
            if not truncate:
                raise TooLongError(
                    f"the text has {len(tokens):,} words, but {self.name} reads at most {limit}: shorten it, or cut it "
                    "there with --truncate"
                )
            notes = (Note.of("input_truncated_words", kept=limit, total=len(tokens)),)
            tokens = tokens[:limit]
        unknown = [token.text for token in tokens if not self._card.source.knows(token.piece)]
        if len(unknown) == len(tokens):
            raise InputError(
                f"{self.name} knows none of these words ({clip(' '.join(unknown), 60)}): it reads sentences such as "
                "“She is eating a green apple”; any words at all are read by --model toy-random"
            )
        if unknown:
            notes += (Note.of("unknown_words", words=", ".join(dict.fromkeys(unknown))),)
        return Sentence(text=text, pair=pair, tokens=tuple(tokens), notes=notes, is_cut=is_cut)

    def _target(self, source: Tensor, given: str | None, truncate: bool) -> tuple[Token, ...]:  # noqa: FBT001
        """What is generated: the words given, or the model's own, running free; then its end."""
        if self._card.target is None or isinstance(self._model, LanguageEncoder | LanguageDecoder):
            return ()
        config, vocabulary = self._card.plan.config, self._card.target
        if given is None:
            numbers = self._model.translate(source[None]).words[0].tolist()
            words = [word for word in vocabulary.decode(numbers) if word != END]
            ended = config.end in numbers
        else:
            words, ended = [given[start:end] for start, end in split_words(given)], True
            most = config.max_length - 1
            if not words:
                raise InputError(f"there is no word in this target: {visible(given)[:40]!r}")
            if len(words) > most and not truncate:
                raise TooLongError(f"the target has {len(words):,} words, but {self.name} generates at most {most:,}")
            words = words[:most]
        tokens, place = [], 0
        for number, (word, which) in enumerate(zip(words, vocabulary.encode(words), strict=True)):
            span = (place, place + len(word))
            tokens.append(Token(text=visible(word), piece=word, id=which, span=span, word=number, segment=2))
            place += len(word) + 1
        end = Token(text=END, piece=END, id=config.end, special=True, segment=2)
        return (*tokens, *([end] if ended else []))


def _numbers(rows: Sequence[Sequence[Token]]) -> Tensor:
    """The numbers of tokens [batch, token], zeros after the shorter rows."""
    return pad_numbers([[token.id or 0 for token in row] for row in rows])


def _words(text: str, segment: int, before: int, vocabulary: Vocabulary | None = None) -> list[Token]:
    """The words of a sentence as tokens, numbered on from those before it; with their numbers in a vocabulary."""
    spans = split_words(text)
    numbers = vocabulary.encode(text[start:end] for start, end in spans) if vocabulary else [None] * len(spans)
    return [
        Token(
            text=visible(text[start:end]),
            piece=text[start:end],
            id=number,
            span=(start, end),
            word=before + index,
            segment=segment,
        )
        for index, ((start, end), number) in enumerate(zip(spans, numbers, strict=True))
    ]


def _watched(run: ForwardPass) -> AttendFunction:
    """The home-built formula, with a run looking on."""

    def attend(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> tuple[Tensor, None]:
        context, _ = scaled_dot_product_attention(query, key, value, mask)
        run.layer(query, key, value, context.transpose(1, 2), Scoring(mask=mask))
        return context, None

    return attend


class _Steps:
    """The decoding steps of a recurrent model, each one row of the same attention."""

    def __init__(self) -> None:
        self._queries: list[Tensor] = []
        self._contexts: list[Tensor] = []

    def watched(self, formula: AttendFunction) -> AttendFunction:
        """The model's own formula, its queries and contexts kept."""

        def attend(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor | None]:
            context, weights = formula(query, key, value, mask)
            self._queries.append(query)
            self._contexts.append(context)
            self._rest = key, value, mask
            return context, weights

        return attend

    def show(self, run: ForwardPass) -> None:
        """Show all steps to a run as one layer."""
        key, value, mask = self._rest
        output = torch.cat(self._contexts, dim=2).transpose(1, 2)
        run.layer(torch.cat(self._queries, dim=2), key, value, output, Scoring(mask=mask))
