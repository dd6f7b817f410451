"""The texts of a call of PyTorch's `load_inline`, put together as one source.

`compose` does what PyTorch does: its header, the given texts, and bindings for the named functions.
PyTorch compiles C++ and CUDA texts apart, and so its headers twice; here they are one text, in that
order. Each piece of it has a name of its own in the compiler's messages.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kernel_smith.inline.dialects import EXTENSION
from kernel_smith.inline.flags import flags_for

CPP_PIECE, CUDA_PIECE = "cpp_sources_", "cuda_sources_"
"""What the texts are called in messages, before their numbers."""

_HEADERS = {
    "cpp": "#include <torch/extension.h>\n",
    "cuda": "#include <torch/extension.h>\n#include <cuda.h>\n#include <cuda_runtime.h>\n",
}
# What launches are turned into where kernels are to do nothing: see `elf.neutralise`.
_NO_LAUNCH = {
    "cpp": "",
    "cuda": 'extern "C" __attribute__((visibility("default"))) '
    "int kernel_smith_no_launch() { return 0; }\n",
}
_UNSUPPORTED = {
    "sycl_sources": "there is no SYCL here",
    "extra_sycl_cflags": "there is no SYCL here",
    "with_sycl": "there is no SYCL here",
    "extra_ldflags": "only PyTorch's libraries are linked",
    "extra_include_paths": "only the headers of PyTorch, Python and the compiler are there",
}


class UnsupportedArgument(ValueError):
    """An argument of `load_inline` that means nothing to whoever compiles here."""


@dataclass(frozen=True)
class Extension:
    """What is compiled, in place of a call."""

    dialect: str
    source: str
    flags: tuple[str, ...]


def compose(given: Mapping[str, Any]) -> Extension:
    """Return the source for a call with these arguments. Where it is built, and the name of the
    module, make no difference."""
    _refuse_unsupported(given)
    cpp, cuda = listed(given.get("cpp_sources")), listed(given.get("cuda_sources"))
    with_cuda = given.get("with_cuda")
    dialect = "cuda" if (cuda if with_cuda is None else with_cuda) else "cpp"
    parts = ["" if given.get("no_implicit_headers") else _HEADERS[dialect], _NO_LAUNCH[dialect]]
    for prefix, texts in ((CPP_PIECE, cpp), (CUDA_PIECE, cuda)):
        parts += [f'#line 1 "{prefix}{i}"\n{text}\n' for i, text in enumerate(texts, start=1)]
    if given.get("functions") is not None:
        parts.append(_bindings(given["functions"], given.get("with_pytorch_error_handling", True)))
    host_flags = listed(given.get("extra_cflags"))
    flags = host_flags
    if dialect == "cuda":
        flags = [*flags_for("another", host_flags), *listed(given.get("extra_cuda_cflags"))]
    return Extension(dialect + EXTENSION, "".join(parts), tuple(flags))


def listed(texts: str | Sequence[str] | None) -> list[str]:
    """Return one text or several, as a list; `[""]`, a usual way to write nothing, is empty."""
    return [text for text in ([texts] if isinstance(texts, str) else texts or ()) if text]


def _refuse_unsupported(given: Mapping[str, Any]) -> None:
    for name, why in _UNSUPPORTED.items():
        value = given.get(name)
        if value is True or (value and listed(value)):
            raise UnsupportedArgument(f"load_inline: {name}={value!r} is not supported: {why}")
    if not given.get("is_python_module", True):
        raise UnsupportedArgument(
            "load_inline: is_python_module=False is not supported: bind with `functions`"
        )


def _bindings(functions: str | Sequence[str] | Mapping[str, str], handles_errors: bool) -> str:
    described = functions if isinstance(functions, Mapping) else {f: f for f in listed(functions)}
    lines = ['#line 1 "functions"', "PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {"]
    for name, text in described.items():
        function = f"torch::wrap_pybind_function({name})" if handles_errors else name
        lines.append(f'm.def("{name}", {function}, {json.dumps(text)});')
    return "\n".join([*lines, "}", ""])
