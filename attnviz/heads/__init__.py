"""Heads: what each one does on a sentence or a corpus, and two models compared."""
