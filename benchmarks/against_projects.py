"""Kernels of ours against those that SGLang and LMDeploy run today.

    python benchmarks/against_projects.py --sglang CHECKOUT --lmdeploy CHECKOUT --json results.json
    python benchmarks/against_projects.py --sglang CHECKOUT --lmdeploy CHECKOUT --copy-to FOLDER
    python benchmarks/against_projects.py --sglang FOLDER/sglang --lmdeploy FOLDER/lmdeploy ...
    python benchmarks/against_projects.py --sglang CHECKOUT ... --json results.json --patches FOLDER

Their function becomes the reference of a task, so the judge times both side by side, and sees that
both compute the same. Nothing of theirs is installed: the function is taken from its file with what
it needs. `--copy-to` copies those few files alone, for a machine without a checkout. `--interpret`
checks the small workloads in Triton's interpreter, where there is no GPU. `--patches` measures
nothing, and writes what the results show to be faster as patches for the checkouts.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common import describe_machine, progress

from kernel_smith.errors import InternalError, UserError
from kernel_smith.evaluation.engines import LocalEngine
from kernel_smith.records import Candidate, Evaluation, Options, Task
from kernel_smith.shipping.found import Optimized
from kernel_smith.shipping.targets import find_target
from kernel_smith.shipping.targets.op import op_of
from kernel_smith.shipping.targets.patch import make_patch, with_text
from kernel_smith.shipping.theirs import Theirs, take_function
from kernel_smith.shipping.verify import held_against
from kernel_smith.tasks import find_task

HERE = Path(__file__).parent
TOLD = HERE.parent / "results" / "h200" / "told"
COMMIT = "COMMIT"
ROOTS = {"sglang": "python", "lmdeploy": "."}
"""Where a project's imports start from."""
INTERPRETED = """
import os

os.environ["TRITON_INTERPRET"] = "1"

"""
H200 = """
def get_device_props(device=None):
    return {"multi_processor_count": 132, "warps_per_sm": 64, "blocks_per_sm": 32}
"""
METADATA = """
requests, pages = rows.shape[0], places.shape[1] // self.page_size
table = torch.empty(requests, pages, dtype=places.dtype, device=places.device)
sums = torch.empty(requests + 1, dtype=torch.int32, device=places.device)
narrow = torch.empty(requests, dtype=torch.int32, device=places.device)
normal_decode_set_metadata(
    narrow, sums, table, places, rows, None, pages, lengths, 0, self.page_size
)
return table, sums, narrow
"""
KV_INDICES = """
joined = torch.empty(self.total, dtype=torch.int64, device=places.device)
create_flashinfer_kv_indices_triton[(rows.shape[0],)](
    places, rows, lengths, starts, None, joined, places.stride(0)
)
return joined
"""


@dataclass(frozen=True)
class Pair:
    """One operation, theirs and ours."""

    project: str
    file: str
    function: str
    call: str
    """Theirs, with the arguments of the task's reference."""
    task: str
    kernel: Path
    exact: bool = True
    """False: integers that are rounded in the middle of a computation have no exact answer."""
    without_gpu: str = ""
    """What takes the place of questions to a GPU in the interpreter."""


LMDEPLOY = "lmdeploy/pytorch/kernels/cuda"
SGLANG = "sglang/kernels/ops"
PAIRS = {
    "add_rms_norm": Pair(
        "lmdeploy",
        f"{LMDEPLOY}/rms_norm.py",
        "rms_norm",
        "rms_norm(x, self.weight, 1e-6, residual=residual)",
        "add_rms_norm_llm",
        TOLD / "add_rms_norm_llm" / "5_even_rows_alone.py",
        without_gpu=H200,
    ),
    "query_key_rms_norm": Pair(
        "lmdeploy",
        f"{LMDEPLOY}/rms_norm.py",
        "rms_norm",
        "(rms_norm(query, self.query_weight, 1e-6), rms_norm(key, self.key_weight, 1e-6))",
        "query_key_rms_norm",
        TOLD / "query_key_rms_norm" / "3_wide_loads.py",
        without_gpu=H200,
    ),
    "silu_and_mul": Pair(
        "lmdeploy",
        f"{LMDEPLOY}/activation.py",
        "silu_and_mul",
        "silu_and_mul(x)",
        "silu_and_mul_llm",
        HERE / "projects" / "silu_and_mul" / "kernel.py",
        without_gpu=H200,
    ),
    "decode_metadata": Pair(
        "sglang",
        f"{SGLANG}/attention/metadata.py",
        "normal_decode_set_metadata",
        METADATA,
        str(HERE / "projects" / "decode_metadata" / "task.py"),
        HERE / "projects" / "decode_metadata" / "kernel.py",
    ),
    "decode_kv_indices": Pair(
        "sglang",
        f"{SGLANG}/kvcache/kv_indices.py",
        "create_flashinfer_kv_indices_triton",
        KV_INDICES,
        str(HERE / "projects" / "decode_kv_indices" / "task.py"),
        HERE / "projects" / "decode_kv_indices" / "kernel.py",
    ),
    "int8_per_token": Pair(
        "sglang",
        f"{SGLANG}/quantization/int8_kernel.py",
        "per_token_quant_int8",
        "per_token_quant_int8(x)",
        str(HERE / "projects" / "int8_per_token" / "task.py"),
        HERE / "projects" / "int8_per_token" / "kernel.py",
        exact=False,
    ),
}


def take(pair: Pair, checkout: Path) -> Theirs:
    root = checkout / ROOTS[pair.project]
    return take_function(root, root / pair.file, pair.function)


def task_of(pair: Pair, checkout: Path, *, interpret: bool) -> Task:
    text = take(pair, checkout).text
    if interpret:
        text = INTERPRETED + text + pair.without_gpu
    origin = f"{pair.project} {commit_of(checkout)[:12]} {pair.file}:{pair.function}"
    return held_against(find_task(pair.task), text, pair.call, origin, exact=pair.exact)


def commit_of(checkout: Path) -> str:
    if (checkout / COMMIT).exists():
        return (checkout / COMMIT).read_text().strip()
    ran = subprocess.run(
        ["git", "-C", checkout, "rev-parse", "HEAD"], capture_output=True, text=True, check=True
    )
    return ran.stdout.strip()


def copy_files(chosen: dict[str, Pair], checkouts: dict[str, Path], target: Path) -> None:
    for pair in chosen.values():
        checkout, copy = checkouts[pair.project], target / pair.project
        for file in take(pair, checkout).files:
            place = copy / file.relative_to(checkout)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, place)
            print(place)
        (copy / COMMIT).write_text(commit_of(checkout) + "\n")


def write_patches(report: dict[str, Any], checkouts: dict[str, Path], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, row in report["pairs"].items():
        pair = PAIRS[name]
        if pair.project not in checkouts or row.get("speedup", {"low": 0})["low"] <= 1:
            print(f"{name}: not faster, or no checkout of {pair.project}")
            continue
        evaluation = Evaluation.model_validate(row["evaluation"])
        why = f"eager is {row['function']} of commit {row['commit'][:12]}"
        task, told = find_task(pair.task), candidate_of(pair)
        found = Optimized("against_projects", task, told, evaluation, why, confirmed=True)
        target, op = find_target(pair.project), op_of(found, f"fast_{name}")
        patch = make_patch(target, op, checkouts[pair.project].absolute())
        text = with_text(patch, target, op, found, ())
        path = folder / f"{pair.project}_{name}.patch"
        path.write_text(text.replace("| eager |", f"| `{pair.function}` today |"))
        print(path, *patch.files, *(f"not formatted by {tool}" for tool in patch.unformatted_by))


def candidate_of(pair: Pair) -> Candidate:
    return Candidate(backend="triton", source=pair.kernel.read_text(), name=pair.kernel.name)


def row_of(pair: Pair, checkout: Path, evaluation: Evaluation) -> dict[str, Any]:
    row: dict[str, Any] = {
        "project": pair.project,
        "commit": commit_of(checkout),
        "function": f"{pair.file}:{pair.function}",
        "kernel": str(pair.kernel.relative_to(HERE.parent)),
        "ok": evaluation.ok,
        "reason": evaluation.reason and str(evaluation.reason),
        "message": evaluation.message,
        "device": evaluation.device and evaluation.device.name,
        "evaluation": evaluation.model_dump(mode="json"),
    }
    if evaluation.timing is None:
        return row
    row["speedup"] = evaluation.timing.speedup.model_dump()
    row["workloads"] = {
        timed.workload: {
            "theirs": timed.baselines[0].seconds.p50,
            "ours": timed.candidate.p50,
            "speedup": timed.baselines[0].speedup.model_dump(),
        }
        for timed in evaluation.timing.workloads
    }
    return row


def print_row(name: str, row: dict[str, Any]) -> None:
    verdict = "ok" if row["ok"] else f"{row.get('reason')}: {row.get('message')}"
    print(f"{name}: {row['project']} {row['function']}: {verdict}", flush=True)
    for workload, timed in row.get("workloads", {}).items():
        ratio = timed["speedup"]
        print(
            f"  {workload}: theirs {1e6 * timed['theirs']:.2f} us, ours {1e6 * timed['ours']:.2f} "
            f"us, {ratio['value']:.3f}x [{ratio['low']:.3f}, {ratio['high']:.3f}]"
        )
    if "speedup" in row:
        ratio = row["speedup"]
        print(f"  all: {ratio['value']:.3f}x [{ratio['low']:.3f}, {ratio['high']:.3f}]", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sglang", type=Path, default=None, help="a checkout")
    parser.add_argument("--lmdeploy", type=Path, default=None, help="a checkout")
    parser.add_argument("--only", action="append", choices=list(PAIRS), default=None)
    parser.add_argument("--json", type=Path, default=None)
    parser.add_argument("--copy-to", type=Path, default=None, help="copy the files, and end")
    parser.add_argument("--patches", type=Path, default=None, help="write patches, and end")
    parser.add_argument("--interpret", action="store_true")
    asked = parser.parse_args()
    checkouts = {name: path for name in ROOTS if (path := getattr(asked, name)) is not None}
    chosen = {
        name: pair
        for name, pair in PAIRS.items()
        if pair.project in checkouts and (asked.only is None or name in asked.only)
    }
    if asked.copy_to is not None:
        copy_files(chosen, checkouts, asked.copy_to)
        return
    if asked.patches is not None:
        write_patches(json.loads(asked.json.read_text()), checkouts, asked.patches)
        return
    if asked.interpret:
        os.environ["TRITON_INTERPRET"] = "1"  # for the judge itself, before it imports Triton
    report: dict[str, Any] = {"machine": describe_machine(), "pairs": {}}
    with LocalEngine() as engine:
        for name, pair in chosen.items():
            checkout = checkouts[pair.project].absolute()
            try:
                task = task_of(pair, checkout, interpret=asked.interpret)
                options = Options(interpret=asked.interpret)
                evaluation = engine.evaluate(task, candidate_of(pair), options, progress=progress)
                row = row_of(pair, checkout, evaluation)
            except (UserError, InternalError) as error:
                row = {"project": pair.project, "function": pair.function, "ok": False}
                row |= {"reason": type(error).__name__, "message": str(error)[:2000]}
            report["pairs"][name] = row
            print_row(name, row)
            if asked.json is not None:
                asked.json.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
