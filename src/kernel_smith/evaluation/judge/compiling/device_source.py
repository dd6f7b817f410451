"""Compiles kernel texts for processes on a GPU, which others may use meanwhile."""

from __future__ import annotations

from typing import Any

from kernel_smith.evaluation.judge.compiling.source import SourceCompiler
from kernel_smith.evaluation.judge.platform import device_state


class DeviceSourceCompiler(SourceCompiler):
    def provide(self, need: Any, *, disarmed: bool = False) -> dict[str, Any]:
        with device_state.turns().stepping_out():
            return super().provide(need, disarmed=disarmed)
