"""A walkthrough on one sheet, and as a film."""
