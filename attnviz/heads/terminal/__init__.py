"""Heads in a terminal: the table, the summary, one head's page."""
