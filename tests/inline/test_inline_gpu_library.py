"""Libraries of GPU dialects: prototypes, streams, and tensors on the right device."""

import copy
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from kernel_smith import inline
from kernel_smith.inline import Library, cuda, hip, maca, set_provider
from kernel_smith.inline.signature import prototypes

# What a launcher looks like to its caller. It tells where its arguments came to.
SOURCE = """
#include <cstdint>
typedef void* cudaStream_t;
extern "C" int64_t launch(const float* x, float* y, int64_t n, cudaStream_t stream) {
    return n + (int64_t)stream + (x ? 10 : 0) + (y ? 20 : 0);
}
extern "C" int64_t without(const float* x) { return (int64_t)x; }
extern "C" int64_t bare(cudaStream_t stream) { return (int64_t)stream; }
"""
PROTOTYPES = SOURCE.replace("typedef void* cudaStream_t;", "")


class GpuTensor:
    """What the library asks of a tensor, on a GPU that need not be there."""

    is_cpu = False
    is_cuda = True

    def __init__(self, index: int = 0, address: int = 4096) -> None:
        self._index = index
        self._address = address
        self.device = SimpleNamespace(type="cuda")

    def get_device(self) -> int:
        return self._index

    def data_ptr(self) -> int:
        return self._address


@pytest.fixture(autouse=True)
def streams(monkeypatch: pytest.MonkeyPatch) -> dict[int, int]:
    """Torch's current stream on each GPU."""
    current = {0: 1000, 1: 2000}
    monkeypatch.setattr(torch._C, "_cuda_getCurrentRawStream", current.__getitem__, raising=False)
    return current


@pytest.fixture
def path(compile_path: Callable[[str], Path]) -> Path:
    return compile_path(SOURCE)


@pytest.fixture
def on_gpu(path: Path) -> Library:
    return Library(path, prototypes(PROTOTYPES), device="cuda")


@pytest.fixture
def on_cpu(path: Path) -> Library:
    return Library(path, prototypes(PROTOTYPES))


@pytest.fixture
def local_provider() -> Iterator[None]:
    yield
    set_provider(None)


def test_the_stream_is_torchs_current_one(on_gpu: Library, streams: dict[int, int]) -> None:
    assert on_gpu.launch(GpuTensor(), GpuTensor(), 3) == 1033
    assert on_gpu.launch(None, GpuTensor(1), 3) == 2023
    streams[0] = 5000
    assert on_gpu.launch(GpuTensor(), None, 0) == 5010


def test_the_stream_is_null_without_a_tensor_and_on_the_cpu(
    on_gpu: Library, on_cpu: Library
) -> None:
    assert on_gpu.launch(None, None, 3) == 3
    assert on_gpu.bare() == 0
    assert on_cpu.launch(torch.ones(1), torch.ones(1), 3) == 33
    assert on_cpu.bare() == 0


def test_arguments_that_need_a_closer_look_get_the_stream_too(on_gpu: Library) -> None:
    class Number:
        def __index__(self) -> int:
            return 3

    assert on_gpu.launch(GpuTensor(1), None, Number()) == 2013


def test_another_way_to_the_stream_is_taken_where_torch_has_not_the_short_one(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(torch._C, "_cuda_getCurrentRawStream")
    monkeypatch.setattr(
        torch.cuda, "current_stream", lambda index: SimpleNamespace(cuda_stream=7000 + index)
    )
    library = Library(path, prototypes(PROTOTYPES), device="cuda")
    assert library.launch(GpuTensor(1), None, 0) == 7011


def test_a_tensor_on_the_other_device_is_refused(on_gpu: Library, on_cpu: Library) -> None:
    with pytest.raises(TypeError, match=r"tensor on the GPU, got one on cpu.*built.*the GPU"):
        on_gpu.launch(torch.ones(1), None, 1)
    with pytest.raises(TypeError, match=r"tensor on the GPU, got one on cpu"):
        on_gpu.launch(GpuTensor(), torch.ones(1), 1)
    with pytest.raises(TypeError, match=r"tensor on the CPU, got one on cuda.*built.*the CPU"):
        on_cpu.launch(GpuTensor(), None, 1)


def test_tensors_of_two_gpus_are_refused(on_gpu: Library) -> None:
    with pytest.raises(TypeError, match=r"one GPU, got tensors on cuda:0 and cuda:1; .*launch\("):
        on_gpu.launch(GpuTensor(1), GpuTensor(0), 1)


def test_the_stream_is_not_an_argument(on_gpu: Library) -> None:
    with pytest.raises(TypeError, match=r"takes 3 arguments, got 4.*cudaStream_t stream\)"):
        on_gpu.launch(GpuTensor(), None, 1, 0)


def test_functions_without_a_stream_take_tensors_of_the_gpu(on_gpu: Library) -> None:
    assert on_gpu.without(GpuTensor(address=4097)) == 4097
    assert copy.deepcopy(on_gpu).without(GpuTensor(address=4097)) == 4097


@pytest.mark.parametrize("stream", ["cudaStream_t", "mcStream_t", "hipStream_t"])
@pytest.mark.parametrize("declared", ["{} stream", "{}", "const {} s", "::{} s", "{} s = nullptr"])
def test_a_stream_at_the_end_is_not_the_callers(stream: str, declared: str) -> None:
    source = f'extern "C" void f(half* x, {declared.format(stream)}) {{}}'
    prototype = prototypes(source)["f"]
    assert prototype.takes_stream
    assert [parameter.name for parameter in prototype.parameters] == ["x"]
    assert not prototype.unsupported
    assert stream in prototype.text


def test_a_stream_elsewhere_or_behind_a_pointer_is_none() -> None:
    first = prototypes('extern "C" void f(mcStream_t s, float* x) {}')["f"]
    assert not first.takes_stream
    assert first.unsupported == ("parameter `mcStream_t s`",)
    pointer = prototypes('extern "C" void f(hipStream_t* s) {}')["f"]
    assert not pointer.takes_stream
    assert pointer.parameters[0].is_pointer


def test_an_alias_of_a_stream_is_one() -> None:
    source = 'using Stream = hipStream_t;\nextern "C" void f(int n, Stream s) {}'
    assert prototypes(source)["f"].takes_stream


def test_kernels_are_not_exported_and_launchers_are() -> None:
    source = """
    extern "C" __global__ void __launch_bounds__(256, 2) kernel(const float* x) {}
    extern "C" __device__ float helper(float x) { return x; }
    extern "C" {
        __global__ void other(float* x) {}
        __forceinline__ __device__ int third(int x) { return x; }
        __host__ __device__ int both(int x) { return x; }
        mcError_t launch(const __nv_bfloat16* __restrict__ x, __half* y, const half2* z,
                         maca_bfloat16* w, unsigned long long n, mcStream_t stream) {
            kernel<<<1, 256, 0, stream>>>(nullptr);
            return mcGetLastError();
        }
    }
    template <int N> __global__ void __launch_bounds__(N) made(float* x) { }
    """
    found = prototypes(source)
    assert sorted(found) == ["both", "launch"]
    launch = found["launch"]
    assert not launch.unsupported
    assert launch.takes_stream
    assert [parameter.is_pointer for parameter in launch.parameters] == [True] * 4 + [False]
    assert [parameter.name for parameter in launch.parameters] == ["x", "y", "z", "w", "n"]


@pytest.mark.parametrize("helper", [cuda, maca, hip])
@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.usefixtures("local_provider")
def test_a_provider_gets_the_dialect_and_says_where_tensors_are(
    path: Path, helper: Callable[..., Library], device: str
) -> None:
    asked = []

    def provider(dialect: str, source: str, flags: tuple[str, ...]) -> str:
        asked.append((dialect, source, flags))
        return str(path)

    set_provider(provider, device)  # type: ignore[arg-type]
    library = helper(PROTOTYPES, flags=["-DN=1"])
    assert asked == [(helper.__name__, PROTOTYPES, ("-DN=1",))]
    tensor = torch.ones(1) if device == "cpu" else GpuTensor()
    assert library.launch(tensor, None, 0) == (10 if device == "cpu" else 1010)


@pytest.mark.usefixtures("local_provider")
def test_cpp_takes_tensors_on_the_cpu_whatever_the_provider_builds_for_gpus(path: Path) -> None:
    set_provider(lambda dialect, source, flags: str(path), "cuda")
    assert inline.cpp(PROTOTYPES).launch(torch.ones(1), None, 0) == 10


@pytest.mark.parametrize(
    ("version", "hip_version", "available", "routes"),
    [
        ("2.11.0+cu130", None, True, {"cuda": "native", "maca": "nvidia", "hip": "nvidia"}),
        ("2.11.0+rocm6.4", "6.4", True, {"cuda": "cpu", "maca": "cpu", "hip": "native"}),
        ("2.6.0+metax2.32", None, True, {"cuda": "cpu", "maca": "native", "hip": "cpu"}),
        ("2.11.0+cpu", None, False, {"cuda": "cpu", "maca": "cpu", "hip": "cpu"}),
    ],
)
def test_outside_of_the_evaluator_the_route_is_that_of_the_gpu_here(
    monkeypatch: pytest.MonkeyPatch,
    version: str,
    hip_version: str | None,
    available: bool,
    routes: dict[str, str],
) -> None:
    from kernel_smith.inline.local import route_here

    monkeypatch.setattr(torch, "__version__", version)
    monkeypatch.setattr(torch.version, "hip", hip_version)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: available)
    assert {dialect: route_here(dialect) for dialect in routes} == routes
    assert route_here("cpp") == "native"


def test_the_text_must_be_text() -> None:
    with pytest.raises(TypeError, match="text of a kernel"):
        cuda(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="sequence of strings"):
        hip("", flags="-O2")
