"""Values for constructor arguments and configuration fields, guessed from names and annotations.

Sizes are chosen so that they agree with each other: heads times the width of a head is the width,
groups divide channels, and a kernel of three with a padding of one keeps the size.
"""

from __future__ import annotations

import re
from typing import NamedTuple

Value = int | float | bool | str | None | list["Value"]


class Code(NamedTuple):
    """An argument that is no plain value: a class or an object of torch, by a name of ours."""

    name: str


CODE = {
    "batch_norm": "torch.nn.BatchNorm2d",
    "layer_norm": "torch.nn.LayerNorm",
    "gelu": "torch.nn.GELU",
    "gelu_object": "torch.nn.GELU()",
    "identity": "torch.nn.Identity()",
    "cpu": "torch.device('cpu')",
    "float32": "torch.float32",
}

WIDTH, HEADS, HIDDEN, LENGTH, SIDE = 64, 4, 128, 64, 16

_BY_NAME: tuple[tuple[str, Value], ...] = (
    (r"hidden_act|.*act_fn|.*activation.*function|.*hidden_act|hidden_activation", "gelu"),
    (r"_attn_implementation|attn_implementation|_experts_implementation", "eager"),
    (r"hidden_size|hidden_dim|hidden_channels|.*_hidden_size", WIDTH),
    (r"eps|epsilon|.*_eps|.*_epsilon|variance_epsilon", 1e-5),
    (r".*drop.*|.*_prob|.*_pdrop|drop_rate|layerdrop|p_drop", 0.0),
    (r"momentum", 0.1),
    (r"initializer_range|init_std|std", 0.02),
    (r"layer_idx|layer_id|layer_index|layer_number|block_idx|index|idx|i|.*pad.*_id.*", 0),
    (r"chunk_size_feed_forward", 0),
    (r"pretraining_tp", 1),
    (
        r"use_.*|is_.*|with_.*|has_.*|add_.*|return_.*|output_.*s|do_.*|gradient_checkpointing",
        False,
    ),
    (r"inplace|causal|training|downscale|legacy|.*_only|.*_first|sparse|fused", False),
    (r"bias|.*_bias|norm|affine|elementwise_affine|.*_affine|learnable|layer_norm_.*", True),
    (
        r"num_key_value_heads|num_kv_heads|n_kv_heads|num_.*heads?|n_.*heads?|heads?|nheads?|h",
        HEADS,
    ),
    (r"head_dim|dim_head|head_size|d_head|attention_head_dim|attention_head_size|d_k|d_v", 16),
    (r"key_dim|.*_head_dim|d_kv", 16),
    (r"kernel_sizes?|kernel|ks|k|.*_kernel_size|kernel_width|conv_kernel|filter_size", 3),
    (r"strides?|.*_stride|dilations?|groups|n_groups_conv|dilation_rate|s|d", 1),
    (r"padding|pad|pads", 1),
    (r"num_groups|n_groups|norm_num_groups|groups_.*", 8),
    (r"mlp_ratio|expand_ratio|expansion_ratio|ffn_ratio|.*_mlp_ratio|widen_factor", 2.0),
    (r"reduction|reduction_ratio|r|squeeze.*|se_ratio|bottleneck_ratio", 4),
    (r"up_?scale.*|scale_factor|.*factor|sr_ratio|ratio|downsample_.*|expansion|mult|.*_mult", 2),
    (r"depths?|num_.*layers?|n_.*layers?|num_blocks|layers?|n|num_.*blocks|n_blocks|repeats?", 2),
    (r"num_experts_per_tok|top_?k|moe_topk", 2),
    (r"num_.*experts|n_.*experts|num_experts", 4),
    (r"window_size|window|ws|patch_size|patch|attn_window", 4),
    (r"input_resolution|img_size|image_size|resolution|input_size|feat_size|size|grid_size", SIDE),
    (
        r"num_patches|num_tokens|seq_len.*|sequence_length|length|n_tokens|.*_seq_len|max_len",
        LENGTH,
    ),
    (r"max_.*|context_length|n_ctx|block_size|n_positions|.*_positions", 512),
    (r"vocab_size|vocab.*|num_embeddings|n_vocab|.*vocab_size|codebook_size|n_e", 1000),
    (r"type_vocab_size", 2),
    (r"num_classes|n_classes|num_labels|classes|nc|n_class", 10),
    (r"intermediate_.*|ffn_.*|mlp_dim|mlp_hidden.*|inner_dim|d_ff|d_inner|hidden_features", HIDDEN),
    (
        r"dim_feedforward|feedforward_.*|ff_dim|n_inner|hid.*|encoder_ffn_dim|decoder_ffn_dim",
        HIDDEN,
    ),
    (
        r".*dim.*|.*channels?|.*planes|.*features?|width|.*size|d_.*|.*embed.*|inp|oup|ch|filters",
        WIDTH,
    ),
    (
        r"c|c[0-9]|nf|n_feat.*|in_.*|out_.*|inc|outc|ch_in|ch_out|nin|nout|input|output|.*_chs|n_.*",
        WIDTH,
    ),
    (r"rope_theta|base|theta|max_period", 10000.0),
    (r"init_values?|.*scale_init_value|layer_scale.*", 0.1),
    (r"scale|scaling|.*_scale|.*_scaling|temperature|alpha|beta|gamma|weight|lambd.*|sigma", 0.5),
    (r"slope|negative_slope|threshold|margin|smoothing|label_smoothing|.*weight|delta|rate", 0.2),
    (r"min_.*", 0.1),
    (r"reduction_type|mode", "mean"),
)
_BY_ANNOTATION: tuple[tuple[str, Value], ...] = (
    (r"\bbool\b", False),
    (r"[Tt]uple\[|[Ss]equence\[|[Ll]ist\[", [SIDE, SIDE]),
    (r"Optional|None\b", None),
    (r"\bint\b", WIDTH),
    (r"\bfloat\b", 0.5),
)
_NORM_LAYER = r"norm_layer|.*norm_layer|norm_fn|norm_class|norm_func"
_ACT_LAYER = r"act_layer|activation_layer|act_cls|gate_layer|non_linearity|.*act_layer"
_ACT_OBJECT = r"act|activation|act_fn|nonlinearity|activation_fn"
_PAIRS = frozenset({"input_resolution", "window_size", "img_size", "resolution"})


def guess(name: str, annotation: str, text: str) -> Value | Code:
    """A value for an argument that has no default. `text` is the code that it is for."""
    lower = name.lower()
    if re.fullmatch(_NORM_LAYER, lower):
        return Code("batch_norm" if "Conv2d" in text else "layer_norm")
    if re.fullmatch(_ACT_LAYER, lower):
        return Code("gelu")
    if re.fullmatch(_ACT_OBJECT, lower):
        return "gelu" if "str" in annotation or "ACT2FN" in text else Code("gelu_object")
    if lower == "device":
        return Code("cpu")
    if lower == "dtype":
        return Code("float32")
    if re.search(r"\bModule\b", annotation):
        return Code("identity")
    return _plain(lower, annotation)


def _plain(name: str, annotation: str) -> Value:
    if "uple" in annotation and name in _PAIRS:
        side = 4 if "window" in name else SIDE
        return [side, side]
    if re.search(r"\bbool\b", annotation):
        return False
    for pattern, value in _BY_NAME:
        if re.fullmatch(pattern, name):
            return value
    for pattern, value in _BY_ANNOTATION:
        if re.search(pattern, annotation):
            return value
    return WIDTH if not annotation else None


def guess_field(name: str, defaults: dict[str, Value]) -> Value:
    """A value for a field of a configuration. Its own default counts unless it is a size."""
    default = defaults.get(name)
    if isinstance(default, (bool, float, str, list)):
        return default
    if name == "layer_types":
        return ["full_attention", "full_attention"]
    for pattern, value in _BY_NAME:
        if re.fullmatch(pattern, name.lower()):
            return value
    return default
