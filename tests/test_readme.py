"""The README and docs cannot drift: their commands and their Python are run, and what they show is what is printed.

`pytest tests/test_readme.py --rewrite-golden` rewrites whole terminal sessions and the pictures of the gallery.
"""

from __future__ import annotations

import html
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest
import torch
import typer
from PIL import Image

import attnviz
from attnviz.cli import app
from tests.fixtures.ready import Ready
from tests.fixtures.receipts import without_rounding

ROOT = Path(__file__).parent.parent
GALLERY = "outputs/gallery/"
PYTEST = ".venv/bin/python -m pytest "


@dataclass(frozen=True)
class Page:
    """The README, or a page of docs."""

    path: Path

    def __str__(self) -> str:
        return self.path.relative_to(ROOT).as_posix()

    @property
    def text(self) -> str:
        """All of it."""
        return self.path.read_text(encoding="utf-8")

    @property
    def prose(self) -> str:
        """The text outside fences."""
        return re.sub(r"^```.*?^```$", "", self.text, flags=re.MULTILINE | re.DOTALL)

    def fences(self, language: str) -> list[str]:
        """The fences of one language."""
        return re.findall(rf"^```{language}\n(.*?)^```$", self.text, flags=re.MULTILINE | re.DOTALL)

    @property
    def shell(self) -> list[str]:
        """The lines that a shell runs, in the order of the page: of terminal sessions too, then those in tables."""
        lines = []
        for kind, body in re.findall(
            r"^```(sh|console)\n(.*?)^```$", self.text, flags=re.MULTILINE | re.DOTALL
        ):
            start = "" if kind == "sh" else "$ "
            lines += [
                line.removeprefix(start)
                for line in body.splitlines()
                if line.strip() and line.startswith(start) and not line.startswith("#")
            ]
        return lines + re.findall(
            r"^\|[^|]*\| `(attnviz [^`]*)` \|", self.prose, flags=re.MULTILINE
        )

    @property
    def links(self) -> list[str]:
        """Where its links and pictures lead."""
        return re.findall(r"\]\(([^)\s]+)\)", self.prose)


README, *DOCS = PAGES = [
    Page(path) for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
]
SET_UP = README.shell[:2]
COMMANDS = list(dict.fromkeys(line for page in PAGES for line in page.shell if line not in SET_UP))
# With `-o` a command does the same and writes other files: where both stand, it is run with it alone.
RUN = [line for line in COMMANDS if not any(other.startswith(f"{line} -o ") for other in COMMANDS)]
SESSIONS = [(page, session) for page in PAGES for session in page.fences("console")]

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
def other_hub(tmp_path_factory: pytest.TempPathFactory, hub: Path) -> Path:
    """A cache that holds DistilBERT too, a layer of it with random weights; on most pages it is not there."""
    from transformers import AutoTokenizer, DistilBertConfig, DistilBertModel

    home = tmp_path_factory.mktemp("other_hub")
    repository, commit = home / "hub" / "models--distilbert-base-uncased", "0" * 40
    tokenizer = AutoTokenizer.from_pretrained(next((hub / "hub").glob("*/snapshots/*")))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        DistilBertModel(DistilBertConfig(n_layers=1)).save_pretrained(
            repository / "snapshots" / commit
        )
    tokenizer.save_pretrained(repository / "snapshots" / commit)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(commit)
    return home


@dataclass(frozen=True)
class Clone:
    """A folder as a newcomer has it after cloning: the sample inputs, and a place for pictures."""

    folder: Path
    done: dict[str, subprocess.CompletedProcess[str]]
    ready: dict[str, Ready]  # by the cache of models that its commands have

    def run(self, line: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
        """Run a line of a page, once, with the attnviz under test.

        What it reads is made first, by the command that writes it.
        """
        if line not in self.done:
            tests = line.startswith(PYTEST)
            name, *words = shlex.split(line.removeprefix(".venv/bin/python -m "))
            assert name == "attnviz" or tests, (
                f"this kind of command is not run by the tests: {line}"
            )
            for word in words:
                # a test may run alone
                if word not in written(line) and not (self.folder / word).exists():
                    for maker in [one for one in COMMANDS if word in written(one)][:1]:
                        self.run(maker, environment)
            if tests:
                self.done[line] = subprocess.run(
                    [sys.executable, "-m", name, *words],
                    cwd=ROOT,
                    env=environment,
                    capture_output=True,
                    encoding="utf-8",
                    timeout=300,
                    check=False,
                )
            else:
                self.done[line] = self.process([name, *words], self.folder, environment)
        return self.done[line]

    def process(
        self, words: list[str], folder: Path, environment: dict[str, str]
    ) -> subprocess.CompletedProcess[str]:
        """Run a program in a folder, in a process of its own."""
        home = environment["HF_HOME"]
        if home not in self.ready:
            self.ready[home] = Ready.start(environment)
        return self.ready[home].run(words, folder, environment, seconds=300)


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clone]:
    """One for all pages."""
    folder = tmp_path_factory.mktemp("clone")
    shutil.copytree(ROOT / "sample_inputs", folder / "sample_inputs")
    (folder / GALLERY).mkdir(parents=True)
    made = Clone(folder, {}, {})
    yield made
    for one in made.ready.values():
        one.close()


@pytest.fixture
def rewrite(request: pytest.FixtureRequest) -> bool:
    """Whether what can be made by a program is written anew."""
    return bool(request.config.getoption("--rewrite-golden"))


def test_differences_from_rounding() -> None:
    """Differences within the tolerance count as equal; larger ones and all other numbers do not."""
    fine = "matches the model's to 5.5e-08 (1.3e-07 from the input on); max difference 0 over 3"
    assert without_rounding(fine) == without_rounding(
        fine.replace("5.5e-08", "6.1e-08").replace("1.3e-07", "0")
    )
    for worse in (
        fine.replace("5.5e-08", "1.1e-05"),
        fine.replace("over 3", "over 4"),
        fine.replace("0 over", "1 over"),
    ):
        assert without_rounding(fine) != without_rounding(worse)
    assert without_rounding("weight 1.0e-07") != without_rounding("weight 2.0e-07")


def test_the_first_two_commands_are_the_set_up() -> None:
    """The README opens with one line that installs and runs, and one that installs and tests; CI runs just these."""
    first, second = SET_UP
    assert first.startswith("python3 -m venv .venv && ")
    assert first.endswith('attnviz heatmap "I love all you"')
    assert second.startswith("python3 -m venv .venv && ")
    assert "pytest" in second
    assert README.text.count("\n") <= 200


@pytest.mark.parametrize(
    "line", RUN, ids=lambda line: line if len(line) < 90 else f"{line[:40]} ... {line[-40:]}"
)
def test_commands_run(
    line: str,
    clone: Clone,
    environment: Environment,
    request: pytest.FixtureRequest,
    *,
    rewrite: bool,
) -> None:
    """Every command works as it stands there; a picture of the gallery is the one that its command makes."""
    home = request.getfixturevalue("other_hub" if "distilbert-base-uncased" in line else "hub")
    done = clone.run(line, environment(HF_HOME=str(home)))
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stdout + done.stderr
    for path in written(line):
        assert (clone.folder / path).stat().st_size > 0
        if path.startswith(GALLERY):
            made = looks(clone.folder / path)
            if rewrite and (not (ROOT / path).exists() or made != looks(ROOT / path)):
                shutil.copy(clone.folder / path, ROOT / path)
            assert made == looks(ROOT / path)


def written(line: str) -> list[str]:
    """The files that a command is told to write."""
    words = shlex.split(line)
    return [after for word, after in pairwise(words) if word in {"-o", "--checkpoint"}]


def looks(picture: Path) -> tuple[tuple[int, int], dict[str, str]]:
    """The size of a picture, and what it says of itself: model, sentence, scale, receipt; of a page all but data."""
    if picture.suffix == ".html":
        text = re.sub(
            r'(?s)<script type="application.*?</script>', "", picture.read_text(encoding="utf-8")
        )
        return (0, 0), {"page": "\n".join(map(without_rounding, html.unescape(text).splitlines()))}
    with Image.open(picture) as image:
        return image.size, {
            # The title of a story may hold the rounding error of float64 itself, such as 4.0e-15.
            str(name): re.sub(r"\d\.\de-1[3-9]", "rounding", without_rounding(str(value)))
            for name, value in image.info.items()
        }


@pytest.mark.parametrize(
    ("page", "session"), SESSIONS, ids=lambda value: str(value).partition("\n")[0][:90]
)
def test_sessions_show_what_is_printed(
    page: Page, session: str, clone: Clone, hub: Path, environment: Environment, *, rewrite: bool
) -> None:
    """Terminal sessions show what the terminal prints; a line `...` stands for any lines."""
    line, _, shown = session.partition("\n")
    printed = clone.run(line.removeprefix("$ "), environment(HF_HOME=str(hub))).stdout
    lines = without_rounding(shown.rstrip()).splitlines()
    if "..." in lines:
        pattern = "".join(
            r"(?:.*\n)*?" if line == "..." else f"{re.escape(line)}\n" for line in lines
        )
        assert re.fullmatch(pattern, without_rounding(printed.rstrip()) + "\n"), (
            f"{page} shows otherwise what is printed:\n{printed}"
        )
        return
    if rewrite and without_rounding(printed.rstrip()) != without_rounding(shown.rstrip()):
        shown = printed.rstrip() + "\n"
        page.path.write_text(page.text.replace(session, f"{line}\n{shown}"), encoding="utf-8")
    assert without_rounding(printed.rstrip()) == without_rounding(shown.rstrip())


@pytest.mark.parametrize("page", [page for page in PAGES if page.fences("python")], ids=str)
def test_python_runs(
    page: Page, clone: Clone, tmp_path: Path, hub: Path, environment: Environment
) -> None:
    """The Python of a page runs from top to bottom as one program, and prints what its comments say."""
    program = "\n".join(page.fences("python"))
    shutil.copytree(ROOT / "sample_inputs", tmp_path / "sample_inputs")
    (tmp_path / "program.py").write_text(program, encoding="utf-8")
    done = clone.process(["program.py"], tmp_path, environment(HF_HOME=str(hub)))
    assert done.returncode == 0, done.stderr
    left = done.stdout
    for said in re.findall(r"^ *print\(.*\)  # (.+)$", program, flags=re.MULTILINE):
        found = re.search(
            "^" + ".*".join(map(re.escape, said.split("..."))) + "$", left, flags=re.MULTILINE
        )
        assert found, f"{page} says that {said!r} is printed, but this is:\n{left}"
        left = left[found.end() :]


def test_every_page_stands_alone() -> None:
    """A file that a command reads is one of the sample inputs, or written further up on the same page."""
    for page in PAGES:
        there: set[str] = set()
        for line in page.shell:
            if not line.startswith("attnviz "):
                continue
            read = [
                word
                for word in shlex.split(line)
                if re.search(r"\w\.(?!\d)[a-z]\w+$", word) and " " not in word
            ]
            missing = (
                {word for word in read if not (ROOT / word).exists()} - there - {*written(line)}
            )
            assert not missing, (
                f"{page}: {line} reads {missing}, which no command above has written"
            )
            there |= {*written(line)}


def test_every_public_name_has_an_example() -> None:
    """All that `import attnviz` offers is used in the Python of docs/python.md, and told of in its prose."""
    page = Page(ROOT / "docs" / "python.md")
    program = "\n".join(page.fences("python"))
    used = {*re.findall(r"attnviz\.(\w+)", program)}
    for names in re.findall(r"from attnviz import (.+)", program):
        used |= {*re.findall(r"\w+", names)}
    assert set(attnviz.__all__) <= used
    assert set(attnviz.__all__) <= {
        *re.findall(r"\w+", " ".join(re.findall(r"`([^`]+)`", page.prose)))
    }


OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")

OTHERS = {"--no-deps", "--rewrite-golden", "--with-bertviz", "--with-seaborn"}
"""Options of other programs that the pages name."""


def test_no_table_has_an_option_twice() -> None:
    """No table explains an option twice."""
    for page in PAGES:
        for table in re.findall(r"(?:^\|.*\n)+", page.text, re.MULTILINE):
            named = OPTION.findall(" ".join(re.findall(r"^\| (`-[^|]*)\|", table, re.MULTILINE)))
            assert len(named) == len({*named}), (page, named)


def test_every_option_named_is_there() -> None:
    """No page names an option that no command has."""
    group = typer.main.get_command(app)
    options = {
        name
        for command in (group, *group.commands.values())  # type: ignore[attr-defined]
        for parameter in command.params
        for name in (*parameter.opts, *parameter.secondary_opts)
    } | {"--help"}
    for page in PAGES:
        named = {
            option
            for code in re.findall(r"`([^`]+)`", page.prose)
            for option in OPTION.findall(code)
        }
        assert named <= options | OTHERS, page


def test_links_lead_somewhere() -> None:
    """Each link within the project, and each picture, is there, and so is the heading that it names."""
    for page in PAGES:
        for link in page.links:
            if link.startswith(("http://", "https://")):
                continue
            path, _, heading = link.partition("#")
            target = (page.path.parent / path).resolve() if path else page.path
            assert target.exists(), f"{page}: {link}"
            if heading:
                assert heading in {
                    slug(one) for one in re.findall(r"^#+ (.+)$", Page(target).prose, re.MULTILINE)
                }, link
        for path in re.findall(
            r"`((?:attnviz|tests|outputs|sample_inputs|docs)/[\w/.-]*)`", page.prose
        ):
            assert (ROOT / path).exists(), f"{page}: {path}"
    assert {str(page) for page in DOCS} <= {*README.links}, "the README names every page of docs"


def slug(heading: str) -> str:
    """How GitHub names a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def test_pictures_have_their_commands() -> None:
    """The gallery holds the pictures that pages show, and no other; each has its command on the same page."""
    shown = set()
    for page in PAGES:
        for link in re.findall(r"!\[[^\]]+\]\(([^)]+)\)", page.text):
            path = (page.path.parent / link).resolve().relative_to(ROOT).as_posix()
            shown.add(path)
            made = {
                path,
                str(Path(path).with_suffix(".html")),
            }  # a page is shown by a picture of it
            assert any(made & {*written(line)} for line in page.shell), (
                f"{page}: which command makes {path}?"
            )
    shown |= {
        path
        for page in PAGES
        for line in page.shell
        for path in written(line)
        if path.startswith(GALLERY)
    }
    assert shown == {f"{GALLERY}{path.name}" for path in (ROOT / GALLERY).iterdir()}


def test_the_table_of_measures_is_that_of_the_code() -> None:
    """docs/heads.md has a row for each measure, with its unit; of fixed offsets and norm-based ones a row for all."""
    from attnviz.heads.measures import measures_of

    def sort(name: str) -> str:
        return re.sub(r"_[+-]\d+$|(?<=^norm)_\w+$", "", name)

    text = (
        (ROOT / "docs" / "heads.md")
        .read_text(encoding="utf-8")
        .partition("## Measures")[2]
        .partition("\n## ")[0]
    )
    rows = re.findall(r"^\| `(\w+(?:[+-]\d+)?)`.*\| (share|nats|tokens) \|", text, re.MULTILINE)
    assert {sort(name): unit for name, unit in rows} == {
        sort(one.name): one.unit for one in measures_of()
    }


def test_figures_of_the_trained_models_are_the_measured_ones() -> None:
    """The figures of the trained models are those on their cards."""
    from attnviz.models.training import files

    text = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()]
    said = {
        name: figures for name, *figures in rows if name.startswith("`toy-") and len(figures) == 3
    }
    assert len(said) == 2
    for name, figures in said.items():
        quality = files.load_card(files.FOLDER / f"{name.split('`')[1]}.safetensors").quality
        names = (
            "sentences translated correctly",
            "alignment error",
            "alignment error of the diagonal",
        )
        assert figures == [f"{100 * quality[what]:.1f}%" for what in names]
    quality = files.load_card(files.FOLDER / "toy.safetensors").quality
    layer, head = quality["reference layer"], quality["reference head"]
    figures = [row[1] for row in rows[rows.index(["`toy`", ""]) + 2 :][:6]]
    measured = [
        value
        for what, value in quality.items()
        if what not in {"reference layer", "reference head"}
    ]
    assert figures == [f"{100 * value:.1f}%" for value in measured]
    assert f"| head {layer:.0f}.{head:.0f} attends from *it* to the right noun |" in text
    assert f"--head {layer:.0f}.{head:.0f} -o outputs/gallery/toy.png" in README.text
