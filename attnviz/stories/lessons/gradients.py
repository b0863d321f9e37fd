"""Why attention: gradients vanish along a recurrent chain, but not along attention.

Source: Bengio et al. 1994, "Learning Long-Term Dependencies with Gradient Descent is Difficult":
https://doi.org/10.1109/72.279181
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

import torch
from jaxtyping import Float
from torch import Tensor

from attnviz.models.language import splits
from attnviz.models.language.sentences import Pair
from attnviz.models.seq2seq import RecurrentTranslator
from attnviz.models.training.tasks import encode_pairs
from attnviz.stories.common import CERTAIN, Estimate, open_model, percent
from attnviz.stories.record import Lines, Series, Story, Table
from attnviz.text.messages import _

MODEL, WITHOUT = "toy-seq2seq", "bottleneck-without-0"
LENGTH = 14  # words per English sentence
N_SENTENCES, N_PROBES = 16, 4
SEED = 0
IN_TABLE = (0, 1, 2, 4, 6, 8, 10, 12, 13)  # distances that the table shows


def sentence_pairs() -> list[Pair]:
    """Return unseen test pairs whose English sentences have `LENGTH` words."""
    pairs = (pair for pair in splits.pairs("test", clauses=2) if len(pair.english) == LENGTH)
    return list(islice(pairs, N_SENTENCES))


def jacobian_norms(
    y: Float[Tensor, "sentence d"], x: Float[Tensor, "sentence word e"], random: torch.Generator
) -> Float[Tensor, "sentence word"]:
    """Return the Frobenius norm of d y / d x for each word.

    It is estimated with random vectors v of variance 1, since the mean of |v^T J|^2 is |J|^2 (Hutchinson 1990).
    """
    squares = torch.zeros(x.shape[:2])
    for _probe in range(N_PROBES):
        probe = torch.randn(y.shape, generator=random)
        (gradient,) = torch.autograd.grad(y, x, probe, retain_graph=True)
        squares += gradient.square().sum(dim=-1)
    return (squares / N_PROBES).sqrt()


def gradient_norms(
    model: RecurrentTranslator, pairs: Sequence[Pair]
) -> tuple[Tensor, Tensor | None]:
    """Return the sizes of the gradients with respect to each word vector [sentence, distance from the end].

    The first result is along the chain, for the last state of the encoder. The second is along attention, for the
    context of the decoding step that attends to the word most; it is None without attention.
    """
    random = torch.Generator().manual_seed(SEED)
    source, target = encode_pairs(pairs, model.config.end)
    embedded: list[Tensor] = []

    def make_leaf(_module: object, _args: object, out: Tensor) -> Tensor:
        """Replace the word vectors by a leaf of the graph, so that gradients stop there."""
        embedded.append(out.detach().requires_grad_())
        return embedded[-1]

    hook = model.source_embedding.register_forward_hook(make_leaf)
    with torch.enable_grad():
        encoded = model.encode(source)
        hook.remove()
        (x,) = embedded
        chain = jacobian_norms(encoded.last, x, random).flip(-1)
        if model.attention is None or encoded.key is None or encoded.value is None:
            return chain, None
        state, word = encoded.last, torch.full_like(source[:, 0], model.config.start)
        weights, norms = [], []
        for right_words in target.T:
            context, row = model.attention(state, encoded.key, encoded.value, encoded.mask)
            assert row is not None
            # After the end of a translation no step counts.
            weights.append((row * (right_words[:, None] != 0)).detach())
            norms.append(jacobian_norms(context, x, random))
            state = model.step(word, state, encoded)[1]
            word = right_words
    step = torch.stack(weights).argmax(dim=0)  # [sentence, word]
    return chain, torch.stack(norms).gather(0, step[None])[0].flip(-1)


def relative_means(norms: Float[Tensor, "sentence distance"]) -> list[Estimate]:
    """Return the mean over sentences at each distance, divided by the mean at the last word, with 95% intervals."""
    shares = norms.double() / norms[:, 0].double().mean()
    means = shares.mean(dim=0).tolist()
    errors = (CERTAIN * shares.std(dim=0) / len(shares) ** 0.5).tolist()
    # The lower end stays above 0, since the axis of the picture is logarithmic.
    return [Estimate(m, max(m - e, 1e-4), m + e) for m, e in zip(means, errors, strict=True)]


def build_story() -> Story:
    """Compare the gradients along three paths to a word, by its distance from the end of the sentence."""
    pairs = sentence_pairs()
    chain, attention = gradient_norms(open_model(MODEL, RecurrentTranslator)[1], pairs)
    assert attention is not None
    chain_alone = gradient_norms(open_model(WITHOUT, RecurrentTranslator)[1], pairs)[0]
    ways = {
        _("{model}, along attention").format(model=MODEL): relative_means(attention),
        _("{model}, along the chain").format(model=MODEL): relative_means(chain),
        _("without attention, along the chain"): relative_means(chain_alone),
    }
    along_attention, along_chain, along_chain_alone = (
        percent(means[-1].mean) for means in ways.values()
    )
    return Story(
        title=_(
            "{distance} words back: {chain} of the last word's gradient along the chain, {attention} "
            "along attention"
        ).format(distance=LENGTH - 1, chain=along_chain, attention=along_attention),
        receipt=_(
            "Gradients by automatic differentiation on {n} unseen sentences of {length} words, norms "
            "from {n_probes} random vectors each (seed {seed})."
        ).format(n=len(pairs), length=LENGTH, n_probes=N_PROBES, seed=SEED),
        parts=[
            _(
                "A network learns by gradients: how much would its result change if a word's vector "
                "changed a little? In a recurrent encoder, a word must pass through every later step. "
                "{model} has two ways to reach a word: through its encoder's last state, at the end "
                "of the chain, and through attention, at the step that attends to the word most. The "
                "table shows the size of d result / d word as a share of the last word's."
            ).format(model=MODEL),
            Table(
                _("Share of the last word's gradient (95% interval)"),
                [_("words back"), *ways],
                [(i, *(means[i].shown() for means in ways.values())) for i in IN_TABLE],
            ),
            _(
                "Along the chain the first of {length} words gets {chain} of what the last one gets, "
                "because every step multiplies the gradient by what its gates let through. So a model "
                "learns little from words far back. Attention reaches every word in one step: "
                "{attention}."
            ).format(length=LENGTH, chain=along_chain, attention=along_attention),
            _(
                "A model without attention must carry the whole sentence in its last state. Trained "
                "for that, its chain keeps {alone}. `attnviz demo bottleneck` shows what that costs "
                "in translations."
            ).format(alone=along_chain_alone),
        ],
        picture=[
            Lines(
                _("The gradient that reaches a word"),
                [float(distance) for distance in range(LENGTH)],
                _("words back from the end of the sentence"),
                [Series.of(way, means) for way, means in ways.items()],
                _("share of the last word's gradient"),
                y_doubling=True,
            )
        ],
    )
