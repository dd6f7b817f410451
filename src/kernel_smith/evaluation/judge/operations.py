"""What looks at the operations of a computation one by one derives from `OperationMode`."""

from __future__ import annotations

from torch.utils._python_dispatch import TorchDispatchMode


class OperationMode(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """PyTorch's own class, less the order to its compiler to keep out: to give that order, the
    compiler is imported, which takes seconds. Nothing is compiled in the judge."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False
