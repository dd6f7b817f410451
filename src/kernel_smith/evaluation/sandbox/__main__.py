"""A zygote: `python -m kernel_smith.evaluation.sandbox candidates|compilers FD JUDGE CORE...`.

Started by the process JUDGE, which holds the other end of the socket FD.
"""

from __future__ import annotations

import sys

from kernel_smith.evaluation.sandbox.begin import be_zygote
from kernel_smith.evaluation.sandbox.zygote import Kind


def main() -> None:
    kind, fd, judge, *cores = sys.argv[1:]
    known: Kind = "candidates" if kind == "candidates" else "compilers"
    be_zygote(known, int(fd), int(judge), map(int, cores))


if __name__ == "__main__":
    main()
