"""Short replacements for helpers that a class cannot bring along, by name.

They stand for switches of a library, for registries of layers and of attention, and for base
classes that add nothing to a forward pass.
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
    "ALL_ATTENTION_FUNCTIONS": (
        "class AttentionFunctions:\n"
        "    def get_interface(self, implementation, default):\n"
        "        return {'sdpa': self.library, 'eager': default}[implementation]\n\n"
        "    def library(\n"
        "        self, module, query, key, value, attention_mask,\n"
        "        dropout=0.0, scaling=None, is_causal=None, position_bias=None, **others,\n"
        "    ):\n"
        "        if is_causal is None:\n"
        "            is_causal = getattr(module, 'is_causal', True)\n"
        "        if position_bias is not None:\n"
        "            sizes = query.shape[2], key.shape[2]\n"
        "            if attention_mask is None and is_causal and sizes[0] > 1:\n"
        "                attention_mask = query.new_ones(sizes, dtype=torch.bool).tril()\n"
        "            if attention_mask is None:\n"
        "                attention_mask = position_bias\n"
        "            elif attention_mask.dtype is torch.bool:\n"
        "                lowest = torch.finfo(position_bias.dtype).min\n"
        "                attention_mask = position_bias.masked_fill(~attention_mask, lowest)\n"
        "            else:\n"
        "                attention_mask = attention_mask + position_bias\n"
        "        groups = getattr(module, 'num_key_value_groups', 1)\n"
        "        if groups > 1 and attention_mask is not None:\n"
        "            key, value = (x.repeat_interleave(groups, 1) for x in (key, value))\n"
        "        result = torch.nn.functional.scaled_dot_product_attention(\n"
        "            query, key, value, attention_mask, dropout, scale=scaling,\n"
        "            is_causal=is_causal and attention_mask is None and query.shape[2] > 1,\n"
        "            enable_gqa=groups > 1 and attention_mask is None,\n"
        "        )\n"
        "        return result.transpose(1, 2).contiguous(), None\n\n\n"
        "ALL_ATTENTION_FUNCTIONS = AttentionFunctions()"
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
