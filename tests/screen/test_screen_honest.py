"""Idioms of honest kernels. Not one of them may be refused."""

from pathlib import Path

import pytest

from kernel_smith.evaluation.screen import screen
from kernel_smith.tasks import builtin_tasks


def snippets(text: str) -> list[str]:
    return text.strip("\n").split("\n---\n")


IDIOMS = snippets(
    """
from __future__ import annotations
---
import math
SCALE = 1 / math.sqrt(64)
---
from typing import Any, Optional
def pick(x: Optional[torch.Tensor] = None) -> Any: return x
---
from functools import lru_cache
@lru_cache(maxsize=None)
def plan(n: int) -> int: return n // 8
---
from dataclasses import dataclass, field
@dataclass(frozen=True)
class Tile:
    rows: int = 8
    sizes: list = field(default_factory=list)
---
import os
THREADS = os.cpu_count() or 1
---
import os
THREADS = len(os.sched_getaffinity(0))
---
import os
LEVEL = os.environ.get("LEVEL", "3")
OTHER = os.getenv("OTHER")
THIRD = os.environ["HOME"] if "HOME" in os.environ else ""
---
import os
os.environ["TORCH_CUDA_ARCH_LIST"] = "9.0a"
os.environ.setdefault("MAX_JOBS", "2")
---
import os.path as osp
HERE = osp.dirname(osp.abspath(__file__))
---
from os import path, environ, cpu_count
NAME = path.join("a", environ.get("B", "c"))
---
from multiprocessing import cpu_count
THREADS = cpu_count()
---
import multiprocessing
THREADS = multiprocessing.cpu_count()
---
import threading
_LOCK = threading.Lock()
with _LOCK: pass
---
import shutil
HAS_NVCC = shutil.which("nvcc") is not None
---
import importlib.util
HAS_TRITON = importlib.util.find_spec("triton") is not None
---
import inspect
TEXT = inspect.cleandoc(SOURCE)
---
import gc
gc.collect()
---
import sys
LARGEST = sys.maxsize
IS_LINUX = sys.platform == "linux"
---
import sys
print("hello", file=sys.stderr)
---
import time
START = time.perf_counter()
---
import textwrap, re, json, struct, itertools, collections, enum, platform, warnings, logging
PATTERN = re.compile("a+")
---
from pathlib import Path
FOLDER = Path(__file__).parent
---
import numpy as np
TABLE = np.zeros(4, dtype=np.float32)
TABLE[0] = 1.0
---
import random
random.seed(0)
---
torch.manual_seed(0)
---
class Holder: pass
holder = Holder()
holder.value = 3
Holder.limit = 4
setattr(holder, "other", 5)
del holder.value
---
class Counter:
    total = 0
    def bump(self): self.total += 1
---
class Other(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))
        self.weight.data = torch.zeros(3)
        self.register_buffer("table", torch.arange(3))
        self.linear = nn.Linear(3, 3)
        self.linear.weight.requires_grad = False
        self.linear.weight.data[0] = 1.0
---
class Module2(nn.Module):
    def __setattr__(self, name, value): super().__setattr__(name, value)
    def set(self, name, value): nn.Module.__setattr__(self, name, value)
---
layer = nn.Linear(3, 3)
layer.weight = nn.Parameter(torch.ones(3, 3))
nn.Linear(2, 2).weight.requires_grad = False
---
class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.n = 3
        return x * x
---
class Options(dict):
    __getattr__ = dict.__getitem__
options = Options()
options.fast = True
---
def launch(x):
    launch.count = getattr(launch, "count", 0) + 1
    return x
---
CACHE = {}
def lookup(key):
    if key not in CACHE: CACHE[key] = torch.empty(key)
    return CACHE[key]
---
SIZES = [n for n in range(3) if n]
TABLE = {str(n): n for n in SIZES}
PAIRS = {(a, b) for a in SIZES for b in SIZES}
---
BLOCK = 64
GENERATED = cpp(f'''
extern "C" int block() {{ return {BLOCK}; }}
''')
---
PARTS = [f"// part {i}" for i in range(4)]
JOINED = cpp("\\n".join(PARTS))
---
def outer(x):
    scale = 2
    def inner(y):
        nonlocal scale
        scale += 1
        return y * scale
    return inner(x)
---
counter = 0
def bump():
    global counter
    counter += 1
---
dtype = "float32"
DTYPE = getattr(torch, dtype)
---
def activation(name): return getattr(F, name)
---
TWICE = getattr(kernels, "twi" + "ce")
---
PAIR = [getattr(kernels, f"{name}") for name in ("twice",)]
---
def compile(x): return x
def open(x): return x
def eval(x): return x
compile(1), open(2), eval(3)
---
def helper(input, open, exec=None):
    return input(open(exec))
---
class Tool:
    def compile(self): return 1
    def run(self): return self.compile()
---
net = nn.Linear(3, 3).eval()
net.eval()
---
fast = torch.compile(nn.Linear(3, 3))
---
from torch.utils.cpp_extension import load_inline
module = load_inline(name="m", cpp_sources=SOURCE, functions=["twice"])
---
import torch.utils.cpp_extension
module = torch.utils.cpp_extension.load_inline(name="m", cpp_sources=SOURCE)
---
import os, tempfile
from torch.utils.cpp_extension import load_inline
folder = tempfile.mkdtemp()
os.makedirs(folder, exist_ok=True)
module = load_inline(name=f"m{os.getpid()}", cpp_sources=SOURCE, build_directory=folder)
---
import triton
import triton.language as tl
@triton.autotune(configs=[triton.Config({"B": 64}, num_warps=4)], key=["n"])
@triton.jit
def copy(x, y, n, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(y + at, tl.load(x + at, mask=at < n), mask=at < n)
---
try:
    import triton
    HAS_TRITON = True
except ImportError:
    triton = None
    HAS_TRITON = False
---
try:
    with_avx = cpp(SOURCE, flags=("-mavx512f",))
except RuntimeError:
    with_avx = cpp(SOURCE)
---
try:
    checked = cpp(SOURCE)
except RuntimeError as error:
    raise RuntimeError("the kernel did not compile") from error
---
try:
    WIDTH = int("8")
except ValueError:
    WIDTH = 4
---
import traceback
def report():
    traceback.print_exc()
---
import contextlib
@contextlib.contextmanager
def scope():
    try: yield
    finally: pass
---
with torch.no_grad(), torch.inference_mode():
    W = torch.ones(3)
torch.set_grad_enabled(True)
---
with torch.profiler.record_function("setup"): pass
---
with torch.backends.cudnn.flags(enabled=True): pass
ALLOWED = torch.backends.cuda.matmul.allow_tf32
THREADS = torch.get_num_threads()
---
op = torch.ops.aten.mm
---
@torch.library.custom_op("mine::twice", mutates_args=())
def twice_op(x: torch.Tensor) -> torch.Tensor: return x * 2
---
lib = torch.library.Library("mine", "DEF")
---
t = torch
x = t.empty(3)
x.requires_grad = False
---
config = torch.nn.Linear(2, 2)
config.in_features = 3
---
time = torch.zeros(1)
time.grad = None
---
def parse(text):
    match text:
        case {"a": a, **rest}: return a, rest
        case [first, *others]: return first, others
        case str() as word: return word
---
shape: tuple[int, ...] = (1, 2)
first, *rest = shape
(a, b), [c] = (1, 2), [3]
if (n := len(shape)) > 1: pass
---
square = lambda x, *, k=2: x ** k
---
async def nothing(): return None
---
assert torch.__version__
print(f"{torch.__version__!r:>10}")
---
ModelAlias = None
---
PATTERN = "\\d"
---
if __name__ == "__main__":
    import subprocess, inspect
    torch.set_num_threads(4)
    try: print(ModelNew()(torch.ones(3)))
    except Exception: pass
---
__all__ = ["ModelNew"]
"""
)

MODELS = snippets(
    """
class ModelNew(nn.Module):
    def __init__(self, n: int = 3):
        super(ModelNew, self).__init__()
        self.n = n
        self.plans = {}
    def forward(self, x):
        try:
            plan = self.plans[x.shape]
        except KeyError:
            plan = self.plans[x.shape] = torch.arange(self.n)
        return x + plan
---
class ModelNew(nn.Module):
    def forward(self, x):
        try:
            kernels.twice(x, x, 3)
        finally:
            self.done = True
        return x
---
class ModelNew(nn.Module):
    def forward(self, x):
        try:
            return kernels.twice(x, x, 3)
        except RuntimeError as error:
            raise ValueError(f"shape {x.shape}") from error
---
import os
def threads():
    try:
        return int(os.environ.get("THREADS", "4"))
    except ValueError:
        return 4
class ModelNew(nn.Module):
    def forward(self, x):
        kernels.twice(x, x, threads())
        return x
---
class ModelNew(nn.Module):
    def forward(self, x):
        try:
            self.cache.pop(x.data_ptr())
        except KeyError:
            pass
        return kernels.twice(x, x, 3)
---
def benchmark():
    try:
        ModelNew()(torch.ones(3))
    except Exception:
        print("failed")
class ModelNew(nn.Module):
    def forward(self, x):
        return kernels.twice(x, x, 3)
---
class Softmax(nn.Module):
    def forward(self, x): return kernels.twice(x, x, 3)
ModelNew = Softmax
---
class Base(nn.Module):
    def forward(self, x): return kernels.twice(x, x, 3)
class ModelNew(Base): pass
---
def run(self, x): return kernels.twice(x, x, 3)
class ModelNew(nn.Module):
    forward = run
---
class ModelNew(nn.Module):
    pass
ModelNew.forward = lambda self, x: kernels.twice(x, x, 3)
---
if torch.cuda.is_available():
    class ModelNew(nn.Module):
        def forward(self, x): return x
else:
    class ModelNew(nn.Module):
        def forward(self, x): return kernels.twice(x, x, 3)
---
try:
    import triton
except ImportError:
    triton = None
finally:
    class ModelNew(torch.nn.Module):
        @torch.no_grad()
        def forward(self, x): return kernels.twice(x, x, 3)
---
class ModelNew(nn.Module):
    def forward(self, x):
        if x.dtype == torch.bfloat16:
            return F.relu(x)
        return kernels.twice(x, x, 3)
"""
)


@pytest.mark.parametrize("idiom", IDIOMS, ids=lambda text: text.strip().splitlines()[0][:60])
def test_an_honest_idiom_passes(candidate, idiom):
    assert screen(candidate(idiom)) == []


@pytest.mark.parametrize("model", MODELS, ids=range(len(MODELS)))
def test_an_honest_model_passes(candidate, model):
    assert screen(candidate(model=model)) == []


@pytest.mark.filterwarnings("ignore")
def test_every_idiom_is_valid_python():
    for text in (*IDIOMS, *MODELS):
        compile(text, "idiom", "exec")


@pytest.mark.parametrize(
    "imports",
    [
        "from kernel_smith.inline import cpp",
        "from kernel_smith.inline import cpp as cpp",
        "from kernel_smith.inline import *",
        "from kernel_smith import inline\ncpp = inline.cpp",
        "import kernel_smith.inline\ncpp = kernel_smith.inline.cpp",
        "import kernel_smith.inline as ks\ncpp = ks.cpp",
        "import functools, kernel_smith.inline as ks\ncpp = functools.partial(ks.cpp, flags=())",
    ],
)
def test_the_helper_may_be_spelt_in_every_way(candidate, imports):
    source = candidate().replace("from kernel_smith.inline import cpp", imports)
    assert screen(source) == []


def test_the_starting_kernels_of_the_suite_pass():
    paths = [path for task in builtin_tasks() for path in task.starts.values()]
    assert paths
    for path in paths:
        assert screen(Path(path).read_text(encoding="utf-8"), path) == []
