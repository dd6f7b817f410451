"""`python -m kernel_smith`: the command, for environments whose scripts are not on the path."""

from __future__ import annotations

from kernel_smith.cli.entry import main

main()
