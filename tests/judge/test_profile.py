"""Sampling real child processes, and attributing samples to the files that the code came from."""

from __future__ import annotations

import ctypes
import errno
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_smith.evaluation.judge.evidence import perf_events as perf_events
from kernel_smith.evaluation.judge.evidence.perf_events import (
    FIRST_KERNEL_ADDRESS,
    OTHER_PROCESS,
    Sampler,
    SamplerUnavailable,
    available,
)
from kernel_smith.evaluation.judge.evidence.profile import attribute, read_maps
from kernel_smith.records import KernelShare

pytestmark = pytest.mark.timing

BURN = """
double burn(long turns) {
    volatile double x = 1.0;
    for (long i = 0; i < turns; ++i) x = x * 1.0000001 + 0.5;
    return x;
}
"""

PRELUDE = """
import ctypes, sys, threading
def load(path):
    library = ctypes.CDLL(path)
    library.burn.argtypes, library.burn.restype = [ctypes.c_long], ctypes.c_double
    return library.burn
"""

UNAVAILABLE = available()
CORES = os.sched_getaffinity(0)
USER_ADDRESSES = st.integers(1, FIRST_KERNEL_ADDRESS - 1)
ADDRESSES = st.one_of(USER_ADDRESSES, st.integers(0, 2**64 - 1), st.just(OTHER_PROCESS))

needs_perf = pytest.mark.skipif(UNAVAILABLE is not None, reason=f"no sampling: {UNAVAILABLE}")


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The same code as an authored kernel, and as a stray file that calls itself libm."""
    folder = tmp_path_factory.mktemp("objects")
    (folder / "burn.c").write_text(BURN)
    paths = folder / "kernel.so", folder / "libm.so.6"
    for path in paths:
        command = ["gcc", "-O2", "-shared", "-fPIC", folder / "burn.c", "-o", path]
        subprocess.run(command, check=True)
    return paths


@contextmanager
def child(code: str, *arguments: object) -> Iterator[subprocess.Popen[str]]:
    """A Python child that has printed `ready`; it may go on when it reads a line."""
    process = subprocess.Popen(
        [sys.executable, "-c", PRELUDE + textwrap.dedent(code), *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    with process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


def go_on(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def collect(sampler: Sampler, wanted: int) -> list[int]:
    """At least `wanted` samples, unless they fail to arrive within a minute."""
    samples: list[int] = []
    deadline = time.monotonic() + 60
    while len(samples) < wanted and time.monotonic() < deadline:
        sampler.start()
        time.sleep(0.05)
        sampler.stop()
        samples += sampler.drain()
    assert len(samples) >= wanted
    return samples


def shares_of(samples: list[int], pid: int, authored: Path) -> dict[str, KernelShare]:
    shares = attribute(samples, read_maps(pid), lambda path: path == str(authored))
    return {share.module: share for share in shares}


# --- sampling ---------------------------------------------------------------------------------


@needs_perf
def test_time_is_attributed_in_proportion_whatever_files_call_themselves(
    objects: tuple[Path, Path],
) -> None:
    code = """
        kernel, stray = load(sys.argv[1]), load(sys.argv[2])
        print("ready", flush=True)
        while True:
            kernel(300_000)
            stray(100_000)
    """
    with child(code, *objects) as process, Sampler(process.pid, CORES) as sampler:
        shares = shares_of(collect(sampler, 1000), process.pid, objects[0])
    assert next(iter(shares)) == "kernel.so"
    assert shares["kernel.so"].origin == "authored"
    assert shares["kernel.so"].share == pytest.approx(0.75, abs=0.1)
    assert shares["libm.so.6"].origin == "unknown"
    assert shares["libm.so.6"].share == pytest.approx(0.25, abs=0.1)


@needs_perf
def test_a_torch_matmul_is_library_time(objects: tuple[Path, Path]) -> None:
    code = """
        import torch
        a = torch.randn(512, 512)
        a @ a
        print("ready", flush=True)
        while True:
            a @ a
    """
    with child(code) as process, Sampler(process.pid, CORES) as sampler:
        shares = shares_of(collect(sampler, 500), process.pid, objects[0])
    library = sum(share.share for share in shares.values() if share.origin == "library")
    assert library > 0.8
    assert "authored" not in {share.origin for share in shares.values()}


@needs_perf
def test_pure_python_is_interpreter_time(objects: tuple[Path, Path]) -> None:
    code = """
        print("ready", flush=True)
        while True:
            sum(i * i for i in range(1000))
    """
    with child(code) as process, Sampler(process.pid, CORES) as sampler:
        shares = shares_of(collect(sampler, 500), process.pid, objects[0])
    assert next(iter(shares.values())).origin == "interpreter"


@needs_perf
@pytest.mark.parametrize("start", ["before", "after"])
def test_threads_started_before_and_after_opening_are_seen(
    objects: tuple[Path, Path], start: str
) -> None:
    code = """
        kernel, begin = load(sys.argv[1]), threading.Event()
        def work():
            begin.wait()
            while True:
                kernel(300_000)
        thread = threading.Thread(target=work)
        if sys.argv[2] == "before":
            thread.start()
        print("ready", flush=True)
        sys.stdin.readline()
        if sys.argv[2] == "after":
            thread.start()
        begin.set()
        sys.stdin.readline()
    """
    with child(code, objects[0], start) as process, Sampler(process.pid, CORES) as sampler:
        go_on(process)
        shares = shares_of(collect(sampler, 500), process.pid, objects[0])
    assert shares["kernel.so"].share > 0.8


@needs_perf
def test_each_thread_is_sampled_once(objects: tuple[Path, Path]) -> None:
    code = """
        import time
        kernel = load(sys.argv[1])
        threading.Thread(target=sys.stdin.readline).start()
        print("ready", flush=True)
        begin = time.thread_time()
        while True:
            kernel(100_000)
            if time.thread_time() - begin > 0.5:
                break
        print(flush=True)
        threading.Event().wait()
    """
    with child(code, objects[0]) as process, Sampler(process.pid, CORES) as sampler:
        sampler.start()
        assert process.stdout is not None
        assert process.stdout.readline() == "\n"
        # At most 4400 Hz of half a second, and as much again if any event were opened twice.
        assert 0 < len(sampler.drain()) < 3300


@needs_perf
def test_a_forked_process_counts_as_another_one(objects: tuple[Path, Path]) -> None:
    code = """
        import os
        kernel = load(sys.argv[1])
        print("ready", flush=True)
        sys.stdin.readline()
        forked = os.fork()
        while not forked and os.getppid() != 1:
            kernel(300_000)
        sys.stdin.readline()
        os.kill(forked, 9)
        os.waitpid(forked, 0)
        print("done", flush=True)
    """
    with child(code, objects[0]) as process, Sampler(process.pid, CORES) as sampler:
        go_on(process)
        try:
            shares = shares_of(collect(sampler, 500), process.pid, objects[0])
        finally:
            go_on(process)
            assert process.stdout is not None
            assert process.stdout.readline() == "done\n"
    assert shares["[other process]"].origin == "unknown"
    assert shares["[other process]"].share > 0.8
    assert "kernel.so" not in shares


@needs_perf
def test_an_idle_process_gives_no_samples() -> None:
    with child('print("ready", flush=True)\nsys.stdin.readline()') as process:
        while state_of(process.pid) != "S":  # on its way from print to the wait
            time.sleep(0.01)
        with Sampler(process.pid, CORES) as sampler:
            sampler.start()
            time.sleep(0.2)
            sampler.stop()
            assert sampler.drain() == []


@needs_perf
def test_samples_arrive_only_between_start_and_stop() -> None:
    with (
        child('print("ready", flush=True)\nwhile True: pass') as process,
        Sampler(process.pid, CORES) as sampler,
    ):
        time.sleep(0.1)
        assert sampler.drain() == []
        assert collect(sampler, 100)
        time.sleep(0.1)
        assert sampler.drain() == []
        assert collect(sampler, 100)


@needs_perf
def test_a_process_that_dies_leaves_its_samples_and_breaks_nothing() -> None:
    with child('print("ready", flush=True)\nwhile True: pass') as process:
        sampler = Sampler(process.pid, CORES)
        sampler.start()
        time.sleep(1)  # which is some of its turns on a slow machine, too
        process.kill()
        while state_of(process.pid) != "Z":
            time.sleep(0.01)
        with pytest.raises(SamplerUnavailable, match="has ended"):
            Sampler(process.pid, CORES)
        process.wait()
        assert sampler.drain()
        sampler.stop()
        sampler.start()
        assert sampler.drain() == []
        sampler.close()
        with pytest.raises(SamplerUnavailable, match="has ended"):
            Sampler(process.pid, CORES)


@needs_perf
def test_a_full_ring_buffer_loses_samples_but_not_the_thread(objects: tuple[Path, Path]) -> None:
    code = """
        kernel = load(sys.argv[1])
        print("ready", flush=True)
        while True:
            kernel(300_000)
    """
    with child(code, objects[0]) as process, Sampler(process.pid, CORES, 100_000) as sampler:
        sampler.start()
        deadline = time.monotonic() + 60
        drained: list[int] = []
        while not sampler.lost and time.monotonic() < deadline:
            time.sleep(1)
            drained += sampler.drain()
        sampler.stop()
        sampler.drain()
        assert sampler.lost
        for samples in drained, collect(sampler, 500):
            assert shares_of(samples, process.pid, objects[0])["kernel.so"].share > 0.8


@needs_perf
def test_closing_frees_every_descriptor_and_may_be_repeated() -> None:
    before = os.listdir("/proc/self/fd")
    with child('print("ready", flush=True)\nsys.stdin.readline()') as process:
        sampler = Sampler(process.pid, CORES)
        sampler.close()
        sampler.close()
    assert os.listdir("/proc/self/fd") == before


@needs_perf
def test_an_impossible_core_is_refused_with_a_reason() -> None:
    before = os.listdir("/proc/self/fd")
    with pytest.raises(SamplerUnavailable, match="perf_event_open failed"):
        Sampler(os.getpid(), [min(CORES), 1 << 20])
    assert os.listdir("/proc/self/fd") == before


@needs_perf
def test_without_permission_for_the_kernel_user_code_is_still_sampled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    genuine = perf_events._perf_event_open

    def user_only(thread: int, core: int, period: int, with_kernel: bool) -> int:
        if with_kernel:
            raise PermissionError(errno.EACCES, "denied")
        return genuine(thread, core, period, with_kernel)

    monkeypatch.setattr(perf_events, "_perf_event_open", user_only)
    code = """
        import os
        print("ready", flush=True)
        while True:
            os.stat("/")
    """
    with child(code) as process, Sampler(process.pid, CORES) as sampler:
        samples = collect(sampler, 300)
    assert not sampler.sees_kernel
    assert max(samples) < FIRST_KERNEL_ADDRESS


@pytest.mark.parametrize(
    ("code", "paranoia", "remedy"),
    [
        (errno.EACCES, 4, "sysctl kernel.perf_event_paranoid=2"),
        (errno.EPERM, 2, "--cap-add PERFMON"),
        (errno.EPERM, None, "--cap-add PERFMON"),
        (errno.ENOSYS, None, "CONFIG_PERF_EVENTS"),
        (errno.EMFILE, 2, "ulimit -n"),
    ],
)
def test_a_refusal_names_the_remedy(
    monkeypatch: pytest.MonkeyPatch, code: int, paranoia: int | None, remedy: str
) -> None:
    def refuse(*_: object) -> int:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(perf_events, "_perf_event_open", refuse)
    monkeypatch.setattr(perf_events, "_paranoia", lambda: paranoia)
    with pytest.raises(SamplerUnavailable, match=remedy):
        Sampler(os.getpid(), CORES)
    assert remedy in (available() or "")


def test_another_architecture_is_refused_with_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(perf_events.platform, "machine", lambda: "riscv64")
    with pytest.raises(SamplerUnavailable, match="x86_64 or aarch64"):
        Sampler(os.getpid(), CORES)


def test_a_process_that_never_stops_starting_threads_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    snapshots = iter(range(10**6))
    monkeypatch.setattr(perf_events, "_threads", lambda pid: [next(snapshots)])
    monkeypatch.setattr(perf_events.Sampler, "_open_core", lambda *_: None)
    with pytest.raises(SamplerUnavailable, match="keeps starting threads"):
        Sampler(os.getpid(), CORES)


# --- attribution ------------------------------------------------------------------------------


def origin_of(path: str, authored: Callable[[str], bool] = lambda path: False) -> tuple[str, str]:
    (share,) = attribute([0x5010], f"5000-6000 r-xp 00000000 fe:00 1234    {path}\n", authored)
    return share.module, share.origin


def torch_folder() -> str:
    spec = find_spec("torch")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    return os.path.realpath(spec.submodule_search_locations[0])


SITE_PACKAGES = os.path.dirname(torch_folder())


@pytest.mark.parametrize(
    ("path", "module", "origin"),
    [
        (f"{torch_folder()}/lib/libtorch_cpu.so", "libtorch_cpu.so", "library"),
        (f"{torch_folder()}/lib/libopenblas.so.0", "libopenblas.so.0", "library"),
        (f"{torch_folder()}/lib/libarm_compute.so", "libarm_compute.so", "library"),
        (f"{SITE_PACKAGES}/mine/_fast.so", "_fast.so", "library"),
        (f"{sys.prefix}/lib/libmkl_core.so.2", "libmkl_core.so.2", "library"),
        ("/usr/lib/x86_64-linux-gnu/libblas.so.3", "libblas.so.3", "library"),
        (f"{torch_folder()}/lib/libgomp.so.1", "libgomp.so.1", "runtime"),
        (f"{SITE_PACKAGES}/torch.libs/libgomp-d22c30c5.so.1", "libgomp-d22c30c5.so.1", "runtime"),
        ("/usr/lib/aarch64-linux-gnu/libc.so.6", "libc.so.6", "runtime"),
        ("/usr/lib/x86_64-linux-gnu/libm-2.31.so", "libm-2.31.so", "runtime"),
        ("/usr/lib/libstdc++.so.6.0.30", "libstdc++.so.6.0.30", "runtime"),
        ("/usr/lib64/ld-linux-x86-64.so.2", "ld-linux-x86-64.so.2", "runtime"),
        ("/usr/lib/libc.so.6 (deleted)", "libc.so.6", "runtime"),
        ("[vdso]", "[vdso]", "runtime"),
        (os.path.realpath(sys.executable), Path(sys.executable).resolve().name, "interpreter"),
        ("/usr/lib/libpython3.12.so.1.0", "libpython3.12.so.1.0", "interpreter"),
        ("/usr/lib/python3.12/lib-dynload/math.so", "math.so", "interpreter"),
        ("/scratch/libm.so.6", "libm.so.6", "unknown"),
        ("/scratch/usr/lib/libc.so.6", "libc.so.6", "unknown"),
        ("/usr/lib-of-mine/libc.so.6", "libc.so.6", "unknown"),
        ("/scratch/libtorch_cpu.so", "libtorch_cpu.so", "unknown"),
        ("/scratch/lib-dynload/math.so", "math.so", "unknown"),
        ("/scratch/\x1b[31mred.so", "[anonymous code]", "unknown"),
        ("/scratch/removed.so (deleted)", "[anonymous code]", "unknown"),
        ("/memfd:/usr/lib/libc.so.6 (deleted)", "[anonymous code]", "unknown"),
        ("usr/lib/libc.so.6", "[anonymous code]", "unknown"),
        ("[heap]", "[anonymous code]", "unknown"),
        ("[anon:vdso]", "[anonymous code]", "unknown"),
        ("", "[anonymous code]", "unknown"),
    ],
)
def test_the_folder_decides_before_the_name(path: str, module: str, origin: str) -> None:
    assert origin_of(path) == (module, origin)


@pytest.mark.parametrize("path", ["/scratch/k.so", "/usr/lib/libm.so.6", "/memfd:k (deleted)"])
def test_what_the_judge_calls_authored_is_authored(path: str) -> None:
    assert origin_of(path, lambda asked: asked == path) == (Path(path).name, "authored")


def test_ranges_of_one_module_are_merged_and_the_largest_share_comes_first() -> None:
    maps = (
        "1000-2000 r-xp 00000000 fe:00 1 /k/kernel.so\n"
        "2000-3000 r--p 00000000 fe:00 1 /k/kernel.so\n"
        "4000-5000 r-xp 00000000 00:00 0\n"
    )
    ips = [0x4000, FIRST_KERNEL_ADDRESS, 0x1000, 0x1FFF, 0x2000, 0x2FFF, 0x4FFF, 0x5000]
    shares = attribute(ips, maps, lambda path: path == "/k/kernel.so")
    assert [(share.module, share.samples) for share in shares] == [
        ("kernel.so", 4),
        ("[anonymous code]", 3),
        ("[kernel]", 1),
    ]
    assert [share.share for share in shares] == [0.5, 0.375, 0.125]


def test_no_samples_give_no_shares() -> None:
    assert attribute([], "1000-2000 r-xp 00000000 fe:00 1 /k/kernel.so", bool) == ()


def test_a_file_name_cannot_forge_lines_of_the_map(
    objects: tuple[Path, Path], tmp_path: Path
) -> None:
    forged = "0-7fffffffffffffff r-xp 00000000 00:00 0 \\usr\\lib\\libforged.so"
    code = """
        import shutil
        shutil.copy(sys.argv[1], sys.argv[2])
        load(sys.argv[2])
        print("ready", flush=True)
        sys.stdin.readline()
    """
    with child(code, objects[0], tmp_path / f"\r{forged}\r") as process:
        maps = read_maps(process.pid)
    assert forged in maps
    assert not [line for line in maps.split("\n") if line.startswith("0-7fff")]
    (share,) = attribute([0x1000], maps, bool)
    assert share.module == "[anonymous code]"


def test_our_own_map_names_the_code_we_run() -> None:
    address = ctypes.cast(ctypes.CDLL(None).getpid, ctypes.c_void_p).value
    assert address is not None
    (share,) = attribute([address], read_maps(os.getpid()), lambda path: False)
    assert share.origin == "runtime"


@st.composite
def tidy_maps(draw: st.DrawFn) -> tuple[str, list[tuple[int, int]]]:
    """A well-formed map of authored ranges that do not overlap, and those ranges."""
    edges = sorted(draw(st.sets(USER_ADDRESSES, min_size=2, max_size=20)))
    ranges = list(zip(edges[::2], edges[1::2], strict=False))
    lines = [f"{a:08x}-{b:08x} r-xp 00000000 fe:00 7 /k/kernel.so\n" for a, b in ranges]
    return "".join(draw(st.permutations(lines))), ranges


@given(tidy_maps(), st.data())
def test_a_sample_is_authored_exactly_when_it_lies_in_an_authored_range(
    tidy: tuple[str, list[tuple[int, int]]], data: st.DataObject
) -> None:
    maps, ranges = tidy
    near = st.sampled_from([edge + by for pair in ranges for edge in pair for by in (-1, 0, 1)])
    ips = data.draw(st.lists(st.one_of(near, ADDRESSES), min_size=1))
    shares = attribute(ips, maps, lambda path: path == "/k/kernel.so")
    counted = sum(share.samples for share in shares if share.origin == "authored")
    assert counted == sum(any(a <= ip < b for a, b in ranges) for ip in ips)


MALFORMED_LINES = st.one_of(
    st.text(),
    st.builds(
        "{}-{} {} {} {} {} {}".format,
        *[st.one_of(st.text("0123456789abcdefxG-", max_size=20), ADDRESSES.map("{:x}".format))] * 2,
        *[st.text(max_size=5)] * 4,
        st.one_of(st.text(), st.sampled_from(["/k/kernel.so", "[vdso]", "/", "//", "/usr/lib/"])),
    ),
)


@given(
    st.lists(st.one_of(ADDRESSES, st.integers()), min_size=1),
    st.lists(MALFORMED_LINES).map("\n".join),
    st.booleans(),
)
def test_any_map_gives_shares_that_sum_to_one(ips: list[int], maps: str, authored: bool) -> None:
    shares = attribute(ips, maps, lambda path: authored)
    assert sum(share.samples for share in shares) == len(ips)
    assert sum(share.share for share in shares) == pytest.approx(1)
    assert all(0 < share.share <= 1 for share in shares)
    assert [share.share for share in shares] == sorted(
        (share.share for share in shares), reverse=True
    )
    assert len({(share.module, share.origin) for share in shares}) == len(shares)
