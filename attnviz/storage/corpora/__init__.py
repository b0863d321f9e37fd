"""Corpora: sentences from a file, one after another; treebanks with their grammar."""
