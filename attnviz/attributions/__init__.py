"""Changes of a model's output without some of its attention."""
