"""Live modules become tasks: their source, their state, and inputs like the examples."""

from __future__ import annotations

import enum
import functools
from dataclasses import dataclass
from typing import Any

import pytest
import shipping_samples
import torch
import torch.nn.functional as F
from shipping_samples import WIDTH, RMSNorm
from torch import nn
from torch.nn.utils.parametrizations import weight_norm

from kernel_smith.errors import BadInput
from kernel_smith.records import Task
from kernel_smith.shipping.live import live_task, read_calls
from kernel_smith.shipping.runtime.replacement import Replacement
from kernel_smith.shipping.runtime.spec import execute
from kernel_smith.shipping.runtime.state import fingerprint

SCALE = 0.5


def rotated(x: torch.Tensor) -> torch.Tensor:
    first, second = x.chunk(2, dim=-1)
    return torch.cat((-second, first), dim=-1)


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norms = nn.ModuleList([RMSNorm(), RMSNorm()])
        self.tower = nn.Sequential(nn.Linear(WIDTH, 32, bias=False), nn.GELU("tanh"))
        self.down = nn.Linear(32, WIDTH)
        self.tied = self.down
        self.activation = F.silu
        self.register_buffer("table", torch.arange(float(WIDTH)))
        self.register_buffer("mask", torch.ones(4, dtype=torch.bool), persistent=False)
        self.config = type("Config", (), {})()
        self.config.factor = 3
        self.config.unused = object()

    def helper(self, x: torch.Tensor) -> torch.Tensor:
        return self.tied(self.tower(x)) * SCALE

    def forward(self, x: torch.Tensor, shift: float = 0.0) -> torch.Tensor:
        for norm in self.norms:
            x = norm(x)
        x = rotated(self.helper(x)) + self.table * self.config.factor
        return self.activation(x) + shift + self.mask.sum()

    def never_called(self) -> Any:
        return functools.partial(undefined_name)  # type: ignore[name-defined]  # noqa: F821


def task_of(module: nn.Module, examples: Any) -> Task:
    return live_task(module, read_calls(module, examples))


def same(module: nn.Module, task: Task, *arguments: Any) -> None:
    rebuilt = execute(task.source, "rebuilt").Model()
    rebuilt.load_state_dict(module.state_dict())
    torch.testing.assert_close(rebuilt(*arguments), module(*arguments))


def test_a_module_brings_along_what_it_needs() -> None:
    module = Block()
    task = task_of(module, torch.randn(2, WIDTH))
    same(module, task, torch.randn(5, WIDTH), 1.5)
    assert task.name == "block"
    for text in ("def rotated", "SCALE = 0.5", "class RMSNorm", "factor=3", "GELU(approximate"):
        assert text in task.source
    assert "never_called" not in task.source
    assert "self.tied = self.down" in task.source


def test_parameters_are_drawn_as_large_as_they_are() -> None:
    module = nn.Module.__new__(RMSNorm)
    nn.Module.__init__(module)
    module.epsilon = 1e-6
    module.weight = nn.Parameter(torch.randn(WIDTH, dtype=torch.float64) * 8 + 100)
    weight = execute(task_of(module, torch.randn(2, WIDTH)).source, "drawn").Model().weight
    assert weight.dtype is torch.float64
    assert 90 < weight.mean() < 110
    assert 4 < weight.std() < 16


@pytest.mark.parametrize(
    ("module", "shape"),
    [
        (nn.LayerNorm(16), (4, 16)),
        (nn.BatchNorm2d(3).eval(), (2, 3, 4, 4)),
        (nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.ReLU()), (1, 3, 8, 8)),
        (nn.GroupNorm(2, 4, affine=False).half(), (2, 4, 4)),
    ],
)
def test_torchs_own_modules_are_tasks_too(module: nn.Module, shape: tuple[int, ...]) -> None:
    dtype = torch.float16 if isinstance(module, nn.GroupNorm) else torch.float32
    x = torch.randn(shape).to(dtype)
    task = task_of(module, x)
    same(module, task, x)
    assert execute(task.source, "rebuilt").Model().training == module.training


def test_layers_of_half_precision_are_made_in_it() -> None:
    module = nn.Sequential(nn.Linear(8, 4), nn.BatchNorm1d(4), nn.PReLU()).bfloat16().eval()
    task = task_of(module, torch.randn(2, 8, dtype=torch.bfloat16))
    # Converted afterwards, they could not be made where there is no GPU to compile for.
    assert task.source.count("dtype=torch.bfloat16)") == 4
    assert ".to(" not in task.source
    same(module, task, torch.randn(3, 8, dtype=torch.bfloat16))


def test_a_class_may_be_defined_anywhere() -> None:
    factor = 4

    class Local(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * factor

    same(Local(), task_of(Local(), torch.randn(3)), torch.randn(3))


def test_sizes_that_differ_become_workloads() -> None:
    class Sum(nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor, n: int) -> torch.Tensor:
            return (x @ y) * n

    calls = [(torch.randn(4, 8), torch.randn(8, 2), 3), (torch.randn(6, 9), torch.randn(9, 2), 5)]
    task = task_of(Sum(), calls)
    assert [workload.params for workload in task.workloads] == [
        {"size_0": 4, "size_1": 8, "size_2": 3},
        {"size_0": 6, "size_1": 9, "size_2": 5},
    ]
    inputs = execute(task.source, "inputs").get_inputs(size_0=7, size_1=3, size_2=2)
    assert [tuple(inputs[0].shape), tuple(inputs[1].shape), inputs[2]] == [(7, 3), (3, 2), 2]


def test_inputs_are_like_the_examples() -> None:
    class Pick(nn.Module):
        def forward(self, table: Any, index: Any, keep: Any, pair: Any) -> Any:
            return table[index] * keep[:, None] + pair[0] * pair[1]

    table = torch.randn(4, 3, dtype=torch.float64).t()
    example = (table, torch.tensor([0, 2]), torch.tensor([True, False]), (torch.rand(4), 2.0))
    made = execute(task_of(Pick(), example).source, "inputs").get_inputs()
    assert (made[0].stride(), made[0].dtype) == (table.stride(), torch.float64)
    assert made[1].dtype is torch.int64
    assert set(made[1].tolist()) <= {0, 1, 2}
    assert made[2].dtype is torch.bool
    assert 0 <= made[3][0].min() <= made[3][0].max() <= 1
    assert made[3][1] == 2.0


class Odd(nn.Module):
    def __init__(self, held: Any = None) -> None:
        super().__init__()
        self.held = held

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + (self.held() if callable(self.held) else self.held.__length_hint__())


class Noisy(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + torch.rand_like(x) + next(COUNTER)


COUNTER = iter(range(1000))
ONE = torch.ones(2)


@pytest.mark.parametrize(
    ("module", "examples", "problem"),
    [
        (RMSNorm(), None, "a live module needs example_inputs"),
        (RMSNorm(), [], "empty list"),
        (RMSNorm(), torch.randn(3, 5), "the module fails on example_inputs"),
        (RMSNorm(), (ONE, ONE), r"do not fit forward.*too many"),
        (RMSNorm(), {"z": ONE}, "do not fit forward"),
        (RMSNorm(), torch.ones(WIDTH).expand(3, WIDTH), "gaps between its elements, or with rep"),
        (RMSNorm(), torch.full((3, WIDTH), float("inf")), "not finite"),
        (RMSNorm(), [torch.randn(2, WIDTH), torch.randn(WIDTH)], "differs between the example"),
        (Odd(held=iter(())), ONE, "forward reads `held`, a tuple_iterator"),
        (Odd(held=lambda: 1), ONE, "forward reads `held`, a function"),
        (Noisy(), ONE, "the module needs `COUNTER`"),
        (nn.Sequential(nn.ReLU(), nn.ReLU().eval()), ONE, "some parts of the module train"),
        (nn.Dropout(), torch.randn(64), "gives other results"),
        (weight_norm(nn.Linear(2, 2)), ONE, "computes its weights, by weight_norm"),
    ],
)
def test_what_cannot_become_a_task_is_refused(
    module: nn.Module, examples: Any, problem: str
) -> None:
    with pytest.raises(BadInput, match=problem) as caught:
        task_of(module, examples)
    assert caught.value.hint


def test_a_large_table_is_refused() -> None:
    module = nn.Module.__new__(RMSNorm)
    nn.Module.__init__(module)
    module.register_buffer("weight", torch.randn(100, 100))
    module.epsilon = 1e-6
    with pytest.raises(BadInput, match=r"buffer self.weight has 10000 elements"):
        task_of(module, torch.randn(2, 100))


def test_a_module_that_is_replaced_already_is_refused(norm_kernel: Replacement) -> None:
    with pytest.raises(BadInput, match="already") as caught:
        task_of(nn.Sequential(norm_kernel.module()), torch.randn(8, WIDTH))
    assert "unpatch" in caught.value.hint


class Scaled(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.activation(x) * self.factor()

    def factor(self) -> float:
        return 2.0

    def shifted(self, x: torch.Tensor) -> torch.Tensor:
        return x + 1

    def activation(self, x: torch.Tensor) -> torch.Tensor:
        raise NotImplementedError


class Swish(Scaled):
    def activation(self, x: torch.Tensor) -> torch.Tensor:
        return F.silu(self.shifted(x))


class Renamed(Swish):
    """Has no function of its own."""

    expansion = 4


class Mode(enum.Enum):
    FAST = "fast"
    EXACT = "exact"


def doubling(function: Any) -> Any:
    @functools.wraps(function)
    def wrapper(x: torch.Tensor) -> torch.Tensor:
        return 2 * function(x)  # type: ignore[no-any-return]

    return wrapper


@doubling
def halved(x: torch.Tensor) -> torch.Tensor:
    return x * SCALE


@dataclass
class Pair:
    first: torch.Tensor
    second: Any = SCALE


ACTIVATIONS = {"halved": halved, "relu": F.relu, "module": nn.Tanh}


class Chosen(shipping_samples.RMSNorm):
    def __init__(self) -> None:
        super().__init__()
        self.mode = Mode.FAST

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = Pair(x).first * Pair(x).second
        return ACTIVATIONS["halved"](super().forward(x)) if self.mode is Mode.FAST else x


@pytest.mark.parametrize("kind", [Swish, Renamed, Chosen])
def test_classes_that_build_on_others_are_tasks(kind: type[nn.Module]) -> None:
    module = kind()
    same(module, task_of(module, torch.randn(2, WIDTH)), torch.randn(3, WIDTH))


class Tanh(nn.Module):
    """As Gemma keeps its activation."""

    def __init__(self, approximate: str) -> None:
        super().__init__()
        self.act = functools.partial(F.gelu, approximate=approximate)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.act(x)


def test_functions_with_some_arguments_are_written_down() -> None:
    task = task_of(Tanh("tanh"), torch.randn(8))
    same(Tanh("tanh"), task, torch.randn(8))
    assert "self.act = functools.partial(torch.nn.functional.gelu" in task.source
    assert fingerprint(Tanh("tanh")) != fingerprint(Tanh("none"))


class Optional(nn.Module):
    def forward(
        self, x: torch.Tensor, mask: Any = None, shift: float = 0.0, *, scale: float = 1.0
    ) -> torch.Tensor:
        return (x if mask is None else x * mask) * scale + shift


def test_a_default_between_arguments_by_name_is_filled_in() -> None:
    calls = read_calls(Optional(), {"x": ONE, "shift": 2.0})
    assert calls[0].arguments[1:] == (None, 2.0)
    assert read_calls(Optional(), {"x": ONE})[0].arguments == (ONE,)
    with pytest.raises(BadInput, match="scale by name alone"):
        read_calls(Optional(), {"x": ONE, "scale": 2.0})


class Registry:
    """As transformers keeps implementations of attention: nothing that could be written down."""

    def get_interface(self, implementation: str, default: Any) -> Any:
        return {"sdpa": library_attention}.get(implementation, default)


class Settings:
    def __init__(self, implementation: str) -> None:
        self._implementation_inside = implementation

    @property
    def _attn_implementation(self) -> str:
        return self._implementation_inside


def library_attention(
    module: nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    position_bias: torch.Tensor | None = None,
    **_: Any,
) -> tuple[torch.Tensor, None]:
    key, value = key.repeat_interleave(2, 1), value.repeat_interleave(2, 1)
    causal = attention_mask is None and module.is_causal is True
    if position_bias is not None:
        seen = torch.ones(query.shape[2], key.shape[2], dtype=torch.bool)
        seen = seen.tril() if causal else seen if attention_mask is None else attention_mask
        attention_mask, causal = torch.where(seen, position_bias, float("-inf")), False
    result = F.scaled_dot_product_attention(query, key, value, attention_mask, is_causal=causal)
    return result.transpose(1, 2).contiguous(), None


def spelt_out_attention(
    module: nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    *_: Any,
    **__: Any,
) -> tuple[torch.Tensor, torch.Tensor]:
    scores = query @ key.repeat_interleave(2, 1).mT * query.shape[-1] ** -0.5
    weights = scores.softmax(-1)
    return (weights @ value.repeat_interleave(2, 1)).transpose(1, 2).contiguous(), weights


ALL_ATTENTION_FUNCTIONS = Registry()


class Attention(nn.Module):
    def __init__(self, implementation: str, *, is_causal: bool) -> None:
        super().__init__()
        self.config, self.is_causal = Settings(implementation), is_causal
        self.num_key_value_groups = 2
        self.project = nn.Linear(32, 64)

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None, **named: Any) -> Any:
        query, key, value = (
            self.project(x).unflatten(-1, (8, 8)).transpose(1, 2).split((4, 2, 2), 1)
        )
        interface = ALL_ATTENTION_FUNCTIONS.get_interface(
            self.config._attn_implementation, spelt_out_attention
        )
        return interface(self, query, key, value, mask, dropout=0.0, **named)


class Biased(Attention):
    """As T5 has it: what depends on distances is added to the scores."""

    def __init__(self, implementation: str, *, is_causal: bool) -> None:
        super().__init__(implementation, is_causal=is_causal)
        self.bias = nn.Parameter(torch.randn(1, 4, 6, 6))

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None, **named: Any) -> Any:
        return super().forward(x, mask, position_bias=self.bias, **named)


@pytest.mark.parametrize(
    ("kind", "implementation", "is_causal", "mask"),
    [
        (Attention, "sdpa", True, ()),
        (Attention, "sdpa", False, ()),
        (Attention, "sdpa", False, (torch.rand(6, 6) < 0.8,)),
        (Attention, "eager", False, ()),
        (Biased, "sdpa", True, ()),
        (Biased, "sdpa", False, ()),
        (Biased, "sdpa", False, (torch.rand(6, 6).fill_diagonal_(0) < 0.8,)),
    ],
)
def test_attention_of_transformers_is_a_task(
    kind: type[Attention], implementation: str, is_causal: bool, mask: tuple[torch.Tensor, ...]
) -> None:
    module = kind(implementation, is_causal=is_causal)
    task = task_of(module, (torch.randn(2, 6, 32), *mask))
    assert "Registry" not in task.source
    same(module, task, torch.randn(2, 6, 32), *mask)


def test_attention_of_another_kind_is_refused() -> None:
    with pytest.raises(BadInput, match="does not run by itself: 'flash_attention_2'"):
        task_of(Attention("flash_attention_2", is_causal=False), torch.randn(2, 6, 32))
