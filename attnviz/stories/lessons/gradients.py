"""Why attention: the gradient that comes back to a word fades along a recurrent chain, and not along attention.

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
from attnviz.stories.common import CERTAIN, Estimate, open_model, percent, story, table
from attnviz.stories.record import Cell, Lines, Series, Story
from attnviz.text.messages import _

MODEL, WITHOUT = "toy-seq2seq", "bottleneck-without-0"
LENGTH = 14  # words of each English sentence
N_SENTENCES, PROBES = 16, 4
SEED = 0
SHOWN = (0, 1, 2, 4, 6, 8, 10, 12, 13)  # distances that the table has, of those of the picture
TITLE = _(
    "{far} words back: {chained} of the last word's gradient along the chain, {attended} along "
    "attention"
)
CHAIN = _(
    "Along the chain the first of {length} words gets {chained} of what the last one gets: every "
    "step multiplies by what the gates let through. So a model learns little from what stood far "
    "back. Attention reaches every word in one step, whatever its distance: {attended}."
)
RECEIPT = _(
    "gradients by torch's own differentiation, on {n_pairs} unseen sentences of {length} words; "
    "norms from {probes} random vectors each, seed {seed}; intervals hold 95 %"
)
INTRODUCTION = _(
    "A network learns by gradients: how much would its result change if a word's vector changed a "
    "little? In a recurrent encoder a word's trace must pass through every later step. {model} "
    "has both ways: the encoder's last state, at the end of the chain, and the context that "
    "attention brings at the step that looks at the word most. The table has the length of d "
    "result / d word, as a share of what it is for the last word."
)
TABLE = _("share of the last word's gradient, by how many words back (95 % interval)")
COST = _(
    "{model} needs no memory in its chain, and its gates began closed to the past. A model "
    "without attention must carry the sentence in its last state; trained for that, the chain "
    "keeps {alone}. What that costs in translations of long sentences is told by `attnviz demo "
    "bottleneck`."
)


def sentences(n: int = N_SENTENCES) -> list[Pair]:
    """Unseen test pairs of one length."""
    return list(
        islice((pair for pair in splits.pairs("test", clauses=2) if len(pair.english) == LENGTH), n)
    )


def jacobian_norms(
    y: Float[Tensor, "sentence d"], x: Float[Tensor, "sentence word e"], random: torch.Generator
) -> Tensor:
    """The Frobenius norm of d y / d x for each word [sentence, word].

    Random vectors v of variance 1 estimate it: the mean of |v^T J|^2 is |J|^2 (Hutchinson 1990).
    """
    squares = torch.zeros(x.shape[:2])
    for _probe in range(PROBES):
        (gradient,) = torch.autograd.grad(
            y, x, torch.randn(y.shape, generator=random), retain_graph=True
        )
        squares += gradient.square().sum(dim=-1)
    return (squares / PROBES).sqrt()


def reach(model: RecurrentTranslator, pairs: Sequence[Pair]) -> tuple[Tensor, Tensor | None]:
    """Read sentences of one length, generate the right translations, and go back to each word's vector.

    Returns norms of Jacobians by that vector [sentence, distance from the end]: along the chain, of the encoder's last
    state; along attention, of the context of the step that looks at the word most, None without attention.
    """
    random, kept = torch.Generator().manual_seed(SEED), list[Tensor]()
    source, target = encode_pairs(pairs, model.config.end)

    def keep(_module: object, _args: object, out: Tensor) -> Tensor:
        kept.append(out.detach().requires_grad_())
        return kept[-1]

    hook = model.source_embedding.register_forward_hook(keep)
    with torch.enable_grad():
        encoded = model.encode(source)
        hook.remove()
        (x,) = kept
        chain = jacobian_norms(encoded.last, x, random).flip(-1)
        if model.attention is None or encoded.key is None or encoded.value is None:
            return chain, None
        state, word, weights, norms = (
            encoded.last,
            torch.full_like(source[:, 0], model.config.start),
            [],
            [],
        )
        for right in target.T:
            context, looks = model.attention(state, encoded.key, encoded.value, encoded.mask)
            weights.append((looks * (right[:, None] != 0)).detach() if looks is not None else chain)
            norms.append(jacobian_norms(context, x, random))
            state = model.step(word, state, encoded)[1]
            word = right
    most = torch.stack(weights).argmax(dim=0)  # [sentence, word]
    return chain, torch.stack(norms).gather(0, most[None])[0].flip(-1)


def means(norms: Float[Tensor, "sentence distance"]) -> list[Estimate]:
    """At each distance the mean over sentences, as a share of that at the last word, with its 95 % interval."""
    shares = norms.double() / norms[:, 0].double().mean()
    error = CERTAIN * shares.std(dim=0) / len(shares) ** 0.5
    ends = zip(shares.mean(dim=0).tolist(), error.tolist(), strict=True)
    return [Estimate(m, max(m - e, 1e-4), m + e) for m, e in ends]


def tell() -> Story:
    """The demo: three ways back to a word, by its distance from the end of the sentence."""
    pairs = sentences()
    chain, attention = reach(open_model(MODEL, RecurrentTranslator)[1], pairs)
    plain = reach(open_model(WITHOUT, RecurrentTranslator)[1], pairs)[0]
    ways = zip(
        (
            _("{model}, along attention").format(model=MODEL),
            _("{model}, along the chain").format(model=MODEL),
            _("without attention, along the chain"),
        ),
        (attention, chain, plain),
        strict=True,
    )
    found = {way: means(norms) for way, norms in ways if norms is not None}
    attended, chained, alone = (percent(estimates[-1].mean) for estimates in found.values())
    far = LENGTH - 1
    n_pairs = len(pairs)
    rows: list[tuple[Cell, ...]] = [
        (back, *(estimates[back].shown() for estimates in found.values())) for back in SHOWN
    ]
    series = tuple(Series.of(way, estimates) for way, estimates in found.items())
    x, words_back = tuple(map(float, range(LENGTH))), _("words back from the end of the sentence")
    lines = Lines(
        _("the gradient that reaches a word, by its distance"),
        x,
        words_back,
        series,
        _("share of the last word's gradient"),
        y_doubling=True,
    )
    return story(
        title=TITLE.format(far=far, chained=chained, attended=attended),
        receipt=RECEIPT.format(n_pairs=n_pairs, length=LENGTH, probes=PROBES, seed=SEED),
        parts=(
            INTRODUCTION.format(model=MODEL),
            table(TABLE, (_("words back"), *found), rows),
            CHAIN.format(length=LENGTH, chained=chained, attended=attended),
            COST.format(model=MODEL, alone=alone),
        ),
        picture=[lines],
    )
