"""The picture of a story."""
