"""Which flags a candidate may add to its compiler's command line.

`check_flags` refuses flags that would load, read or write something else than the kernel.
`flags_for` is what remains of them on another route than the dialect's own, where the compiler is
another one: what changes the meaning of the source, and nothing that is about speed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from kernel_smith.errors import BadInput
from kernel_smith.inline.dialects import EXTENSION

_CPP = re.compile(r"-(O\w*|[fmW][\w+=.,:-]+|std=[\w+:]+|D[A-Za-z_][^@/\x00-\x1f\x7f]*)")
# Options that begin like the allowed ones, but load code, name files, write beside the library,
# hand arguments to another program, or change how messages look.
_REFUSED = re.compile(
    r"-fplugin|-fpass-plugin|-fdump|-fprofile|-fauto-profile|-fcs-profile|-fcoverage|-ftest-coverage"
    r"|-fuse-ld|-f.*-map\b|-f.*-path\b|-f.*-file\b|-f.*-dir\b|-f.*list=|-fmodule|-fpch|-fopt-info.*="
    r"|-f(no-)?diagnostics|-f(no-)?message|-fmax-errors|-fsyntax-only|-fsave-|-fstack-usage"
    r"|-fcallgraph-info|-ftime-trace|-fthinlto-index|-fdeps|-fworking-directory|-fdirectives-only"
    r"|-fpreprocessed|-finput-charset|-fembed|-fxray|-frecord|-fwpa|-fresolution|-flinker|-fltrans"
    r"|-mllvm|-mlink|-W.*,"
)
# The vendors' drivers put other programs' command lines together as text, for a shell to read. So
# a definition has no character that a shell would take for its own.
_DEFINE = r"-D[A-Za-z_]\w*(=[\w.:+-]*)?"
_STANDARD = r"--?std=(c|gnu)\+\+\d\w"
_PTXAS = r"(-v|-O[0-3]|-d[ls]cm=c[agsv]|-warn-spills|--allow-expensive-optimizations=(true|false))"
_NVCC = re.compile(
    rf"{_DEFINE}|{_STANDARD}|-O[0-3]"
    r"|--?(use_fast_math|lineinfo|generate-line-info|restrict|extra-device-vectorization)"
    r"|--?(expt-relaxed-constexpr|expt-extended-lambda|extended-lambda)"
    r"|--?(fmad|ftz|prec-div|prec-sqrt)=(true|false)|--?maxrregcount=\d+"
    r"|--?(diag-suppress|diag_suppress)=\d+(,\d+)*|-w"
    rf"|-Xptxas={_PTXAS}(,{_PTXAS})*"
)
_CLANG = re.compile(
    rf"{_DEFINE}|-std=(c|gnu)\+\+\d\w|-O\w*|-[fm][\w+=.,:-]+|-W[\w+=.:-]+"
    r"|--gpu-max-threads-per-block=\d+"
)

_ALLOWED = {"cpp": _CPP, "cuda": _NVCC, "maca": _CLANG, "hip": _CLANG}
ALLOWED_FLAGS = "flags begin with -O, -f, -m, -D, -std= or -W, and name no file"
_HINTS = {
    "cpp": ALLOWED_FLAGS,
    "cuda": "flags are -O, -D, -std=, --use_fast_math, -maxrregcount=N, -fmad=, -ftz=, -prec-div=, "
    "-prec-sqrt=, -lineinfo, -Xptxas=-O3 or -Xptxas=-dlcm=ca; a value is joined by =",
    "maca": ALLOWED_FLAGS,
    "hip": ALLOWED_FLAGS,
}
_MEANING = re.compile(rf"{_DEFINE}|{_STANDARD}")


def check_flags(flags: Iterable[str], dialect: str = "cpp") -> tuple[str, ...]:
    """Return the flags, if a candidate of the dialect may use all of them."""
    checked = tuple(flags)
    language = dialect.removesuffix(EXTENSION)
    for flag in checked:
        if not _ALLOWED[language].fullmatch(flag) or _REFUSED.match(flag):
            raise BadInput(f"compiler flag not allowed: {flag}", hint=_HINTS[language])
    return checked


def flags_for(route: str, flags: Sequence[str]) -> tuple[str, ...]:
    """Of a candidate's flags, those that its compiler on this route gets."""
    if route == "native":
        return tuple(flags)
    kept = (flag for flag in flags if _MEANING.fullmatch(flag))
    return tuple(re.sub("^--std", "-std", flag) for flag in kept)
