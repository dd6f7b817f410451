"""Runs Inductor on an exported graph and takes its text, and the configurations it settled on."""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Iterator
from typing import Any

import torch
import torch._inductor.config as inductor
from torch._inductor.choices import InductorChoices
from torch._inductor.compile_fx import compile_fx
from torch._inductor.decomposition import select_decomp_table
from torch._inductor.graph import GraphLowering
from torch._inductor.runtime.hints import ReductionHint
from torch._inductor.virtualized import V
from torch.export import ExportedProgram

from kernel_smith.proposers.seed.generated import read_generated
from kernel_smith.proposers.seed.inside.batch_norms import batch_norms_in_double
from kernel_smith.proposers.seed.inside.device_time import DeviceTime
from kernel_smith.proposers.seed.inside.pools import pools_in_parts
from kernel_smith.proposers.seed.inside.pretend import fake_tensors
from kernel_smith.proposers.seed.inside.refusing import refusing
from kernel_smith.proposers.seed.recipes import Recipe
from kernel_smith.proposers.seed.refusal import refused
from kernel_smith.proposers.seed.triton_text import Config

# Plain kernels and nothing beside them. Versions of torch differ in which of these they know.
_SETTINGS = {
    "fx_graph_cache": False,
    "graph_partition": False,
    "compile_threads": 1,
    "assert_indirect_indexing": False,
    "alignment_asserts": False,
    "combo_kernels": False,
    "max_autotune": False,
    "triton.cudagraphs": False,
    "triton.cooperative_reductions": False,
    "triton.mix_order_reduction": False,
    "triton.use_block_ptr": False,
    "cpp.simdlen": 1,
    "cpp.use_two_step_variance_threshold": 1 << 40,
    "cpp.vec_isa_ok": False,  # else it compiles programs to learn which vectors this machine has
    "cpp.dynamic_threads": True,
    "cpp.weight_prepack": False,
}
# Channels come last for a library that does as well without, and each way costs a kernel.
# And parts of a whole are written to memory of their own: kernels here take no strides.
_CPU_SETTINGS = {"layout_optimization": False, "force_pointwise_cat": True}
# Folding would compute on a device that is not there.
_PRETENDED_SETTINGS = {"joint_graph_constant_folding": False}


_PRODUCT_DEPTH = 32  # of what is summed at once


class _TextTaken(Exception):
    """Stops the compiler once it has written its text."""


def compile_graph(
    program: ExportedProgram,
    values: list[torch.Tensor],
    device: str,
    pretended: bool,
    recipe: Recipe,
    time: DeviceTime,
) -> tuple[str, dict[str, Config]]:
    """Return the generated module, and for Triton each kernel's configuration.

    The first call tries configurations out.
    """
    only_text = device == "cpu" or pretended
    mode = fake_tensors() if pretended else contextlib.nullcontext()
    with (
        refusing("the compiler cannot take the model"),
        _settings(device, pretended, recipe),
        _listening(only_text) as texts,
        torch.no_grad(),
        mode,
    ):
        compiled: Any = compile_fx(program.graph_module, values, decompositions=_parts(device))
        if not only_text:
            with time.using():
                compiled(*values)
                torch.cuda.synchronize()
    if len(texts) != 1:
        raise refused(f"the compiler writes {len(texts)} programs instead of one")
    if device == "cpu":
        return texts[0], {}
    kernels = read_generated(texts[0]).kernels
    if pretended:
        return texts[0], {name: _first_config(name, text) for name, text in kernels.items()}
    return texts[0], _used_configs(kernels)


@contextlib.contextmanager
def _settings(device: str, pretended: bool, recipe: Recipe) -> Iterator[None]:
    wanted = _SETTINGS | (_CPU_SETTINGS | _threads() if device == "cpu" else {})
    wanted |= _PRETENDED_SETTINGS if pretended else {}
    known = {key: value for key, value in wanted.items() if _is_setting(key)}
    missing = [key for key in recipe.settings if not _is_setting(key)]
    if missing:
        raise refused(f"this version of the compiler has no setting `{missing[0]}`")
    with inductor.patch(known | recipe.settings), _rows_at_once(recipe.longest_row):
        yield


def _parts(device: str) -> dict[Any, Any]:
    """Return what the compiler takes operations apart into."""
    usual: dict[Any, Any] = {**select_decomp_table()}
    return usual | pools_in_parts() | (batch_norms_in_double(usual) if device == "cpu" else {})


def _threads() -> dict[str, object]:
    """Never one alone: for that the compiler leaves out what keeps others from doing the same work
    at once, and whoever runs the seed may have more."""
    return {"cpp.threads": max(2, torch.get_num_threads())}


@contextlib.contextmanager
def _rows_at_once(longest: int | None) -> Iterator[None]:
    """Let a program hold rows of so many elements where it reduces them."""
    if longest is None:
        yield
        return

    class Choices(InductorChoices):
        @staticmethod
        def should_use_persistent_reduction(features: Any, cooperative_reduction: bool) -> bool:
            inner = features.get_reduction_hint() is ReductionHint.INNER
            if inner and features.reduction_numel.is_number:
                return bool(features.reduction_numel <= longest)
            return bool(
                InductorChoices.should_use_persistent_reduction(features, cooperative_reduction)
            )

    with V.set_choices_handler(Choices()):
        yield


def _is_setting(key: str) -> bool:
    owner: Any = inductor
    for part in key.split("."):
        if not hasattr(owner, part):
            return False
        owner = getattr(owner, part)
    return True


@contextlib.contextmanager
def _listening(only_text: bool) -> Iterator[list[str]]:
    """Collect generated modules as `run_and_get_code` does; end quietly if a text is all."""
    texts: list[str] = []

    def take(code: str) -> None:
        texts.append(code)
        if only_text:
            raise _TextTaken

    before = GraphLowering.save_output_code
    GraphLowering.save_output_code = staticmethod(take)
    try:
        yield texts
    except Exception:  # the compiler wraps ours into one of its own
        if not (only_text and texts):
            raise
    finally:
        GraphLowering.save_output_code = before


def _used_configs(kernels: dict[str, str]) -> dict[str, Config]:
    """Return the configuration that each kernel ran with, after any tuning."""
    from torch._inductor.codecache import PyCodeCache

    for module in reversed(PyCodeCache.modules):  # the last one loaded is the one that just ran
        if all(hasattr(getattr(module, name, None), "launchers") for name in kernels):
            return {name: _launched(getattr(module, name)) for name in kernels}
    raise refused("the compiler does not say which configurations it used")


def _launched(kernel: Any) -> Config:
    if not kernel.launchers:
        raise refused("a kernel of the compiler's was never launched")
    return _config(kernel.launchers[0].config)


def _first_config(name: str, text: str) -> Config:
    """Without a GPU nothing was tuned: what the heuristics name first; but of products, for which
    these begin with the smallest, the largest blocks that there is something for."""
    from torch._inductor.codecache import PyCodeCache

    without_driver = text.replace("triton_helpers.set_driver_to_gpu()\n", "")
    kernel = getattr(PyCodeCache.load(without_driver), name)
    if "tl.dot(" not in text:
        return _config(kernel.configs[0])
    return _config(max(kernel.configs, key=functools.partial(_worth, kernel.size_hints)))


def _worth(sizes: dict[str, int], config: Any) -> tuple[int, ...]:
    blocks = {axis: config.kwargs[f"{axis.upper()}BLOCK"] for axis in "xy"}
    used = math.prod(min(block, sizes[axis]) for axis, block in blocks.items())
    depth = config.kwargs.get("R0_BLOCK", _PRODUCT_DEPTH)
    return used, -math.prod(blocks.values()), -abs(depth - _PRODUCT_DEPTH), config.num_warps


def _config(chosen: Any) -> Config:
    return Config(dict(chosen.kwargs), int(chosen.num_warps), int(chosen.num_stages))
