"""``--shard``: parts of a corpus measured on their own, and merged into what one run measures."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import attnviz
from attnviz.capture.source import open_source
from attnviz.errors import SettingsError
from attnviz.heads.settings import SurveySettings
from tests.fixtures.command_line import files, sentences

if TYPE_CHECKING:
    from collections.abc import Callable

    from attnviz.capture.sources import Source
    from tests.fixtures.command_line import Result

pytestmark = pytest.mark.usefixtures("few_seeds", "whole_corpora")

RUN = ("compare-heads", "-m", "toy-random", "--corpus", "corpus.txt", "--controls", "2")
SETTINGS = SurveySettings(controls=6)
WITHIN = 1e-5  # of 1 or of the number itself, if that is larger, as docs/heads.md says


@pytest.fixture(scope="module")
def source() -> Source:
    """A small model."""
    return open_source("toy-random")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Seventy sentences, two of them twice, among blank lines and more bad lines than are listed."""
    path = tmp_path_factory.mktemp("corpus") / "corpus.txt"
    lines = sentences(70)
    lines += lines[:2]
    for place in range(72, 0, -3):
        lines[place:place] = ["\0", ""]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def whole(source: Source, corpus: Path) -> dict[str, Any]:
    """The numbers of one run."""
    return numbers(attnviz.compare_heads(corpus, source, settings=SETTINGS))


def numbers(comparison: attnviz.HeadComparison) -> dict[str, Any]:
    """All numbers, without the receipt: its largest difference is one of rounding."""
    from attnviz.heads.export import to_json

    found: dict[str, Any] = json.loads(to_json(comparison))
    del found["proof"]
    return found


def same(one: Any, other: Any) -> bool:
    """Whether two values of JSON are equal, numbers with a fraction up to `WITHIN`."""
    if isinstance(one, float) and isinstance(other, float):
        return abs(one - other) <= WITHIN * max(1, abs(one))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def test_a_shard_in_python(source: Source, corpus: Path) -> None:
    """It is named by two numbers, or as on the command line; anything else is refused in one line."""
    settings = SurveySettings(controls=0)
    first, second = (
        attnviz.compare_heads(corpus, source, settings=settings, shard=shard)
        for shard in ((3, 64), "3/64")
    )
    assert same(numbers(first), numbers(second))
    for wrong in (3, (1, 2, 3), "x"):
        with pytest.raises(SettingsError, match=r"shard.*3"):
            attnviz.compare_heads(corpus, source, shard=wrong)  # type: ignore[arg-type]  # no shard


@pytest.mark.parametrize("n", [1, 2, 8, 64])
def test_shards_are_the_whole(
    n: int, source: Source, corpus: Path, whole: dict[str, Any], tmp_path: Path
) -> None:
    """Merged in any order they give the numbers, roles, examples and bad lines of one run, and one file."""
    parts = [
        attnviz.compare_heads(corpus, source, settings=SETTINGS, shard=(number, n)).save(
            tmp_path / f"{number}.stats"
        )
        for number in range(1, n + 1)
    ]
    attnviz.merge_stats(parts, tmp_path / "merged.stats")
    random.Random(n).shuffle(parts)
    attnviz.merge_stats(parts, tmp_path / "shuffled.stats")
    merged = (tmp_path / "merged.stats").read_bytes()
    assert (tmp_path / "shuffled.stats").read_bytes() == merged
    assert same(numbers(attnviz.compare_heads(tmp_path / "merged.stats")), whole)


@pytest.mark.parametrize("more", [(), ("--against", "toy-random:seed=1")])
def test_shards_of_a_treebank(
    more: tuple[str, ...], typed: Callable[..., Result], treebank: Path, here: Path
) -> None:
    """Relations between words, their controls and a second model merge too."""
    run = ("compare-heads", "-m", "toy-random", "--conllu", treebank.name, "--controls", "4", *more)
    assert typed(*run, "-o", "one.stats").status == 0
    for number in (1, 2, 3):
        part = typed(*run, "--shard", f"{number}/3", "-o", f"part-{number}.stats")
        assert (part.status, part.output) == (0, "")
        assert part.errors.startswith(f"wrote part-{number}.stats: 16 sentences, ")
    merged = typed("merge", "part-2.stats", "part-3.stats", "part-1.stats", "-o", "all.stats")
    assert merged.errors.startswith("wrote all.stats: 48 sentences, ")
    found, one = (numbers(attnviz.compare_heads(here / f"{name}.stats")) for name in ("all", "one"))
    assert found["relations"]
    if more:
        del found["against"]["proof"], one["against"]["proof"]
    assert same(found, one)


def test_a_finished_shard_is_skipped(
    typed: Callable[..., Result], corpus: Path, here: Path
) -> None:
    """The file stays as it is, and the message says so; the part alone can be shown."""
    (here / "corpus.txt").write_bytes(corpus.read_bytes())
    shard = [*RUN, "--shard", "3/64", "-o", "part.stats"]
    first = typed(*shard)
    assert (first.status, first.output) == (0, "")
    before = files(here)
    again = typed(*shard)
    assert (again.status, again.output) == (0, "")
    assert again.errors == first.errors.replace(
        "wrote part.stats", "skipped part.stats, which is finished"
    )
    assert files(here) == before
    korean = typed(*shard, "--lang", "ko").errors
    assert "건너뜀" in korean
    assert "part.stats" in korean
    assert "corpus.txt (3/64)" in typed("compare-heads", "--load", "part.stats").output


def test_an_interrupted_shard_continues(
    typed: Callable[..., Result], corpus: Path, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Windows of sentences that were measured are not measured again, and the result is the same."""
    monkeypatch.setattr("attnviz.heads.capture.survey.WINDOW", 10)
    (here / "corpus.txt").write_bytes(corpus.read_bytes())
    shard = [*RUN, "--shard", "2/2"]
    assert typed(*shard, "-o", "alone.stats").status == 0
    from attnviz.heads.capture.survey import Runner

    run, batches = Runner.run, []

    def interrupt(*given: Any) -> Any:
        batches.append(given)
        if len(batches) == 3:
            raise KeyboardInterrupt
        return run(*given)

    with monkeypatch.context() as patch:
        patch.setattr(Runner, "run", interrupt)
        assert typed(*shard, "-o", "part.stats").status == 130
    unfinished = typed("merge", "part.stats", "-o", "all.stats")
    assert unfinished.status == 1
    assert "part.stats is a checkpoint of a run that did not finish" in unfinished.errors
    continued = typed(*shard, "-o", "part.stats")
    assert continued.errors.startswith("wrote part.stats: ")
    assert (here / "part.stats").read_bytes() == (here / "alone.stats").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--corpus", "a", "--shard", "three"], "'three' is not I/N, such as 3/64"),
        (["--corpus", "a", "--shard", "-1/4"], "'-1/4' is not I/N, such as 3/64"),
        (["--corpus", "a", "--shard", "0/4"], "there is no shard 0/4: I/N is one of 1/N to N/N"),
        (["--corpus", "a", "--shard", "5/4"], "there is no shard 5/4"),
        (["--corpus", "-", "--shard", "1/4"], "a shard is a part of a file of sentences"),
        (["I love you", "--shard", "1/4"], "a shard is a part of a file of sentences"),
        (["--shard", "1/4"], "a shard is a part of a file of sentences"),
        (["--corpus", "a", "--shard", "1/4", "-o", "a.csv"], "stored in one .stats file"),
        (["--corpus", "a", "--shard", "1/4", "--table"], "a shard is measured, not shown"),
        (["--corpus", "a", "--shard", "1/4", "--checkpoint", "b.stats"], "omit --checkpoint"),
    ],
)
def test_usage(refused: Callable[..., tuple[int, str]], arguments: list[str], words: str) -> None:
    """A mistake on the command line is found before any work."""
    output = [] if "-o" in arguments else ["-o", "a.stats"]
    status, said = refused("compare-heads", "-m", "toy-random", *arguments, *output)
    assert (status, words in said) == (2, True), said


def test_shards_that_do_not_fit(
    typed: Callable[..., Result], refused: Callable[..., tuple[int, str]], here: Path
) -> None:
    """Other runs, missing and repeated shards and parts that are no shards: the error names file and reason."""
    (here / "corpus.txt").write_text("\n".join(sentences(8)) + "\n")
    (here / "other.txt").write_text("\n".join(sentences(9)) + "\n")
    runs = {
        "1": ["--shard", "1/4"],
        "2": ["--shard", "2/4"],
        "4": ["--shard", "4/4"],
        "model": ["--shard", "2/4", "-m", "toy-random:seed=1"],
        "corpus": ["--shard", "2/4", "--corpus", "other.txt"],
        "truncate": ["--shard", "2/4", "--truncate"],
        "total": ["--shard", "2/5"],
        "whole": [],
    }
    for name, arguments in runs.items():
        assert typed(*RUN, *arguments, "-o", f"{name}.stats").status == 0
    size = (here / "corpus.txt").stat().st_size
    another = "is not a shard of the same run as 1.stats: "
    for names, words in {
        "1 model": f"model.stats {another}model is toy-random:seed=1, was toy-random",
        "1 corpus": f"corpus.stats {another}the corpus is another (it was corpus.txt, {size} bytes)",
        "1 truncate": f"truncate.stats {another}truncate is True, was False",
        "1 total": f"total.stats {another}",
        "1 2": "some of 4 shards are missing: 3-4",
        "1 2 4": "some of 4 shards are missing: 3",
        "1 2 4 2": "2.stats and 2.stats are both shard 2/4",
        "1 whole": "whole.stats is not a shard: merge the shards of a corpus on their own",
        "whole 1": "1.stats is shard 1/4: merge the shards of a corpus on their own",
    }.items():
        parts = [f"{name}.stats" for name in names.split()]
        status, said = refused("merge", *parts, "-o", "all.stats")
        assert (status, said.startswith(f"attnviz: {words}")) == (1, True), said
    status, said = refused(*RUN, "--shard", "2/4", "-o", "1.stats")
    assert (status, "shard is 2/4, was 1/4" in said) == (1, True), said
    status, said = refused(*RUN, "--shard", "9/9", "-o", "9.stats")
    assert (status, said) == (
        1,
        "attnviz: corpus.txt, shard 9/9: there is no sentence to measure heads on",
    )
    status, said = refused("compare-heads", "--load", "1.stats", "--shard", "1/4", "-o", "b.stats")
    assert (status, "omit shard" in said) == (2, True), said
