"""Captures what Inductor writes for one workload, and how its inputs and outputs are bound."""

from __future__ import annotations

import dataclasses
import functools
import keyword
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch._subclasses import FakeTensor
from torch.export import ExportedProgram
from torch.export.graph_signature import (
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    TensorArgument,
)
from torch.utils import _pytree as pytree

from kernel_smith.errors import BadInput
from kernel_smith.proposers.seed.assemble import Input
from kernel_smith.proposers.seed.inside.attention import has_attention, keep_attention
from kernel_smith.proposers.seed.inside.buffer_watch import watching_buffers
from kernel_smith.proposers.seed.inside.compiler import compile_graph
from kernel_smith.proposers.seed.inside.data_dependent import of_unknown_shape
from kernel_smith.proposers.seed.inside.outputs import write_outputs
from kernel_smith.proposers.seed.inside.pretend import move_to_cuda
from kernel_smith.proposers.seed.inside.refusing import refusing
from kernel_smith.proposers.seed.inside.rewrites import applicable, rewrite_graph
from kernel_smith.proposers.seed.inside.workbench import Workbench
from kernel_smith.proposers.seed.library_calls import contiguous_strides
from kernel_smith.proposers.seed.recipes import Recipe
from kernel_smith.proposers.seed.reference import Reference
from kernel_smith.proposers.seed.refusal import refused
from kernel_smith.proposers.seed.triton_text import Config
from kernel_smith.records import Workload

_TAKEN = {"torch", "triton", "tl", "kernels", "libdevice", "self", "aten", "args"}
_EMBEDDED_ELEMENTS = 64
_STATISTICS = ("running_mean", "running_var", "num_batches_tracked")


@dataclass(frozen=True)
class Captured:
    """What is left of a workload when its tensors are gone.

    `configs` is empty for C++; `outputs` writes the result from the graph's outputs.
    """

    code: str
    configs: dict[str, Config]
    inputs: tuple[Input, ...]
    outputs: Callable[[list[str]], str]
    key: dict[str, str]
    spare_key: dict[str, str] = field(default_factory=dict)
    attends: bool = False
    rewrites: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Leaf:
    """A value in the arguments of `forward`, and the expression that reads it there."""

    expression: str
    value: Any


def capture(
    workbench: Workbench,
    workload: Workload,
    reference: Reference,
    recipe: Recipe,
    *,
    whole_attention: bool = False,
) -> Captured:
    """Export and compile one workload; refuse what cannot become a candidate."""
    drawn = workbench.draw(workload)
    model, device, pretended = drawn.model, workbench.device, workbench.pretended
    leaves = _leaves(drawn.inputs, reference)
    program = _export(model, drawn.inputs)
    _check_signature(program)
    rewritten = (rewrite_graph if recipe.rewrites else applicable)(program.graph_module)
    bound = [_bind(spec, model, program, leaves) for spec in _tensor_specs(program)]
    values = [value for _, value in bound]
    if pretended:
        values = move_to_cuda(program.graph_module, values)
    attends = has_attention(program.graph_module)
    if whole_attention:
        keep_attention(program.graph_module)
    code, configs = compile_graph(program, values, device, pretended, recipe, workbench.time)
    specs = program.graph_signature.output_specs
    structure = program.call_spec.out_spec
    return Captured(
        code=code,
        configs=configs,
        inputs=_named([one for one, _ in bound]),
        # Not by way of the program, which holds the inputs.
        outputs=functools.partial(write_outputs, specs, structure),
        key=_key(leaves),
        spare_key=_spare_key(model),
        attends=attends,
        rewrites=rewritten,
    )


def _export(model: torch.nn.Module, inputs: list[Any]) -> ExportedProgram:
    if any(isinstance(part, torch.jit.ScriptModule) for part in model.modules()):
        raise refused(
            "a part of the model was compiled by torch.jit, which torch.export cannot read",
            hint="leave out torch.jit.script in the task: the module itself computes the same",
        )
    with (
        refusing("torch.export cannot take the model"),
        watching_buffers(model) as replaced,
        torch.no_grad(),
    ):
        program = torch.export.export(model, tuple(inputs), strict=False)
    for name in replaced:
        raise _changes(name)
    for node in program.graph.nodes:
        if _draws(node):
            raise refused(f"`{node.target}` draws random numbers")
        if _is_symbolic(node.meta.get("val")):
            raise of_unknown_shape(node)
    return program


def _draws(node: torch.fx.Node) -> bool:
    """Tell whether an operation is random; attention and dropout are only if asked to drop
    something."""
    if torch.Tag.nondeterministic_seeded not in getattr(node.target, "tags", ()):
        return False
    schema = node.target._schema.arguments  # type: ignore[union-attr]
    given = dict(zip((argument.name for argument in schema), node.args, strict=False))
    given |= node.kwargs
    defaults = {argument.name: argument.default_value for argument in schema}
    names = ("dropout_p", "p", "dropout")
    dropped = next((values[n] for values in (given, defaults) for n in names if n in values), 1)
    return dropped != 0 and given.get("train") is not False


def _is_symbolic(value: Any) -> bool:
    if isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool):
        return True
    if isinstance(value, torch.Tensor):
        return any(isinstance(extent, torch.SymInt) for extent in value.shape)
    return isinstance(value, list | tuple) and any(map(_is_symbolic, value))


def _check_signature(program: ExportedProgram) -> None:
    for spec in _functional(program).graph_signature.output_specs:
        if spec.kind is not OutputKind.USER_OUTPUT and not _gathers_statistics(spec):
            raise _changes(spec.target or "")
    for one in program.graph_signature.input_specs:
        if one.kind in (InputKind.CUSTOM_OBJ, InputKind.TOKEN):
            raise refused(f"the model holds `{one.target}`, which is not a tensor")


def _functional(program: ExportedProgram) -> ExportedProgram:
    """Return the program in functional form, where alone the signature tells what changes.

    To bring it there takes as long as half of a small compilation, and most are in it already.
    """
    if not any(map(_may_write, program.graph.nodes)):
        return program
    with refusing("the graph of the model cannot be read"), torch.no_grad():
        functional: ExportedProgram = program.run_decompositions({})
    return functional


def _may_write(node: torch.fx.Node) -> bool:
    """Tell whether an operation may change what it is given.

    Norms that update statistics do not say so, and what holds a graph of its own is not read.
    """
    if isinstance(node.target, torch._ops.HigherOrderOperator):
        return True
    schema = getattr(node.target, "_schema", None)
    return schema is not None and (
        schema.is_mutable or any(one.name == "running_mean" for one in schema.arguments)
    )


def _changes(target: str) -> BadInput:
    """Refuse a module that keeps something from call to call."""
    return refused(f"`forward` changes `{target}` in place")


def _gathers_statistics(spec: OutputSpec) -> bool:
    """Tell whether it is what batch norm does in training: the compiler's kernels do it, too."""
    name = (spec.target or "").rpartition(".")[2]
    return spec.kind is OutputKind.BUFFER_MUTATION and name in _STATISTICS


def _tensor_specs(program: ExportedProgram) -> list[InputSpec]:
    """Return the inputs that are tensors; others are burnt in, and leave the graph."""
    specs = []
    placeholders = [node for node in program.graph.nodes if node.op == "placeholder"]
    pairs = zip(placeholders, program.graph_signature.input_specs, strict=True)
    for node, spec in list(pairs):
        if isinstance(spec.arg, TensorArgument):
            specs.append(spec)
        elif not node.users:
            program.graph_module.graph.erase_node(node)
        else:
            raise refused(f"the graph computes with the argument `{node.name}`")
    program.graph_module.recompile()
    return specs


def _leaves(inputs: list[Any], reference: Reference) -> list[_Leaf]:
    """Return every value in the arguments, with the expression that finds it in `forward`."""
    found, _ = pytree.tree_flatten_with_path(tuple(inputs))
    leaves = []
    for path, value in found:
        first: Any = path[0]
        position = first.idx
        fixed = len(reference.parameters)
        if position < fixed:
            base = reference.parameters[position]
        elif reference.variadic is not None:
            base = f"{reference.variadic}[{position - fixed}]"
        else:
            raise refused("`forward` takes fewer arguments than `get_inputs` gives")
        leaves.append(_Leaf(base + pytree.keystr(path[1:]), value))
    return leaves


def _bind(
    spec: InputSpec, model: torch.nn.Module, program: ExportedProgram, leaves: list[_Leaf]
) -> tuple[Input, torch.Tensor]:
    if spec.kind is InputKind.USER_INPUT:
        names = program.graph_signature.input_specs
        users = [one for one in names if one.kind is InputKind.USER_INPUT]
        leaf = leaves[users.index(spec)]
        tensor: torch.Tensor = leaf.value
        stride, size = tuple(tensor.stride()), tuple(tensor.shape)
        dense = tensor.is_contiguous()
        expanded = any(s == 0 and extent > 1 for s, extent in zip(stride, size, strict=True))
        wanted = None if expanded else contiguous_strides(size) if dense else stride
        kind = str(tensor.dtype)
        return Input(leaf.expression, leaf.expression, wanted, kind, dense or expanded), tensor
    target = str(spec.target)
    held = _held(model, target)
    if held is not None:
        return Input(target, _member(target), None, str(held.dtype)), held
    constant = program.constants[target]
    return Input("constant", _embedded(constant), None, str(constant.dtype)), constant


def _held(model: torch.nn.Module, target: str) -> torch.Tensor | None:
    value: Any = model
    for part in target.split("."):
        value = getattr(value, part, None)
    return value if isinstance(value, torch.Tensor) else None


def _member(target: str) -> str:
    """`self.norm.weight`, or `self.layers[0].weight` inside of a list."""
    parts = (f"[{part}]" if part.isdigit() else f".{part}" for part in target.split("."))
    return "self" + "".join(parts)


def _embedded(tensor: torch.Tensor) -> str:
    if isinstance(tensor, FakeTensor) or tensor.numel() > _EMBEDDED_ELEMENTS:
        raise refused("`forward` makes a constant tensor, which seeds cannot carry")
    return f"torch.tensor({tensor.tolist()}, dtype={tensor.dtype}, device={tensor.device.type!r})"


def _named(inputs: list[Input]) -> tuple[Input, ...]:
    """Readable and different names for the parameters of the generated function."""
    named: list[Input] = []
    taken = set(_TAKEN)
    for one in inputs:
        base = re.sub(r"\W+", "_", one.name).strip("_") or "value"
        if (
            base[0].isdigit()
            or keyword.iskeyword(base)
            or re.match(r"(buf\d|run_|triton_|cpp_)", base)
        ):
            base = f"input_{base}"
        name, count = base, 2
        while name in taken:
            name, count = f"{base}_{count}", count + 1
        taken.add(name)
        named.append(dataclasses.replace(one, name=name))
    return tuple(named)


def _key(leaves: list[_Leaf]) -> dict[str, str]:
    """Return what `forward` looks at to choose: shapes and types of tensors, values of the rest."""
    key: dict[str, str] = {}
    for leaf in leaves:
        if isinstance(leaf.value, torch.Tensor):
            key[f"{leaf.expression}.shape"] = repr(tuple(leaf.value.shape))
            key[f"{leaf.expression}.dtype"] = repr(leaf.value.dtype)
        else:
            key[leaf.expression] = repr(leaf.value)
    return key


def _spare_key(model: torch.nn.Module) -> dict[str, str]:
    """Return what the constructor left in the model, for workloads whose inputs look the same."""
    plain = {
        f"self.{name}": repr(value)
        for name, value in vars(model).items()
        if isinstance(value, bool | int | float | str) and not name.startswith("_")
    }
    del plain["self.training"]
    shapes = {
        f"{_member(name)}.shape": repr(tuple(parameter.shape))
        for name, parameter in model.named_parameters()
    }
    return plain | shapes
