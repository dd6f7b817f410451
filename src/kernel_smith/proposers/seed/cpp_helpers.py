"""The C++ that generated kernels take for granted, in small pieces; a seed carries what it uses."""

from __future__ import annotations

import re

from kernel_smith.proposers.seed.templates import template

# What each text of `templates` is needed for; it may use those that stand before it.
_USES = {
    "helpers/headers": "",
    "helpers/memory": r"\b(?:Product|Gram|Convolution|Spreading|Attention)<"
    r"|\b(?:unique_ptr|make_unique)\b",
    "helpers/intrinsics": r"\b(widen|narrow)\(",
    # What it says would hold for all functions of a header as well, each of which takes g++ longer.
    "helpers/vectorising": "",
    "helpers/bfloat16": r"\b(at::BFloat16|c10::BFloat16|bfloat16)\b",
    "helpers/half": r"\b(at::Half|c10::Half|half)\b",
    "helpers/halves": r"\b(widen|narrow)\(",
    "helpers/convert": r"\bc10::convert<",
    "helpers/bit_cast": r"\bc10::bit_cast<",
    "helpers/propagate_nan": r"\b(max|min)_propagate_nan\(",
    "helpers/floor_division": r"\b(div_floor_integer|floor_divide_integral)\(",
    "helpers/remainder": r"\bmod\(",
    "helpers/welford": r"\b[Ww]elford",
    "helpers/cascade_sum": r"\b(CascadeSumHelper|cascade_sum_\w+)\b",
    "helpers/index_value": r"\b(IndexValue|arg(max|min)_combine)\b",
    "helpers/atomic_add": r"\batomic_add(_vec)?\(",
    "helpers/same_bits": r"\bbranchless::|\bAttention<",
    "helpers/exp_series": r"\bbranchless::(exp|expm1|tanh|erf)\(|\bAttention<",
    "helpers/exp": r"\bbranchless::(exp|tanh|erf)\(|\bAttention<",
    "helpers/expm1": r"\bbranchless::expm1\(",
    "helpers/log": r"\bbranchless::log(1p)?\(",
    "helpers/log1p": r"\bbranchless::log1p\(",
    "helpers/tanh": r"\bbranchless::tanh\(",
    "helpers/erf": r"\bbranchless::erf\(",
    "helpers/frexp": r"\bbranchless::frexp\(",
    "helpers/whole_word": r"\bwhole_word\(",
    "helpers/apart": r"\bapart\(",
    "helpers/in_one": r"\bin_one<",
    "helpers/largest": r"\breduction\(largest:",
    "helpers/smallest": r"\breduction\(smallest:",
    "vectors": r"\b(?:Product|Gram|Convolution|Spreading|Depthwise|Attention|EmbeddingBag)<",
    "product": r"\b(?:Product|Gram|Convolution|Spreading|Attention)<",
    "gram": r"\bGram<",
    "boxes": r"\b(?:Convolution|Spreading|Depthwise)<",
    "tapped": r"\b(?:Convolution|Spreading)<",
    "convolution": r"\bConvolution<",
    "spreading": r"\bSpreading<",
    "depthwise": r"\bDepthwise<",
    "attention": r"\bAttention<",
    "embedding_bag": r"\bEmbeddingBag<",
    "scan": r"\bScan<",
}


def helpers_for(body: str) -> str:
    """Return the headers, and the helpers that some kernels use."""
    used = [name for name, use in _USES.items() if re.search(use, body)]
    return "\n".join(template(f"{name}.hpp") for name in used)
