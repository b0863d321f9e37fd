"""Two models compared head by head: what ``compare-heads --against`` does."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from attnviz import arguments
from attnviz.capture.notices import opened
from attnviz.errors import RecordError
from attnviz.heads import surveys
from attnviz.heads.asked import Asked, check_can_go_on, check_same_run, told
from attnviz.render.names import picture_path
from attnviz.text.display import visible

if TYPE_CHECKING:
    from attnviz.heads.capture.against import Both
    from attnviz.heads.changes.record import Changes

CHANGED = 3
"""The exit status where a head changed by more than ``--fail-above`` allows."""


def check(asked: Asked, against: str, fail_above: float | None, outputs: Sequence[Path]) -> None:
    """Refuse what cannot be meant together.

    Raises:
        BadParameter: a threshold that watches nothing, or options for one model alone.
    """
    is_saved = _is_saved(against)
    if asked.load is not None and not is_saved:
        raise typer.BadParameter("--load draws what was measured: it is compared --against another .stats file alone")
    for path in outputs:
        if path.suffix.lower() == ".stats":
            raise typer.BadParameter(f"{visible(str(path))}: a comparison of two models is not saved as stats")
    if fail_above is not None:
        from attnviz.heads.changes.record import MOST

        if is_saved:
            raise typer.BadParameter("--fail-above watches patterns, which a .stats file does not hold: give a model")
        if not 0 <= fail_above < MOST:
            raise typer.BadParameter(f"a pattern changes by 0 nats to ln 2 = {MOST:.3f}, not {fail_above:g}")


def show(
    asked: Asked,
    against: str,
    *,
    fail_above: float | None,
    outputs: Sequence[Path],
    background: str,
    json: bool,
) -> None:
    """Compare, print, write; exit with `CHANGED` where a head changed too much.

    Raises:
        AttnvizError: the models cannot be compared head by head, or there is no sentence.
        Exit: a head changed too much.
    """
    found = _compared(asked, against)
    from attnviz.heads.changes.compare import exceeds

    above = () if fail_above is None else exceeds(found, fail_above)
    if json:
        from attnviz.heads.changes.files import to_json

        sys.stdout.write(to_json(found) + "\n")
    else:
        from attnviz.heads.changes import terminal as changes_terminal
        from attnviz.render.terminal.screen import console_here, screen_of

        console = console_here()
        screen = screen_of(console, background, "magma")
        lines = changes_terminal.draw(found, screen)
        if fail_above is not None:
            lines += changes_terminal.draw_exceeded(above, fail_above, screen)
        for line in lines:
            console.print(line, soft_wrap=True)
    names = f"{found.before.model} against {found.after.model}"
    picture = picture_path("compare-heads", names, "", pair=None, target=None)
    for path in outputs or ([] if json else [picture]):
        _write(path, found)
    if above:
        raise typer.Exit(CHANGED)


def _compared(asked: Asked, against: str) -> Changes:
    """What two models' heads do otherwise."""
    if _is_saved(against):
        from attnviz.heads.changes.compare import changes

        other = surveys.finished(Path(against))
        if asked.load is None:
            _check_alike(asked, other.survey.about, against)
        one = surveys.compared(asked).stats
        return changes(
            one.survey, other.survey,
            corpus="; ".join(one.corpora), corpus_after="; ".join(other.corpora), thresholds=asked.thresholds,
        )  # fmt: skip
    both, name = _measured(asked, against)
    from attnviz.heads.changes.compare import changes

    return changes(both.before, both.after, both.divergences, corpus=name, thresholds=asked.thresholds)


def _check_alike(asked: Asked, about: Mapping[str, str], against: str) -> None:
    """Make sure, before a model is run for hours, that it is measured as what it is compared with was.

    Raises:
        RecordError: it is not.
    """
    wanted = {"special tokens": asked.specials, "fixed offsets": f"up to {asked.max_offset}"}
    differing = [f"{what}: {about[what]}, not {value}" for what, value in wanted.items() if about[what] != value]
    if differing:
        raise RecordError(f"{visible(against)} was measured otherwise: {'; '.join(differing)}")


def _measured(asked: Asked, against: str) -> tuple[Both, str]:
    """Run both models over the sentences, unless a checkpoint holds it all; and say what the sentences are."""
    typed = surveys.typed_sentences(asked)
    check_can_go_on(asked.checkpoint, typed.corpus, typed.mark)
    options = {**told(asked), "--against": against}
    from attnviz.heads.capture.against import Both, check_sentence, survey_both
    from attnviz.heads.capture.windows import Progress
    from attnviz.heads.files import two_models as saved
    from attnviz.heads.files.surveys import Stats

    left: saved.BothStats | None = None
    if asked.checkpoint is not None:
        if asked.checkpoint.exists():
            left = saved.load(asked.checkpoint)
            check_same_run(asked.checkpoint, left.before, typed.mark, options)
        arguments.check_writable([asked.checkpoint])
    with opened(asked.model, **asked.loading) as before:
        pass
    with opened(against, **{**asked.loading, "sizes": {}, "revision": None}) as after:
        pass
    so_far: Progress[Both] | None = None
    if left is not None:
        surveys.check_weights(left.before.survey, before, asked.checkpoint)
        surveys.check_weights(left.after, after, asked.checkpoint)
        found = Both(before=left.before.survey, after=left.after, divergences=left.divergences)
        if left.before.n_lines is None:
            return found, "; ".join(left.before.corpora)
        so_far = Progress(found=found, n_lines=left.before.n_lines)
    wish = surveys.wish_of(asked)
    if typed.text is not None:  # why it cannot be read is no fault of a line 1
        check_sentence(typed.text, before, after, wish)
    lines, name = surveys.sentences_of(typed, before)

    def save(found: Both, n_lines: int | None) -> None:
        if asked.checkpoint is not None:
            run = Stats(
                survey=found.before, corpora=(name,), n_lines=n_lines, fingerprint=typed.mark, options=options
            )  # fmt: skip
            saved.save(saved.BothStats(before=run, after=found.after, divergences=found.divergences), asked.checkpoint)

    with surveys.watched(typed.corpus, 0 if so_far is None else so_far.found.before.n_sentences) as tick:

        def keep(progress: Progress[Both]) -> None:
            tick(progress.found.before.n_sentences)
            save(progress.found, progress.n_lines)

        with surveys.named(name):
            both = survey_both(lines, before, after, wish, so_far=so_far, tell=keep)
    save(both, None)
    return both, name


def _write(path: Path, found: Changes) -> None:
    from attnviz.heads.changes import files as changes
    from attnviz.storage import write_whole

    suffix = path.suffix.lower()
    if suffix in changes.WRITERS:
        changes.save(found, path)
    else:
        from attnviz.heads.changes import figure as changes_figure
        from attnviz.render.fonts import advice

        drawn = BytesIO()  # Matplotlib has its own ways to fail on a full disk
        missing = changes_figure.write(found, drawn, suffix).missing
        write_whole(path, drawn.getvalue())
        if missing:
            sys.stderr.write(f"attnviz: {advice(missing)}\n")
    sys.stderr.write(f"wrote {visible(str(path))}\n")


def _is_saved(against: str) -> bool:
    return against.lower().endswith(".stats")
