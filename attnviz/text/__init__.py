"""Sentences in, labels out: words, and what is shown for each token. Knows no model."""
