"""Code that turns a run of a model into a walkthrough."""
