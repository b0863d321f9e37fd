"""Run a model, stream its attention, return a record. torch and transformers stop here."""
