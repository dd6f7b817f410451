"""The smallest useful kernel, for warming Triton up."""

import triton
import triton.language as tl


@triton.jit  # type: ignore[untyped-decorator]
def copy_kernel(source, target, count, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def] # noqa: N803
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(source + places, mask=places < count)
    tl.store(target + places, values, mask=places < count)
