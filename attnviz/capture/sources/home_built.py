"""The home-built models as sources: the trained ones, and those with random weights."""

from __future__ import annotations

import copy
import re
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cache, partial
from itertools import accumulate, groupby
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn
from typing_extensions import Self

from attnviz.attention import GENERATED, Kind, Note, Receipt, Token
from attnviz.capture.batching import batch_of_one, with_generation
from attnviz.capture.observers import Batch, Observer, Sentence
from attnviz.capture.projections import WordHead, show_calls
from attnviz.capture.sources import Outputs, Source, expect_kind
from attnviz.capture.sources.decoding import Decoding, cannot_generate, no_template, room_of
from attnviz.capture.stream import BLOCK_ROWS, ForwardPass, Layer, Scoring, digest_of, rows_of
from attnviz.errors import InputError, ModelError, TooLongError, UnknownModelError
from attnviz.models.attention import AttendFunction, scaled_dot_product_attention
from attnviz.models.circuit import Circuit
from attnviz.models.config import Language, ToyConfig
from attnviz.models.embedding import after_start, sinusoidal_positions
from attnviz.models.language.vocabulary import (
    END,
    MASK,
    PIECE,
    SPECIAL,
    START,
    UNKNOWN,
    Vocabulary,
)
from attnviz.models.language_models import (
    LanguageDecoder,
    LanguageEncoder,
    ToyEncoder,
    TranslationTransformer,
)
from attnviz.models.registry import HOME_BUILT, KINDS, RANDOM, is_random
from attnviz.models.training.files import FOLDER, file_of, load_home_built, new_model
from attnviz.text.display import clip, token_text, visible
from attnviz.text.words import split_words

# The most weights of a model with random weights: they take seconds to draw and 200 MB of memory.
MOST_WEIGHTS = 50_000_000
LONG = 2_048  # the most tokens whose weights a home-built model holds whole
MOST_TOGETHER = 64  # sentences that are translated in one batch
UNKNOWN_MARK = "[UNK]"  # the label of a word that is not in the vocabulary, as in BERT's tokenizers
NOTES = (Note("random_weights"),)
# Example sentences for the models that do not read English.
EXAMPLES = {"korean": "고양이가 방에서 자고 있어요"}


class _HomeBuilt(Source):
    """Base of the home-built sources: a token is a word, and all attention is computed by one function."""

    can_be_cut = True

    def __init__(self, model: nn.Module) -> None:
        self._model: Any = model
        self._device = torch.device("cpu")

    def placed(self, device: torch.device, dtype: torch.dtype) -> Self:
        """Put the model on a device, in a number format."""
        self._model.to(device, dtype)
        self._device = device
        return self

    def stream(self, batch: Batch, observers: Sequence[Observer]) -> Receipt:
        """Run the model; every observer sees every block of rows."""
        run = ForwardPass(batch=batch, observers=observers, native="home-built")
        with torch.inference_mode(), show_calls(self._model, observers):
            self._run(batch, run)
        return run.receipt(self.name)

    def outputs(
        self, batch: Batch, observers: Sequence[Observer], outputs: Outputs
    ) -> tuple[Tensor, Receipt]:
        """Run the model, and return one of its outputs too. Raises ModelError: it predicts no words."""
        run = ForwardPass(batch=batch, observers=observers, native="home-built")
        with torch.inference_mode(), show_calls(self._model, observers):
            output = self._output(batch, run, words=outputs == "words")
        return output, run.receipt(self.name)

    def hidden(self) -> tuple[nn.Embedding, Tensor] | None:
        """Return the table of word vectors, and the vector of the mask; None if the words have no table."""
        tables = [part for part in self._model.modules() if isinstance(part, nn.Embedding)]
        if not tables:
            return None
        weight, mask = tables[0].weight, self.mask_id
        return tables[0], weight.mean(dim=0) if mask is None else weight[mask]

    def digest(self) -> str:
        """Return a digest of the bytes of all weights, which identifies the model."""
        return digest_of(self._model)

    @abstractmethod
    def _run(self, batch: Batch, run: ForwardPass) -> Any:
        """Run the model while its attention goes to a run, and return its output."""

    @abstractmethod
    def _output(self, batch: Batch, run: ForwardPass, *, words: bool) -> Tensor:
        """Run the model while its attention goes to a run, and return its last states, or its logits of words."""


class ToySource(_HomeBuilt):
    """A home-built encoder with random weights, for sentences of any length."""

    kinds = KINDS["random"]

    def __init__(self, config: ToyConfig, name: str = RANDOM) -> None:
        n_weights = config.n_layers * (4 * config.d_model**2 + 2 * config.d_model * config.d_ff)
        if n_weights > MOST_WEIGHTS:
            raise ModelError(
                f"these sizes make {n_weights:,} weights: at most {MOST_WEIGHTS:,} are drawn"
            )
        # The name in pictures tells which sizes differ from those of the named model.
        default_config = HOME_BUILT[name].config
        settings = [f"seed {config.seed}"]
        for size in ("d_model", "n_heads", "n_layers"):
            if getattr(config, size) != getattr(default_config, size):
                settings.append(f"{size} {getattr(config, size)}")
        self._base_name, self.name = name, f"{name} ({', '.join(settings)})"
        # Whether the words are in lower case between [CLS] and [SEP], as in BERT.
        self.has_special_tokens = config.special_tokens
        super().__init__(ToyEncoder(config))

    def _read(self, text: str, pair: str | None, target: str | None, kind: Kind | None) -> Batch:
        """Return a batch of one sentence."""
        shown_kind = expect_kind(self, kind, target)
        tokens = _read_words(text, pair)
        if self.has_special_tokens:
            words = [replace(t, text=t.text.lower(), piece=t.piece.lower()) for t in tokens]
            n = sum(word.segment == 0 for word in words)
            tokens = (_special("[CLS]", 0), *words[:n], _special("[SEP]", 0))
            if words[n:]:
                tokens += (*words[n:], _special("[SEP]", 1))
        sentence = Sentence(text=text, pair=pair, tokens=tokens, notes=NOTES)
        return batch_of_one(sentence, {}, shown_kind)

    def _run(self, batch: Batch, run: ForwardPass) -> None:
        sentences = [[token.piece for token in s.tokens] for s in batch.sentences]
        self._model(sentences, attend=_watch(run))

    def _output(self, batch: Batch, run: ForwardPass, *, words: bool) -> Tensor:
        if words:
            raise ModelError(f"{self.name} predicts no words")
        sentences = [[token.piece for token in s.tokens] for s in batch.sentences]
        states: Tensor = self._model(sentences, attend=_watch(run))[0]
        return states

    def untrained(self, seed: int = 0) -> ToySource:
        """Return a model of the same sizes with other random weights."""
        config = replace(self._model.config, seed=self._model.config.seed + 1 + seed)
        dtype = next(self._model.parameters()).dtype
        return ToySource(config, self._base_name).placed(self._device, dtype)

    def embedded(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return the vectors of the first sentence's words, and those of their positions: each [token, d_model]."""
        words = [token.piece for token in batch.sentences[0].tokens]
        return self._model.word_vectors(words), self._model.positions(len(words))


class CircuitSource(_HomeBuilt):
    """The decoder made by hand, which reads the tokens that were drawn for it, whatever the text is."""

    kinds = KINDS["decoder"]

    def __init__(self, seed: int = 0) -> None:
        self.name = f"a circuit made by hand (seed {seed})"
        super().__init__(Circuit(seed))
        self.order: list[str] = self._model.order

    def _read(self, text: str, pair: str | None, target: str | None, kind: Kind | None) -> Batch:
        """Return a batch of the tokens."""
        shown_kind = expect_kind(self, kind, target)
        tokens = tuple(Token(text=name, piece=name, id=n) for n, name in enumerate(self.order))
        sentence = Sentence(text=text, pair=pair, tokens=tokens)
        return batch_of_one(sentence, {"stream": self._model.embed()}, shown_kind)

    def _run(self, batch: Batch, run: ForwardPass) -> Any:
        return self._model(batch.inputs["stream"], attend=_watch(run))

    def _output(self, batch: Batch, run: ForwardPass, *, words: bool) -> Tensor:
        logits: Tensor = self._run(batch, run)
        return logits

    def word_names(self, numbers: Sequence[int]) -> Sequence[str]:
        """Return the names of the tokens whose words these are."""
        return [self.order[number] for number in numbers]

    def untrained(self, seed: int = 0) -> CircuitSource:
        """Raise ModelError: it was never trained."""
        raise ModelError(f"{self.name} has no initial weights")


def home_built(
    name: str, sizes: Mapping[str, int], device: torch.device, dtype: torch.dtype | None
) -> ToySource | TrainedSource:
    """Return a model by its name in `registry.HOME_BUILT`, or a trained one by its file.

    Raises ModelError: sizes that do not fit together, or too large; UnknownModelError: there is no such file.
    """
    dtype = dtype or torch.float32
    if is_random(name):
        config = replace(cast("ToyConfig", HOME_BUILT[name].config), **dict[str, Any](sizes))
        return ToySource(config, name).placed(device, dtype)
    path = file_of(name)
    if path.parent == FOLDER:
        return copy.copy(_shipped(name, device, dtype))
    if not path.is_file():
        raise UnknownModelError(f"there is no file {clip(visible(name), 100)}")
    return TrainedSource(name).placed(device, dtype)


@cache
def _shipped(name: str, device: torch.device, dtype: torch.dtype) -> TrainedSource:
    """Load a model that ships with attnviz once: all its sources share the weights, which nothing changes."""
    return TrainedSource(name).placed(device, dtype)


class TrainedSource(_HomeBuilt):
    """A trained home-built model, by its name in `registry.HOME_BUILT`, or by its file."""

    def __init__(self, name: str) -> None:
        self.name = visible(Path(name).name)
        self._card, model = load_home_built(name)
        self._config = self._card.plan.config
        # The vocabulary of the text that the model writes; a decoder reads and writes one vocabulary.
        self._output_vocabulary = self._card.target or self._card.source
        super().__init__(model)
        self.kinds = KINDS[self._card.plan.kind]
        self.generates = self._card.target is not None
        self.can_be_cut = self._card.plan.kind != "recurrent"
        if self._card.plan.kind == "encoder":
            self.mask_id = SPECIAL.index(MASK)
        # The language that it was trained on, which has further sentences for tests; None for a translation model.
        self.language: Language | None = getattr(self._config, "language", None)
        self.example = EXAMPLES.get(self.language or "", "")
        # The ids of the translations that `prepare` made, by the ids of the sentence.
        self._translations: dict[tuple[int, ...], list[int]] = {}

    def prepare(self, texts: Sequence[str]) -> None:
        """Translate many sentences together, those of one length in one batch, so that none is padded."""
        if not self.generates:
            return
        sources: dict[tuple[int, ...], None] = {}
        for text in texts:
            with suppress(InputError):  # `encode` says what is wrong with it
                sources[_ids(self._sentence(text, None).tokens)] = None
        self._translations, pad = {}, self._config.pad
        for _, group in groupby(sorted(sources, key=len), key=len):
            for batch in torch.split(torch.tensor(list(group), device=self._device), MOST_TOGETHER):
                words = self._model.translate(batch).words
                for ids, numbers in zip(batch.tolist(), words.tolist(), strict=True):
                    self._translations[tuple(ids)] = [n for n in numbers if n != pad]

    def _read(self, text: str, pair: str | None, target: str | None, kind: Kind | None) -> Batch:
        """Return a batch of one sentence."""
        shown_kind = expect_kind(self, kind, target)
        sentence = self._sentence(text, pair, may_cut=target is None)
        source = self._numbers(sentence.tokens)
        if not self.generates:
            return batch_of_one(sentence, {"words": source}, shown_kind)
        text, tokens = self._generate(source, target)
        start = _special(START, GENERATED, self._config.start)
        inputs = {"source": source, "target": self._numbers(tokens)}
        sentence = with_generation(
            sentence, shown_kind, "word", text=text, tokens=tokens, start=start
        )
        return batch_of_one(sentence, inputs, shown_kind)

    def _numbers(self, tokens: Sequence[Token]) -> Tensor:
        """Return the ids of tokens, [1, token]."""
        return torch.tensor([_ids(tokens)], device=self._device)

    def _run(self, batch: Batch, run: ForwardPass) -> Any:
        model, inputs = self._model, batch.inputs
        if isinstance(model, LanguageEncoder | LanguageDecoder):
            return model(inputs["words"], attend=_watch(run))
        if isinstance(model, TranslationTransformer):
            hooks: dict[str, AttendFunction] = {f"attend_{batch.kind}": _watch(run)}
            return model(inputs["source"], inputs["target"], **hooks)
        with _steps_of(run) as attend:
            return model(inputs["source"], inputs["target"], attend=attend)

    def _output(self, batch: Batch, run: ForwardPass, *, words: bool) -> Tensor:
        model, inputs, attend = self._model, batch.inputs, _watch(run)
        output: Tensor
        if isinstance(model, LanguageEncoder | LanguageDecoder):
            output = model.encode(inputs["words"], attend=attend)[0]
            return model.word_projection(output) if words else output
        if not isinstance(model, TranslationTransformer):
            raise ModelError(
                f"{self.name} attends once a step: what it does without some of it cannot be seen"
            )
        if words:
            hooks: dict[str, AttendFunction] = {"attend_encoder": attend, "attend_cross": attend}
            output = model(inputs["source"], inputs["target"], **hooks).logits
            return output
        mask = (inputs["source"] != self._config.pad)[:, None]
        source = model.source_embedding(inputs["source"])
        output = model.transformer.encoder(source, mask, attend=attend)[0]
        return output

    def untrained(self, seed: int = 0) -> TrainedSource:
        """Return the same architecture with its initial weights, drawn from a seed."""
        plan, dtype = self._card.plan, next(self._model.parameters()).dtype
        source = copy.copy(self)
        source.name, source._translations = f"{self.name} with random weights", {}
        source._model = new_model(replace(plan, recipe=replace(plan.recipe, seed=seed))).eval()
        return source.placed(self._device, dtype)

    def embedded(self, batch: Batch) -> tuple[Tensor, Tensor] | None:
        """Return the vectors of the first sentence's words, and those of their positions: each [token, d_model].

        They are the inputs of the first layer of the batch's kind; None if that layer does not read words.
        """
        model, inputs = self._model, batch.inputs
        if "words" in inputs:
            embedding, words = model.embedding, inputs["words"]
        elif not isinstance(model, TranslationTransformer) or batch.kind == "cross":
            return None
        elif batch.kind == "encoder":
            embedding, words = model.source_embedding, inputs["source"]
        else:
            embedding = model.target_embedding
            words = after_start(inputs["target"], model.config.start)
        with torch.inference_mode():
            vectors: Tensor = embedding(words[:1], positions=False)[0]
        return vectors, sinusoidal_positions(*vectors.shape).to(vectors)

    def word_names(self, numbers: Sequence[int]) -> Sequence[str]:
        """Return the texts of words that the model predicts, by their ids."""
        return self._output_vocabulary.decode(list(numbers))

    def word_id(self, word: str) -> int:
        """Return the id of a word that the model predicts. Raises InputError: it knows no such word."""
        if not self._output_vocabulary.knows(word):
            raise InputError(f"{self.name} does not know “{visible(word)}”")
        return self._output_vocabulary.encode([word])[0]

    def word_head(self, kind: Kind) -> WordHead | None:
        """Return the projection from states to words for this kind of attention; None for an encoder's."""
        if kind == "encoder":
            return None
        projection = self._model.word_projection
        return WordHead(
            module=projection,
            bias=projection.bias,
            names=self._output_vocabulary.decode,
            never=(self._config.pad, self._config.start),
        )

    def _sentence(self, text: str, pair: str | None, *, may_cut: bool = True) -> Sentence:
        """Return the sentence as tokens, cut to the model's limit if it may be, with notes."""
        tokens = _read_words(text, pair, self._card.source, hides=self.mask_id is not None)
        limit = self._config.max_length
        n_words, notes = len(tokens), tuple[Note, ...]()
        if n_words > limit:
            if not may_cut:
                raise TooLongError(
                    f"the text has {n_words:,} words, but {self.name} reads at most {limit}: shorten it"
                )
            notes = (Note.of("input_truncated_words", kept=limit, total=n_words),)
            tokens = tokens[:limit]
        unknown = [
            visible(token.piece) for token in tokens if not self._card.source.knows(token.piece)
        ]
        if len(unknown) == len(tokens):
            raise InputError(
                f"{self.name} knows none of these words ({clip(' '.join(unknown), 60)}): it reads sentences such as "
                f"“{self.example or 'She is eating a green apple'}”; any words at all are read by "
                "the model toy-random"
            )
        if unknown:
            notes += (Note.of("unknown_words", words=", ".join(dict.fromkeys(unknown))),)
        return Sentence(text=text, pair=pair, tokens=tokens, notes=notes, is_cut=n_words > limit)

    def _generate(self, source: Tensor, target: str | None) -> tuple[str, tuple[Token, ...]]:
        """Return the target or, if it is None, the model's own translation of the source ids; and its tokens."""
        if target is None:
            prepared = self._translations.get(tuple(source[0].tolist()))
            numbers = prepared or self._model.translate(source).words[0].tolist()
            words = [word for word in self._output_vocabulary.decode(numbers) if word != END]
            is_ended = self._config.end in numbers
        else:
            words, is_ended = [target[start:end] for start, end in split_words(target)], True
            # An empty target is allowed: a model may generate nothing but the end token.
            if target and not words:
                raise InputError(f"there is no word in this target: {visible(target)[:40]!r}")
            if len(words) >= (limit := self._config.max_length):
                raise TooLongError(
                    f"the target has {len(words):,} words, but {self.name} generates at most {limit - 1:,}"
                )
        return " ".join(words), self._labelled([*words, END] if is_ended else words)

    def _labelled(self, words: Sequence[str]) -> tuple[Token, ...]:
        """Return generated words as tokens, with their spans in the text joined by spaces."""
        starts = accumulate([0, *(len(word) + 1 for word in words)])
        return tuple(
            _special(END, GENERATED, self._config.end)
            if word == END
            else _token(word, start, number, GENERATED, self._output_vocabulary)
            for number, (word, start) in enumerate(zip(words, starts, strict=False))
        )

    @contextmanager
    def decoding(self, text: str, *, chat: bool, most: int) -> Iterator[Decoding]:
        """Let the model continue a text, or translate it. Raises ModelError: it generates no text."""
        config, kind = self._config, self.kinds[0]
        if kind == "encoder":
            raise cannot_generate(self.name)
        if chat:
            raise no_template(self.name)
        del most
        sentence = self._sentence(text, None)
        # A translator begins with its start token, which takes no room, a decoder with the text.
        begin = (config.start,) if self.generates else _ids(sentence.tokens)
        n_read = 0 if self.generates else len(begin)

        def tokens(generated: Sequence[int]) -> tuple[Token, ...]:
            return self._labelled(self._output_vocabulary.decode(list(generated)))

        def meaning(generated: Sequence[int]) -> str:
            return " ".join(token.piece for token in tokens(generated) if not token.special)

        yield Decoding(
            name=self.name,
            sentence=sentence,
            kind=kind,
            begin=begin,
            room=room_of(sentence, config.max_length, n_read, self.name),
            ends=frozenset({config.end}),
            never=(config.pad, config.start),
            tokens=tokens,
            text=meaning,
            forward=partial(self._next, self._numbers(sentence.tokens)),
        )

    def _next(self, source: Tensor, read: Sequence[int], run: ForwardPass) -> Tensor:
        """Return the logits of the word after those in `read`; the run sees the last rows."""
        words = torch.tensor([read], device=self._device)
        # Teacher forcing shifts the target right by one, so its last word is never read; any word can fill its place.
        target = torch.cat([words[:, 1:], words.new_full((1, 1), self._model.config.end)], dim=1)
        inputs = {"words": words, "source": source, "target": target}
        output = self._run(replace(run.batch, inputs=inputs), run)
        # A decoder without an encoder returns a tuple that begins with the logits.
        logits: Tensor = getattr(output, "logits", output[0])
        return logits[0, -1]


def _read_words(
    text: str, pair: str | None, vocabulary: Vocabulary | None = None, *, hides: bool = False
) -> tuple[Token, ...]:
    """Return the words of a text and its pair as tokens, split into pieces if the vocabulary has pieces.

    If `hides` is true, ``[MASK]`` is a hidden word.
    """
    tokens: list[Token] = []
    number = 0
    for segment, part in enumerate((text, pair or "")):
        hidden = [match.span() for match in re.finditer(r"\[MASK\]", part)] if hides else []
        words = [word for word in split_words(part) if not any(a <= word[0] < b for a, b in hidden)]
        for start, end in sorted([*words, *hidden]):
            if (start, end) in hidden:
                mask = _token(MASK, start, number, segment, vocabulary)
                tokens.append(replace(mask, text="[MASK]", span=(start, end)))
                number += 1
                continue
            word = part[start:end]
            for piece in vocabulary.pieces(word) if vocabulary else (word,):
                tokens.append(_token(piece, start, number, segment, vocabulary))
                start += len(piece.removeprefix(PIECE))
            number += 1
    if not tokens:
        raise InputError(f"there is no word in this text: {visible(text)[:40]!r}")
    return tuple(tokens)


def _token(
    word: str, start: int, number: int, segment: int, vocabulary: Vocabulary | None
) -> Token:
    """Return a word, or a piece of one, as a token; unknown words are marked, as in "quokka→[UNK]".

    `start` is the position of its first character, `number` the number of its word.
    """
    spelling = word
    if vocabulary is not None and (word == UNKNOWN or not vocabulary.knows(word)):
        text = token_text(UNKNOWN_MARK, typed=word, unknown=True)
    elif vocabulary is not None and word.startswith(PIECE):
        spelling = word.removeprefix(PIECE)
        text = token_text(spelling, continues=True)
    else:
        text = visible(word)
    return Token(
        text=text,
        piece=word,
        id=None if vocabulary is None else vocabulary.encode([word])[0],
        span=(start, start + len(spelling)),
        word=number,
        segment=segment,
    )


def _special(mark: str, segment: int, number: int | None = None) -> Token:
    """Return a special token, such as ``[CLS]``, with its id, if it has one."""
    return Token(text=mark, piece=mark, id=number, special=True, segment=segment)


def _ids(tokens: Sequence[Token]) -> tuple[int, ...]:
    return tuple(token.id or 0 for token in tokens)


def _layer(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    context: Tensor,
    weights: Tensor | None,
) -> Layer:
    """Return a layer of a home-built model; all but the mask have the shape [batch, head, token, d]."""
    return Layer(
        query=query,
        key=key,
        value=value,
        output=context.transpose(1, 2),
        own_weights=weights,
        attend=partial(_attend_again, query, key),
        scoring=Scoring(mask=mask, rounded=True),
    )


def _attend_again(
    query: Tensor, key: Tensor, rows: Tensor, values: Tensor, mask: Tensor | None
) -> Tensor:
    """Run the home-built attention on some rows with other values [key, d_v], as `Layer.attend`."""
    key = key[:, :, : len(values)]
    values = values.to(query.dtype).expand(*key.shape[:2], *values.shape)
    return scaled_dot_product_attention(query[:, :, rows], key, values, mask)[0].transpose(1, 2)


def _watch(run: ForwardPass) -> AttendFunction:
    """Return the home-built models' scaled dot-product attention, which also passes each layer to a run.

    The weights of a long text are never held whole: it attends with a block of rows at a time.
    """

    def attend(
        query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None
    ) -> tuple[Tensor, None]:
        n_queries, weights = query.shape[2], None
        if n_queries <= LONG:
            context, weights = scaled_dot_product_attention(query, key, value, mask)
        else:
            context = torch.empty_like(query)
            for first in range(0, n_queries, BLOCK_ROWS):
                rows = slice(first, min(first + BLOCK_ROWS, n_queries))
                mask_rows = None if mask is None else rows_of(mask, rows.start, rows.stop)
                context[:, :, rows], _ = scaled_dot_product_attention(
                    query[:, :, rows], key, value, mask_rows
                )
        run.add_layer(_layer(query, key, value, mask, context, weights))
        return run.edited(context.transpose(1, 2)).transpose(1, 2), None

    return attend


@contextmanager
def _steps_of(run: ForwardPass) -> Iterator[AttendFunction]:
    """Yield an attention function; when the block ends, pass the decoding steps of a recurrent model on as one layer.

    A recurrent decoder attends once per step, with one query, so each step is one row of the layer.
    """
    steps: list[tuple[Tensor, Tensor, Tensor]] = []  # query, context and weights
    shared: list[Any] = []  # key, value and mask, which are equal at every step

    def attend(
        query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        context, weights = scaled_dot_product_attention(query, key, value, mask)
        steps.append((query, context, weights))
        shared[:] = key, value, mask
        return context, weights

    yield attend
    if steps:  # else it works without attention
        query, context, weights = (torch.cat(parts, dim=2) for parts in zip(*steps, strict=True))
        key, value, mask = shared
        run.add_layer(_layer(query, key, value, mask, context, weights))
