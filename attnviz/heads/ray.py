"""A corpus that outgrows one process, measured by the workers of a Ray cluster; the only module that imports ray."""

from __future__ import annotations

import logging
import os
import pickle
import platform
import signal
import socket
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from attnviz.errors import AttnvizError, ModelError, SettingsError
from attnviz.heads.measures import Measure
from attnviz.heads.settings import ModelSettings, SurveySettings
from attnviz.heads.survey import Part
from attnviz.text.corpus import BadLine, CorpusLine
from attnviz.text.display import clip, visible

if TYPE_CHECKING:
    from attnviz.heads.capture.survey import Surveyor

LOCAL = "local"  # the address that starts Ray on this machine
BLOCKS = 8  # blocks per worker: no worker waits long for the others, and little is lost with one
SENTENCES = 128  # the smallest number of sentences of a block, so that its batches are full
TIMEOUT = 3  # seconds until a cluster must answer


@contextmanager
def connect(address: str) -> Iterator[None]:
    """Start Ray on this machine, or connect to a cluster; if Ray is in use already, it is left as it is.

    Raises SettingsError: Ray is not installed, or no cluster answers.
    """
    # Ray reads these when it is imported: nothing is reported, its own log is not printed, and workers have the
    # priority of other processes (Ray's default is 15, with which they hardly run on a busy machine).
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ.setdefault("RAY_worker_niceness", "0")
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    if address != LOCAL:  # Ray would wait for minutes
        os.environ.setdefault("RAY_py_gcs_connect_timeout_s", str(TIMEOUT))
        os.environ.setdefault("RAY_NUM_REDIS_GET_RETRIES", "1")
    try:
        import ray.data
    except ImportError:
        raise SettingsError('Ray is not installed: pip install "ray[data]"', "ray") from None
    if ray.is_initialized():
        yield
        return
    for name in ("ray", "ray.data"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    on_sigterm = signal.getsignal(signal.SIGTERM)
    try:
        host, colon, port = address.rpartition("://")[2].rpartition(":")
        if colon:  # at a port where nothing answers Ray would try for long
            socket.create_connection((host, int(port)), TIMEOUT).close()
        with _silent_stderr():
            ray.init(
                address,
                include_dashboard=False if address == LOCAL else None,
                log_to_driver=False,
                logging_level=logging.CRITICAL,
            )
    except (OSError, RuntimeError, ValueError) as error:
        reason = clip(visible(" ".join(str(error).split())), 200)
        raise SettingsError(f"no Ray at {visible(address)}: {reason}", "ray") from None
    if threading.current_thread() is threading.main_thread():
        # Ray's own handler would end this process and leave others behind.
        signal.signal(signal.SIGTERM, on_sigterm)
    try:
        with redirect_stdout(sys.stderr):  # Ray prints there that a worker was lost
            yield
    finally:
        ray.shutdown()


@contextmanager
def _silent_stderr() -> Iterator[None]:
    """Hide what Ray's C++ code prints while it starts: which environment variables were read."""
    sys.stderr.flush()
    stderr, null = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)
    try:
        yield
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)
        os.close(null)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """All that a worker needs to measure a block of lines."""

    models: tuple[ModelSettings, ...]  # one model, or two that are compared
    digests: tuple[str, ...]  # the digests of their weights
    settings: SurveySettings
    measures: tuple[Measure, ...]
    folder: str  # the current folder, in which relative paths begin


def measure_blocks(lines: Iterable[CorpusLine | BadLine], job: Job) -> Iterator[Part]:
    """Yield what is measured so far, without controls, after each block.

    If a worker is lost, Ray starts it again and gives it its block again. Raises AttnvizError: a worker cannot
    measure its block.
    """
    import ray.data

    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    # Another order would change the last bits of sums.
    context.execution_options.preserve_order = True
    n_workers, cores, gpus = _workers(job.models[0])
    blocks = _blocks(list(lines), BLOCKS * n_workers)
    rows = [{"lines": pickle.dumps(block)} for block in blocks]
    pool = ray.data.ActorPoolStrategy(
        size=min(n_workers, len(blocks)), max_tasks_in_flight_per_actor=1
    )
    results = ray.data.from_items(rows, override_num_blocks=len(rows)).map_batches(
        Worker,
        fn_constructor_args=[job],
        batch_size=1,
        compute=pool,
        num_cpus=cores,
        num_gpus=gpus,
    )
    so_far = Part()
    for row in results.iter_rows():
        result = pickle.loads(row["result"])
        if isinstance(result, Exception):
            raise result
        so_far = so_far.merge(result)
        yield so_far


def _blocks(
    lines: Sequence[CorpusLine | BadLine], n_blocks: int
) -> list[Sequence[CorpusLine | BadLine]]:
    """Cut lines into about this many blocks of equally many sentences, at least `SENTENCES` each."""
    ends = [number + 1 for number, line in enumerate(lines) if isinstance(line, CorpusLine)]
    size = max(SENTENCES, -(-len(ends) // n_blocks))  # -(-a // b) rounds up
    # The last block also has the lines after its last sentence that cannot be used.
    cuts = [0, *ends[size - 1 : -1 : size], len(lines)]
    return [lines[first:last] for first, last in pairwise(cuts)]


def _workers(model: ModelSettings) -> tuple[int, int, int]:
    """Return the number of workers, and the cores (OMP_NUM_THREADS, or 1) and GPUs of each."""
    import ray

    available = ray.cluster_resources()
    n_cores, n_gpus = max(1, int(available.get("CPU", 1))), int(available.get("GPU", 0))
    if n_gpus and model.device in {"auto", "cuda"}:
        return n_gpus, 1, 1
    threads = os.environ.get("OMP_NUM_THREADS", "")
    cores = min(int(threads), n_cores) if threads.isdecimal() and int(threads) else 1
    return n_cores // cores, cores, 0


class Worker:
    """A worker, which opens the models once and then measures one block of lines after another."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.surveyor: Surveyor | None = None

    def __call__(self, batch: dict[str, Any]) -> dict[str, list[bytes]]:
        """Measure the block in a batch of one; an error is a result, since Ray would wrap it in several others."""
        try:
            self.surveyor = self.surveyor or self._open()
            result: Part | Exception = self.surveyor.measure_all(pickle.loads(batch["lines"][0]))
        except (AttnvizError, MemoryError, RuntimeError) as error:
            result = error
        return {"result": [pickle.dumps(result)]}

    def _open(self) -> Surveyor:
        """Open the models. Raises ModelError: they are not here, or have other weights than those of the job."""
        from attnviz.capture.source import open_source
        from attnviz.heads.capture.survey import Surveyor

        with suppress(OSError):  # a machine need not have this folder
            os.chdir(self.job.folder)
        try:
            sources = [open_source(**asdict(model)) for model in self.job.models]
            for source, digest in zip(sources, self.job.digests, strict=True):
                if source.digest() != digest:
                    raise ModelError(f"{visible(source.name)} has other weights")
            return Surveyor(sources, self.job.settings, self.job.measures)
        except AttnvizError as error:
            raise ModelError(f"on {platform.node()}, {error}") from None
