"""See, check and understand attention in neural networks.

>>> import attnviz
>>> record = attnviz.attend("I love all you", model="toy")
>>> record.weights.shape  # (layer, head, query, key)
(3, 6, 4, 4)
"""

import lazy_loader

__version__ = "0.2.0"

# The public names are listed in __init__.pyi; each is imported on first use, so that `import attnviz` is fast.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
