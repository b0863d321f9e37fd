"""Training of the home-built models that ship with attnviz, and measures of how good they are.

- ``tasks``: what each of them learns. No attention is ever a target.
- ``measure``: how good a model is on sentences that it never saw.
- ``files``: trained weights as files.
- ``run``: the training itself, from the recipe to the file, the same for all.
"""
