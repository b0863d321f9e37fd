"""The README and docs without running their commands: links, options, pictures, figures."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import typer

import attnviz
from attnviz.cli import app
from tests.fixtures.pages import DOCS, GALLERY, PAGES, README, ROOT, SET_UP, Page, written
from tests.fixtures.receipts import without_rounding


def test_differences_from_rounding() -> None:
    """Differences within the tolerance count as equal; larger ones and all other numbers do not."""
    fine = "matches the model's to 5e-08; ✓ verified (largest difference 2e-07), 3 words"
    assert without_rounding(fine) == without_rounding(fine.replace("5e-08", "0"))
    assert without_rounding(fine) == without_rounding(
        fine.replace("largest difference 2e-07", "equal to the model's own weights")
    )
    for worse in (
        fine.replace("5e-08", "2e-05"),
        fine.replace("3 words", "4 words"),
        fine.replace("2e-07", "1"),
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


def test_every_page_is_run() -> None:
    """Each page is one of those whose commands and Python a file of tests beside this one runs."""
    files = [*Path(__file__).parent.glob("test_*_run.py")]
    named = [name for file in files for name in re.findall(r'"([\w-]+)"', file.read_text("utf-8"))]
    assert {page.path.stem for page in PAGES} <= set(named)


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


CONTACT_SHEET = f"{GALLERY}contact-sheet.png"  # drawn by tests/contact_sheet.py
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
            if path == CONTACT_SHEET:
                continue
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
    """docs/heads.md has a row for each measure, with its unit; of fixed offsets a row for all."""
    from attnviz.heads.measures import measures_of

    def sort(name: str) -> str:
        return re.sub(r"_[+-]\d+$", "", name)

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
    words, *measured = [
        f"{100 * value:.1f}%"
        for what, value in quality.items()
        if what not in {"reference layer", "reference head"}
    ]
    assert f"`toy` correctly predicts {words} of the hidden words" in text
    header = next(index for index, row in enumerate(rows) if row[0] == "encoder")
    assert [row[1] for row in rows[header + 2 :][: len(measured)]] == measured
    assert rows[header][1] == f"`toy`: *it*, head {layer:.0f}.{head:.0f}"
    assert f"--head {layer:.0f}.{head:.0f} -o outputs/gallery/toy.png" in README.text
