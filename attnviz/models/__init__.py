"""The home-built models, written to be read aloud, in this order.

- ``attention``: scaled dot-product attention, one head, many heads, masks.
- ``fused``: the three maps of attention as one.
- ``positions``: where a word stands, as a vector.
- ``transformer``: the encoder.
- ``toy``: a whole model for any words of any language.
- ``shapes``: how all of them refuse a tensor of the wrong shape.
"""
