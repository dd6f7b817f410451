"""Kullback-Leibler divergence of each sample between the teacher's and the student's softened
distributions, from logits: the loss of knowledge distillation."""

import torch
import torch.nn.functional as F

TASK = {
    "family": "loss",
    "workloads": {
        "vocabulary": {"samples": 16, "classes": 4000},
        "odd": {"samples": 217, "classes": 251},
    },
    # Without "small": nearly equal distributions leave a divergence of nothing but rounding errors.
    "variants": ["large", "spikes", "sorted", "ties"],
}


class Model(torch.nn.Module):
    def __init__(self, temperature: float) -> None:
        super().__init__()
        self.temperature = temperature

    def forward(self, student: torch.Tensor, teacher: torch.Tensor) -> torch.Tensor:
        student = F.log_softmax(student / self.temperature, dim=-1)
        teacher = F.log_softmax(teacher / self.temperature, dim=-1)
        divergence = F.kl_div(student, teacher, reduction="none", log_target=True).sum(dim=-1)
        return divergence * self.temperature**2


def get_inputs(samples: int = 16, classes: int = 4000) -> list[torch.Tensor]:
    teacher = torch.randn(samples, classes) * 6
    student = teacher * torch.rand(samples, 1) + torch.randn(samples, classes) * 3
    return [student, teacher]


def get_init_inputs() -> list[float]:
    return [2.0]
