"""A walkthrough in a terminal."""
