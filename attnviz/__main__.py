"""The command, as ``attnviz`` and as ``python -m attnviz``."""

from __future__ import annotations

from typing import NoReturn


def main() -> NoReturn:
    """Run the command line; Ctrl-C ends it quietly even before it has begun."""
    try:
        from attnviz.cli import main as run
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    run()


if __name__ == "__main__":
    main()
