"""Which part of a module is running."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from threading import get_ident
from typing import Any
from weakref import ReferenceType, ref

import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

from attnviz.capture.sources.axes import tensors_in


@dataclass(frozen=True, slots=True)
class ModuleCall:
    """A module that is running."""

    path: str | None = ""  # None for a module outside the watched one
    number: int = 0  # counted in the order of calls
    caller: int = 0  # the number of the call that made it
    read: ReferenceType[Tensor] | None = None  # its first input, which is not kept alive


class ModuleCalls:
    """Knows which part of a module runs in this thread, while its block is open.

    Global hooks, unlike hooks on the module itself, leave nothing behind in copies of the module.
    """

    def __init__(self, module: nn.Module, begin: Callable[..., None] | None = None) -> None:
        """Follow a module; `begin` is called with the inputs of each part that starts, and whether it is a whole run.

        If it is none, `begin` is told whether the part runs inside another one.
        """
        self._module, self._begin_part = module, begin
        self._stack: list[ModuleCall] = []  # the modules that are running, outermost first
        self._n_calls = 0

    @property
    def running(self) -> ModuleCall:
        """The innermost module that is running."""
        return self._stack[-1] if self._stack else ModuleCall()

    @contextmanager
    def followed(self) -> Iterator[None]:
        """Follow the calls in this thread until the block ends."""
        self._thread = get_ident()
        self._paths = {module: path for path, module in self._module.named_modules()}
        with ExitStack() as stack:
            stack.callback(register_module_forward_pre_hook(self._begin).remove)
            stack.callback(register_module_forward_hook(self._end, always_call=True).remove)
            stack.callback(self._stack.clear)
            stack.enter_context(_silence_compile_warning())
            yield

    def _begin(self, module: nn.Module, inputs: Any) -> None:
        """Remember a module that starts."""
        if get_ident() != self._thread:
            return
        # Activation checkpointing runs modules again during the backward pass, which is not a new run.
        is_backward = torch._C._current_graph_task_id() >= 0
        is_inside = any(call.path is not None for call in self._stack)
        # A hook on all modules does not receive the arguments that are passed by name: they are in its caller.
        frame = inspect.currentframe()
        caller = None if frame is None else frame.f_back
        named = {} if caller is None else caller.f_locals.get("kwargs", {})
        # A module that the watched one does not list, such as one made during the run, counts as its caller.
        outside = self._stack[-1].path if self._stack else None
        path = self._paths.get(module, outside)
        self._n_calls += 1
        # What is read of the tensors here is no computation of the module.
        with torch._C.DisableTorchFunction():
            if path is not None and not is_backward and self._begin_part is not None:
                is_run = module is self._module and not is_inside
                self._begin_part(inputs, named, is_run=is_run, is_inside=is_inside)
            tensor = next(tensors_in([inputs, named]), None)
        read = None if tensor is None else ref(tensor)
        self._stack.append(ModuleCall(path, self._n_calls, self.running.number, read))

    def _end(self, _module: nn.Module, _inputs: Any, _output: Any) -> None:
        """Forget a module that ends."""
        if get_ident() == self._thread:
            del self._stack[-1:]


@contextmanager
def _silence_compile_warning() -> Iterator[None]:
    """Silence torch's warning about hooks on all modules and compiled ones, until the block ends."""
    warnings.filterwarnings("ignore", "Using `torch.compile", UserWarning)
    rule = warnings.filters[0]
    try:
        yield
    finally:
        # The block may have removed the rule itself; other changes that it made to the filters remain.
        if rule in warnings.filters:
            warnings.filters.remove(rule)  # type: ignore[attr-defined]  # a list
