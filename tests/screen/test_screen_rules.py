"""What the screen refuses, each in several spellings."""

import pytest

from kernel_smith.evaluation.screen import screen
from kernel_smith.records import Reason


@pytest.mark.parametrize(
    "text",
    [
        "import ctypes",
        "import ctypes as c",
        "from ctypes import CDLL",
        "import ctypes.util",
        "def f():\n    import cffi",
        "import subprocess",
        "from subprocess import run as r",
        "import socket, ssl",
        "import http.client",
        "from urllib.request import urlopen",
        "import requests",
        "import multiprocessing\nmultiprocessing.Process()",
        "from multiprocessing import Pool",
        "from multiprocessing import shared_memory",
        "import multiprocessing as mp\nmp.Queue()",
        "import threading\nthreading.Thread(target=print)",
        "from threading import Thread",
        "from threading import *",
        "import _thread",
        "from concurrent.futures import ThreadPoolExecutor",
        "import asyncio",
        "import signal",
        "import mmap",
        "import resource",
        "import shutil\nshutil.rmtree('x')",
        "import tempfile\ntempfile.NamedTemporaryFile()",
        "import pickle",
        "import importlib\nimportlib.import_module('os')",
        "from importlib import reload",
        "import importlib.machinery",
        "import builtins",
        "from unittest import mock",
        "from unittest.mock import patch",
        "import faulthandler",
        "import pty, fcntl",
        "import torch.multiprocessing as mp",
        "from torch import multiprocessing",
        "torch.multiprocessing.spawn(print)",
        "import torch.utils.benchmark",
        "from torch.profiler import profile",
        "torch.profiler.profile()",
        "from numpy import ctypeslib",
        "import kernel_smith.evaluation",
        "from kernel_smith import records",
        "from kernel_smith.evaluation.judge import clock",
        "from kernel_smith import *",
        "import kernel_smith\nkernel_smith.evaluation.judge.timing.host_clock",
        "try:\n    import subprocess\nexcept ImportError:\n    pass",
    ],
)
def test_modules_without_use_for_a_kernel(reasons, text):
    assert reasons(text)[0] is Reason.FORBIDDEN_IMPORT


@pytest.mark.parametrize(
    "text",
    [
        "exec('x = 1')",
        "eval('1')",
        "e = eval\ne('1')",
        "a = b = exec\nb('1')",
        "compile('1', '', 'eval')",
        "__import__('os')",
        "open('f')",
        "with open('f') as file: pass",
        "input()",
        "breakpoint()",
        "__builtins__['eval']('1')",
        "import io\nio.open('f')",
        "import os\nos.system('x')",
        "import os as o\no.system('x')",
        "from os import system",
        "from os import system as s\ns('x')",
        "from os import *",
        "import os\nf = os.popen\nf('x')",
        "import os\no = os\no.fork()",
        "import os\ngetattr(os, 'system')('x')",
        "import os\ngetattr(os, 'sys' + 'tem')('x')",
        "import os\nos.__dict__['system']('x')",
        "import os\nvars(os)['system']('x')",
        "import sys\nsys.modules['os'].system('x')",
        "import os\nos.sched_setaffinity(0, {1})",
        "import os\nos.putenv('A', 'b')",
        "import os\nos._exit(0)",
        "import os\n(o := os).kill(1, 9)",
        "import os\no, t = os, torch\no.kill(1, 9)",
        "import sys\ngetattr(sys, '_get' + 'frame')()",
        "torch.load('f')",
        "torch.save(1, 'f')",
        "from torch import load\nload('f')",
        "torch.hub.load('a', 'b')",
        "from torch.hub import load",
        "torch.ops.load_library('x.so')",
        "torch.classes.load_library('x.so')",
        "import numpy as np\nnp.load('f')",
        "from kernel_smith.inline import set_provider",
        "import kernel_smith.inline as ks\nks.set_provider(print)",
        "class Lazy(torch.Tensor): pass",
        "from torch import Tensor as T\nclass Lazy(T): pass",
        "B = torch.Tensor\nclass Lazy(B): pass",
        "class Lazy(nn.Parameter): pass",
        "Lazy = type('Lazy', (torch.Tensor,), {})",
        "torch.Tensor._make_subclass(torch.Tensor, torch.ones(1))",
    ],
)
def test_calls_without_use_for_a_kernel(reasons, text):
    assert reasons(text)[0] is Reason.FORBIDDEN_CALL


@pytest.mark.parametrize(
    "text",
    [
        "torch.allclose = print",
        "torch.nn.functional.relu = print",
        "F.relu = print",
        "nn.Module.__call__ = print",
        "torch.Tensor.__eq__ = lambda a, b: True",
        "import time\ntime.perf_counter = lambda: 0.0",
        "import time as t\nt.time = lambda: 0.0",
        "import torch as tt\ntt.allclose = print",
        "t = torch\nt.allclose = print",
        "t = torch\nu = t\nu.cuda.synchronize = print",
        "from torch import cuda\ncuda.synchronize = print",
        "from torch import Tensor\nTensor.item = print",
        "torch.allclose, y = print, 1",
        "torch.x += 1",
        "torch.x: int = 1",
        "del torch.allclose",
        "for torch.x in range(3): pass",
        "with print() as torch.x: pass",
        "def f():\n    torch.allclose = print",
        "def f():\n    import torch as q\n    q.allclose = print",
        "class A:\n    torch.allclose = print",
        "setattr(torch, 'allclose', print)",
        "setattr(torch, name, print)",
        "s = setattr\ns(F, 'relu', print)",
        "delattr(torch, 'allclose')",
        "object.__setattr__(torch, 'allclose', print)",
        "type.__setattr__(torch.Tensor, 'item', print)",
        "torch.__setattr__('allclose', print)",
        "torch.__dict__['allclose'] = print",
        "torch.__dict__.update(allclose=print)",
        "vars(torch)['allclose'] = print",
        "getattr(torch, 'cuda').synchronize = print",
        "import sys\nsys.modules['torch'] = None",
        "import sys\nsys.modules['torch'].allclose = print",
        "import sys\nsys.stdout = None",
        "torch.library.Library('aten', 'IMPL')",
        "from torch.library import Library\nLibrary('aten', 'IMPL')",
    ],
)
def test_changes_to_imported_modules(candidate, text):
    first = screen(candidate(text))[0]
    assert first.reason is Reason.MONKEYPATCH
    assert "belongs to an imported module" in first.message


@pytest.mark.parametrize(
    "text",
    [
        "torch.backends.cudnn.benchmark = True",
        "torch.backends.cuda.matmul.allow_tf32 = True",
        "from torch.backends import cudnn\ncudnn.enabled = False",
        "import torch.backends.cudnn as c\nsetattr(c, 'benchmark', True)",
        "torch._inductor.config.max_autotune = True",
        "torch.set_num_threads(8)",
        "from torch import set_num_threads as s\ns(8)",
        "f = torch.set_num_interop_threads\nf(2)",
        "torch.set_default_dtype(torch.float16)",
        "torch.use_deterministic_algorithms(True)",
        "torch.set_float32_matmul_precision('high')",
        "torch.backends.cuda.enable_flash_sdp(True)",
        "import os\nos.environ['OMP_NUM_THREADS'] = '8'",
        "import os\nos.environ.update({'LD_PRELOAD': 'x.so'})",
        "import os\nos.environ.update(OMP_NUM_THREADS='8')",
        "from os import environ as e\ne.setdefault('MKL_NUM_THREADS', '8')",
        "import os\ndel os.environ['KERNEL_SMITH_X']",
    ],
)
def test_switches_of_the_whole_process(candidate, text):
    first = screen(candidate(text))[0]
    assert first.reason is Reason.MONKEYPATCH
    assert "a switch of the whole process" in first.message


@pytest.mark.parametrize(
    "text",
    [
        "import sys\nsys._getframe(1)",
        "from sys import _getframe\n_getframe()",
        "from sys import _getframe as g",
        "from sys import *",
        "import sys as s\nf = s._getframe\nf()",
        "import sys\ngetattr(sys, '_getframe')()",
        "import sys\nsys._current_frames()",
        "import sys\nsys.settrace(print)",
        "import sys\nsys.setprofile(print)",
        "import inspect\ninspect.stack()",
        "import inspect as i\ni.currentframe()",
        "from inspect import stack",
        "from inspect import getsource as g",
        "import traceback\ntraceback.extract_stack()",
        "from traceback import walk_stack",
        "import gc\ngc.get_objects()",
        "from gc import get_referrers",
        "def f(e): return e.__traceback__.tb_frame",
        "def f(frame): return frame.f_back",
        "def f(frame): return frame.f_back.f_locals",
        "def f(g): return g.__closure__[0]",
        "def f(g): return g.__globals__",
        "object.__subclasses__()",
        "def f(x): return getattr(x, 'f_globals')",
    ],
)
def test_looking_at_the_caller(reasons, text):
    assert reasons(text)[0] is Reason.STACK_INSPECTION


@pytest.mark.parametrize(
    "model",
    [
        """
class ModelNew(nn.Module):
    def forward(self, x):
        try:
            return kernels.twice(x)
        except Exception:
            return torch.mul(x, 2)
""",
        """
class ModelNew(nn.Module):
    def forward(self, x):
        y = x * 2
        try:
            kernels.twice(x, y)
        except:
            pass
        return y
""",
        """
class ModelNew(nn.Module):
    def forward(self, x):
        try:
            raise KeyError
        except Exception:
            return F.relu(x)
""",
        """
class ModelNew(nn.Module):
    def forward(self, x):
        try:
            return kernels.twice(x)
        except RuntimeError:
            if x.numel():
                return F.relu(x)
            raise
""",
        """
def run(x):
    try:
        return kernels.twice(x)
    except (TypeError, ValueError):
        return x @ x
class ModelNew(nn.Module):
    def forward(self, x):
        return run(x)
""",
        """
def deeper(x):
    try:
        return kernels.twice(x)
    except Exception:
        return None
def run(x): return deeper(x)
class ModelNew(nn.Module):
    def forward(self, x): return self._go(x)
    def _go(self, x): return run(x)
""",
        """
class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        try:
            return kernels.twice(x)
        except Exception:
            return x * 2
class ModelNew(nn.Module):
    def forward(self, x): return Twice.apply(x)
""",
        """
class Base(nn.Module):
    def forward(self, x):
        try:
            return kernels.twice(x)
        except Exception:
            return x * 2
class ModelNew(Base): pass
""",
        """
class Net(nn.Module):
    def forward(self, x):
        try:
            return kernels.twice(x)
        except Exception:
            return x * 2
ModelNew = Net
""",
        """
import contextlib
class ModelNew(nn.Module):
    def forward(self, x):
        y = x * 2
        with contextlib.suppress(Exception):
            kernels.twice(x, y)
        return y
""",
        """
class ModelNew(nn.Module):
    def forward(self, x):
        def attempt():
            try:
                return kernels.twice(x)
            except* ValueError:
                y = F.relu(x)
            return y
        return attempt()
""",
    ],
    ids=range(11),
)
def test_catching_failures_behind_forward(reasons, model):
    assert reasons(model=model) == [Reason.FALLBACK]


@pytest.mark.parametrize(
    "text",
    [
        "try:\n    more = cpp(SOURCE)\nexcept Exception:\n    more = None",
        "try:\n    more = cpp(SOURCE)\nexcept:\n    pass",
        "def build():\n  try:\n    return cpp(SOURCE)\n  except RuntimeError:\n    return None",
        "c = cpp\ntry:\n    more = c(SOURCE)\nexcept (OSError, RuntimeError) as e:\n    print(e)",
        "from contextlib import suppress\nwith suppress(Exception):\n    more = cpp(SOURCE)",
    ],
)
def test_hiding_that_a_kernel_does_not_compile(candidate, text):
    (finding,) = screen(candidate(text))
    assert finding.reason is Reason.FALLBACK
    assert "compile" in finding.message


def test_a_finding_says_what_and_where(candidate):
    source = candidate("import os\nos.system('x')")
    (finding,) = screen(source, "mine.py")
    line = source.splitlines().index("os.system('x')") + 1
    assert finding.line == line
    assert finding.message == (
        f"mine.py:{line}: uses `os.system`, which reaches processes and files; "
        "a kernel has no use for it"
    )


def test_a_refused_module_is_reported_once(reasons):
    text = "import subprocess\nsubprocess.run('a')\nsubprocess.run('b')"
    assert reasons(text) == [Reason.FORBIDDEN_IMPORT]
