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
    from attnviz.capture.source import as_source, open_source
    from attnviz.capture.sources.modules import watch
    from attnviz.generations.api import generate
    from attnviz.heads.api import compare_heads, compare_models
    from attnviz.heads.record import HeadComparison
    from attnviz.heatmaps.api import heatmap
    from attnviz.heatmaps.lines import heatmap_all
    from attnviz.heatmaps.words import hide_special, merge_words
    from attnviz.results import load, page, save
    from attnviz.walkthroughs.api import decoding_steps, walkthrough
    from attnviz.walkthroughs.record import Walkthrough
    from attnviz.walkthroughs.verify import verify

__version__ = "0.1.0"

_HOME = {
    "Attention": "attnviz.attention",
    "Diagnosis": "attnviz.capture.doctor",
    "HeadComparison": "attnviz.heads.record",
    "Note": "attnviz.attention",
    "Receipt": "attnviz.attention",
    "Token": "attnviz.attention",
    "Walkthrough": "attnviz.walkthroughs.record",
    "as_source": "attnviz.capture.source",
    "attend": "attnviz.capture.attend",
    "attend_all": "attnviz.capture.attend",
    "compare_heads": "attnviz.heads.api",
    "compare_models": "attnviz.heads.api",
    "decoding_steps": "attnviz.walkthroughs.api",
    "doctor": "attnviz.capture.doctor",
    "generate": "attnviz.generations.api",
    "heatmap": "attnviz.heatmaps.api",
    "heatmap_all": "attnviz.heatmaps.lines",
    "hide_special": "attnviz.heatmaps.words",
    "load": "attnviz.results",
    "merge_words": "attnviz.heatmaps.words",
    "open_source": "attnviz.capture.source",
    "page": "attnviz.results",
    "save": "attnviz.results",
    "verify": "attnviz.walkthroughs.verify",
    "walkthrough": "attnviz.walkthroughs.api",
    "watch": "attnviz.capture.sources.modules",
}
"""Where each public name lives. It is imported on first use: `import attnviz` alone loads no library."""

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
    "compare_models",
    "decoding_steps",
    "doctor",
    "generate",
    "heatmap",
    "heatmap_all",
    "hide_special",
    "load",
    "merge_words",
    "open_source",
    "page",
    "save",
    "verify",
    "walkthrough",
    "watch",
]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
