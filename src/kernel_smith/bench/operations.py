"""The operations that a reference consists of, read from its syntax tree, by their families."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

from kernel_smith.programs.parsing import parse_python

# Names as PyTorch spells them: of modules, of functions, or of methods of a tensor.
_FAMILIES = {
    "product": "Linear Bilinear LazyLinear linear bilinear matmul mm bmm mv addmm baddbmm einsum "
    "dot inner outer tensordot addmv chain_matmul multi_dot",
    "convolution": "Conv1d Conv2d Conv3d conv1d conv2d conv3d unfold fold",
    "transposed convolution": "ConvTranspose1d ConvTranspose2d ConvTranspose3d "
    "conv_transpose1d conv_transpose2d conv_transpose3d",
    "attention": "scaled_dot_product_attention MultiheadAttention TransformerEncoderLayer "
    "TransformerDecoderLayer TransformerEncoder flex_attention",
    "recurrent": "RNN LSTM GRU RNNCell LSTMCell GRUCell",
    "normalisation": "BatchNorm1d BatchNorm2d BatchNorm3d LayerNorm GroupNorm RMSNorm "
    "InstanceNorm1d InstanceNorm2d InstanceNorm3d LocalResponseNorm batch_norm layer_norm "
    "group_norm instance_norm rms_norm normalize norm vector_norm rsqrt",
    "softmax": "Softmax LogSoftmax softmax log_softmax Softmax2d Softmin",
    "pooling": "MaxPool1d MaxPool2d MaxPool3d AvgPool1d AvgPool2d AvgPool3d AdaptiveAvgPool1d "
    "AdaptiveAvgPool2d AdaptiveAvgPool3d AdaptiveMaxPool1d AdaptiveMaxPool2d max_pool1d "
    "max_pool2d max_pool3d avg_pool1d avg_pool2d avg_pool3d adaptive_avg_pool1d "
    "adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool2d LPPool2d",
    "loss": "CrossEntropyLoss MSELoss L1Loss SmoothL1Loss HuberLoss KLDivLoss NLLLoss BCELoss "
    "BCEWithLogitsLoss TripletMarginLoss CosineEmbeddingLoss HingeEmbeddingLoss MarginRankingLoss "
    "cross_entropy mse_loss l1_loss smooth_l1_loss huber_loss kl_div nll_loss "
    "binary_cross_entropy binary_cross_entropy_with_logits triplet_margin_loss "
    "cosine_embedding_loss hinge_embedding_loss margin_ranking_loss cosine_similarity",
    "scan": "cumsum cumprod cummax cummin logcumsumexp",
    "search": "argmax argmin topk sort argsort kthvalue median searchsorted bucketize unique "
    "nonzero",
    "reduction": "sum mean max min amax amin prod std var all any count_nonzero aminmax bincount "
    "histc logsumexp cdist var_mean std_mean",
    "indexing": "Embedding EmbeddingBag embedding embedding_bag gather scatter scatter_ "
    "scatter_add scatter_add_ index_select index_add index_add_ index_copy index_copy_ index_put "
    "index_put_ take take_along_dim masked_select one_hot repeat_interleave",
    "quantisation": "quantize_per_tensor quantize_per_channel dequantize fake_quantize_per_tensor "
    "float8_e4m3fn float8_e5m2 int8 uint8",
    "sampling": "rand randn randint bernoulli multinomial dropout Dropout Dropout2d randperm",
    "activation": "ReLU ReLU6 LeakyReLU PReLU ELU SELU CELU GELU SiLU Mish Sigmoid Tanh Softplus "
    "Softsign Hardtanh Hardsigmoid Hardswish Tanhshrink Softshrink LogSigmoid GLU Threshold relu "
    "relu6 leaky_relu prelu elu selu celu gelu silu mish sigmoid tanh softplus softsign hardtanh "
    "hardsigmoid hardswish tanhshrink softshrink logsigmoid glu relu_ threshold erf",
    "layout": "cat stack chunk split permute transpose reshape flatten view contiguous roll flip "
    "pad interpolate Upsample PixelShuffle pixel_shuffle tril triu tile expand repeat",
    "arithmetic": "add sub mul div pow exp log log1p expm1 sqrt clamp clip abs where maximum "
    "minimum sin cos square reciprocal round floor",
}
_FAMILY_OF = {name: family for family, names in _FAMILIES.items() for name in names.split()}
_NOT_THE_REFERENCE = ("get_inputs", "get_init_inputs")
_DEPTHWISE = "depthwise convolution"
_RESHAPES = frozenset({"view", "reshape", "flatten", "contiguous", "expand"})


def operations(source: str) -> Counter[str]:
    """Tell how often operations of each family are named, or nothing where the text is no Python.

    A layer that is made once and called twice counts once; one that is made in a loop counts as
    three.
    """
    try:
        tree = parse_python(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Counter()
    found: Counter[str] = Counter()
    for statement in tree.body:
        if not isinstance(statement, (ast.ClassDef, ast.FunctionDef)):
            continue
        if statement.name not in _NOT_THE_REFERENCE:
            for family, times in _inside(statement, 1, making=False):
                found[family] += times
    return found


def _inside(node: ast.AST, times: int, *, making: bool) -> Iterator[tuple[str, int]]:
    """`making`: in a constructor, where sizes are computed and parameters drawn: of what is called
    there, only layers are part of the reference."""
    if isinstance(node, (ast.For, ast.While, ast.ListComp, ast.GeneratorExp)):
        times = 3
    making = making or (isinstance(node, ast.FunctionDef) and node.name == "__init__")
    family = _family(node)
    if family is not None and (not making or _makes_layer(node)):
        yield family, times
    for child in ast.iter_child_nodes(node):
        yield from _inside(child, times, making=making)


def _makes_layer(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and _called(node.func)[:1].isupper()


def _family(node: ast.AST) -> str | None:
    if isinstance(node, ast.BinOp):
        return "product" if isinstance(node.op, ast.MatMult) else "arithmetic"
    if isinstance(node, ast.Attribute) and node.attr.startswith(("float8_", "int8", "uint8")):
        return "quantisation"
    if not isinstance(node, ast.Call) or _is_own(node.func):
        return None
    name = _called(node.func)
    if name in _RESHAPES:  # which move nothing
        return None
    family = _FAMILY_OF.get(name)
    if family == "convolution" and any(word.arg == "groups" for word in node.keywords):
        return _DEPTHWISE if _is_depthwise(node) else family
    return family


def _is_own(function: ast.expr) -> bool:
    """Is it a layer that was made elsewhere, such as `self.matmul`?"""
    return (
        isinstance(function, ast.Attribute)
        and isinstance(function.value, ast.Name)
        and function.value.id == "self"
    )


def _called(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _is_depthwise(call: ast.Call) -> bool:
    """One group per channel: the number of groups is written like the number of channels."""
    groups = next(ast.dump(word.value) for word in call.keywords if word.arg == "groups")
    return bool(call.args) and groups == ast.dump(call.args[0])
