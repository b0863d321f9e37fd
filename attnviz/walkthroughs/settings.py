"""The values of walkthrough options, in a module of their own so that `--help` imports nothing else."""

from __future__ import annotations

from typing import Literal

Score = Literal["dot", "scaled", "general", "additive"]  # the score functions
Example = Literal["seq2seq", "seq2seq-word", "self-attention"]  # calculations by hand
