"""Loads task and candidate, calls `forward` for each workload, and says how that ended."""

from __future__ import annotations

import faulthandler
import importlib.util
import inspect
import json
import os
import sys
import traceback
from typing import Any

import torch
from triton.runtime.errors import OutOfResources

from kernel_smith.evaluation.compile_only.inside import driver, pretend
from kernel_smith.evaluation.compile_only.inside.inputs import draw_init_inputs, draw_inputs
from kernel_smith.evaluation.compile_only.inside.recorder import Recorder, chain, clean

_AUTHORED = ("candidate.py", "task.py")
_LONGEST_MESSAGE = 4000
_LONGEST_TRACEBACK = 8000


class SignatureMismatch(TypeError):
    """`forward` does not take the arguments that the task hands over."""


def main() -> None:
    """Read `request.json`, leave `report.json`; both lie in the current folder."""
    faulthandler.enable()
    with open("request.json", encoding="utf-8") as file:
        request = json.load(file)
    recorder = Recorder("report.json", candidate="candidate.py")
    driver.install(request["target"], recorder)
    pretend.dress_up(request["target"])
    try:
        with pretend.PretendDevice(), torch.no_grad():
            _run(request["workloads"], recorder)
        outcome = {"kind": "done", "message": "", "traceback": ""}
    except BaseException as error:
        outcome = _describe(error, recorder)
    recorder.write(outcome)
    # Whatever threads and exit handlers the candidate left behind have nothing more to say.
    sys.stdout.flush()
    os._exit(0)


def _run(workloads: list[dict[str, Any]], recorder: Recorder) -> None:
    task = _load("task")
    arguments = {w["name"]: draw_init_inputs(task, w["params"]) for w in workloads}
    recorder.enter("load")
    candidate = _load("candidate")
    for workload in workloads:
        name, params = workload["name"], workload["params"]
        recorder.enter("task")
        inputs = draw_inputs(task, params)
        recorder.enter("load")
        model = candidate.ModelNew(*arguments[name])
        recorder.workload = name
        recorder.enter("forward")
        _check_signature(model, inputs)
        model(*inputs)


def _load(name: str) -> Any:
    """Import a file of this folder; Triton reads the source of kernels from it."""
    specification = importlib.util.spec_from_file_location(name, f"{name}.py")
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[name] = module
    specification.loader.exec_module(module)
    return module


def _check_signature(model: Any, inputs: list[Any]) -> None:
    signature = inspect.signature(model.forward)
    try:
        signature.bind(*inputs)
    except TypeError:
        raise SignatureMismatch(
            f"forward() is called with {len(inputs)} arguments, but takes {signature}"
        ) from None


def _describe(error: BaseException, recorder: Recorder) -> dict[str, Any]:
    links = chain(error)
    kind = "exception"
    if any(isinstance(link, OutOfResources) for link in links):
        kind = "resources"
    elif recorder.is_compiler_error(error):
        kind = "compiler"
    elif isinstance(error, SignatureMismatch):
        kind = "signature"
    elif isinstance(error, MemoryError) or "can't allocate memory" in str(error):
        kind = "memory"
    text = _format(error)
    return {
        "kind": kind,
        "message": clean(f"{type(error).__name__}: {error}", _LONGEST_MESSAGE),
        "traceback": clean(text[-_LONGEST_TRACEBACK:], _LONGEST_TRACEBACK),
    }


def _format(error: BaseException) -> str:
    """The traceback, without the frames of libraries and of this program if it has others."""
    described = traceback.TracebackException.from_exception(error)
    links = [described]
    while following := links[-1].__cause__ or links[-1].__context__:
        links.append(following)
    own = [[frame for frame in link.stack if _is_authored(frame)] for link in links]
    if any(own) or isinstance(error, SyntaxError):
        for link, frames in zip(links, own, strict=True):
            link.stack = traceback.StackSummary.from_list(frames)
    return "".join(described.format())


def _is_authored(frame: traceback.FrameSummary) -> bool:
    return os.path.basename(frame.filename) in _AUTHORED
