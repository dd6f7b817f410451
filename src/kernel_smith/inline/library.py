"""A compiled kernel library whose `extern "C"` functions are called with tensors and numbers.

`Library` opens a shared object and turns each prototype into a Python function. A pointer parameter
takes a tensor of its element type on the library's device (`tensors.py`), or None; a scalar
parameter takes a number of its kind. A stream at the end of a prototype is torch's current one, on
the tensors' GPU. Calls release the interpreter lock.
"""

from __future__ import annotations

import ctypes
import operator
import sys
from collections.abc import Callable, Mapping
from os import PathLike, fspath
from typing import Any, Literal

from kernel_smith.inline.prototype import CType, Parameter, Prototype
from kernel_smith.inline.tensors import accepted_dtypes, check_tensor, is_laid_out

Device = Literal["cpu", "cuda"]
"""Where a library finds its tensors; `cuda` is torch's name for the GPUs of every vendor here."""

_FLOATING = (ctypes.c_float, ctypes.c_double)
_DEVICE_NAMES: dict[Device, str] = {"cpu": "the CPU", "cuda": "the GPU"}


class Library:
    """The functions of one shared object, as attributes."""

    def __init__(
        self,
        path: str | PathLike[str],
        prototypes: Mapping[str, Prototype],
        device: Device = "cpu",
    ) -> None:
        self._path = fspath(path)
        self._prototypes = dict(prototypes)
        self._device = device
        self._handle = ctypes.CDLL(self._path)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        # Names with two underscores are Python's own questions, some asked before __init__ ran.
        if name.startswith("__"):
            raise AttributeError(name)
        prototype = self._prototypes.get(name)
        if prototype is None or not hasattr(self._handle, name):
            raise AttributeError(self._missing(name))
        caller = _caller(prototype, self._handle[name], self._device)
        self.__dict__[name] = caller
        return caller

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._prototypes})

    def __repr__(self) -> str:
        return f"Library({', '.join(sorted(self._prototypes)) or 'no functions'})"

    def __reduce__(self) -> tuple[object, ...]:
        # A module that holds a library can be copied; the copy opens the same file.
        return Library, (self._path, self._prototypes, self._device)

    def _missing(self, name: str) -> str:
        exported = ", ".join(sorted(n for n in self._prototypes if hasattr(self._handle, n)))
        return (
            f"the kernel library has no function '{name}'; it exports: {exported or 'nothing'}. "
            f'Only functions defined as extern "C", and not static or inline, can be called.'
        )


def _caller(prototype: Prototype, function: Any, device: Device) -> Callable[..., Any]:
    """Return the Python function for one C function."""
    if prototype.unsupported:
        return _refusing(prototype)
    stream = [ctypes.c_void_p] if prototype.takes_stream else []
    function.argtypes = [*(parameter.ctype for parameter in prototype.parameters), *stream]
    function.restype = prototype.returns

    def careful(arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        values = _converted(prototype, arguments, named, device)
        index = _common_gpu(prototype, arguments) if device == "cuda" else None
        if prototype.takes_stream:
            values.append(None if index is None else _current_stream()(index))
        return function(*values)

    caller = _fast_caller(prototype, function, careful, device)
    caller.__name__ = caller.__qualname__ = prototype.name
    caller.__doc__ = prototype.text
    return caller


def _refusing(prototype: Prototype) -> Callable[..., Any]:
    def refuse(*arguments: Any, **named: Any) -> Any:
        what = " and ".join(prototype.unsupported)
        raise TypeError(
            f"{prototype.name} cannot be called from Python: its {what} is neither a pointer nor "
            f"a scalar. Its prototype is: {prototype.text}"
        )

    return refuse


def _fast_caller(
    prototype: Prototype, function: Any, careful: Callable[..., Any], device: Device
) -> Callable[..., Any]:
    """Return a function that passes arguments of the expected kinds on, and leaves the rest to
    `careful`.

    It is written out as text because a loop over converters costs more than the call itself.
    Nothing of the candidate's text is in it: the variables are numbered.
    """
    names = [f"a{index}" for index in range(len(prototype.parameters))]
    pairs = list(zip(names, prototype.parameters, strict=True))
    pointers = [name for name, parameter in pairs if parameter.is_pointer]
    gpu = _gpu_of(pointers) if device == "cuda" else "None"
    checks = " and ".join(_check(name, parameter, device) for name, parameter in pairs) or "True"
    values = [_value(name, parameter) for name, parameter in pairs]
    if prototype.takes_stream:
        values.append("None if gpu is None else current_stream(gpu)")
    text = (
        "def call(*arguments, **named):\n"
        "    try:\n"
        f"        [{', '.join(names)}] = arguments\n"
        f"        gpu = {gpu}\n"
        f"        if not named and {checks}:\n"
        f"            return function({', '.join(values)})\n"
        "    except (ArgumentError, AttributeError, TypeError, ValueError):\n"
        "        pass\n"
        "    return careful(arguments, named)\n"
    )
    scope: dict[str, Any] = {
        "function": function,
        "careful": careful,
        "current_stream": _current_stream() if device == "cuda" else None,
        "ArgumentError": ctypes.ArgumentError,
        "is_laid_out": is_laid_out,
        **{f"{name}_types": accepted_dtypes(parameter) for name, parameter in pairs},
    }
    exec(text, scope)
    caller: Callable[..., Any] = scope["call"]
    return caller


def _gpu_of(pointers: list[str]) -> str:
    """Return the expression for the number of the GPU that the first tensor is on, None without
    one."""
    expression = "None"
    for name in reversed(pointers):
        expression = f"{name}.get_device() if {name} is not None else {expression}"
    return expression


def _current_stream() -> Callable[[int], int]:
    """Torch's current stream on a GPU, as an address."""
    # Whoever has a tensor has torch; importing it is nothing that a compiler needs.
    torch = sys.modules.get("torch")
    raw = getattr(getattr(torch, "_C", None), "_cuda_getCurrentRawStream", None)
    if raw is not None:
        return raw  # type: ignore[no-any-return]
    return lambda index: int(sys.modules["torch"].cuda.current_stream(index).cuda_stream)


def _check(name: str, parameter: Parameter, device: Device) -> str:
    """Return the condition under which an argument may be passed on without a closer look."""
    if parameter.is_pointer:
        # Asking a tensor for `device.type` costs several times as much as `is_cpu`.
        place = f"{name}.is_cuda and {name}.get_device() == gpu"
        conditions = [place if device == "cuda" else f"{name}.is_cpu"]
        if accepted_dtypes(parameter):
            conditions.append(f"{name}.dtype in {name}_types")
        if parameter.elements:
            conditions.append(f"{name}.numel() >= {parameter.elements}")
        conditions.append(f"({name}.is_contiguous() or is_laid_out({name}, arguments))")
        return f"({name} is None or {' and '.join(conditions)})"
    if parameter.ctype is ctypes.c_bool:
        return f"{name}.__class__ is bool"
    if parameter.ctype in _FLOATING:
        return f"({name}.__class__ is float or {name}.__class__ is int)"
    low, high = _range(parameter.ctype)
    return f"{name}.__class__ is int and {low} <= {name} <= {high}"


def _value(name: str, parameter: Parameter) -> str:
    return f"None if {name} is None else {name}.data_ptr()" if parameter.is_pointer else name


def _range(ctype: CType | None) -> tuple[int, int]:
    assert ctype is not None
    bits = 8 * ctypes.sizeof(ctype)
    if ctype(-1).value < 0:
        return -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    return 0, (1 << bits) - 1


def _converted(
    prototype: Prototype, arguments: tuple[Any, ...], named: dict[str, Any], device: Device
) -> list[object]:
    """Return each argument as ctypes wants it, or a TypeError that says which one is wrong."""
    expected = len(prototype.parameters)
    if named:
        problem = f"{prototype.name} takes its arguments by position, got {', '.join(named)}="
    elif len(arguments) != expected:
        plural = "" if expected == 1 else "s"
        problem = f"{prototype.name} takes {expected} argument{plural}, got {len(arguments)}"
    else:
        return [_convert(prototype, i, arguments, device) for i in range(expected)]
    raise TypeError(f"{problem}; its prototype is: {prototype.text}")


def _common_gpu(prototype: Prototype, arguments: tuple[Any, ...]) -> int | None:
    """Return the number of the one GPU that all tensors are on; None without tensors."""
    indices = {
        argument.get_device()
        for argument, parameter in zip(arguments, prototype.parameters, strict=True)
        if parameter.is_pointer and argument is not None
    }
    if len(indices) > 1:
        found = " and ".join(f"cuda:{index}" for index in sorted(indices))
        raise TypeError(
            f"{prototype.name} takes tensors of one GPU, got tensors on {found}; "
            f"its prototype is: {prototype.text}"
        )
    return indices.pop() if indices else None


def _convert(
    prototype: Prototype, index: int, arguments: tuple[Any, ...], device: Device
) -> object:
    parameter, argument = prototype.parameters[index], arguments[index]
    label = f" ('{parameter.name}')" if parameter.name else ""
    where = f"argument {index + 1}{label} of {prototype.name}"
    try:
        if parameter.is_pointer:
            address = _address(argument, device)
            if argument is not None:
                check_tensor(argument, parameter, arguments)
            return address
        return _number(argument, parameter.ctype)
    except (TypeError, OverflowError) as problem:
        kind = type(problem)
        raise kind(f"{where}: {problem}; its prototype is: {prototype.text}") from None


def _address(argument: Any, device: Device) -> int | None:
    if argument is None:
        return None
    if not hasattr(argument, "data_ptr"):
        raise TypeError(f"expected a tensor or None, got {_described(argument)}")
    found = getattr(getattr(argument, "device", None), "type", "cpu")
    if found != device:
        built = "" if {found, device} != set(_DEVICE_NAMES) else _built_for(device)
        raise TypeError(f"expected a tensor on {_DEVICE_NAMES[device]}, got one on {found}{built}")
    return int(argument.data_ptr())


def _built_for(device: Device) -> str:
    return f" (this library was built to run on {_DEVICE_NAMES[device]})"


def _number(argument: Any, ctype: CType | None) -> object:
    if ctype in _FLOATING:
        if hasattr(argument, "data_ptr") or not hasattr(type(argument), "__float__"):
            raise TypeError(f"expected a number, got {_described(argument)}")
        return float(argument)
    if hasattr(argument, "data_ptr") or not hasattr(type(argument), "__index__"):
        kind = "a bool" if ctype is ctypes.c_bool else "an integer"
        raise TypeError(f"expected {kind}, got {_described(argument)}")
    value = operator.index(argument)
    if ctype is ctypes.c_bool:
        return bool(value)
    low, high = _range(ctype)
    if not low <= value <= high:
        raise OverflowError(f"{value} is outside of {low} ... {high}")
    return value


def _described(argument: Any) -> str:
    if hasattr(argument, "data_ptr"):
        return "a tensor"
    if isinstance(argument, int | float | str):
        return f"{type(argument).__name__} {argument!r}"
    return type(argument).__name__
