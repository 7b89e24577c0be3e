"""Classes by their names, and rows by their nearest codes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from groundstate.errors import DataError


def named(prompts: Any, template: str) -> dict[str, list[str]]:
    """Texts of each class: names in a template, or what a mapping says.

    >>> named(["dog", "cat"], "a photo of a {c}")
    {'dog': ['a photo of a dog'], 'cat': ['a photo of a cat']}
    >>> named({"pet": ["a dog", "a cat"]}, "a photo of a {c}")
    {'pet': ['a dog', 'a cat']}
    """
    if isinstance(prompts, Mapping):
        texts = {name: [v] if isinstance(v, str) else list(v) for name, v in prompts.items()}
        empty = [name for name, v in texts.items() if not v]
        if empty:
            raise DataError(f"class {empty[0]!r} has no text; give one, or leave the class out")
        return texts
    if isinstance(prompts, str):
        raise DataError(f"prompts are several names of classes, got the one text {prompts!r}")
    if "{c}" not in template:
        raise DataError(f"the template {template!r} has no place {{c}} for the name of a class")
    names = [str(name) for name in prompts]
    if len(set(names)) < len(names):
        raise DataError("prompts name a class twice; give each once")
    return {name: [template.replace("{c}", name)] for name in names}


def nearest(query: Tensor, among: Tensor, k: int) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Places and products of the k nearest rows to each query, the nearest first, ``(n, k)`` each.

    >>> import torch
    >>> at, cosine = nearest(torch.tensor([[1.0, 0.0]]), torch.eye(2), 1)
    >>> at.tolist(), cosine.tolist()
    ([[0]], [[1.0]])
    """
    if not 1 <= k <= len(among):
        raise DataError(f"k must lie between 1 and the {len(among)} rows to choose from, got {k}")
    parts = [(rows @ among.T).topk(k, 1) for rows in query.split(4096)]
    at = np.concatenate([p.indices.cpu().numpy() for p in parts])
    return at, np.concatenate([p.values.cpu().numpy() for p in parts])
