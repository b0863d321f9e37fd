"""The README cannot drift: its commands and its Python are run, its pictures are what their commands make."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
FENCES = re.findall(r"^```(\w+)\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL)
SHELL = [line for language, body in FENCES if language == "sh" for line in body.splitlines() if line.strip()]
COMMANDS = [line for line in SHELL if line.startswith("attnviz ")]
SESSIONS = [body for language, body in FENCES if language == "console"]
PYTHON = [body for language, body in FENCES if language == "python"]

Environment = Callable[..., dict[str, str]]


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory, real_model: str) -> Path:
    """A cache that holds the real model under the name that it has on the hub."""
    home = tmp_path_factory.mktemp("hub")
    repository = home / "hub" / "models--sentence-transformers--all-MiniLM-L6-v2"
    commit = "0" * 40
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text(commit)
    (repository / "snapshots" / commit).mkdir(parents=True)
    for file in Path(real_model).iterdir():
        if file.is_file():
            (repository / "snapshots" / commit / file.name).symlink_to(file)
    return home


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as a newcomer has it after cloning: the sample inputs, and a place for pictures."""
    folder = tmp_path_factory.mktemp("clone")
    shutil.copytree(ROOT / "sample_inputs", folder / "sample_inputs")
    return folder


def run(line: str, folder: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a line of the README with the attnviz under test."""
    name, *arguments = shlex.split(line)
    assert name == "attnviz"
    return subprocess.run(
        [sys.executable, "-m", "attnviz", *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        encoding="utf-8",
        timeout=300,
        check=False,
    )


def told(text: str) -> str:
    """A text without the last digits of its receipt, which another processor may round otherwise."""
    return re.sub(r"max difference \S+ over", "max difference ... over", text.rstrip())


def test_the_first_two_commands_are_the_set_up() -> None:
    """The README opens with one line that installs and runs, and one that installs and tests; CI runs just these."""
    first, second = SHELL[:2]
    assert first.startswith("python3 -m venv .venv && ")
    assert first.endswith('attnviz heatmap "I love all you"')
    assert second.startswith("python3 -m venv .venv && ")
    assert "pytest" in second
    assert not any(line.startswith("python3 -m venv") for line in SHELL[2:])


@pytest.mark.parametrize("line", COMMANDS)
def test_commands_run(line: str, workplace: Path, hub: Path, environment: Environment) -> None:
    """Every command works as it stands there; a picture of the gallery is the one that its command makes."""
    done = run(line, workplace, environment(HF_HOME=str(hub)))
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
    words = shlex.split(line)
    for path in [words[i + 1] for i, word in enumerate(words) if word == "-o"]:
        assert (workplace / path).stat().st_size > 0
        if path.startswith("outputs/gallery/"):
            with Image.open(workplace / path) as made, Image.open(ROOT / path) as shown:
                assert told(str(made.info)) == told(str(shown.info))  # model, sentence, scale, receipt
                assert made.size == shown.size


@pytest.mark.parametrize("session", SESSIONS)
def test_sessions_show_what_is_printed(session: str, tmp_path: Path, hub: Path, environment: Environment) -> None:
    """What the README shows of a terminal is what the terminal shows."""
    line, _, shown = session.partition("\n")
    done = run(line.removeprefix("$ "), tmp_path, environment(HF_HOME=str(hub)))
    assert told(done.stdout) == told(shown)


def test_python_runs(tmp_path: Path, environment: Environment) -> None:
    """The README's Python runs from top to bottom as one program."""
    program = "\n".join(PYTHON)
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        encoding="utf-8",
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "(3, 6, 4, 4)" in done.stdout
    assert "verified: max difference" in done.stdout


def test_every_option_is_named(tmp_path: Path, environment: Environment) -> None:
    """The tables of options and the commands' own help name the same options."""
    commands = ("heatmap", "walkthrough")
    told = "".join(run(f"attnviz {command} --help", tmp_path, environment()).stdout for command in commands)
    options = set(re.findall(r"--[a-z][a-z-]+", told)) - {"--help"}
    table = "\n".join(line for line in README.splitlines() if line.startswith("| `"))
    assert set(re.findall(r"--[a-z][a-z-]+", table)) == options


def test_pictures_are_there() -> None:
    """Every picture that the README shows is in the gallery, and has the command that makes it beside it."""
    shown = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", README)
    assert shown
    for path in shown:
        assert (ROOT / path).is_file()
        assert any(f"-o {path}" in command for command in COMMANDS), path


def test_figures_of_the_trained_models_are_the_measured_ones() -> None:
    """What the README says of the trained models is what their own files say was measured."""
    from attnviz.models.training import shipped

    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in README.splitlines()]
    said = {name: figures for name, *figures in rows if name.startswith("`toy-") and len(figures) == 3}
    assert len(said) == 2
    for name, figures in said.items():
        quality = shipped.load_card(shipped.FOLDER / f"{name.split('`')[1]}.safetensors").quality
        told = ("translated without a fault", "alignment error", "alignment error of the diagonal")
        assert figures == [f"{100 * quality[what]:.1f} %" for what in told]
    quality = shipped.load_card(shipped.FOLDER / "toy.safetensors").quality
    layer, head = quality["reference layer"], quality["reference head"]
    figures = [row[1] for row in rows[rows.index(["`toy`", ""]) + 2 :][:6]]
    measured = [value for what, value in quality.items() if what not in {"reference layer", "reference head"}]
    assert figures == [f"{100 * value:.1f} %" for value in measured]
    assert f"| head {layer:.0f}.{head:.0f} looks from *it* at the right noun |" in README
    assert f"--layer {layer:.0f} --head {head:.0f} -o outputs/gallery/toy.png" in README
