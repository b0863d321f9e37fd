"""How the home-built models that ship with attnviz were trained, and how good they are.

- ``tasks``: what each of them learns. No attention is ever a target.
- ``loop``: the training itself, the same for all; it can be interrupted and goes on where it stopped.
- ``measure``: how good a model is on sentences that it never saw.
- ``files``: trained weights as files.
- ``run``: a model trained again, from its recipe to its file.
"""
