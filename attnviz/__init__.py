"""See, check and understand attention in neural networks.

>>> import attnviz
>>> record = attnviz.attend("I love all you", model="toy")
>>> record.weights.shape  # (layer, head, query, key)
(3, 6, 4, 4)
"""

__version__ = "0.2.0"


# The public names are listed in __init__.pyi; each is imported on first use, so that `import attnviz` is fast. Commands
# use none of them, so lazy_loader too is imported on first use: until then, Ctrl-C could not be handled.
def __getattr__(name: str) -> object:
    """Return a public name; lazy_loader's own functions take over from the first one on."""
    import lazy_loader

    get_name, list_names, public = lazy_loader.attach_stub(__name__, __file__)
    globals().update(__getattr__=get_name, __dir__=list_names, __all__=public)
    return public if name == "__all__" else get_name(name)


def __dir__() -> list[str]:
    """Return the public names."""
    __getattr__("__all__")  # replaces this function
    return __dir__()
