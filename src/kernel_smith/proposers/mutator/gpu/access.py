"""Edits of which thread has which elements: loops over the grid, and packs of neighbours."""

from __future__ import annotations

from collections.abc import Iterator

from kernel_smith.proposers.mutator.cpp.text import replaced
from kernel_smith.proposers.mutator.edit import Site, Splice
from kernel_smith.proposers.mutator.gpu.bodies import root
from kernel_smith.proposers.mutator.gpu.maps import ElementMap, element_maps
from kernel_smith.proposers.mutator.gpu.packs import helper, packs_of
from kernel_smith.proposers.mutator.gpu.strided import strided_loops
from kernel_smith.proposers.mutator.gpu.text import GpuText, gpu_edit

# What the runtime calls the number of multiprocessors, where that is certain.
_COUNT_QUERY = {
    "cuda": "cudaDevAttrMultiProcessorCount",
    "hip": "hipDeviceAttributeMultiprocessorCount",
}
_SIZES = (16, 32)
_SIGNATURE = "static int64_t most_blocks(int64_t blocks, int64_t per_multiprocessor)"


@gpu_edit(
    "grid-stride",
    "Give each thread several elements, a grid apart, and launch fewer blocks.",
)
def grid_stride(text: GpuText) -> Iterator[Site]:
    for found in element_maps(text):
        loop = (_looped(found), *text.include("cstdint"))
        for share in (2, 4, 8):
            grid = f"({{grid}} + {share - 1}) / {share}"
            yield Site(found.kernel.name, (*loop, *found.with_grids(grid)), f"{share} elements")
        for blocks in (8, 16) if _can_count_blocks(text) else ():
            grid = f"most_blocks({{grid}}, {blocks})"
            splices = (*loop, *_most_blocks(found), *found.with_grids(grid))
            yield Site(found.kernel.name, splices, f"{blocks} blocks per multiprocessor")


@gpu_edit(
    "pack-elements",
    "Give each thread neighbouring elements, moved by one access where the address allows it.",
)
def pack_elements(text: GpuText) -> Iterator[Site]:
    for found in element_maps(text):
        packs = packs_of(found.body, found.variable)
        if packs is None or packs.write is None:
            continue
        behind = root(found.kernel, packs.write.pointer, packs.write.place)
        target = found.kernel.parameters.index(behind) if behind is not None else 0
        pad = text.indent(found.declaration)
        for size in _SIZES:
            stride = found.stride
            code = packs.loop(found.index, stride, found.end, found.type, size, pad)
            grids = []
            for launch in found.kernel.launches:
                given = text.of(launch.arguments[target])
                grid = f"packed_blocks<{size}>({text.of(launch.grid)}, {given})"
                grids.append(replaced(launch.grid, grid))
            splices = (found.replaced_by(code), *helper(text), *grids)
            yield Site(found.kernel.name, splices, f"{size} bytes")


@gpu_edit(
    "pack-loop",
    "Let threads that take turns at elements take packs of neighbours, moved by one access where "
    "the address allows it. Sums may differ in the last digits.",
)
def pack_loop(text: GpuText) -> Iterator[Site]:
    for strided in strided_loops(text):
        loop = strided.loop
        if not strided.can_be_shared_out_anew():
            continue
        packs = packs_of(strided.body, loop.variable)
        if packs is None:
            continue
        for size in _SIZES:
            pad = text.indent(loop.node)
            code = packs.loop(loop.start, loop.step, loop.end, loop.type, size, pad)
            yield Site(strided.place, (replaced(loop.node, code), *helper(text)), f"{size} bytes")


def _looped(found: ElementMap) -> Splice:
    text, pad = found.kernel.text, found.kernel.text.indent(found.declaration)
    nodes = found.body.nodes
    old = text.indent(nodes[0])
    body = text.data[nodes[0].start_byte : nodes[-1].end_byte].decode().split("\n")
    lines = [body[0], *(f"{pad}    {line.removeprefix(old)}" for line in body[1:])]
    v, inner = found.variable, "\n".join(lines)
    head = f"for ({found.type} {v} = {found.index}; {v} < {found.end};"
    head += f"\n{pad}     {v} += {found.stride}) {{"
    return found.replaced_by(f"{head}\n{pad}    {inner}\n{pad}}}")


def _can_count_blocks(text: GpuText) -> bool:
    free = _SIGNATURE in text.text or "most_blocks" not in text.text
    return text.dialect in _COUNT_QUERY and free


def _most_blocks(found: ElementMap) -> tuple[Splice, ...]:
    """Return a function for launchers: a grid that fills the GPU a few times, if so many are
    needed."""
    text = found.kernel.text
    if _SIGNATURE in text.text:
        return ()
    code = f"""
// As many blocks as asked for, but at most so many for each multiprocessor.
{_SIGNATURE} {{
    static const int64_t multiprocessors = [] {{
        int device = 0, count = 1;
        {text.dialect}GetDevice(&device);
        {text.dialect}DeviceGetAttribute(&count, {_COUNT_QUERY[text.dialect]}, device);
        return count;
    }}();
    const int64_t most = multiprocessors * per_multiprocessor;
    return blocks < most ? blocks : most;
}}

"""
    top = found.kernel.node
    while top.parent is not None and top.parent.type != "translation_unit":
        top = top.parent
    return (Splice(top.start_byte, top.start_byte, code.lstrip("\n")),)
