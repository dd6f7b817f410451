"""The language model as a proposer: any OpenAI-compatible endpoint.

`config` says which models, `prompt` what they are told, `client` how they are asked, `parse` what
their answers mean, `repair` what becomes of near misses, and `model` joins them.
"""

from kernel_smith.proposers.model.config import (
    Model,
    Settings,
    make_settings,
    parse_model,
    read_settings,
)
from kernel_smith.proposers.model.failures import ModelError
from kernel_smith.proposers.model.model import ModelProposer
from kernel_smith.proposers.model.preflight import check_models, demand_prices

__all__ = [
    "Model",
    "ModelError",
    "ModelProposer",
    "Settings",
    "check_models",
    "demand_prices",
    "make_settings",
    "parse_model",
    "read_settings",
]
