"""All that is known of a kernel that replaces a module, as plain values."""

from __future__ import annotations

import hashlib
import json
import linecache
import re
import sys
import types
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

KERNEL, REFERENCE, MANIFEST, WEIGHTS = "kernel.py", "reference.py", "manifest.json", "weights.pt"


@dataclass(frozen=True)
class Spec:
    """`kernel` and `reference` are the texts of two programs, with `ModelNew` and with `Model`.

    `workloads` names the sizes that the kernel was verified for: arguments of the reference's
    `get_inputs`. `device` is the type of device that it was verified on. `fingerprint` describes
    the module that the task was made of, where it was made of one.
    """

    name: str
    kernel: str
    reference: str
    workloads: dict[str, dict[str, Any]]
    device: str
    fingerprint: str = ""
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def identifier(self) -> str:
        """A name that is unique to the content, for the operator that torch knows it by."""
        digest = hashlib.sha256(f"{self.kernel}\0{self.reference}".encode()).hexdigest()
        return re.sub(r"\W", "_", self.name) + "_" + digest[:12]

    def manifest(self) -> str:
        """Everything but the programs, as JSON."""
        values = asdict(self)
        del values["kernel"], values["reference"]
        return json.dumps(values, indent=2) + "\n"

    @classmethod
    def read(cls, folder: Path) -> Spec:
        """Return what `manifest` and the programs of a folder say."""
        values = json.loads((folder / MANIFEST).read_text("utf-8"))
        known = {name: values[name] for name in cls.__dataclass_fields__ if name in values}
        kernel = (folder / KERNEL).read_text("utf-8")
        return cls(kernel=kernel, reference=(folder / REFERENCE).read_text("utf-8"), **known)


def execute(text: str, name: str, package: str = "") -> types.ModuleType:
    """Return the module that a text defines. `package` is where its relative imports look."""
    module = types.ModuleType(f"{package}.{name}" if package else name)
    file = f"<{module.__name__} {hashlib.sha256(text.encode()).hexdigest()[:12]}>"
    module.__file__, module.__package__ = file, package
    # Triton reads the source of its kernels; so do tracebacks.
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    sys.modules[module.__name__] = module
    exec(compile(text, file, "exec"), module.__dict__)
    return module
