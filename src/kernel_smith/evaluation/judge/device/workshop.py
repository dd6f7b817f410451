"""Compiles kernel texts for processes on a GPU, which others may use meanwhile."""

from __future__ import annotations

from typing import Any

from kernel_smith.evaluation.judge.device import presence
from kernel_smith.evaluation.judge.workshop import Workshop


class DeviceWorkshop(Workshop):
    def provide(self, need: Any, *, disarmed: bool = False) -> dict[str, Any]:
        with presence.turns().stepping_out():
            return super().provide(need, disarmed=disarmed)
