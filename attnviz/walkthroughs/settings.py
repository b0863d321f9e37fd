"""The words that options of a walkthrough take; help reads them without loading anything."""

from __future__ import annotations

from typing import Literal

Score = Literal["dot", "scaled", "general", "additive"]  # how a query and a key make a score
Example = Literal["seq2seq", "seq2seq-word", "self-attention"]  # calculations by hand
