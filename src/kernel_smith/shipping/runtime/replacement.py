"""A kernel that stands in for modules: of its own, of a program's, or of a whole model's."""

from __future__ import annotations

import contextlib
import copy
import functools
import inspect
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch

from .dropin import DropIn, attached, detach, twin
from .signatures import Signature, key_of, tensors_in, verified_arguments, with_tensors
from .spec import WEIGHTS, Spec, execute
from .state import (
    bind,
    depends_on_mode,
    difference,
    fingerprint,
    forget_values,
    other_setting,
    tensors_of,
)
from .traced import register, result_kind


class Replacement:
    """A kernel, the reference that it was verified against, and the calls it was verified for."""

    def __init__(self, spec: Spec, folder: str | None = None, package: str = "") -> None:
        self.spec = spec
        self.folder = folder
        self.package = package
        self._local = threading.local()
        self._programs = threading.Lock()

    @classmethod
    def read(cls, folder: Path, package: str) -> Replacement:
        """Return what a saved folder holds; `package` is the name that it was imported under."""
        return cls(Spec.read(folder), str(folder), package)

    def __reduce__(self) -> Any:
        return _revived, (type(self), self.spec, self.folder, self.package)

    @property
    def device(self) -> torch.device:
        """Where calls are answered; of several GPUs the current one."""
        if self.spec.device == "cpu":
            return torch.device("cpu")
        index = torch.cuda.current_device() if torch.cuda.is_available() else 0
        return torch.device(self.spec.device, index)

    @functools.cached_property
    def reference(self) -> Any:
        """The program with `Model` and `get_inputs`."""
        with _usual_dtype():
            return execute(self.spec.reference, f"reference_of_{self.spec.identifier}")

    @functools.cached_property
    def _kernel(self) -> Any:
        with _usual_dtype():
            return execute(self.spec.kernel, f"kernel_{self.spec.identifier}", self.package)

    @functools.cached_property
    def workloads(self) -> dict[str, dict[str, Any]]:
        """Those that the constructor gets the same arguments for as for the first one."""
        first = self._init_arguments
        return {
            name: sizes
            for name, sizes in self.spec.workloads.items()
            if init_arguments(self.reference, sizes) == first
        }

    @functools.cached_property
    def _init_arguments(self) -> tuple[Any, ...]:
        return init_arguments(self.reference, next(iter(self.spec.workloads.values())))

    @functools.cached_property
    def verified(self) -> torch.nn.Module:
        """The reference as it was when calls were verified; of parameters only what they are."""
        return self._built(self.reference.Model)

    @functools.cached_property
    def depends_on_mode(self) -> bool:
        return depends_on_mode(self.verified, self.spec.reference)

    @functools.cached_property
    def signatures(self) -> tuple[Signature, ...]:
        """The calls that were verified."""
        found = []
        for sizes in self.workloads.values():
            with self._undisturbed():
                arguments = verified_arguments(self.reference.get_inputs, sizes)
            found.append(Signature(key_of(arguments, self.device), arguments))
        forget_values(self.verified)
        return tuple(found)

    @functools.cached_property
    def results(self) -> tuple[str, ...]:
        """How the reference returns the results of each of them, in the words of `result_kind`.

        Asked as late as can be, since it takes PyTorch's compiler, whose import takes seconds; and
        in another thread, where no mode counts in which a program may be traced meanwhile.
        """
        ask = functools.partial(result_kind, verified=self.verified, device=self.device)
        with self._programs, ThreadPoolExecutor(1) as another:
            return tuple(another.map(ask, self.signatures))

    @functools.cached_property
    def state_names(self) -> tuple[str, ...]:
        """Where a module keeps what the operator is given."""
        return tuple(name for name, _ in tensors_of(self.verified))

    @functools.cached_property
    def operator(self) -> Callable[..., list[torch.Tensor]]:
        """The kernel as an operator of torch's."""
        return register(self)

    def new_kernel(self) -> torch.nn.Module:
        """Another instance of the kernel's module."""
        with self._programs:
            return self._built(self._kernel.ModelNew)

    def kernel_of_thread(self) -> torch.nn.Module:
        """Return the instance that serves the operator in this thread."""
        if not hasattr(self._local, "kernel"):
            self._local.kernel = self.new_kernel()
        kernel: torch.nn.Module = self._local.kernel
        return kernel

    def bind(self, kernel: torch.nn.Module, module: torch.nn.Module) -> None:
        """Let a kernel's module read the parameters of a live one."""
        bind(kernel, dict(tensors_of(module)).get)
        kernel.train(self.verified.training)

    def _built(self, kind: type[torch.nn.Module]) -> torch.nn.Module:
        with self._undisturbed():
            return kind(*self._init_arguments).to(self.device)

    @contextlib.contextmanager
    def _undisturbed(self) -> Iterator[None]:
        """As when calls were verified, and without changing what the user draws at random."""
        devices = [] if self.device.type == "cpu" else [self.device]
        with (
            torch.random.fork_rng(devices),
            torch.device(self.device),
            torch.inference_mode(False),
            torch.no_grad(),
            torch.autocast(self.spec.device, enabled=False),
            _usual_dtype(),
        ):
            torch.manual_seed(0)
            yield

    def module(self, of: torch.nn.Module | None = None) -> torch.nn.Module:
        """Return a module whose verified calls the kernel answers.

        It shares the parameters of the module given, and has its class and its `state_dict`.
        Without one it is the reference, with the weights that were saved.
        """
        if of is None:
            of = self._built(self.reference.Model)
            if self.folder and (Path(self.folder) / WEIGHTS).exists():
                saved = Path(self.folder) / WEIGHTS
                weights = torch.load(saved, map_location=self.device, weights_only=True)
                of.load_state_dict(weights)
        elif not isinstance(of, torch.nn.Module):
            raise TypeError(f"expected a torch.nn.Module, got {type(of).__name__}")
        elif fingerprint(of) != self.spec.fingerprint and (why := self._disagreement(of)):
            raise ValueError(f"this kernel is for another module: {why}")
        self._get_ready()
        return attached(twin(of), self)

    def patch(self, model: torch.nn.Module, where: type | None = None) -> list[str]:
        """Let the kernel answer calls of all matching modules within a model, and name them.

        A module matches if it has the class, settings and sizes of the one that was optimized.
        `where` names another class whose modules compute the same. Of those, modules match whose
        sizes, settings of the same names, and results on one call agree.
        """
        if not self.spec.fingerprint and where is None:
            raise ValueError(
                f"{self.spec.name} was made of a task, so no class of the model is known to match; "
                "name it: patch(model, where=MyNorm)"
            )
        self._get_ready()
        names = []
        for name, part in list(model.named_modules()):
            if not isinstance(part, DropIn) and self._matches(part, where):
                attached(part, self)
                names.append(name)
        return names

    def unpatch(self, model: torch.nn.Module) -> list[str]:
        """Take back what `patch` did, and name the modules."""
        found = [
            (name, part)
            for name, part in model.named_modules()
            if isinstance(part, DropIn) and part._kernel_smith.replacement.spec == self.spec
        ]
        for _, part in found:
            detach(part)
        return [name for name, _ in found]

    def _matches(self, part: torch.nn.Module, where: type | None) -> bool:
        if where is None:
            return fingerprint(part) == self.spec.fingerprint
        return type(part) is where and self._disagreement(part) is None

    def _disagreement(self, module: torch.nn.Module) -> str | None:
        """Return what shows that a module of another class computes something else; None if
        nothing."""
        _ = self.signatures
        expected = {name: tuple(tensor.shape) for name, tensor in tensors_of(self.verified)}
        found = {name: tuple(tensor.shape) for name, tensor in tensors_of(module)}
        if found != expected:
            odd = sorted(dict(found.items() ^ expected.items()))[0]
            return f"{odd} is {found.get(odd, 'missing')}, expected {expected.get(odd, 'none')}"
        if (name := other_setting(module, self.verified)) is not None:
            return f"its {name} differs"
        if (why := difference(module, self.verified, self.device)) is not None:
            return why
        return None if self._same_results(module) else "its results differ"

    def _same_results(self, module: torch.nn.Module) -> bool:
        """Tell whether kernel and module agree on one call of the first workload."""
        sizes = next(iter(self.workloads.values()))
        kernel = self.kernel_of_thread()
        self.bind(kernel, module)
        # A copy, since a call may change running statistics.
        rival = copy.deepcopy(module).train(self.verified.training)
        with self._undisturbed():
            arguments = self.reference.get_inputs(**sizes)
            inputs = [tensor.to(self.device) for tensor in tensors_in(arguments)]
            try:
                expected = rival.forward(*with_tensors(arguments, iter(inputs)))
            except Exception:  # it takes other arguments
                return False
            found = kernel.forward(*with_tensors(arguments, iter(inputs)))
        ours, theirs = list(tensors_in(found)), list(tensors_in(expected))
        return len(ours) == len(theirs) and all(map(self._close, ours, theirs))

    def _close(self, found: torch.Tensor, expected: torch.Tensor) -> bool:
        if (found.shape, found.dtype) != (expected.shape, expected.dtype):
            return False
        allowed = 2 * (self.spec.facts.get("allowed_error") or 1e-5)
        scale = float(expected.abs().max()) if expected.numel() else 1.0
        return torch.allclose(found, expected, rtol=0, atol=allowed * scale, equal_nan=True)

    def _get_ready(self) -> None:
        """Compile now rather than at the first call, and outside of torch's tracing."""
        self.kernel_of_thread()
        _ = self.operator, self.state_names, self.depends_on_mode

    def __repr__(self) -> str:
        names = ", ".join(self.spec.workloads)
        speedup = self.spec.facts.get("speedup")
        figures = "" if speedup is None else f", {speedup['value']:.2f}x of eager"
        return f"Replacement({self.spec.name!r}: {names} on {self.spec.device}{figures})"


@contextlib.contextmanager
def _usual_dtype() -> Iterator[None]:
    """Numbers are made in float32, as they were when calls were verified."""
    before = torch.get_default_dtype()
    if before is torch.float32:  # what is set counts for all threads
        yield
        return
    torch.set_default_dtype(torch.float32)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def init_arguments(reference: Any, sizes: dict[str, Any]) -> tuple[Any, ...]:
    """Return what a reference's constructor gets for a workload of these sizes."""
    make = getattr(reference, "get_init_inputs", None)
    if make is None:
        return ()
    taken = inspect.signature(make).parameters
    every = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in taken.values())
    return tuple(make(**{k: v for k, v in sizes.items() if every or k in taken}))


def _revived(kind: type[Replacement], spec: Spec, folder: str | None, package: str) -> Replacement:
    """Return one replacement per process and content: copies of a module share compiled
    programs."""
    known = _replacements.get((package, spec.identifier))
    if known is None or known.spec != spec:
        known = _replacements[package, spec.identifier] = kind(spec, folder, package)
    return known


_replacements: dict[tuple[str, str], Replacement] = {}
