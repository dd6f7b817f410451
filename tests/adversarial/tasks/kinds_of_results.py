"""Results of many kinds: numbers, complex and unsigned tensors, a scalar and a transposed one."""

import torch

TASK = {"family": "elementwise", "workloads": {"one": {"rows": 200, "columns": 96}}}


class Model(torch.nn.Module):
    def forward(self, batch: dict, scale: float) -> dict:
        x, z = batch["x"], batch["z"]
        count = (x > 0).sum(dim=1)
        return {
            "norm": float(x.double().square().sum().sqrt()),
            "turned": z * z.conj().flip(0) * scale,
            "mirrored": (z * scale).conj(),
            "rounded": (x.abs() * 100).to(torch.uint16),
            "parts": [x.mean(), (x * scale).t()],
            "count": count,
            "most": int(count.max()),
        }


def get_inputs(rows: int = 200, columns: int = 96) -> list[object]:
    x = torch.randn(rows, columns)
    return [{"x": x, "z": torch.randn(rows, dtype=torch.complex64)}, 1.5]
