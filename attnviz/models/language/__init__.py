"""What the home-built models learn: a small language, made up sentence by sentence from a seed, with gold facts.

- ``lexicon``: the words, English and Korean.
- ``english``: sentences with agreement, negation and reference, and which of their words the grammar decides.
- ``korean``: English-Korean pairs with their word alignment.
- ``splits``: training, validation and test sentences that share none; and some of them as a corpus.
"""
