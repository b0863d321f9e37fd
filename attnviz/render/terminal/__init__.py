"""The screen of a terminal, and the text and table functions that all terminal views share."""
