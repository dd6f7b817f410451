"""Short replacements for helpers that a class cannot bring along, by name.

They stand for switches of a library, for registries of layers, and for base classes that add
nothing to a forward pass.
"""

from __future__ import annotations

STAND_INS = {
    "ACT2FN": (
        "ACT2FN = {\n"
        "    'gelu': torch.nn.GELU(), 'gelu_new': torch.nn.GELU(approximate='tanh'),\n"
        "    'gelu_pytorch_tanh': torch.nn.GELU(approximate='tanh'),\n"
        "    'relu': torch.nn.ReLU(), 'silu': torch.nn.SiLU(), 'swish': torch.nn.SiLU(),\n"
        "    'tanh': torch.nn.Tanh(), 'sigmoid': torch.nn.Sigmoid(),\n"
        "}"
    ),
    "GradientCheckpointingLayer": "GradientCheckpointingLayer = torch.nn.Module",
    "ModelMixin": "ModelMixin = torch.nn.Module",
    "is_torch_npu_available": "def is_torch_npu_available(): return False",
    "is_xformers_available": "def is_xformers_available(): return False",
    "is_torchdynamo_compiling": "def is_torchdynamo_compiling(): return False",
    "_assert": "from torch import _assert",
    "use_fused_attn": "def use_fused_attn(experimental=False): return True",
    "use_reentrant_ckpt": "def use_reentrant_ckpt(): return False",
    "get_act_layer": (
        "def get_act_layer(name='relu'):\n"
        "    named = {\n"
        "        'relu': torch.nn.ReLU, 'gelu': torch.nn.GELU, 'silu': torch.nn.SiLU,\n"
        "        'swish': torch.nn.SiLU, 'sigmoid': torch.nn.Sigmoid, 'tanh': torch.nn.Tanh,\n"
        "        'hard_sigmoid': torch.nn.Hardsigmoid, 'hard_swish': torch.nn.Hardswish,\n"
        "    }\n"
        "    return named[name] if isinstance(name, str) else name"
    ),
    "inplace_abn": "def inplace_abn(*arguments): raise ImportError('inplace_abn')",
    "is_fast_norm": "def is_fast_norm(): return False",
    "fast_layer_norm": "from torch.nn.functional import layer_norm as fast_layer_norm",
    "fast_group_norm": "from torch.nn.functional import group_norm as fast_group_norm",
    "is_exportable": "def is_exportable(): return False",
    "is_scriptable": "def is_scriptable(): return False",
}
