"""The stories, a module each: a function `tell` that computes it."""
