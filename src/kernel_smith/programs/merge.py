"""One program out of two: a function of one, with all that it needs, in the place of the other's.

Programs that the framework's compiler wrote, and those that descend from them, have a function for
each workload (`run_WORKLOAD`). So of two of them, each faster on another workload, a third can be
made. Names that mean something else in both get a new one.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

from kernel_smith.programs.merge_text import exported_functions, merged_text
from kernel_smith.programs.parts import IMPORTS, MODEL, Module, Part, read_module
from kernel_smith.records import MAX_SOURCE


def workload_function(workload: str) -> str:
    """Return the name of the function that does one workload."""
    return "run_" + re.sub(r"\W", "_", workload)


def with_functions(host: str, donors: Mapping[str, str]) -> str | None:
    """Return a program with functions of others in the place of its own; None if that cannot be.

    `donors` has a source by the name of each function.
    """
    text: str | None = host
    for name, donor in donors.items():
        text = _with_function(text, donor, name) if text is not None else None
    return None if text is None or len(text) > MAX_SOURCE else text


def has_function(source: str, name: str) -> bool:
    """Does a program have a function, or anything else, of this name?"""
    module = read_module(source)
    return module is not None and name in module.parts_by_name


def _with_function(host: str, donor: str, name: str) -> str | None:
    own, other = read_module(host), read_module(donor)
    if own is None or other is None:
        return None
    before, after = own.parts_by_name.get(name), other.parts_by_name.get(name)
    if before is None or after is None or not _fits(before.node, after.node):
        return None
    merged = _in_one_text(own, other, before, after) or _side_by_side(own, other, before, after)
    return None if merged is None else _pruned(merged + own.tail)


def _in_one_text(own: Module, other: Module, before: Part, after: Part) -> str | None:
    """The kernels that the function calls move into the host's kernel text."""
    (name,) = after.names
    foreign = [part for part in _brought(own, other, after) if not _means_the_same(part, own)]
    texts = [(own.parts_by_name.get(part.names[0]), part) for part in foreign if part.names]
    if len(foreign) != 1 or not texts or texts[0][0] is None:
        return None
    mine, theirs = texts[0][0], texts[0][1]
    here, there = mine.constant, theirs.constant
    if here is None or there is None or mine.text.count(f'r"""{here}"""') != 1:
        return None
    users = [part for part in own.parts if part is not before and part is not mine]
    others = {each for part in users for each in part.attributes}
    known = exported_functions(there)
    called = [each for each in after.attributes if known and each in known[1]]
    made = merged_text(here, there, called, others, name.removeprefix("run_"))
    if made is None or '"""' in made[0]:
        return None
    function = after.text
    for old, new in made[1].items():
        function = re.sub(rf"\.{old}\b", f".{new}", function)
    opening = "\n" if here.startswith("\n") else ""
    changed = {id(mine): mine.text.replace(here, opening + made[0]), id(before): function}
    return "".join(changed.get(id(part), part.text) for part in own.parts)


def _side_by_side(own: Module, other: Module, before: Part, after: Part) -> str | None:
    """All that the function needs comes along, under new names where the host has others."""
    (name,) = after.names
    names: dict[str, str] = {}
    texts: list[str] = []
    for part in _brought(own, other, after):
        clashing = [each for each in part.names if each in own.parts_by_name]
        if clashing and isinstance(part.node, IMPORTS):
            return None
        names |= {each: _fresh(each, own, other, name) for each in clashing}
        texts.append(part.renamed(names) or "")
    texts.append(after.renamed(names) or "")
    if not all(texts):
        return None
    replaced = "".join("\n\n" + text.strip("\n") + "\n" for text in texts)
    return "".join(replaced if part is before else part.text for part in own.parts)


def _brought(own: Module, other: Module, after: Part) -> list[Part]:
    """Return what the function needs and the host does not have, or not in the same meaning."""
    needed = [part for part in other.needed_by(after.names) if part is not after]
    return [p for p in needed if not all(own.is_same(each, other) for each in p.names)]


def _means_the_same(part: Part, own: Module) -> bool:
    """Is it written as in the host, whatever it uses?"""
    here = own.parts_by_name.get(part.names[0]) if part.names else None
    return here is not None and here.meaning == part.meaning


def _fits(before: ast.stmt, after: ast.stmt) -> bool:
    """Can one function be called as the other is?"""
    both = isinstance(before, ast.FunctionDef) and isinstance(after, ast.FunctionDef)
    return both and ast.dump(before.args) == ast.dump(after.args)  # type: ignore[attr-defined]


def _fresh(name: str, own: Module, other: Module, function: str) -> str:
    suffix = function.removeprefix("run_")
    tries: Iterator[str] = (f"{name}_{suffix}{'_' * more}" for more in range(100))
    taken = own.parts_by_name.keys() | other.parts_by_name.keys()
    return next(each for each in tries if each not in taken)


def _pruned(source: str) -> str | None:
    """Without definitions that the model no longer uses."""
    module = read_module(source)
    if module is None:
        return None
    kept = {id(part) for part in module.needed_by([MODEL])}
    texts = [
        part.text
        for part in module.parts
        if id(part) in kept or not part.names or isinstance(part.node, IMPORTS)
    ]
    return "".join(texts) + module.tail
