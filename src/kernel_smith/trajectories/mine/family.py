"""The family that a class is listed under, guessed from its name and from what it calls."""

from __future__ import annotations

import re

# The first that matches decides, so what is most telling comes first.
_BY_NAME = (
    ("attention", r"attention|attn"),
    ("loss", r"loss|criterion|crossentropy"),
    ("positional", r"rotary|position|posemb|rope|timestep"),
    ("moe-routing", r"router|gating|experts|moe"),
    ("pooling", r"pool"),
    ("convolution", r"conv"),
    ("normalisation", r"norm(?!al)"),
    ("activation", r"gelu|relu|swish|silu|sigmoid|mish|tanh|activation|glu$"),
    ("recurrent", r"lstm|gru(?!b)|rnn|recurrent"),
    ("resampling", r"upsample|downsample|interpol|pixelshuffle|resize"),
)
_BY_CALLS = (
    ("attention", r"scaled_dot_product_attention|MultiheadAttention"),
    ("attention", r"(?s)softmax.*(?:matmul|einsum|bmm|@)"),
    ("recurrent", r"\b(?:LSTM|GRU|RNN)\w*\("),
    ("convolution", r"Conv[123]d|conv[123]d"),
    ("fused-matmul", r"Linear\(|F\.linear|matmul|einsum|bmm"),
    ("pooling", r"Pool[123]d|pool[123]d"),
    ("normalisation", r"LayerNorm|BatchNorm|GroupNorm|layer_norm|rsqrt"),
    ("indexing", r"Embedding\(|gather|index_select|scatter"),
    ("softmax", r"softmax"),
    ("resampling", r"interpolate|grid_sample|pixel_shuffle"),
    ("reduction", r"\.(?:sum|mean|amax|max|norm)\("),
)


def family_of(class_name: str, text: str) -> str:
    for family, pattern in _BY_NAME:
        if re.search(pattern, class_name, re.IGNORECASE):
            return family
    for family, pattern in _BY_CALLS:
        if re.search(pattern, text):
            return family
    return "elementwise"
