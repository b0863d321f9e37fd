"""Heatmaps: where each head attends in a sentence."""
