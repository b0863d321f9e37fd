"""The entry point of the command, for ``attnviz`` and ``python -m attnviz``."""

# Each import here delays the moment from which Ctrl-C is handled, so there are as few as possible.
import gc
import os
import signal


def main() -> None:
    """Run the command line; Ctrl-C ends it quietly even before it has begun."""
    # Some libraries turn KeyboardInterrupt into another error while they are imported, so none is raised.
    signal.signal(signal.SIGINT, lambda *_: os._exit(128 + signal.SIGINT))
    # Importing libraries creates many objects that are never freed. With Python's default thresholds, searching them
    # for garbage takes a fifth of the time of a short command.
    gc.set_threshold(50_000, 20, 20)
    from attnviz.cli import main as run

    run()


if __name__ == "__main__":
    main()
