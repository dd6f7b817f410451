"""Calls that torch traces: the kernel as one operator of the graph.

`torch.compile` and `torch.export` follow Python; a kernel is nothing that they could follow. So
there it is an operator of `torch.library`, with a fake kernel that says what comes out.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from .signatures import Signature, has_names, tensors_in, with_tensors
from .state import bind

if TYPE_CHECKING:
    from .replacement import Replacement

_NAMESPACE = "kernel_smith"
_TRACEABLE = ("tensor", "tuple", "list")


def call_traced(module: Any, reference: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """Answer one call while torch traces it: by the operator, or by the reference's own code."""
    attachment = module._kernel_smith
    if _is_open(arguments):
        return reference(*arguments)
    number = -1
    for index, signature in enumerate(attachment.signatures):
        if signature.matches(arguments):
            number = index
    if number < 0 or torch.is_autocast_enabled(attachment.replacement.spec.device):
        return reference(*arguments)
    if torch.is_grad_enabled() and needs_grad(module, arguments):
        return reference(*arguments)
    # Torch notices when one of both changes, and traces again.
    if (attachment.generation, module.training) == (-1, None) or not attachment.fits_now():
        return reference(*arguments)
    kind = attachment.kind_of_result(number)
    if kind not in _TRACEABLE:
        return reference(*arguments)
    state = [_found(module, name) for name in attachment.replacement.state_names]
    outputs = attachment.replacement.operator(list(tensors_in(arguments)), state, number)
    if kind == "tensor":
        return outputs[0]
    return tuple(outputs) if kind == "tuple" else outputs


def _is_open(arguments: tuple[Any, ...]) -> bool:
    """Tell whether sizes are left open in an export: comparing them would settle them."""
    return torch.compiler.is_exporting() and any(
        isinstance(size, torch.SymInt) for one in tensors_in(arguments) for size in one.shape
    )


def needs_grad(module: torch.nn.Module, arguments: tuple[Any, ...]) -> bool:
    """Tell whether a call is to be differentiated later."""
    return any(one.requires_grad for one in tensors_in(arguments)) or any(
        parameter.requires_grad for parameter in module.parameters()
    )


def _found(module: torch.nn.Module, path: str) -> torch.Tensor:
    owner: Any = module
    for name in path.split("."):
        owner = getattr(owner, name)
    assert isinstance(owner, torch.Tensor)
    return owner


def register(replacement: Replacement) -> Callable[..., list[torch.Tensor]]:
    """Return the operator of a kernel, which is made once per process and content."""
    name = replacement.spec.identifier
    known = getattr(getattr(torch.ops, _NAMESPACE), name, None)
    if known is not None:
        return known.default  # type: ignore[no-any-return]

    def call(
        inputs: list[torch.Tensor], state: list[torch.Tensor], signature: int
    ) -> list[torch.Tensor]:
        held = dict(zip(replacement.state_names, state, strict=True))
        kernel = replacement.kernel_of_thread()
        bind(kernel, held.get)
        verified = replacement.signatures[signature]
        with torch.no_grad():
            results = kernel.forward(*with_tensors(verified.arguments, iter(inputs)))
        return [_own(result, [*inputs, *state]) for result in tensors_in(results)]

    def describe(
        inputs: list[torch.Tensor], state: list[torch.Tensor], signature: int
    ) -> list[torch.Tensor]:
        verified = replacement.signatures[signature]
        arguments = with_tensors(verified.arguments, iter(inputs))
        held = dict(zip(replacement.state_names, state, strict=True))
        return [_like(one) for one in tensors_in(_reference(replacement, held, arguments))]

    made = torch.library.custom_op(f"{_NAMESPACE}::{name}", call, mutates_args=())
    made.register_fake(describe)
    return made


def _reference(replacement: Replacement, held: dict[str, Any], arguments: Any) -> Any:
    with torch.no_grad():
        return torch.func.functional_call(replacement.verified, held, arguments)


def _own(result: torch.Tensor, others: list[torch.Tensor]) -> torch.Tensor:
    """An operator's results are in memory of their own, laid out as its fake kernel says."""
    memory = result.untyped_storage().data_ptr()
    if any(memory == other.untyped_storage().data_ptr() for other in others):
        return result.clone(memory_format=torch.contiguous_format)
    return result.contiguous()


def _like(described: torch.Tensor) -> torch.Tensor:
    return described.new_empty(described.shape)


def form_of(forward: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """Return what a call returns, without values; None where that takes values to know."""
    from torch._subclasses import FakeTensorMode

    with FakeTensorMode(allow_non_fake_inputs=True) as mode, torch.no_grad():
        fakes = iter([mode.from_tensor(tensor) for tensor in tensors_in(arguments)])
        try:
            return _without_tensors(forward(*with_tensors(arguments, fakes)))
        except Exception:  # whatever code of the user's does where there are no values
            return None


def _without_tensors(result: Any) -> Any:
    return with_tensors(result, itertools.repeat(None))


def result_kind(signature: Signature, verified: torch.nn.Module, device: torch.device) -> str:
    """Tell how the reference returns its results, as far as an operator can return them: `tensor`,
    `tuple` or `list`; `named` are tuples of types of their own, and empty is what is none of these.

    Inputs and parameters are on the same device, as in the calls that were verified.
    """
    from torch._subclasses import FakeTensorMode

    def without_values(tensor: torch.Tensor) -> torch.Tensor:
        return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=device)

    try:
        with FakeTensorMode(allow_non_fake_inputs=True), torch.no_grad():
            held = {
                name: without_values(parameter)
                for name, parameter in verified.named_parameters(remove_duplicate=False)
            }
            inputs = map(without_values, tensors_in(signature.arguments))
            arguments = with_tensors(signature.arguments, inputs)
            results = torch.func.functional_call(verified, held, arguments)
    except Exception:  # a reference that looks at values cannot be traced either
        return ""
    if type(results) is torch.Tensor or type(results).__name__ == "FakeTensor":
        return "tensor"
    if has_names(results):
        return "named"
    if type(results) not in (tuple, list):
        return ""
    flat = all(isinstance(one, torch.Tensor) for one in results)
    return type(results).__name__ if flat else ""
