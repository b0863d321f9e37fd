"""From the name of a model, or a module, to a source that streams its attention."""
