"""ISO C kernels on the CPU: the smallest backend, as docs/new-backend.md explains it."""

from pathlib import Path

from kernel_smith.evaluation.backends.base import Route
from kernel_smith.evaluation.backends.compiled import CompiledBackend
from kernel_smith.inline.dialects import Recipe


class CBackend(CompiledBackend):
    name = "c"
    gpu = False

    # How a text becomes a shared library.
    recipe = Recipe(
        variable="CC",
        compilers=("gcc", "clang"),
        install="apt-get install gcc",
        arguments=("-x", "c", "-std=c17", "-O3", "-fopenmp", "-shared", "-fPIC"),
        choices=(("-march=native", "-mcpu=native"), ("-fno-diagnostics-show-line-numbers",)),
        link_arguments=("-Wl,-z,defs", "-lm"),
        smallest="int one(void) { return 1; }\n",
    )

    # What a model is told about the language.
    prompt = (Path(__file__).parent / "dialect.md").read_text(encoding="utf-8")

    def route(self, *, on_device: bool) -> Route:
        return "native"
