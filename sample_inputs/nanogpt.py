"""A small GPT as you might write it, with its tokenizer and its training.

attnviz heatmap -m sample_inputs/nanogpt.py:build "queen queen"

It learns to write a word again that stands before a space, which takes attention.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional


class Letters:
    """A tokenizer: each letter is a token."""

    letters = " abcdefghijklmnopqrstuvwxyz"

    def encode(self, text: str) -> list[int]:
        if strange := {*text.lower()} - {*self.letters}:
            raise ValueError(f"it knows letters and spaces alone, not {' '.join(sorted(strange))}")
        return [self.letters.index(letter) for letter in text.lower()]

    def decode(self, numbers: list[int]) -> str:
        return "".join(self.letters[number] for number in numbers)


class Attention(nn.Module):
    """Causal self-attention of several heads."""

    def __init__(self, d_model: int, n_heads: int) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)

    def forward(self, x: Tensor) -> Tensor:  # (batch, token, d_model)
        q, k, v = (
            part.unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
            for part in self.qkv(x).chunk(3, dim=-1)
        )
        y = functional.scaled_dot_product_attention(
            q, k, v, is_causal=True
        )  # (batch, head, token, d_k)
        return self.out(y.transpose(1, 2).flatten(2))


class Block(nn.Module):
    """Attention, then a feed-forward network, each added to what came in."""

    def __init__(self, d_model: int, n_heads: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.attention = Attention(d_model, n_heads)
        self.feed_forward = nn.Sequential(
            nn.Linear(d_model, 4 * d_model), nn.GELU(), nn.Linear(4 * d_model, d_model)
        )

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.feed_forward(self.norm2(x))


class GPT(nn.Module):
    """From letters to how likely each letter is as the next."""

    def __init__(
        self, d_model: int = 32, n_heads: int = 4, n_layers: int = 2, n_positions: int = 16
    ) -> None:
        super().__init__()
        self.letters = nn.Embedding(len(Letters.letters), d_model)
        self.positions = nn.Embedding(n_positions, d_model)
        self.blocks = nn.Sequential(*(Block(d_model, n_heads) for _ in range(n_layers)))
        self.norm = nn.LayerNorm(d_model)
        self.next = nn.Linear(d_model, len(Letters.letters))

    def forward(self, numbers: Tensor) -> Tensor:  # (batch, token) -> (batch, token, letter)
        if numbers.shape[1] > self.positions.num_embeddings:
            raise ValueError(f"it reads at most {self.positions.num_embeddings} letters")
        places = torch.arange(numbers.shape[1], device=numbers.device)
        return self.next(self.norm(self.blocks(self.letters(numbers) + self.positions(places))))


def twice(n_texts: int) -> Tensor:
    """Texts such as "kfcq kfcq", of letters drawn at random, as numbers (text, letter)."""
    words = torch.randint(1, len(Letters.letters), (n_texts, int(torch.randint(3, 7, ()))))
    return torch.cat([words, torch.zeros(n_texts, 1, dtype=torch.long), words], dim=1)


def build() -> tuple[GPT, Letters]:
    """The model, trained for some seconds, and its tokenizer."""
    torch.manual_seed(0)
    model = GPT()
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    for _ in range(200):
        texts = twice(32)
        second = texts.shape[1] // 2  # from the space on, what comes next can be known
        logits = model(texts[:, :-1])[:, second:]
        loss = functional.cross_entropy(logits.flatten(0, 1), texts[:, second + 1 :].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model, Letters()
