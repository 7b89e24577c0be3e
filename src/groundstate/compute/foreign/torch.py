"""What torch keeps private: steps over lists of tensors, fused optimisers, functorch's state."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import Tensor
from torch.nn.modules import module as _module
from torch.nn.modules.batchnorm import _BatchNorm as BatchNorm
from torch.nn.modules.dropout import _DropoutNd as AnyDropout
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import register_pytree_node, tree_flatten, tree_map, tree_unflatten

foreach_add_ = torch._foreach_add_
foreach_copy_ = torch._foreach_copy_
foreach_lerp_ = torch._foreach_lerp_
foreach_norm = torch._foreach_norm
foreach_sub_ = torch._foreach_sub_
fused_adam_: Any = torch._fused_adam_
fused_adamw_: Any = torch._fused_adamw_
fused_sgd_ = torch._fused_sgd_
unscale_ = torch._amp_foreach_non_finite_check_and_unscale_
update_scale_ = torch._amp_update_scale_
standard_gamma = torch._standard_gamma
functorch_active = torch._C._are_functorch_transforms_active

HOOKS = (
    "_forward_hooks",
    "_forward_pre_hooks",
    "_backward_hooks",
    "_backward_pre_hooks",
)  # of one module


def functorch_wrapped(t: Tensor) -> bool:
    """Whether a tensor stands for many, inside vmap or grad."""
    return bool(torch._C._functorch.is_functorch_wrapped_tensor(t))


def hooked_everywhere() -> bool:
    """Whether a hook is registered for the modules of every network."""
    return any(getattr(_module, f"_global{name}") for name in HOOKS)


def multiplies_bfloat16() -> bool:
    """Whether this processor multiplies in bfloat16 faster than in float32."""
    return bool(torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported())


_ONEDNN = torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")


def affine(x: Tensor, W: Tensor, c: Tensor | None = None) -> Tensor:
    """xW + c without gradients, of dense matrices. In float32 on a CPU by oneDNN, whose products take
    half the time of the BLAS that torch is linked with where the processor is not of its maker."""
    if _ONEDNN and x.dtype == torch.float32 and x.device.type == "cpu":
        found: Tensor = torch.ops.mkldnn._linear_pointwise(x, W.T, c, "none", [], "")
        return found
    return x @ W if c is None else torch.addmm(c, x, W)


def sparse_rows(offsets: Tensor, columns: Tensor, values: Tensor, n: int) -> Tensor:
    """A sparse matrix ``(n, n)`` by rows, unchecked; torch warns that these are in beta state."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse", category=UserWarning)
        return torch.sparse_csr_tensor(offsets, columns, values, (n, n), check_invariants=False)


__all__ = [
    "AnyDropout",
    "BatchNorm",
    "HOOKS",
    "TorchDispatchMode",
    "affine",
    "foreach_add_",
    "foreach_copy_",
    "foreach_lerp_",
    "foreach_norm",
    "foreach_sub_",
    "functorch_active",
    "functorch_wrapped",
    "fused_adam_",
    "fused_adamw_",
    "fused_sgd_",
    "hooked_everywhere",
    "multiplies_bfloat16",
    "sparse_rows",
    "standard_gamma",
    "register_pytree_node",
    "tree_flatten",
    "tree_map",
    "tree_unflatten",
    "unscale_",
    "update_scale_",
]
