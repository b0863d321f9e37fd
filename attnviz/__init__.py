"""See, check and understand attention in neural networks.

>>> import attnviz
>>> record = attnviz.attend("I love all you", model="toy")
>>> record.weights.shape  # (layer, head, query, key)
(3, 6, 4, 4)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from attnviz.attention import Attention, Note, Receipt, Token
    from attnviz.capture.attend import attend, attend_all
    from attnviz.capture.doctor import Diagnosis, doctor
    from attnviz.capture.source import as_source, list_models, open_source
    from attnviz.capture.sources.modules import watch
    from attnviz.generations.api import generate
    from attnviz.heads.api import compare_heads, merge_stats
    from attnviz.heads.record import HeadComparison
    from attnviz.heatmaps.api import heatmap
    from attnviz.heatmaps.lines import heatmap_all
    from attnviz.heatmaps.words import hide_special, merge_words
    from attnviz.models.training.run import train
    from attnviz.results import load, page, save
    from attnviz.stories import tell
    from attnviz.walkthroughs.api import walkthrough
    from attnviz.walkthroughs.record import Walkthrough
    from attnviz.walkthroughs.verify import verify

__version__ = "0.1.0"

_HOME = {
    "attention": ("Attention", "Note", "Receipt", "Token"),
    "capture.attend": ("attend", "attend_all"),
    "capture.doctor": ("Diagnosis", "doctor"),
    "capture.source": ("as_source", "list_models", "open_source"),
    "capture.sources.modules": ("watch",),
    "generations.api": ("generate",),
    "heads.api": ("compare_heads", "merge_stats"),
    "heads.record": ("HeadComparison",),
    "heatmaps.api": ("heatmap",),
    "heatmaps.lines": ("heatmap_all",),
    "heatmaps.words": ("hide_special", "merge_words"),
    "models.training.run": ("train",),
    "results": ("load", "page", "save"),
    "stories": ("tell",),
    "walkthroughs.api": ("walkthrough",),
    "walkthroughs.record": ("Walkthrough",),
    "walkthroughs.verify": ("verify",),
}
"""Where the public names live. Each is imported on first use: `import attnviz` alone loads no library."""

__all__ = [
    "Attention",
    "Diagnosis",
    "HeadComparison",
    "Note",
    "Receipt",
    "Token",
    "Walkthrough",
    "__version__",
    "as_source",
    "attend",
    "attend_all",
    "compare_heads",
    "doctor",
    "generate",
    "heatmap",
    "heatmap_all",
    "hide_special",
    "list_models",
    "load",
    "merge_stats",
    "merge_words",
    "open_source",
    "page",
    "save",
    "tell",
    "train",
    "verify",
    "walkthrough",
    "watch",
]


def __getattr__(name: str) -> object:
    for module, names in _HOME.items():
        if name in names:
            return globals().setdefault(name, getattr(import_module(f"attnviz.{module}"), name))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
