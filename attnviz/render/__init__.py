"""Drawing code shared by all pictures: palettes, fonts, the content of a heatmap. It does not depend on any feature."""
