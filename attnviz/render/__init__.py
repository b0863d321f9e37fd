"""What all pictures share: palettes, fonts, what a heatmap shows. Knows no feature and no model library."""
