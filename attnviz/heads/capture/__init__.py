"""Heads measured while a model streams its rows."""
