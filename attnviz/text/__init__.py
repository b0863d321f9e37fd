"""Text: words, labels of tokens, messages. Nothing here depends on a model."""
