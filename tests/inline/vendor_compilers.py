"""Stands in for nvcc, mxcc, cucc and hipcc: records its arguments and replays recorded output."""

import json
import sys
from pathlib import Path

VERSIONS = {
    "nvcc": "nvcc: NVIDIA (R) Cuda compiler driver\nCuda compilation tools, release 13.0, V13.0.88",
    "mxcc": "mxcc version 1.0.0 (https://example.org 8b1f2a)\nTarget: x86_64-unknown-linux-gnu",
    "cucc": "cucc version 2.32.0",
    "hipcc": "HIP version: 5.2.21153-0\nDebian clang version 15.0.6\nTarget: x86_64-pc-linux-gnu",
}

SCRIPT = """\
#!{python}
import json, os, signal, sys
settings = json.loads({settings!r})
words = sys.argv[1:]
if words == ["--version"]:
    print(settings["version"])
    sys.exit(0)
with open(settings["record"], "a") as file:
    file.write(json.dumps(words) + "\\n")
text = open("kernel.cpp").read()
smallest = "one()" in text
if not smallest:
    print(settings["output"])
if settings["signal"] and not smallest:
    os.kill(os.getpid(), settings["signal"])
if settings["code"] and not smallest:
    sys.exit(settings["code"])
open(words[words.index("-o") + 1], "w").write("a library")
"""


class FakeCompiler:
    """A compiler at `path`; `calls` are the command lines of its builds, without the compiler."""

    def __init__(self, path: Path, version: str | None = None) -> None:
        self.path = path
        self._record = path.parent / f"{path.name}.calls"
        self._version = VERSIONS[path.name] if version is None else version
        path.parent.mkdir(parents=True, exist_ok=True)
        self.replay("")

    def replay(self, output: str, code: int = 0, signal: int = 0) -> None:
        """What the compiler prints, and how it ends, for every source but our own smallest one."""
        settings = {
            **{"version": self._version, "record": str(self._record)},
            **{"output": output, "code": code, "signal": signal},
        }
        self.path.write_text(SCRIPT.format(python=sys.executable, settings=json.dumps(settings)))
        self.path.chmod(0o755)

    @property
    def calls(self) -> list[list[str]]:
        lines = self._record.read_text().splitlines() if self._record.exists() else []
        return [json.loads(line) for line in lines]
