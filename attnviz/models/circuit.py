"""A decoder made by hand, in which it is known what each token does for the next word.

All that its heads read and write stands in named channels of the residual stream, and each trap is one task, or two,
of `Circuit`. Its tokens are named after what they do for the last one, the query, after which the next word comes.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attnviz.models.attention import AttendFunction, causal_mask, scaled_dot_product_attention

# What is known of each kind of token, in the words of a verdict.
RIGHT = {
    "copied": "used",
    "relayed": "used through other words",
    "backup": "used together",
    "decoy": "attended to, not used",
    "constant": "attended to, not used",
    "sink": "attended to, not used",
    "cancelling": "heads cancel",
}
KINDS = (*RIGHT, "marker", "filler", "query")
CHANNELS = ("kind", "word", "ones", "noise", "relay", "backup", "logits")
KIND, WORD, ONES, NOISE, _RELAY, BACKUP, LOGITS = range(len(CHANNELS))
SIZE = 16  # numbers in a channel, and tokens
N_LAYERS, N_HEADS = 2, 9
# Heads without a task that attend to all tokens evenly, and not to the sink alone.
WEAK = ((0, 5), (0, 6), (0, 7), (0, 8), (1, 8))
SHARP = 480.0  # the score of the key that a head looks for: so large that all other weights are 0


class Circuit(nn.Module):
    """The decoder, and the order of the tokens that it reads; both are drawn from a seed."""

    scores: Tensor  # of kinds of queries for kinds of keys [layer, head, kind, kind]
    values: Tensor  # of channels that are copied into others [layer, head, channel, channel]
    noise: Tensor

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        random = torch.Generator().manual_seed(seed)
        n = len(CHANNELS)
        self.register_buffer("scores", torch.zeros(N_LAYERS, N_HEADS, SIZE, SIZE))
        self.register_buffer("values", torch.zeros(N_LAYERS, N_HEADS, n, n))
        self.register_buffer("noise", 0.05 * torch.randn(SIZE, generator=random))
        self.order = _draw_order(random)
        # A head attends to the sink, if it has no task for a token.
        self.scores[..., KINDS.index("sink")] = SHARP
        task = self._task
        task(1, 0, "query", "copied", "word", "logits", 2.5)
        # A head of layer 0 brings the word to the marker, a head of layer 1 takes it from there.
        task(0, 0, "marker", "relayed", "word", "relay", 1.0)
        task(1, 1, "query", "marker", "relay", "logits", 2.5)
        # Two heads bring the word, of which one is enough, because a unit saturates.
        task(0, 1, "query", "backup", "word", "backup", 3.0)
        task(1, 2, "query", "backup", "word", "backup", 3.0)
        task(1, 3, "query", "decoy", "word", "logits", 0.0)
        # The same number for all words changes no probability.
        task(1, 4, "query", "constant", "ones", "logits", 2.5)
        task(1, 5, "query", "cancelling", "word", "logits", 2.5)
        task(1, 6, "query", "cancelling", "word", "logits", -2.5)
        for layer, head in WEAK:  # from every token the same noise
            self.scores[layer, head] = 0.0
            self.values[layer, head, NOISE, LOGITS] = 1.0

    def _task(
        self, layer: int, head: int, query: str, key: str, read: str, write: str, size: float
    ) -> None:
        """Let tokens of one kind attend to those of another, and copy a channel from there into another."""
        row = self.scores[layer, head, KINDS.index(query)]
        row[KINDS.index("sink")] = 0.0
        row[KINDS.index(key)] = SHARP
        self.values[layer, head, CHANNELS.index(read), CHANNELS.index(write)] = size

    def embed(self) -> Float[Tensor, "1 token channel number"]:
        """Return the stream before the first layer; the word of a token is its place, and the sink has none."""
        x = torch.zeros(1, len(self.order), len(CHANNELS), SIZE)
        for place, kind in enumerate(self.order):
            x[0, place, KIND, KINDS.index(kind)] = 1.0
            x[0, place, WORD, place] = float(kind != "sink")
        x[:, :, ONES], x[:, :, NOISE] = 1.0, self.noise
        return x

    def forward(
        self,
        x: Float[Tensor, "batch token channel number"],
        *,
        attend: AttendFunction = scaled_dot_product_attention,
    ) -> Float[Tensor, "batch token number"]:
        """Return the logits of the next word at each place."""
        mask = causal_mask(x.shape[1]).expand(len(x), 1, -1, -1)
        for scores, values in zip(self.scores, self.values, strict=True):
            key = x[:, None, :, KIND].expand(-1, N_HEADS, -1, -1)
            # (B, H, T, C, S), whose last two are the stream's
            value = torch.einsum("btcs,hcd->bhtds", x, values)
            context, _ = attend(key @ scores, key, value.flatten(start_dim=3), mask)
            x = x + context.sum(dim=1).view_as(x)
        return x[:, :, LOGITS] + 4.0 * x[:, :, BACKUP].tanh()


def _draw_order(random: torch.Generator) -> list[str]:
    """Return the kinds of the tokens: the sink first, the query last, and the marker after what it relays."""
    kinds = [kind for kind in KINDS if kind not in {"sink", "query"}]
    kinds += ["filler"] * (SIZE - 2 - len(kinds))
    order = [kinds[place] for place in torch.randperm(len(kinds), generator=random).tolist()]
    first, second = sorted((order.index("relayed"), order.index("marker")))
    order[first], order[second] = "relayed", "marker"
    return ["sink", *order, "query"]
