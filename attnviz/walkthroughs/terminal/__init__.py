"""Walkthroughs in a terminal."""
