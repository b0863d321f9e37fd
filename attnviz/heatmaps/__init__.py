"""Heatmaps: a sentence, and where every head looks."""
