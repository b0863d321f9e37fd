"""The home-built models, written to be read aloud, in this order.

- ``attention``: scaled dot-product attention, one head, many heads, masks.
- ``fused``: the three maps of attention as one.
- ``positions``: where a word stands, as a vector.
- ``transformer``: the encoder.
- ``toy``: a whole model for any words of any language.
- ``scores``: the ways to score a query against a key.
- ``decoder``: the decoder, and both halves together.
- ``embedding``: words as numbers, numbers as vectors.
- ``wholes``, ``translation``, ``seq2seq``: whole models of one language and of two.
- ``language``, ``training``: what those learn, and how.
- ``shapes``, ``sizes``: how all of them refuse a tensor of the wrong shape, or sizes that make no sense.
"""
