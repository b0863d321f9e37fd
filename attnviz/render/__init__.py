"""Shared by all pictures: palettes, fonts, the content of a heatmap. Knows no feature and no model library."""
