"""The screen of a terminal, and what every view that writes to it shares."""
