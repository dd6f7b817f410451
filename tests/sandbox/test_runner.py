"""The loop inside a timed process, driven by the requests that the judge sends.

It runs in a thread here, without confinement: the protocol is the same.
"""

from __future__ import annotations

import base64
import math
import pickle
import sys
import textwrap
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
import torch

from kernel_smith import inline
from kernel_smith.evaluation.sandbox.arena import Arena, Layout, Slot, contiguous_stride
from kernel_smith.evaluation.sandbox.runner import Runner
from kernel_smith.evaluation.sandbox.tree import flatten
from kernel_smith.evaluation.sandbox.wire import Channel, WireClosed

DOUBLE = """
    import torch

    class ModelNew(torch.nn.Module):
        def forward(self, x):
            return x * 2
"""


class Judge:
    """The other end: asks, and looks at the shared memory."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.inputs = Arena.create(1 << 16)
        self.outputs = Arena.create(1 << 16)
        self.layout = Layout()

    def ask(self, op: str, fds: tuple[int, ...] = (), **arguments: Any) -> dict[str, Any]:
        self.channel.send({"op": op, **arguments}, fds)
        return self.channel.receive(30)

    def load(self, source: str, **changes: Any) -> dict[str, Any]:
        request: dict[str, Any] = {
            "program": "",
            "source": textwrap.dedent(source),
            "name": "candidate.py",
            "entry": "ModelNew",
            "threads": 1,
            "compiled": False,
        }
        return self.ask("load", **(request | changes))

    def map(self) -> dict[str, Any]:
        sizes = [self.inputs.size, self.outputs.size]
        return self.ask("map", (self.inputs.fd, self.outputs.fd), sizes=sizes)

    def construct(
        self,
        *arguments: Any,
        statistics: dict[str, torch.Tensor] | None = None,
        unlike_new: tuple[str, ...] = (),
        **parameters: torch.Tensor,
    ) -> dict[str, Any]:
        return self.ask(
            "construct",
            key="workload",
            program="",
            seed=7,
            arguments=base64.b64encode(pickle.dumps(list(arguments))).decode(),
            parameters={name: self.share(t).to_json() for name, t in parameters.items()},
            statistics={name: self.share(t).to_json() for name, t in (statistics or {}).items()},
            unlike_new=unlike_new,
            kept=4,
        )

    def start(self, source: str, *arguments: Any, **parameters: torch.Tensor) -> None:
        for answer in (self.load(source), self.map(), self.construct(*arguments, **parameters)):
            assert answer["ok"], answer

    def share(self, tensor: torch.Tensor) -> Slot:
        slot = self.layout.like(tensor)
        self.inputs.view(slot).copy_(tensor)
        return slot

    def bind(self, *calls: list[Any], check: bool = False) -> dict[str, Any]:
        described = []
        for arguments in calls:
            tensors: list[torch.Tensor] = []
            template = flatten(arguments, tensors)
            described.append([template, [self.share(t).to_json() for t in tensors]])
        return self.ask("bind", key="workload", calls=described, check=check)

    def go(self, calls: int, **changes: Any) -> dict[str, Any]:
        return self.ask("go", calls=calls, nonce="secret", **changes)

    def collect(
        self, calls: int, shape: tuple[int, ...] = (3,), own: Sequence[bool] = ()
    ) -> tuple[Any, list[torch.Tensor]]:
        layout = Layout()
        slots = [layout.place(shape, contiguous_stride(shape), torch.float32) for _ in range(calls)]
        self.outputs.raw(0, layout.size).fill_(0xFF)
        answer = self.ask("collect", slots=[[slot.to_json()] for slot in slots], own=own)
        return answer, [self.outputs.view(slot) for slot in slots]


@pytest.fixture
def judge() -> Iterator[Judge]:
    """A judge whose runner serves in a thread; what it changes in this process is undone."""
    near, far = Channel.pair()
    threads = torch.get_num_threads()

    def serve() -> None:
        try:
            Runner(far).serve()
        except WireClosed:
            far.close()

    thread = threading.Thread(target=serve)
    thread.start()
    yield Judge(near)
    near.close()
    thread.join(10)
    assert not thread.is_alive(), "the runner must end when the judge hangs up"
    inline.set_provider(None)
    sys.modules.pop("candidate", None)
    torch.set_num_threads(threads)


def rows(*starts: float) -> list[list[torch.Tensor]]:
    return [[torch.arange(3) + start] for start in starts]


def floats(*starts: float) -> list[list[torch.Tensor]]:
    return [[tensor.float()] for (tensor,) in rows(*starts)]


def test_a_batch_computes_every_call_into_shared_memory(judge: Judge) -> None:
    judge.start(DOUBLE)
    assert judge.bind(*floats(0, 10, 20), check=True) == {"ok": True}
    assert judge.go(3) == {"done": "secret"}
    answer, outputs = judge.collect(3)
    assert [t.tolist() for t in outputs] == [[0, 2, 4], [20, 22, 24], [40, 42, 44]]
    assert (answer["count"], answer["odd"]) == (3, [])
    assert answer["inner"] > 0
    assert answer["first"] == {
        "tree": "tensor",
        "tensors": [
            {
                "shape": [3],
                "dtype": "float32",
                "stride": [1],
                "dense": True,
                "aliases": False,
                "reused": False,
            }
        ],
    }


def test_an_empty_batch_runs_nothing(judge: Judge) -> None:
    judge.start(DOUBLE)
    judge.bind(*floats(0))
    assert judge.go(0) == {"done": "secret"}
    answer, outputs = judge.collect(1)
    assert (answer["count"], answer["first"]) == (0, None)
    assert outputs[0].isnan().all()


COUNTS_ENTRIES = """
    import torch

    class ModelNew(torch.nn.Module):
        def forward(self, ledger):
            return (ledger != 0).sum().float().repeat(3)
"""


def test_every_call_is_entered_in_the_ledger_as_soon_as_it_returns(judge: Judge) -> None:
    judge.start(COUNTS_ENTRIES)
    ledger = judge.share(torch.zeros(4, 1, dtype=torch.int64))
    call = [flatten([torch.zeros(0)], []), [ledger.to_json()]]
    judge.ask("bind", key="workload", calls=[call] * 3, ledger=ledger.to_json())
    places = judge.go(3, places=True)["at"]
    assert judge.inputs.view(ledger).flatten().tolist() == [*places, 0]
    _, outputs = judge.collect(3)
    assert [t[0].item() for t in outputs] == [0, 1, 2], "entries that each call found"


def test_binding_again_forgets_the_results_of_before(judge: Judge) -> None:
    judge.start(DOUBLE)
    for start in (0, 100):
        judge.bind(*floats(start))
        judge.go(1)
        answer, outputs = judge.collect(1)
        assert answer["count"] == 1
        assert outputs[0][0] == 2 * start


def test_results_that_the_process_hands_over_itself_are_overwritten_there(judge: Judge) -> None:
    """What comes back to the program is worth nothing; what must not be overwritten is not."""
    judge.start("""
        import torch

        class ModelNew(torch.nn.Module):
            last = torch.zeros(3)

            def forward(self, x):
                before, self.last = self.last, x * 2
                self.seen = before.clone()
                return self.last if x[0] > 0 else self.seen
    """)
    for own, left in (([False], 2.0), ([True], math.nan)):
        for first in (1.0, -1.0):
            judge.bind([torch.full((3,), first)])
            judge.go(1)
            _, outputs = judge.collect(1, own=own)
        assert outputs[0].tolist() == pytest.approx([left] * 3, nan_ok=True)


def test_nested_arguments_arrive_as_the_task_wrote_them(judge: Judge) -> None:
    judge.start("""
        import torch

        class ModelNew(torch.nn.Module):
            def forward(self, xs, options, flag, kind):
                assert isinstance(xs, tuple) and flag is None and kind is torch.float32
                return xs[0] * options["scale"] + xs[1].to(kind)
    """)
    pair = (torch.ones(3), torch.tensor([1, 2, 3]))
    judge.bind([pair, {"scale": 0.5}, None, torch.float32])
    assert judge.go(1) == {"done": "secret"}
    _, outputs = judge.collect(1)
    assert outputs[0].tolist() == [1.5, 2.5, 3.5]


def test_calls_run_without_gradients(judge: Judge) -> None:
    judge.start("""
        import torch

        class ModelNew(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = torch.nn.Parameter(torch.ones(3))

            def forward(self, x):
                y = x * self.weight
                assert not y.requires_grad
                return y
    """)
    judge.bind(*floats(0))
    assert judge.go(1) == {"done": "secret"}


LINEAR = """
    import torch

    class ModelNew(torch.nn.Module):
        def __init__(self, size):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.randn(size))

        def forward(self, x):
            return x * self.weight
"""


def test_parameters_are_drawn_like_the_references(judge: Judge) -> None:
    torch.manual_seed(7)
    expected = torch.randn(3)
    assert judge.load(LINEAR)["ok"]
    assert judge.map()["ok"]
    assert judge.construct(3, weight=expected) == {"ok": True, "redrawn": 0, "lacking": []}


def test_parameters_drawn_in_another_order_get_the_references_values(judge: Judge) -> None:
    assert judge.load(LINEAR)["ok"]
    assert judge.map()["ok"]
    answer = judge.construct(3, weight=torch.tensor([1.0, 2, 3]))
    assert answer == {"ok": True, "redrawn": 1, "lacking": []}
    judge.bind([torch.ones(3)])
    judge.go(1)
    _, outputs = judge.collect(1)
    assert outputs[0].tolist() == [1, 2, 3]


def test_parameters_that_constructors_fill_are_not_called_drawn_in_another_order(
    judge: Judge,
) -> None:
    assert judge.load(LINEAR)["ok"]
    assert judge.map()["ok"]
    answer = judge.construct(3, weight=torch.tensor([1.0, 2, 3]), unlike_new=("weight",))
    assert answer == {"ok": True, "redrawn": 0, "lacking": []}


def test_what_a_candidate_lacks_is_named(judge: Judge) -> None:
    assert judge.load(LINEAR)["ok"]
    assert judge.map()["ok"]
    answer = judge.construct(3, weight=torch.ones(4), bias=torch.ones(3))
    assert answer["lacking"] == ["bias", "weight"]


NORM = """
import torch

class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(2, affine=False, eps=0).eval()

    def forward(self, x):
        return self.norm(x)
"""


def test_statistics_are_the_references_and_a_call_may_change_its_own(judge: Judge) -> None:
    assert judge.load(NORM)["ok"]
    assert judge.map()["ok"]
    mean, variance = torch.tensor([1.0, 2]), torch.tensor([4.0, 16])
    statistics = {"norm.running_mean": mean, "norm.running_var": variance}
    assert judge.construct(statistics=statistics)["lacking"] == []
    judge.bind([torch.tensor([[3.0, 6]])])
    judge.go(1)
    _, outputs = judge.collect(1, (1, 2))
    assert outputs[0].tolist() == [[1, 1]]


def test_the_judge_sees_writes_to_parameters(judge: Judge) -> None:
    source = LINEAR.replace("return x *", "self.weight.data.add_(1)\n            return x *")
    judge.start(source, 3, weight=torch.zeros(3))
    judge.bind([torch.ones(3)])
    judge.go(1)
    slot = Slot(0, (3,), (1,), "float32")
    assert judge.inputs.view(slot).tolist() == [1, 1, 1]


def body(statement: str) -> str:
    return f"""
        import torch

        kept = torch.zeros(3)

        class ModelNew(torch.nn.Module):
            def forward(self, x):
                {statement}
    """


@pytest.mark.parametrize(
    ("statement", "field", "value"),
    [
        ("return x", "aliases", True),
        ("return x[1:]", "aliases", True),
        ("return x * 2", "aliases", False),
        ("kept.copy_(x); return kept", "reused", True),
        ("return x.clone()", "reused", False),
        ("return (x * 2).to_sparse()", "dense", False),
        ("return (x * 2).double()", "dtype", "float64"),
        ("return (x * 2)[None]", "shape", [1, 3]),
        ("return torch.ones(1).expand(3)", "stride", [0]),
    ],
)
def test_results_are_described_as_they_are(
    judge: Judge, statement: str, field: str, value: Any
) -> None:
    judge.start(body(statement))
    judge.bind(*floats(0, 1))
    judge.go(2)
    answer, _ = judge.collect(2)
    last = answer["odd"][1] if answer["odd"] else answer["first"]
    assert last["tensors"][0][field] == value


def test_plain_numbers_are_no_memory_that_is_used_again(judge: Judge) -> None:
    judge.start(body("return [float(x.sum()), int(x[0]), x * 2, bool(x[0] > 1)]"))
    for _ in range(3):
        judge.bind(*floats(*range(9)))
        judge.go(9)
        answer = judge.ask("collect", slots=[])
        assert answer["first"]["tree"] == ["list", "float", "int", "tensor", "bool"]
        assert not any(tensor["reused"] for tensor in answer["first"]["tensors"])
        assert answer["odd"] == []


def test_the_first_result_that_differs_from_the_first_is_reported(judge: Judge) -> None:
    judge.start(body("return x * 2 if x[0] < 2 else (x, x)"))
    judge.bind(*floats(0, 1, 2, 3))
    judge.go(4)
    answer, _ = judge.collect(4)
    assert answer["first"]["tree"] == "tensor"
    index, described = answer["odd"]
    assert (index, described["tree"]) == (2, ["tuple", "tensor", "tensor"])


def test_results_of_the_wrong_shape_leave_the_poison_in_place(judge: Judge) -> None:
    judge.start(body("return (x * 2)[:2]"))
    judge.bind(*floats(0))
    judge.go(1)
    _, outputs = judge.collect(1)
    assert outputs[0].isnan().all()


def test_an_exception_in_forward_is_described_with_its_line(judge: Judge) -> None:
    judge.start(body("raise RuntimeError('no luck')"))
    judge.bind(*floats(0))
    error = judge.go(1)["error"]
    assert error["kind"] == "exception"
    assert error["operation"] == "go"
    assert error["message"] == "RuntimeError: no luck"
    assert "candidate.py" in error["traceback"]
    assert "raise RuntimeError('no luck')" in error["traceback"]
    assert "runner.py" not in error["traceback"]
    assert judge.bind(*floats(0)) == {"ok": True}, "the runner goes on"


@pytest.mark.parametrize(
    ("statement", "kind", "message"),
    [
        ("raise MemoryError('too much')", "memory", "too much"),
        ("raise SystemExit(0)", "exception", "SystemExit"),
        ("raise KeyboardInterrupt", "exception", "KeyboardInterrupt"),
        ("return undefined", "exception", "NameError"),
    ],
)
def test_whatever_forward_raises_is_an_answer(
    judge: Judge, statement: str, kind: str, message: str
) -> None:
    judge.start(body(statement))
    judge.bind(*floats(0))
    error = judge.go(1)["error"]
    assert error["kind"] == kind
    assert message in error["message"]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("raise ImportError('not here')", "ImportError: not here"),
        ("import torch", "defines no class ModelNew"),
        ("ModelNew = 3", "defines no class ModelNew"),
        ("def ModelNew(): pass", "defines no class ModelNew"),
        ("class ModelNew(: pass", "SyntaxError"),
    ],
)
def test_programs_that_cannot_be_loaded_say_why(judge: Judge, source: str, message: str) -> None:
    error = judge.load(source)["error"]
    assert error["kind"] == "exception"
    assert message in error["message"]


def test_a_constructor_that_takes_other_arguments_is_a_signature_mismatch(judge: Judge) -> None:
    judge.load(LINEAR)
    judge.map()
    error = judge.construct(3, 4)["error"]
    assert error["kind"] == "signature"
    assert "ModelNew() is called with 2 arguments" in error["message"]
    assert "size" in error["message"]


def test_a_class_that_is_no_module_is_a_signature_mismatch(judge: Judge) -> None:
    judge.load("class ModelNew: pass")
    judge.map()
    error = judge.construct()["error"]
    assert error["kind"] == "signature"
    assert "torch.nn.Module" in error["message"]


def test_a_forward_that_takes_other_arguments_is_a_signature_mismatch(judge: Judge) -> None:
    judge.start(DOUBLE)
    error = judge.bind([torch.ones(3), torch.ones(3)], check=True)["error"]
    assert error["kind"] == "signature"
    assert "forward() is called with 2 arguments" in error["message"]


def test_a_type_error_inside_forward_is_no_signature_mismatch(judge: Judge) -> None:
    judge.start(body("return len(3)"))
    assert judge.bind(*floats(0), check=True) == {"ok": True}
    assert judge.go(1)["error"]["kind"] == "exception"


def test_an_exception_in_the_constructor_is_described(judge: Judge) -> None:
    judge.load("""
        import torch

        class ModelNew(torch.nn.Module):
            def __init__(self):
                raise ValueError("no weights")
    """)
    judge.map()
    error = judge.construct()["error"]
    assert error["message"] == "ValueError: no weights"
    assert "in __init__" in error["traceback"]


def test_a_program_asks_the_judge_for_its_objects(judge: Judge) -> None:
    source = textwrap.dedent("""
        from kernel_smith.inline import cpp
        cpp("int x;", ["-O1"])
    """)
    judge.channel.send(
        {
            "op": "load",
            "source": source,
            "name": "candidate.py",
            "entry": "ModelNew",
            "threads": 1,
            "compiled": False,
        }
    )
    need = judge.channel.receive(30)["need"]
    assert need == {"dialect": "cpp", "source": "int x;", "flags": ["-O1"]}
    judge.channel.send({"log": "kernel.cpp:1: error: something"})
    error = judge.channel.receive(30)["error"]
    assert "CompileError" in error["message"]
    assert "kernel.cpp:1: error: something" in error["message"]


def test_another_thread_may_not_ask_the_judge(judge: Judge) -> None:
    """Nobody listens to it: the question would be taken for the answer to another one."""
    source = textwrap.dedent("""
        import threading
        from kernel_smith import inline
        said = []
        def ask():
            try:
                inline.cpp("int x;")
            except inline.CompileError as error:
                said.append(str(error))
        thread = threading.Thread(target=ask)
        thread.start()
        thread.join()
        raise ValueError(said)
    """)
    answer = judge.ask(
        "load", source=source, name="c.py", entry="ModelNew", threads=1, compiled=False
    )
    assert "compiled in the thread that forward runs in" in answer["error"]["message"]


def test_tracebacks_keep_the_frames_of_a_file_named_like_this_project(judge: Judge) -> None:
    judge.load(textwrap.dedent(body("raise ValueError('here')")), name="kernel_smith_relu.py")
    judge.map()
    judge.construct()
    judge.bind(*floats(0))
    assert "kernel_smith_relu.py" in judge.go(1)["error"]["traceback"]
