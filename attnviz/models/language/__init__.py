"""The small language that the home-built models learn: sentences made up from a seed, with gold facts.

- ``english.yaml``, ``korean.yaml``, ``translation.yaml``: the grammars, with their words.
- ``grammar``: the generator that reads them.
- ``sentences``: a sentence with its facts, and how it is written down.
- ``splits``: training, validation and test sentences that share none; and some of them as a corpus.
- ``held_out``: the first validation and test sentences as text; ``vocabularies``: all words, one a line.
"""
