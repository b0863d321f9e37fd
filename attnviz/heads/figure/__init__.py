"""Heads in figures: the sheet, one head's page, how similar heads are."""
