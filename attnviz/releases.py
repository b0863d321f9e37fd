"""Differences between the releases of the libraries that attnviz uses; each says which releases it serves.

`pyproject.toml` states the ranges. A difference goes when its releases do.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import TYPE_CHECKING, Any
from unicodedata import bidirectional, category

from attnviz.errors import InputError
from attnviz.text.display import visible

# The command line imports this file before it is known whether torch is needed, which takes a second to import.
if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedConfig


def unfit_releases() -> str:
    """Return a message about installed libraries that attnviz cannot run with; empty if all are in their ranges."""
    from importlib.metadata import PackageNotFoundError, requires, version

    from packaging.requirements import Requirement

    found, needed = [], []
    with suppress(PackageNotFoundError):  # attnviz is not installed but runs from its folder
        for requirement in map(Requirement, requires("attnviz") or ()):
            if requirement.marker is not None:
                continue  # of an extra
            release = version(requirement.name)
            if not requirement.specifier.contains(release, prereleases=True):
                found.append(f"{requirement.name} {release}")
                needed.append(f"{requirement.name}{requirement.specifier}")
    if not found:
        return ""
    quoted = " ".join(f'"{name}"' for name in needed)
    return f"attnviz cannot run with {', '.join(found)}: pip install {quoted}"


def config_class() -> type[PreTrainedConfig]:
    """Return the base class of all configurations of transformers."""
    import transformers

    # transformers 4: another spelling.
    name = "PreTrainedConfig" if hasattr(transformers, "PreTrainedConfig") else "PretrainedConfig"
    return getattr(transformers, name)  # type: ignore[no-any-return]


# The inputs that models of transformers 4, which have no `input_modalities`, may be named after.
_MODALITIES = {
    "pixel_values": "image",
    "pixel_values_videos": "video",
    "input_features": "audio",
    "input_values": "audio",
}


def input_modalities(model: Any) -> tuple[str, ...]:
    """Return what a model or its class reads: ``text``, ``image``, ``video``, ``audio``."""
    if not hasattr(model, "input_modalities"):  # transformers 4
        return (_MODALITIES.get(model.main_input_name, "text"),)
    modalities = model.input_modalities
    return (modalities,) if isinstance(modalities, str) else tuple(modalities)


@contextmanager
def hide_progress_bars() -> Iterator[None]:
    """Hide the progress bars of transformers, but not those of downloads, until the block ends."""
    from transformers.utils import logging as library

    if hasattr(library, "set_tqdm_hook"):
        hook = library.set_tqdm_hook(lambda _, args, kwargs: library.EmptyTqdm(*args, **kwargs))
        try:
            yield
        finally:
            library.set_tqdm_hook(hook)
        return
    # transformers before 5.4: `disable_progress_bar` would hide the bars of downloads too.
    is_active = library._tqdm_active
    library._tqdm_active = False
    try:
        yield
    finally:
        library._tqdm_active = is_active


def input_embeddings(model: Any) -> Any:
    """Return the module that looks up the vectors of tokens; None if a model has none."""
    try:
        return model.get_input_embeddings()
    except NotImplementedError:  # transformers 4.53: encoders like BART's have no such method
        return getattr(model, "embed_tokens", None)


def set_attention(model: Any, name: str) -> None:
    """Switch a model of transformers, with its submodels, to an attention implementation."""
    from transformers import PreTrainedModel

    if not hasattr(model, "set_attn_implementation"):  # transformers 4.53
        for module in model.modules():
            if isinstance(module, PreTrainedModel) and _uses_interface(module):
                module.config._attn_implementation = name
        return
    model.set_attn_implementation(name)
    if model.config._attn_implementation != name:
        return  # transformers before 5.15 leaves models outside its attention interface as they are
    # transformers 5.15 to 5.19: submodels that share the model's class of configuration, such as T5's decoder, are not
    # switched.
    for module in model.modules():
        if isinstance(module, PreTrainedModel) and type(module.config) is type(model.config):
            module.config._attn_implementation = name


def _uses_interface(model: Any) -> bool:
    """Return whether a model computes attention by the function that its configuration names; its code tells."""
    return "ALL_ATTENTION_FUNCTIONS" in inspect.getsource(sys.modules[type(model).__module__])


def dtype_keyword() -> str:
    """Return the keyword of the number format in which transformers loads a model."""
    import transformers

    is_old = tuple(map(int, transformers.__version__.split(".")[:2])) < (4, 56)
    return "torch_dtype" if is_old else "dtype"


def mask_by_length(make_mask: Callable[..., Any]) -> Callable[..., Any]:
    """Return a mask function of transformers as one that takes `q_length` and `q_offset`."""
    import torch

    if "cache_position" not in inspect.signature(make_mask).parameters:
        return make_mask

    def by_length(*, q_length: int, q_offset: Any, **options: Any) -> Any:
        """Call a function of transformers before 5.4, which takes the position of each query."""
        device = q_offset.device if isinstance(q_offset, torch.Tensor) else None
        positions = torch.arange(q_length, device=device) + q_offset
        return make_mask(cache_position=positions, **options)

    return by_length


def registered_mask(make_mask: Callable[..., Any]) -> Callable[..., Any]:
    """Return a mask function that takes `q_length` and `q_offset` as one that transformers can call."""

    def mask(*, cache_position: torch.Tensor | None = None, **options: Any) -> Any:
        if cache_position is not None:  # transformers before 5.4
            options |= {"q_length": len(cache_position), "q_offset": cache_position[0]}
        return make_mask(**options)

    return mask


def grouped_queries(query: torch.Tensor, key: torch.Tensor) -> dict[str, bool]:
    """Return the keywords of scaled_dot_product_attention for query heads that share key heads."""
    import torch

    if torch.__version__ < "2.5":
        return {}  # unknown there: only a single key head is shared, by broadcasting
    return {"enable_gqa": key.shape[1] < query.shape[1]}


@contextmanager
def without_fast_path() -> Iterator[None]:
    """Run torch's own layers as they are written, not their fused form, until the block ends."""
    import torch

    if not hasattr(torch.backends, "mha"):
        # torch before 2.3: there is no switch, but its layers avoid the fused form while a tracer sees their calls.
        yield
        return
    was_enabled = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(was_enabled)


def without_compiler() -> AbstractContextManager[object]:
    """Run modules as they are written, not compiled, until the block ends."""
    import torch

    if hasattr(torch.compiler, "set_stance"):
        return torch.compiler.set_stance("force_eager")  # type: ignore[no-any-return]
    # torch before 2.6: nothing more is compiled, but what was compiled before runs compiled.
    return torch._dynamo.config.patch(disable=True)  # type: ignore[no-any-return]


def check_letters(texts: Iterable[str]) -> None:
    """Raise an InputError if Matplotlib cannot order and join the letters of these texts, as Arabic needs."""
    import matplotlib

    if matplotlib.__version_info__[:2] >= (3, 11):
        return
    # Matplotlib before 3.11 writes letter by letter, from left to right.
    for word in (word for text in texts for word in text.split()):
        if any(bidirectional(letter) in {"R", "AL"} or category(letter) == "Mc" for letter in word):
            raise InputError(
                f"Matplotlib {matplotlib.__version__} cannot join and order the letters of {visible(word)}: install "
                "Matplotlib 3.11 or later, or write a page (.html)"
            )


def misuse_error() -> type[Exception]:
    """Return the class of the errors for arguments that cannot be parsed."""
    import typer

    if hasattr(typer, "TyperException"):
        return typer.TyperException
    import click  # typer before 0.29: its errors are those of click

    return click.ClickException


def is_mapped() -> bool:
    """Return whether `torch.func.vmap` is running, or before torch 2.3 any transform of `torch.func`."""
    import torch

    functorch: Any = torch._C._functorch
    if functorch.peek_interpreter_stack() is None:
        return False
    running: list[Any] = getattr(functorch, "get_interpreter_stack", list)()
    return not running or any(one.key() == functorch.TransformType.Vmap for one in running)
