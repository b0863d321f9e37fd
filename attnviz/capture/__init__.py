"""Capture of attention: run a model, stream its attention, return a record. Only this package uses transformers."""
