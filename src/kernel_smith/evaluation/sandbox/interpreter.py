"""Triton's interpreter in a candidate's process: kernels run on the tensors of the CPU."""

from __future__ import annotations

import os
import sys
from typing import Any

import numpy as np
import torch

_ROUNDED_BY_TORCH = {
    "bf16": torch.bfloat16,
    "fp8e4nv": torch.float8_e4m3fn,
    "fp8e5": torch.float8_e5m2,
}


def interpret_kernels(*, disarmed: bool) -> None:
    """Have every kernel that is defined from now on interpreted, or (`disarmed`) do nothing."""
    os.environ["TRITON_INTERPRET"] = "1"
    from triton.runtime import autotuner, interpreter

    autotuner.Autotuner.do_bench = property(lambda self: _untimed)
    if disarmed:
        interpreter.GridExecutor.__call__ = lambda self, *args, **kwargs: None
    else:
        interpreter._convert_float = _rounding_as_gpus_do(interpreter._convert_float)
        interpreter.ReduceOps.apply_impl = _extremes_at_once(interpreter.ReduceOps.apply_impl)
        if hasattr(interpreter, "_LangPatchScope"):  # older ones undo nothing in the end
            interpreter._patch_lang = _patching_once(interpreter)


def _untimed(kernel_call: Any, **options: Any) -> list[float]:
    """Which configuration is the fastest only a GPU can tell: the first that fits is taken."""
    return [1.0, 1.0, 1.0]


def _rounding_as_gpus_do(convert: Any) -> Any:
    """To the nearest even, and to the largest finite number at most where there are 8 bits. The
    interpreter itself cuts bfloat16 off, and loses what is carried into an exponent of 8 bits."""

    def converted(values: Any, source: Any, target: Any, rounding: Any) -> Any:
        dtype = _ROUNDED_BY_TORCH.get(target.name)
        if dtype is None or source.name not in ("fp16", "fp32", "fp64"):
            return convert(values, source, target, rounding)
        exact = torch.from_numpy(values.astype("float32"))
        if dtype.itemsize == 1:
            most = torch.finfo(dtype).max
            exact = exact.clamp(-most, most)  # not a number stays what it is
        bits = torch.uint8 if dtype.itemsize == 1 else torch.uint16
        return exact.to(dtype).view(bits).numpy()

    return converted


def _patching_once(interpreter: Any) -> Any:
    """Patch the language when a kernel is launched, and not again in each function that it calls,
    where looking for what is left to patch takes longer than everything else."""
    patch, language = interpreter._patch_lang, interpreter.tl

    def patched(function: Any) -> Any:
        seen = [
            each
            for each in function.__globals__.values()
            if each is language or each is language.core
        ]
        if seen and not any(language.core.is_builtin(each.load) for each in seen):
            return interpreter._LangPatchScope()
        return patch(function)

    return patched


def _extremes_at_once(reduce: Any) -> Any:
    """Find largest and smallest values by numpy where PyTorch's compiler has spelled them itself:
    the interpreter would call its function for every element. Both keep what is not a number."""

    def reduced(self: Any, values: Any) -> Any:
        helpers = sys.modules.get("torch._inductor.runtime.triton_helpers")
        for name, extreme in (("maximum", np.max), ("minimum", np.min)):
            # The interpreter has bfloat16 as the bits of unsigned numbers.
            if self.combine_fn is getattr(helpers, name, self) and _is_signed(values):
                return self.min_max(values[0], val_reduce_op=extreme)
        return reduce(self, values)

    return reduced


def _is_signed(values: Any) -> bool:
    return len(values) == 1 and values[0].handle.data.dtype.kind in "fi"
