"""The public names, as type checkers read them; each is imported on first use."""

from . import errors as errors
from .attention import Attention, Note, Receipt, Token
from .attributions.api import attribute
from .attributions.record import Attribution
from .capture.attend import attend, attend_all
from .capture.doctor import Diagnosis, doctor
from .capture.source import as_source, list_models, open_source
from .capture.sources.modules import watch
from .generations.api import generate
from .heads.api import compare_heads
from .heads.record import HeadComparison
from .heatmaps.api import heatmap
from .heatmaps.difference import Difference, difference
from .heatmaps.words import hide_sinks, hide_special, merge_words
from .models.training.run import train
from .results import load, page, save
from .stories import tell
from .walkthroughs.api import walkthrough
from .walkthroughs.record import Walkthrough
from .walkthroughs.verify import verify

__version__: str
__all__ = [
    "Attention",
    "Attribution",
    "Diagnosis",
    "Difference",
    "HeadComparison",
    "Note",
    "Receipt",
    "Token",
    "Walkthrough",
    "as_source",
    "attend",
    "attend_all",
    "attribute",
    "compare_heads",
    "difference",
    "doctor",
    "generate",
    "heatmap",
    "hide_sinks",
    "hide_special",
    "list_models",
    "load",
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
