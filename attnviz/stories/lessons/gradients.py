"""Why attention: gradients vanish along an untrained recurrent chain, and reach every word along attention.

Source: Bengio et al. 1994, "Learning Long-Term Dependencies with Gradient Descent is Difficult":
https://doi.org/10.1109/72.279181
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import islice

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attnviz.models.language import splits
from attnviz.models.language.sentences import Pair
from attnviz.models.seq2seq import RecurrentTranslator
from attnviz.models.training.tasks import encode_pairs
from attnviz.stories.common import CERTAIN, Estimate, percent
from attnviz.stories.lessons.bottleneck import WITH, WITHOUT, open_kinds
from attnviz.stories.record import Lines, Series, Story, Table
from attnviz.text.messages import _

LENGTH = 14  # words per English sentence
N_SENTENCES, N_PROBES = 16, 4
SEED = 0
UNTRAINED: dict[str, Callable[..., nn.RNNBase]] = {"RNN": nn.RNN, "GRU": nn.GRU, "LSTM": nn.LSTM}
N_UNTRAINED = 10  # networks of each kind
WIDTH = 60  # of their inputs and states; that of the trained states with attention
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


def untrained_norms(kind: Callable[..., nn.RNNBase]) -> Float[Tensor, "network distance"]:
    """Return the sizes of the gradients of the last state with respect to each input, for untrained networks.

    Each network has torch's usual random weights and its own random inputs.
    """
    norms = []
    for seed in range(N_UNTRAINED):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            network = kind(WIDTH, WIDTH, batch_first=True)
            x = torch.randn(N_SENTENCES, LENGTH, WIDTH, requires_grad=True)
        random = torch.Generator().manual_seed(seed)
        with torch.enable_grad():
            states = network(x)[0]
            norms.append(jacobian_norms(states[:, -1], x, random).flip(-1).mean(dim=0))
    return torch.stack(norms)


def relative(norms: Float[Tensor, "sentence distance"]) -> Float[Tensor, "sentence distance"]:
    """Return the norms divided by the mean norm at the last word."""
    return norms / norms[:, :1].mean()


def means(shares: Float[Tensor, "sample distance"]) -> list[Estimate]:
    """Return the mean over samples (sentences or networks) at each distance, with 95% intervals."""
    shares = shares.double()
    centres = shares.mean(dim=0).tolist()
    errors = (CERTAIN * shares.std(dim=0) / len(shares) ** 0.5).tolist()
    # The lower end stays above 0, since the axis of the picture is logarithmic.
    return [Estimate(m, max(m - e, 1e-6), m + e) for m, e in zip(centres, errors, strict=True)]


def build_story() -> Story:
    """Compare the gradients along untrained chains, trained chains and attention, by distance from the end."""
    pairs = sentence_pairs()
    untrained = {name: means(relative(untrained_norms(kind))) for name, kind in UNTRAINED.items()}
    kinds = open_kinds()
    chains, along_attention = [], []
    for model in kinds[WITH]:
        chain, attention = gradient_norms(model, pairs)
        assert attention is not None
        chains.append(relative(chain))
        along_attention.append(relative(attention))
    chains_alone = [relative(gradient_norms(model, pairs)[0]) for model in kinds[WITHOUT]]
    shares_of = {
        _("with attention, along attention"): torch.stack(along_attention),
        _("with attention, along the chain"): torch.stack(chains),
        _("without attention, along the chain"): torch.stack(chains_alone),
    }
    trained = {name: means(shares.mean(dim=0)) for name, shares in shares_of.items()}
    at_first = [percent(estimates[-1].mean) for estimates in trained.values()]
    last = [f"{100 * estimates[-1].mean:.2g}%" for estimates in untrained.values()]
    return Story(
        title=_(
            "{distance} words back, attention brings {attention} of the gradient; an untrained "
            "RNN {rnn}, GRU {gru}, LSTM {lstm}"
        ).format(
            distance=LENGTH - 1,
            rnn=last[0],
            gru=last[1],
            lstm=last[2],
            attention=at_first[0],
        ),
        receipt=_(
            "Gradients by automatic differentiation: {n_untrained} untrained networks of each kind, "
            "{width} numbers wide, on random inputs; {n_trained} trained translators of each kind on {n} "
            "unseen sentences of {length} words. Norms from {n_probes} random vectors each (seed "
            "{seed})."
        ).format(
            n_untrained=N_UNTRAINED,
            width=WIDTH,
            n_trained=len(kinds[WITH]),
            n=len(pairs),
            length=LENGTH,
            n_probes=N_PROBES,
            seed=SEED,
        ),
        parts=[
            _(
                "A network learns by gradients: how much would its result change if a word's vector "
                "changed a little? In a recurrent network, a word must pass through every later "
                "step to reach the last state. The table shows the size of d last state / d word "
                "before training, in percent of that of the last word."
            ),
            Table(
                _("Percent of the last word's gradient, before training"),
                [_("words back"), *untrained],
                [
                    (i, *(f"{100 * estimates[i].mean:.4f}" for estimates in untrained.values()))
                    for i in IN_TABLE
                ],
            ),
            _(
                "Every step multiplies the gradient by what the network lets through, so it falls "
                "exponentially. At first, such a network learns little from words far back."
            ),
            _(
                "Training opens the gates of a GRU as far as the task needs. The translators with "
                "attention have two ways to reach a word: through the encoder's last state, at the "
                "end of the chain, and through attention, at the step that attends to the word "
                "most. Those without attention must carry the whole sentence in the last state."
            ),
            Table(
                _("Share of the last word's gradient, after training (95% interval)"),
                [_("words back"), *trained],
                [(i, *(estimates[i].shown() for estimates in trained.values())) for i in IN_TABLE],
            ),
            _(
                "Of what the last word gets, the first of {length} words gets {chain} along the chain "
                "with attention and {alone} without: training can keep a chain open. Along attention, "
                "which reaches every word in one step, it gets {attention}. `attnviz demo bottleneck` "
                "shows what it costs to go without attention."
            ).format(length=LENGTH, chain=at_first[1], alone=at_first[2], attention=at_first[0]),
        ],
        picture=[
            _chart(_("Before training"), untrained),
            _chart(_("After training"), trained),
        ],
    )


def _chart(title: str, estimates_of: Mapping[str, list[Estimate]]) -> Lines:
    """Return a chart of the shares by distance, on a logarithmic axis."""
    return Lines(
        title,
        [float(distance) for distance in range(LENGTH)],
        _("words back from the end of the sentence"),
        [Series.of(way, estimates) for way, estimates in estimates_of.items()],
        _("share of the last word's gradient"),
        y_doubling=True,
    )
