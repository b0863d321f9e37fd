"""A walkthrough of a model, with the choice of what is followed written as arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attnviz.walkthroughs.capture import walks
from attnviz.walkthroughs.settings import WalkthroughSelection, WalkthroughText

if TYPE_CHECKING:
    from attnviz.capture.source import Source
    from attnviz.walkthroughs.record import Walkthrough

OF_TEXT = {"pair", "target", "truncate"}
SHORT = {"every": "all_queries"}


def _arguments(text: str, more: dict[str, Any]) -> dict[str, Any]:
    fields = {SHORT.get(name, name): value for name, value in more.items() if name not in {*OF_TEXT, "full"}}
    fields |= {name: str(fields[name]) for name in ("layer", "head", "query") if fields.get(name) is not None}
    fields |= {"score": fields["score"].removesuffix("_dot")} if fields.get("score") == "scaled_dot" else {}
    words = WalkthroughText(text=text, **{name: more[name] for name in OF_TEXT & set(more)})
    return {"words": words, "choice": WalkthroughSelection(**fields), "full": more.get("full", False)}


def walk(text: str, source: Source, **more: Any) -> Walkthrough:
    """`attnviz.walkthroughs.capture.walks.follow`, with the fields of its choice."""
    (walked,) = walks.follow(source=source, **_arguments(text, more))
    return walked


def decoding_steps(text: str, source: Source, **more: Any) -> list[Walkthrough]:
    """The same of each word that a decoder generates."""
    return walks.follow(source=source, **_arguments(text, more), each_step=True)
