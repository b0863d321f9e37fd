"""Text as a model generates it, each new token with what it attends to."""
