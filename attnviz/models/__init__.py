"""The home-built models, written to be read aloud, in this order.

- ``attention``: scaled dot-product attention, one head, many heads, masks, three projections as one.
- ``transformer``: a layer, a stack of layers, encoder, decoder, and both halves together.
- ``embedding``: words as vectors, and where each word stands.
- ``language_models``, ``seq2seq``: whole models of any words, of one language and of two.
- ``config``, ``registry``: their sizes, and one table of all that there are;
  reading these needs no torch.
- ``language``, ``training``: what they learn, and how.
"""
