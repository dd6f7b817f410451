"""How an evaluation ends: exactly one stage, and for every failure one named reason.

The reasons are a closed vocabulary. Each belongs to one stage and carries the sentence that
explains it and the advice that follows, so that people, models and filters read the same words.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Stage(StrEnum):
    SCREENED_OUT = "screened-out"
    COMPILE_ERROR = "compile-error"
    LOAD_ERROR = "load-error"
    RUNTIME_ERROR = "runtime-error"
    TIMEOUT = "timeout"
    INCORRECT = "incorrect"
    CHEATING = "cheating"
    UNSTABLE = "unstable"
    OK = "ok"

    @property
    def fleeting(self) -> bool:
        """Might another attempt end differently? Such an end is not kept as the answer."""
        return self in (Stage.UNSTABLE, Stage.TIMEOUT)


class Reason(StrEnum):
    # screened-out: read from the source, before anything runs
    SYNTAX_ERROR = "syntax-error"
    NO_MODELNEW = "no-modelnew"
    FORBIDDEN_IMPORT = "forbidden-import"
    FORBIDDEN_CALL = "forbidden-call"
    MONKEYPATCH = "monkeypatch"
    STACK_INSPECTION = "stack-inspection"
    FALLBACK = "fallback"
    NO_KERNEL_SOURCE = "no-kernel-source"
    # compile-error
    COMPILER_REJECTED = "compiler-rejected"
    COMPILER_TIMEOUT = "compiler-timeout"
    FORBIDDEN_SYMBOL = "forbidden-symbol"
    OUT_OF_RESOURCES = "out-of-resources"
    # load-error
    LOAD_EXCEPTION = "load-exception"
    WRONG_SIGNATURE = "wrong-signature"
    LOAD_CRASHED = "load-crashed"
    # runtime-error
    EXCEPTION = "exception"
    CRASHED = "crashed"
    MEMORY_LIMIT = "memory-limit"
    PROTOCOL_VIOLATION = "protocol-violation"
    # timeout
    LOAD_TIMEOUT = "load-timeout"
    CALL_TIMEOUT = "call-timeout"
    # incorrect
    WRONG_VALUES = "wrong-values"
    PRECISION = "precision"
    NON_FINITE = "non-finite"
    OUTPUT_STRUCTURE = "output-structure"
    OUTPUT_TYPE = "output-type"
    OUTPUT_SHAPE = "output-shape"
    OUTPUT_DTYPE = "output-dtype"
    OUTPUT_STRIDES = "output-strides"
    OUTPUT_ALIASES_INPUT = "output-aliases-input"
    OUTPUT_REUSED = "output-reused"
    INPUTS_MODIFIED = "inputs-modified"
    PARAMETERS_MODIFIED = "parameters-modified"
    NONDETERMINISTIC = "nondeterministic"
    # cheating
    NO_AUTHORED_KERNEL = "no-authored-kernel"
    DECOY_KERNEL = "decoy-kernel"
    LIBRARY_FORBIDDEN = "library-forbidden"
    WRONG_WHEN_TIMED = "wrong-when-timed"
    DEFERRED_WORK = "deferred-work"
    BACKGROUND_WORK = "background-work"
    EXTRA_CORES = "extra-cores"
    PHYSICS_FLOOR = "physics-floor"
    # unstable
    TOO_NOISY = "too-noisy"


class Meaning(NamedTuple):
    stage: Stage
    sentence: str
    advice: str


MEANINGS: dict[Reason, Meaning] = {
    Reason.SYNTAX_ERROR: Meaning(
        Stage.SCREENED_OUT,
        "the candidate is not valid Python",
        "Return one complete Python file.",
    ),
    Reason.NO_MODELNEW: Meaning(
        Stage.SCREENED_OUT,
        "the candidate defines no class ModelNew with a forward method",
        "Define `class ModelNew(torch.nn.Module)` at module level, with `forward`.",
    ),
    Reason.FORBIDDEN_IMPORT: Meaning(
        Stage.SCREENED_OUT,
        "the candidate imports a module that a kernel has no use for",
        "Import torch, math, typing and kernel_smith.inline; do the work in compiled code.",
    ),
    Reason.FORBIDDEN_CALL: Meaning(
        Stage.SCREENED_OUT,
        "the candidate calls something that a kernel has no use for",
        "Remove the call; a kernel needs neither files, processes nor dynamic code.",
    ),
    Reason.MONKEYPATCH: Meaning(
        Stage.SCREENED_OUT,
        "the candidate assigns to an attribute of an imported module",
        "Leave imported modules as they are; the clock and the checker are in another process.",
    ),
    Reason.STACK_INSPECTION: Meaning(
        Stage.SCREENED_OUT,
        "the candidate inspects its caller or the interpreter",
        "Compute the same thing whoever calls.",
    ),
    Reason.FALLBACK: Meaning(
        Stage.SCREENED_OUT,
        "the candidate catches failures inside forward, so that something else may answer",
        "Let errors surface; remove the try/except from forward.",
    ),
    Reason.NO_KERNEL_SOURCE: Meaning(
        Stage.SCREENED_OUT,
        "the candidate never compiles a kernel of its own",
        "Write the work as a kernel, e.g. `lib = kernel_smith.inline.cpp(SOURCE)`, and call it.",
    ),
    Reason.COMPILER_REJECTED: Meaning(
        Stage.COMPILE_ERROR,
        "the compiler rejected a kernel",
        "Fix the first error; lines refer to the candidate file.",
    ),
    Reason.COMPILER_TIMEOUT: Meaning(
        Stage.COMPILE_ERROR,
        "the compiler did not finish in its time or memory",
        "Simplify templates, constant evaluation or unrolling.",
    ),
    Reason.FORBIDDEN_SYMBOL: Meaning(
        Stage.COMPILE_ERROR,
        "a compiled kernel imports a function that a kernel has no use for",
        "Write the loop itself; dynamic loading, processes and raw system calls are refused.",
    ),
    Reason.OUT_OF_RESOURCES: Meaning(
        Stage.COMPILE_ERROR,
        "a kernel needs more shared memory or threads than a block of the target may have",
        "Use smaller blocks, fewer stages or fewer warps.",
    ),
    Reason.LOAD_EXCEPTION: Meaning(
        Stage.LOAD_ERROR,
        "importing the candidate or constructing ModelNew raised an exception",
        "See the traceback; ModelNew takes the same arguments as Model.",
    ),
    Reason.WRONG_SIGNATURE: Meaning(
        Stage.LOAD_ERROR,
        "ModelNew or its forward does not accept the arguments that Model accepts",
        "Give `__init__` and `forward` the same parameters as the reference.",
    ),
    Reason.LOAD_CRASHED: Meaning(
        Stage.LOAD_ERROR,
        "the candidate process died while the candidate was loading",
        "See the log; static initialisers and constructors run at load.",
    ),
    Reason.EXCEPTION: Meaning(
        Stage.RUNTIME_ERROR, "forward raised an exception", "See the traceback."
    ),
    Reason.CRASHED: Meaning(
        Stage.RUNTIME_ERROR,
        "the candidate process died during a call",
        "Check bounds, argument order and argument types of the kernel call.",
    ),
    Reason.MEMORY_LIMIT: Meaning(
        Stage.RUNTIME_ERROR,
        "the candidate process exceeded its memory limit",
        "Allocate less, or reuse buffers inside one call.",
    ),
    Reason.PROTOCOL_VIOLATION: Meaning(
        Stage.RUNTIME_ERROR,
        "the candidate process sent something that the protocol does not know",
        "Leave file descriptors alone that the candidate did not open.",
    ),
    Reason.LOAD_TIMEOUT: Meaning(
        Stage.TIMEOUT,
        "loading the candidate took too long",
        "Move work out of module level and of the constructor.",
    ),
    Reason.CALL_TIMEOUT: Meaning(
        Stage.TIMEOUT,
        "a call took too long",
        "Look for an endless loop or a deadlock; otherwise it is far slower than the reference.",
    ),
    Reason.WRONG_VALUES: Meaning(
        Stage.INCORRECT,
        "the output is outside the tolerance",
        "See the worst element: workload, index, got and expected.",
    ),
    Reason.PRECISION: Meaning(
        Stage.INCORRECT,
        "the error has the size of a precision that the task does not allow",
        "Compute and accumulate in the task's own precision.",
    ),
    Reason.NON_FINITE: Meaning(
        Stage.INCORRECT,
        "the output holds NaN or infinity where the reference is finite",
        "Guard overflow (subtract the maximum before exp), division by zero, uninitialised memory.",
    ),
    Reason.OUTPUT_STRUCTURE: Meaning(
        Stage.INCORRECT,
        "forward returns another structure than the reference",
        "Return the same nesting of tensors as Model.forward.",
    ),
    Reason.OUTPUT_TYPE: Meaning(
        Stage.INCORRECT,
        "forward returns something that is not a plain, dense torch.Tensor in its own memory",
        "Return torch.Tensor, not a subclass, proxy, or other framework's array.",
    ),
    Reason.OUTPUT_SHAPE: Meaning(
        Stage.INCORRECT,
        "an output has the wrong shape",
        "Allocate the output with the reference's shape.",
    ),
    Reason.OUTPUT_DTYPE: Meaning(
        Stage.INCORRECT,
        "an output has the wrong dtype",
        "Allocate the output with the reference's dtype.",
    ),
    Reason.OUTPUT_STRIDES: Meaning(
        Stage.INCORRECT,
        "an output has a memory layout that callers do not expect",
        "Return the reference's strides or a contiguous tensor; never an expanded one.",
    ),
    Reason.OUTPUT_ALIASES_INPUT: Meaning(
        Stage.INCORRECT,
        "an output shares memory with an input or a parameter, which the reference's does not",
        "Write the result to memory of its own.",
    ),
    Reason.OUTPUT_REUSED: Meaning(
        Stage.INCORRECT,
        "results share memory, so that a later call or a change to one destroys another",
        "Allocate the output inside forward, and write all of it.",
    ),
    Reason.INPUTS_MODIFIED: Meaning(
        Stage.INCORRECT,
        "the inputs were different after the call",
        "Treat inputs as read-only; check for writes out of bounds.",
    ),
    Reason.PARAMETERS_MODIFIED: Meaning(
        Stage.INCORRECT,
        "the module's parameters were different after the call",
        "Treat parameters as read-only.",
    ),
    Reason.NONDETERMINISTIC: Meaning(
        Stage.INCORRECT,
        "the same inputs gave different results beyond the tolerance",
        "Look for a data race or for uninitialised memory.",
    ),
    Reason.NO_AUTHORED_KERNEL: Meaning(
        Stage.CHEATING,
        "no kernel that the candidate authored was ever loaded",
        "Do the work in a kernel of your own.",
    ),
    Reason.DECOY_KERNEL: Meaning(
        Stage.CHEATING,
        "with the authored kernels replaced by no-ops the result stays right: they are decoys",
        "Let the output depend on the authored kernel.",
    ),
    Reason.LIBRARY_FORBIDDEN: Meaning(
        Stage.CHEATING,
        "the task forbids library calls, and time was spent in the library",
        "Do all of the work in authored kernels.",
    ),
    Reason.WRONG_WHEN_TIMED: Meaning(
        Stage.CHEATING,
        "outputs were right when checked and wrong when timed",
        "Compute every call; results cannot be cached, skipped or batched away.",
    ),
    Reason.DEFERRED_WORK: Meaning(
        Stage.CHEATING,
        "work went on after the calls had been reported finished",
        "Finish the work before forward returns; join threads.",
    ),
    Reason.BACKGROUND_WORK: Meaning(
        Stage.CHEATING,
        "the candidate process used the processor while it was not its turn",
        "Leave no thread running between calls.",
    ),
    Reason.EXTRA_CORES: Meaning(
        Stage.CHEATING,
        "the candidate used more cores than the reference was given",
        "Respect the affinity mask and OMP_NUM_THREADS.",
    ),
    Reason.PHYSICS_FLOOR: Meaning(
        Stage.CHEATING,
        "the time per call is shorter than moving the output takes",
        "No real computation is this fast; the measurement was tampered with.",
    ),
    Reason.TOO_NOISY: Meaning(
        Stage.UNSTABLE,
        "the machine was too noisy to say whether the candidate is faster or slower",
        "Repeat on a quieter machine, or allow more time with --max-seconds.",
    ),
}
