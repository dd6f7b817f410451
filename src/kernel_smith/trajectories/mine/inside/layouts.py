"""Which inputs to try on a module, the likely ones first."""

from __future__ import annotations

import inspect
import itertools
import re
from collections.abc import Iterator
from typing import Literal

import torch

from kernel_smith.trajectories.mine.guesses import HEADS, WIDTH
from kernel_smith.trajectories.mine.plan import Input, Kind, Symbol
from kernel_smith.trajectories.mine.refusal import Refused

Shape = tuple[Symbol | int, ...]
Layout = tuple[Symbol | Literal["channels"], ...]

SIZES: tuple[dict[Symbol, int], ...] = (
    {"batch": 2, "length": 64, "height": 16, "width": 16, "depth": 8},
    {"batch": 2, "length": 256, "height": 64, "width": 64, "depth": 16},
)
_MOST_CHANNELS = 6
_MOST_REQUIRED = 6
_INDEX = r".*ids|ids|tokens|indices|index|idx|.*_idx|token|.*_indices|sequence|positions"
_MASK = r".*mask.*|.*_bias"
_TARGET = r".*targets?|.*labels?|y_true|gt|truth|y"
_VECTOR = r"t|timesteps?|time|temb|emb|.*_emb|cond.*|style|class_emb.*|guidance|vec|modulation"
_PAIR = r"position_embeddings|rotary.*|rope|freqs_cis"
_SIZE = r"h|height|w|width|hw.*|.*_hw|x_size|size|.*resolution|.*_shape|seq_?len|length|.*_size"
_CONTEXT = r"context|.*encoder.*|memory|cross.*|kv|key_value.*"


def attempts(model: torch.nn.Module, text: str) -> Iterator[list[Input]]:
    """Lists of inputs for `forward`, one after the other."""
    names = _required(model)
    kinds: tuple[Kind, ...] = ("float", "unit")
    for kind in kinds:
        for shape in _shapes(model, text):
            main = Input(kind=kind, shape=shape)
            choices = [_choices(name, position, main, model) for position, name in enumerate(names)]
            yield from map(list, itertools.product(*choices))


def _required(model: torch.nn.Module) -> list[str]:
    """Arguments without default, or else the first one."""
    parameters = [
        p
        for p in inspect.signature(model.forward).parameters.values()
        if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    by_keyword = [
        p.name
        for p in inspect.signature(model.forward).parameters.values()
        if p.kind == p.KEYWORD_ONLY and p.default is p.empty
    ]
    required = [p.name for p in parameters if p.default is p.empty]
    if by_keyword or len(required) > _MOST_REQUIRED:
        raise Refused("unusual-forward", f"needs {', '.join([*required, *by_keyword])}")
    return required or [p.name for p in parameters[:1]] or _no_inputs()


def _no_inputs() -> list[str]:
    raise Refused("unusual-forward", "takes no inputs")


def _choices(name: str, position: int, main: Input, model: torch.nn.Module) -> list[Input]:
    """What one argument may be, given the shape of the main one."""
    lower = name.lower()
    vector = Input(kind=main.kind, shape=("batch", WIDTH))
    if re.fullmatch(_INDEX, lower):
        return [Input(kind="index", shape=("batch", "length"), high=_index_bound(model)), main]
    if position == 0:
        return [main]
    if re.fullmatch(_MASK, lower):
        return [Input(kind="none"), Input(kind="mask", shape=("batch", "length")), main]
    if re.fullmatch(_PAIR, lower):
        cosines: Shape = ("batch", "length", WIDTH // HEADS)
        return [Input(kind="pair", shape=cosines), Input(kind="none"), main]
    if re.fullmatch(_TARGET, lower):
        classes = next((part for part in main.shape if isinstance(part, int)), 2)
        index = Input(kind="index", shape=("batch",), high=classes)
        return [main, index, Input(kind="unit", shape=main.shape)]
    if re.fullmatch(_SIZE, lower):
        return _sizes(lower)
    if re.fullmatch(_VECTOR, lower):
        return [vector, Input(kind="unit", shape=("batch",)), main]
    if re.fullmatch(_CONTEXT, lower):
        return [main, Input(kind=main.kind, shape=("batch", "length", WIDTH))]
    return [main, vector]


def _sizes(name: str) -> list[Input]:
    if name in ("h", "height"):
        return [Input(kind="size", shape=("height",))]
    if name in ("w", "width"):
        return [Input(kind="size", shape=("width",))]
    if "len" in name:
        return [Input(kind="size", shape=("length",))]
    return [Input(kind="size", shape=("height", "width"))]


def _shapes(model: torch.nn.Module, text: str) -> Iterator[Shape]:
    for layout in _layouts(model, text):
        for channels in _channels(model):
            yield tuple(channels if part == "channels" else part for part in layout)
    yield ("batch", HEADS, "length", WIDTH // HEADS)
    yield ("batch", "length")
    yield ("batch",)


def _layouts(model: torch.nn.Module, text: str) -> list[Layout]:
    sequence: Layout = ("batch", "length", "channels")
    image: Layout = ("batch", "channels", "height", "width")
    flat: Layout = ("batch", "channels")
    signal: Layout = ("batch", "channels", "length")
    last: Layout = ("batch", "height", "width", "channels")
    volume: Layout = ("batch", "channels", "depth", "height", "width")
    kinds = {type(m).__name__ for m in model.modules()}
    others = [sequence, image, flat, signal, last, volume]
    first = [sequence]
    if any("3d" in kind for kind in kinds):
        first = [volume]
    elif any("2d" in kind for kind in kinds) or re.search(r"2d\b|, *[23]\)|B, C, H, W", text):
        first = [image]
    elif any("1d" in kind for kind in kinds):
        first = [signal, flat]
    return [*first, *(layout for layout in others if layout not in first)]


def _channels(model: torch.nn.Module) -> list[int]:
    """Widths that the layers and arguments speak of, in the order in which they appear."""
    found: dict[int, None] = {}
    for module in model.modules():
        for name in ("in_channels", "in_features", "num_features", "num_channels", "embed_dim"):
            value = getattr(module, name, None)
            if isinstance(value, int) and value > 0:
                found[value] = None
        shape = getattr(module, "normalized_shape", None)
        if isinstance(shape, tuple) and shape and isinstance(shape[-1], int):
            found[shape[-1]] = None
        if len(found) >= _MOST_CHANNELS:
            break
    for parameter in model.parameters():
        for size in parameter.shape:
            if size > 1 and len(found) < _MOST_CHANNELS:
                found[int(size)] = None
    return list(dict.fromkeys([*list(found)[:_MOST_CHANNELS], WIDTH, 3, 1]))


def _index_bound(model: torch.nn.Module) -> int:
    sizes = [m.num_embeddings for m in model.modules() if isinstance(m, torch.nn.Embedding)]
    return int(min(sizes)) if sizes else 16
