"""What a model does without some of its attention."""
