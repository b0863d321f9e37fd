"""Walkthroughs: all numbers of the calculation of a head or a layer, shown, saved and verified."""
