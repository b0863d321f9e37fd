"""What the tests of the views share: records with fixed numbers, a fixed console, golden files, measured texts."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pytest

from attnviz.attention import Attention, Receipt, Token
from attnviz.views.heatmap import Sheet, resolve
from attnviz.views.terminal import Screen, picture

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matplotlib.figure import Figure
    from matplotlib.transforms import Bbox

GOLDEN = Path(__file__).parent.parent / "golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the one flag: `pytest tests/views --rewrite-golden` writes what the terminal views now look like."""
    parser.addoption("--rewrite-golden", action="store_true", help="write tests/golden/ anew instead of comparing")


@pytest.fixture(scope="session")
def fixed_record() -> Callable[..., Attention]:
    """A record whose numbers come from a formula, the same on every machine; none of them is exactly 0."""

    def make(
        labels: str | Sequence[str] = "[CLS] I love all you [SEP]",
        *,
        keys: str | Sequence[str] | None = None,
        n_layers: int = 1,
        n_heads: int = 1,
        causal: bool = False,
        **more: object,
    ) -> Attention:
        queries = labels.split() if isinstance(labels, str) else list(labels)
        columns = queries if keys is None else keys.split() if isinstance(keys, str) else list(keys)
        layer, head, query, key = np.indices((n_layers, n_heads, len(queries), len(columns)))
        raw = ((3 + 7 * layer + 11 * head + 5 * query + 3 * key + query * key) % 17) ** 3 + 0.05
        if causal:
            raw = np.where(key > query, 0.0, raw)
        fields: dict[str, object] = {
            "weights": (raw / raw.sum(axis=-1, keepdims=True)).astype(np.float32),
            "query_tokens": tuple(Token(text=label, piece=label) for label in queries),
            "key_tokens": tuple(Token(text=label, piece=label) for label in columns),
            "kind": "decoder" if causal else "encoder" if keys is None else "cross",
            "model": "made by hand",
            "text": " ".join(label for label in queries if not label.startswith("[")),
            "receipt": Receipt(
                native="sdpa",
                dtype="float32",
                tolerance=1e-5,
                layers=tuple(range(n_layers)),
                differences=(2.5e-7,) * n_layers,
            ),
        }
        return Attention(**(fields | more))  # type: ignore[arg-type]

    return make


@pytest.fixture(scope="session")
def fixed_sheet(fixed_record: Callable[..., Attention]) -> Callable[..., Sheet]:
    """The same record, resolved."""

    def make(*labels: Any, scale: Literal["shared", "panel", "unit"] = "shared", **more: object) -> Sheet:
        return resolve(fixed_record(*labels, **more), scale)

    return make


@pytest.fixture(scope="session")
def printed() -> Callable[..., str]:
    """What a terminal gets to see of a sheet, on a console that is the same everywhere."""
    from rich.console import Console

    def render(
        sheet: Sheet,
        screen: Screen,
        *,
        overview: bool = False,
        system: Literal["truecolor", "256"] = "truecolor",
    ) -> str:
        console = Console(
            width=screen.width,
            file=StringIO(),
            color_system=system if screen.colour else None,
            force_terminal=screen.colour,
            legacy_windows=False,
            no_color=False,
            highlight=False,
            emoji=False,
            markup=False,
        )
        for line in picture(sheet, screen, overview=overview):
            console.print(line, soft_wrap=True)
        written = console.file
        assert isinstance(written, StringIO)
        return written.getvalue()

    return render


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Compare with tests/golden/<name of the test>.txt, where an escape character is a backslash and an e."""

    def compare(text: str) -> None:
        file = GOLDEN / f"{request.node.name}.txt"
        text = text.replace("\x1b", r"\e")
        if request.config.getoption("--rewrite-golden", default=False):
            file.write_text(text, encoding="utf-8")
        assert file.exists(), "no golden file yet: pytest tests/views --rewrite-golden"
        assert text == file.read_text(encoding="utf-8"), "if this is wanted: pytest tests/views --rewrite-golden"

    return compare


@pytest.fixture(scope="session")
def texts_of() -> Callable[[Figure], list[tuple[str, Bbox]]]:
    """Every text that a figure shows, with the pixels it covers."""
    from matplotlib.image import AxesImage
    from matplotlib.text import Text

    def measure(figure: Figure) -> list[tuple[str, Bbox]]:
        # Texts are placed when a figure is drawn. Images take their time and move no text.
        images = figure.findobj(AxesImage)
        for image in images:
            image.set_visible(False)
        figure.draw_without_rendering()
        for image in images:
            image.set_visible(True)
        renderer = figure.canvas.get_renderer()  # type: ignore[attr-defined]
        shown = []
        for text in figure.findobj(Text):
            assert isinstance(text, Text)
            axes = text.axes
            hidden = axes is not None and not axes.axison and text not in axes.texts
            if text.get_visible() and text.get_text().strip() and not hidden:
                shown.append((text.get_text(), text.get_window_extent(renderer)))
        return shown

    return measure
