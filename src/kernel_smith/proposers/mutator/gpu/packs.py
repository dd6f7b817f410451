"""Loops that move several neighbouring elements by one access of up to 16 bytes."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tree_sitter import Node

from kernel_smith.proposers.mutator.cpp.names import Declared
from kernel_smith.proposers.mutator.cpp.text import inside, replaced, walk
from kernel_smith.proposers.mutator.edit import Splice, splice
from kernel_smith.proposers.mutator.gpu.bodies import Body, Write, root, subscript_index
from kernel_smith.proposers.mutator.gpu.text import GpuText

PACK = """
// Neighbouring elements that are moved together.
template <typename T, int N>
struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) Pack {
    T values[N];
};

template <int N, typename T>
__device__ bool fits_pack(const T* place) {
    return reinterpret_cast<uintptr_t>(place) % alignof(Pack<T, N>) == 0;
}

// How many blocks it takes if every thread has a pack of so many bytes.
template <int Bytes, typename T>
int64_t packed_blocks(int64_t blocks, const T*) {
    constexpr int64_t elements = Bytes / sizeof(T);
    return (blocks + elements - 1) / elements;
}
"""

_CONDITIONAL = {
    "conditional_expression",
    "if_statement",
    "for_statement",
    "while_statement",
    "do_statement",
    "switch_statement",
    "case_statement",
}


@dataclass(frozen=True, eq=False)
class Packs:
    """What of a body can be moved in packs: subscripts that read, by pointer, and a write."""

    body: Body
    variable: str
    reads: dict[str, list[Node]]
    types: dict[str, str]
    write: Write | None

    def loop(self, index: str, stride: str, end: str, kind: str, size: int, pad: str) -> str:
        """Return the loop over whole packs, and the one over what remains."""
        v = self.variable
        pack, whole, first, lane = f"{v}_pack", f"{v}_whole", f"{v}_first", f"{v}_lane"
        own, step = f"{v}_own", f"{v}_step"
        measure = self.write.pointer if self.write else next(iter(self.reads))
        fits = f" &&\n{pad}        ".join(f"fits_pack<{pack}>({name})" for name in self.types)
        count = end if end.isidentifier() else f"({end})"
        lines = [
            "{",
            f"    constexpr int {pack} = {size} / sizeof({self.types[measure]});",
            f"    const int64_t {own} = {index};",
            f"    const int64_t {step} = {stride};",
            f"    const bool {v}_fits = {fits};",
            f"    const int64_t {whole} = {v}_fits ? {count} / {pack} * {pack} : 0;",
            f"    for (int64_t {first} = {own} * {pack}; {first} < {whole};",
            f"         {first} += {step} * {pack}) {{",
        ]
        for name in self.reads:
            kept = f"const Pack<{self.types[name]}, {pack}>"
            cast = f"reinterpret_cast<{kept}*>({name} + {first})"
            lines.append(f"        const auto {name}_pack = *{cast};")
        if self.write:
            to = self.write.pointer
            kept = f"Pack<{self.types[to]}, {pack}>"
            lines.append(f"        {kept} {to}_pack;")
        lines += [
            "        #pragma unroll",
            f"        for (int {lane} = 0; {lane} < {pack}; ++{lane}) {{",
            f"            [[maybe_unused]] const {kind} {v} = {first} + {lane};",
            f"            {self._body_text(lane, pad + '    ' * 3)}",
            "        }",
        ]
        if self.write:
            lines.append(f"        *reinterpret_cast<{kept}*>({to} + {first}) = {to}_pack;")
        lines += [
            "    }",
            f"    for ({kind} {v} = {whole} + {own}; {v} < {end}; {v} += {step}) {{",
            f"        {self._body_text('', pad + '    ' * 2)}",
            "    }",
            "}",
        ]
        return f"\n{pad}".join(lines)

    def _body_text(self, lane: str, pad: str) -> str:
        text, nodes = self.body.kernel.text, self.body.nodes
        start, end = nodes[0].start_byte, nodes[-1].end_byte
        splices = [
            replaced(node, f"{name}_pack.values[{lane}]")
            for name, found in self.reads.items()
            for node in found
        ]
        if self.write:
            to = self.write.pointer
            written = (
                f"{to}_pack.values + {lane}" if self.write.by_store else f"{to}_pack.values[{lane}]"
            )
            splices.append(replaced(self.write.place, written))
        moved = [Splice(p.start - start, p.end - start, p.text) for p in splices] if lane else []
        old = text.indent(nodes[0])
        lines = splice(text.data[start:end].decode(), moved).split("\n")
        return "\n".join([lines[0], *(pad + line.removeprefix(old) for line in lines[1:])])


def packs_of(body: Body, variable: str) -> Packs | None:
    """Return what can be moved in packs where elements may be shared out among threads anew."""
    text = body.kernel.text
    if not _writes_are_private(body) or _name_is_taken(text):
        return None
    written = [w for w in body.writes if _in_order(body, w, variable)]
    write = written[0] if len(written) == 1 else None
    places = [w.place for w in body.writes]
    reads: dict[str, list[Node]] = {}
    types: dict[str, str] = {}
    for node in (n for own in body.nodes for n in walk(own)):
        base = node.child_by_field_name("argument")
        if node.type != "subscript_expression" or base is None or node in places:
            continue
        behind = root(body.kernel, text.of(base), node)
        if behind is None or not behind.constant or _is_conditional(body, node):
            continue
        if subscript_index(text, node) == variable and _declared_outside(body, base):
            reads.setdefault(text.of(base), []).append(node)
    pointers = [*reads, write.pointer] if write else list(reads)
    for name in pointers:
        declared = body.kernel.names.lookup(name, body.nodes[0])
        assert declared is not None
        types[name] = declared.type
    made = {
        f"{variable}_{word}" for word in ("pack", "own", "step", "fits", "whole", "first", "lane")
    }
    made |= {f"{name}_pack" for name in types}
    if not reads or body.mentions(*made):
        return None
    return Packs(body, variable, reads, types, write)


def helper(text: GpuText) -> tuple[Splice, ...]:
    """Return what makes sure that packs are defined."""
    if PACK in text.text:
        return ()
    includes = [n for n in text.root.named_children if n.type == "preproc_include"]
    functions = [n for n in text.root.named_children if n.type == "function_definition"]
    first = functions[0].start_byte if functions else len(text.data)
    at = max((n.end_byte for n in includes if n.end_byte <= first), default=0)
    header = "" if "#include <cstdint>" in text.text else "#include <cstdint>\n"
    return (Splice(at, at, header + PACK),)


def _name_is_taken(text: GpuText) -> bool:
    return PACK not in text.text and bool(
        re.search(r"\b(?:Pack|fits_pack|packed_blocks)\b", text.text)
    )


def _writes_are_private(body: Body) -> bool:
    """Nothing that the body writes is read or written elsewhere in the kernel."""
    kernel = body.kernel
    roots = [root(kernel, write.pointer, write.place) for write in body.writes]
    names = [declared.name for declared in roots if declared is not None]
    if len(set(names)) != len(roots) or any(r is None or r.constant for r in roots):
        return False
    places = [write.place for write in body.writes]
    for node in walk(kernel.body):
        behind = _pointer(body, node)
        if behind is None or behind.constant:
            continue
        in_body = any(inside(node, own) for own in body.nodes)
        if any(inside(node, place) for place in places) or _in_pointer_declaration(node):
            continue
        if behind.name in names or in_body:
            return False
    return all("restrict" in kernel.text.of(one.node) for one in _pointers(body))


def _pointers(body: Body) -> list[Declared]:
    found = [_pointer(body, n) for own in body.nodes for n in walk(own)]
    return [declared for declared in found if declared is not None]


def _pointer(body: Body, node: Node) -> Declared | None:
    if node.type != "identifier":
        return None
    return root(body.kernel, body.kernel.text.of(node), node)


def _in_pointer_declaration(node: Node) -> bool:
    above: Node | None = node
    while above is not None and above.type not in ("declaration", "compound_statement"):
        above = above.parent
    if above is None or above.type != "declaration":
        return False
    inits = above.children_by_field_name("declarator")
    named = [init.child_by_field_name("declarator") or init for init in inits]
    return all(one.type == "pointer_declarator" for one in named)


def _in_order(body: Body, write: Write, variable: str) -> bool:
    alone = any(write.statement == node for node in body.nodes)
    return alone and write.index == variable and _declared_outside(body, write.place)


def _declared_outside(body: Body, node: Node) -> bool:
    own = _declared_names(body)
    used = {body.kernel.text.of(n) for n in walk(node) if n.type == "identifier"}
    return not used & own


def _declared_names(body: Body) -> set[str]:
    declared = (body.kernel.names.declared_in(node) for node in body.nodes)
    return {one.name for found in declared for one in found}


def _is_conditional(body: Body, node: Node) -> bool:
    above = node.parent
    while above is not None and not any(above == own.parent for own in body.nodes):
        signs = above.child_by_field_name("operator")
        lazy = signs is not None and body.kernel.text.of(signs) in ("&&", "||")
        if above.type in _CONDITIONAL or lazy:
            return True
        above = above.parent
    return False
