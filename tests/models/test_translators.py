"""Behaviour that all translators share: forced and free, in batches with padding."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeAlias

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from attnviz.models.config import RecurrentConfig, TranslationConfig
from attnviz.models.language_models import TranslationTransformer
from attnviz.models.seq2seq import RecurrentTranslator
from attnviz.models.transformer import Weights
from tests.models.parity import words

Translator: TypeAlias = RecurrentTranslator | TranslationTransformer

# Different primes, so that no two axes can be confused; only d_model must divide by the heads: 3 x 7.
WORDS: dict[str, Any] = {"n_source_words": 23, "n_target_words": 19}
RECURRENT = RecurrentConfig(d_embedding=5, d_hidden=13, **WORDS)
CONFIGS: dict[str, RecurrentConfig | TranslationConfig] = {
    "recurrent": RECURRENT,
    "recurrent without attention": replace(RECURRENT, attention=None),
    "transformer": TranslationConfig(d_model=21, n_heads=3, d_ff=17, n_layers=2, **WORDS),
}
STEPS = 7


def new_model(name: str, **change: Any) -> Translator:
    """A model in double precision, which rounds too little to hide a mistake."""
    config: RecurrentConfig | TranslationConfig = replace(CONFIGS[name], **change)
    if isinstance(config, RecurrentConfig):
        return RecurrentTranslator(config).double().eval()
    return TranslationTransformer(config).double().eval()


@pytest.fixture(params=CONFIGS)
def model(request: pytest.FixtureRequest) -> Translator:
    """Each kind of translator."""
    return new_model(request.param)


def source_weights(translation: Any) -> list[Tensor]:
    """The weights over the source, of each layer that has them [batch, ..., step, source]."""
    if isinstance(translation.weights, Weights):
        return [layer for layer in translation.weights.cross if layer is not None]
    return [] if translation.weights is None else [translation.weights]


def outspoken(model: Translator) -> Translator:
    """The model with larger weights, so that it does not say one word again and again."""
    changed = model if isinstance(model, RecurrentTranslator) else model.word_projection
    for parameter in changed.parameters():
        parameter.data.mul_(4)
    return model


def test_a_later_word_changes_no_earlier_logit(model: Translator) -> None:
    """New words at the end of the target leave what came before as it was, to the last bit."""
    source, target = words(23, 11, 1, 5), words(19, 7, 7, 7)
    changed = target.clone()
    changed[:, 4:] = RECURRENT.unknown
    before, after = model(source, target), model(source, changed)
    # step 5 is the first to read word 4
    assert torch.equal(before.logits[:, :5], after.logits[:, :5])
    assert not torch.allclose(before.logits[:, 5:], after.logits[:, 5:])
    for pattern, other in zip(source_weights(before), source_weights(after), strict=True):
        assert torch.equal(pattern[..., :5, :], other[..., :5, :])


def test_free_running_equals_teacher_forcing_on_its_own_words(model: Translator) -> None:
    """Each word is the likeliest after those before, and the numbers are the forced ones, to the last bit."""
    source = words(23, 11, 1, 5)
    free = outspoken(model).translate(source, max_length=STEPS)
    forced = model(source, free.words)
    assert torch.equal(free.logits, forced.logits)
    assert torch.equal(free.words, forced.words)
    assert_close(free.weights, forced.weights, rtol=0, atol=0)
    assert len(set(free.words.flatten().tolist())) > 2


def test_finished_sentences_stay_finished(model: Translator) -> None:
    """After its end a sentence is padding while the others go on, and is what it is alone."""
    source = words(23, *range(1, 11))
    end = RECURRENT.end
    first = outspoken(model).translate(source, max_length=1).logits[:, 0]
    lead = first[:, end + 1 :].amax(dim=1) - first[:, end]
    # for half of them, the end comes at once
    model.word_projection.bias.data[end] += lead.quantile(0.5)
    together = model.translate(source, max_length=29).words
    assert torch.equal(model(source, together).words, together)
    lengths = []
    for row, said in enumerate(together):
        ends = (said == end).nonzero()
        n = int(ends[0]) + 1 if len(ends) else len(said)
        assert not torch.isin(said[:n], torch.tensor([RECURRENT.pad, RECURRENT.start])).any()
        assert (said[n:] == RECURRENT.pad).all()
        alone = model.translate(source[row : row + 1, : row + 1], max_length=29)
        assert torch.equal(alone.words[0], said[:n])
        lengths.append(n)
    assert min(lengths) == 1 < max(lengths) == together.shape[1]
