"""A walkthrough on one sheet."""
