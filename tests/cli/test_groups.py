"""Groups of settings: what the command line makes of them, and what they refuse by themselves."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from attnviz.cli import COMMANDS, app
from attnviz.cli.groups import as_command, groups_of
from attnviz.errors import SettingsError
from attnviz.heatmaps.settings import (
    HeatmapAppearance,
    HeatmapOutput,
    HeatmapSelection,
    HeatmapText,
)
from attnviz.models.registry import RANDOM
from attnviz.options import changed, option
from attnviz.settings import FigureSettings, ModelSettings, Ranges, TextSettings, layers_and_heads

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.fixtures.command_line import Result

ENGLISH = str(Path(__file__).parents[2] / "sample_inputs" / "english.txt")


@pytest.mark.parametrize(
    ("make", "arguments", "message"),
    [
        (
            lambda: ModelSettings(toy=True, model="toy"),
            ("a", "--toy", "-m", "toy"),
            "give toy or another model, not both",
        ),
        (
            lambda: ModelSettings(model="toy", seed=3),
            ("a", "-m", "toy", "--seed", "3"),
            "seed can be chosen for",
        ),
        (
            lambda: ModelSettings(toy=True, revision="x"),
            ("a", "--toy", "--revision", "x"),
            "toy comes with attnviz",
        ),
        (
            lambda: TextSettings(text="a", file=Path("f")),
            ("a", "--file", "f"),
            "give the sentence or a file, not both",
        ),
        (
            lambda: TextSettings(text=ENGLISH),
            (ENGLISH,),
            "is a file, not a sentence: load what was saved",
        ),
        (
            lambda: HeatmapAppearance(palette="no"),
            ("a", "--toy", "--palette", "no"),
            "there is no palette 'no'",
        ),
        (
            lambda: HeatmapOutput(output=(Path("x.tex"),)),
            ("a", "--toy", "-o", "x.tex"),
            "the ending must be one of",
        ),
        (
            lambda: HeatmapSelection(rows="1-x"),
            ("a", "--toy", "--rows", "1-x"),
            "'1-x' is neither a number nor a range",
        ),
        (
            lambda: HeatmapSelection(memory="lots"),
            ("a", "--toy", "--memory", "lots"),
            "'lots' is no size such as 500MB",
        ),
        (
            lambda: ModelSettings(device="tpu"),  # type: ignore[arg-type]
            ("a", "--device", "tpu"),
            "'tpu' is not one of 'auto', 'cpu', 'cuda', 'mps'",
        ),
        (
            lambda: ModelSettings(model=RANDOM, n_heads=0),
            ("a", "-m", RANDOM, "--n-heads", "0"),
            "it must be at least 1, not 0",
        ),
        (
            lambda: FigureSettings(dpi=1),
            ("a", "--toy", "--dpi", "1"),
            "it must be from 20 to 2400, not 1",
        ),
        (
            lambda: HeatmapSelection(layer=("x",)),
            ("a", "--toy", "--layer", "x"),
            "'x' is neither a number nor a range",
        ),
    ],
)
def test_one_message(
    make: Callable[[], object],
    arguments: tuple[str, ...],
    message: str,
    refused: Callable[..., tuple[int, str]],
) -> None:
    """What is refused is refused in the same words in Python and on the command line, which names the option."""
    with pytest.raises(SettingsError) as error:
        make()
    assert message in str(error.value)
    status, line = refused("heatmap", *arguments)
    assert status == 2
    setting = error.value.setting
    named = {"output": "'--output' / '-o'", "palette": "'--palette' (env var: 'ATTNVIZ_PALETTE')"}
    option = named.get(setting, f"'--{setting.replace('_', '-')}'")
    typed = str(error.value).replace(f"for '{setting}'", f"for {option}")
    assert line == f"attnviz heatmap: {typed} (see attnviz heatmap --help)"


def test_values_are_checked_in_python_too() -> None:
    """A value that is none of the choices, or no number: in every group, in one that builds on another too."""
    for make in (
        lambda: HeatmapSelection(kind="x"),  # type: ignore[arg-type]
        lambda: FigureSettings(style="x"),  # type: ignore[arg-type]
        lambda: ModelSettings(model=RANDOM, seed="3"),  # type: ignore[arg-type]
        lambda: FigureSettings(dpi=True),
        lambda: FigureSettings(dpi=100.5),  # type: ignore[arg-type]
        lambda: FigureSettings(font_size=float("nan")),
    ):
        with pytest.raises(
            SettingsError, match=r"^Invalid value for '(kind|style|seed|dpi|font_size)': "
        ):
            make()


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_comes_from_a_group(name: str) -> None:
    """What help lists are the fields of the groups that the command takes, and nothing else."""
    import typer

    fields_of = {
        one.name for group in groups_of(COMMANDS[name][0]).values() for one in fields(group)
    }
    context = typer.main.get_command(app)
    listed = {parameter.name for parameter in context.commands[name].params}  # type: ignore[attr-defined]
    assert listed == fields_of


@pytest.mark.parametrize(
    ("arguments", "place", "output"),
    [
        (["-1.-1", "-o", "-1.png"], "-1.-1", "-1.png"),
        (["-o", "-1.png", "-1.-1"], "-1.-1", "-1.png"),
        (["-o-1.png", "-1.0"], "-1.0", "-1.png"),
        (["--output=-1.png", "0.-1"], "0.-1", "-1.png"),
        (["--strict", "-1.-1", "-qo", "-2.png"], "-1.-1", "-2.png"),
    ],
)
def test_values_that_begin_with_a_minus(arguments: list[str], place: str, output: str) -> None:
    """Of ``attnviz head`` the head itself may be counted from the end; a value of an option stays as it was typed."""
    import typer

    command = typer.main.get_command(app).commands["head"]  # type: ignore[attr-defined]
    values = command.make_context("head", arguments).params
    assert (values["head"].strip(), values["output"]) == (place, [Path(output)])


def test_what_is_no_group() -> None:
    """A command cannot take an option beside the groups."""

    def command(text: TextSettings, more: int) -> None:
        raise AssertionError(text, more)

    command.__annotations__ = {"text": TextSettings, "more": int, "return": None}
    with pytest.raises(TypeError, match="takes more, which is no group of settings"):
        as_command(command)


def test_a_field_in_two_groups() -> None:
    """Two groups of one command cannot have a field of the same name."""

    def command(one: TextSettings, other: HeatmapText) -> None:
        raise AssertionError(one, other)

    command.__annotations__ = {"one": TextSettings, "other": HeatmapText, "return": None}
    with pytest.raises(TypeError, match="have a field 'text'"):
        as_command(command)


def test_changed() -> None:
    """Which options differ from their defaults, by their names."""
    assert changed(ModelSettings()) == ()
    assert changed(ModelSettings(model="toy-random", seed=0, dtype="float64")) == (
        "--model",
        "--dtype",
        "--seed",
    )
    assert changed(ModelSettings(model="toy-random", seed=0), "seed", "toy") == ("--seed",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Odd:
    """A group with one of each sort of field."""

    number: int = option("--number", default=1, least=0, most=9, help="A number.")
    many: tuple[str, ...] = option("--many", default=(), help="Repeatable.")
    flag: bool = option("--flag", default=False, help="A flag.")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((), Odd()),
        (("--number", "3", "--flag"), Odd(number=3, flag=True)),
        (("--many", "a", "--many", "b"), Odd(many=("a", "b"))),
    ],
)
def test_typed_values(arguments: tuple[str, ...], expected: Odd) -> None:
    """What is typed becomes the very group that Python makes."""
    import typer

    seen: list[Odd] = []

    def command(odd: Odd) -> None:
        seen.append(odd)

    command.__annotations__ = {"odd": Odd, "return": None}
    app = typer.Typer()
    app.command()(as_command(command))
    typer.main.get_command(app).main(list(arguments), standalone_mode=False)
    assert seen == [expected]


def test_ranges() -> None:
    """Single numbers and ranges, counted from the start or from the end."""
    ranges = Ranges.read(["2", "0-1", "-1"], "--layer")
    assert ranges is not None
    assert ranges.from_start() is None
    assert ranges.among(range(6)) == [2, 0, 1, -1]
    assert Ranges.read([], "--layer") is None
    with pytest.raises(SettingsError, match="the first of '3-1' must not be after the last"):
        HeatmapSelection(layer=("3-1",)).ranges[0].among(range(6))  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("layer", "head", "layers", "heads"),
    [
        ((), (), None, None),
        (("2",), ("3",), [2], [3]),
        ((), ("2.3",), [2], [3]),
        (("2",), ("2.3",), [2], [3]),
        ((), ("2.0-1", "2.3"), [2], [0, 1, 3]),
        ((), ("-1.-1",), [-1], [-1]),
    ],
)
def test_layer_and_head(
    layer: tuple[str, ...], head: tuple[str, ...], layers: list[int] | None, heads: list[int] | None
) -> None:
    """A head is named by its number beside its layer's, or by both as 2.3."""
    assert tuple(one and one.among(range(6)) for one in layers_and_heads(layer, head)) == (
        layers,
        heads,
    )


@pytest.mark.parametrize("command", [("heatmap", "a"), ("walkthrough", "a"), ("compare-heads",)])
def test_contradictions(command: tuple[str, ...], refused: Callable[..., tuple[int, str]]) -> None:
    """A layer and a head of another layer are refused in one line, in every command."""
    see = f"(see attnviz {command[0]} --help)"
    status, line = refused(*command, "--toy", "--layer", "1", "--head", "2.3")
    assert (status, line) == (
        2,
        f"attnviz {command[0]}: layer 1 and head 2.3 contradict each other {see}",
    )
    status, line = refused(*command, "--toy", "--head", "2.x")
    what = "Invalid value for '--head': 'x' is neither a number nor a range such as 0-3"
    assert (status, line) == (2, f"attnviz {command[0]}: {what} {see}")


def test_heads_of_several_layers(refused: Callable[..., tuple[int, str]]) -> None:
    """Heads are drawn layer by layer: not one of this layer and another of that."""
    status, line = refused("heatmap", "--toy", "a", "--head", "2.3", "--head", "1.3")
    assert (status, "heads 2.3 and 1.3 are not of one layer" in line) == (2, True)


@pytest.mark.parametrize(
    "command", [("heatmap", "I love you"), ("walkthrough", "I love you"), ("compare-heads",)]
)
def test_both_ways_are_one(command: tuple[str, ...], typed: Callable[..., Result]) -> None:
    """`--head 2.3` shows what `--layer 2 --head 3` shows."""
    more = ("--toy", *(("-o", "a.json") if command[0] != "compare-heads" else ("-o", "a.csv")))
    together, apart = (
        typed(*command, *more, "--head", "2.3"),
        typed(*command, *more, "--layer", "2", "--head", "3"),
    )
    assert (together.status, apart.status) == (0, 0)
    assert together.output == apart.output


def test_a_record_without_a_model(typed: Callable[..., Result], saved: Path) -> None:
    """What acts on a model has nothing to act on where a record is drawn."""
    result = typed("heatmap", "--load", str(saved), "--dtype", "float64")
    assert result.status == 2
    assert "no model is run, so it takes no option of one" in result.errors


@pytest.mark.parametrize("more", [["-o", "a.json"], ["--json"]])
@pytest.mark.parametrize(
    "command", [["heatmap", "I love"], ["walkthrough", "I love"], ["compare-heads", "I love"]]
)
def test_the_look_of_a_picture_needs_one(
    refused: Callable[..., tuple[int, str]],
    monkeypatch: pytest.MonkeyPatch,
    command: list[str],
    more: list[str],
) -> None:
    """Before a model is loaded."""
    monkeypatch.setattr("attnviz.capture.source.open_source", pytest.fail)
    status, line = refused(*command, "--toy", "--style", "slides", *more)
    assert status == 2
    assert "--style: of a picture, and none is written" in line
