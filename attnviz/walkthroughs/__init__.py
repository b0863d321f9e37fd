"""Walkthroughs: every number of one head's calculation, drawn, saved and verified."""
