"""Where the command starts: imports everything else where Ctrl-C is already understood."""

from __future__ import annotations

import sys

_INTERRUPTED = 130


def main() -> None:
    try:
        from kernel_smith.cli.main import main as run
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)
    run()
