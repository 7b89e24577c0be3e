"""Classes by their names, and rows by their nearest codes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted
from torch import Tensor
from torch.nn.functional import normalize

from groundstate.compute.rows import Texts
from groundstate.errors import DataError, ShapeError
from groundstate.models.arrays import Home


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


class ZeroShot:
    """What a model with codes of pictures and of texts answers: likeness, classes by name, retrieval.

    It gives ``_image_codes(X)``, ``_text_codes(texts)``, both of length one, and ``scale_``.
    """

    template: str
    scale_: Any
    _prompts: dict[str, list[str]]

    def _image_codes(self, X: Any) -> tuple[Tensor, Home]:
        raise TypeError(f"{type(self).__name__} must define _image_codes(X)")

    def _text_codes(self, texts: Any) -> Tensor:
        raise TypeError(f"{type(self).__name__} must define _text_codes(texts)")

    def _texts(self, y: Any, name: str) -> Texts:
        raise TypeError(f"{type(self).__name__} must define _texts(y, name)")

    def similarity(self, X: Any, texts: Any, scale: float | None = 100.0) -> Any:
        r""":math:`\mathrm{softmax}(100\,IT^\top)`: how each picture shares itself out among texts,
        ``(n_samples, n_texts)``; ``scale=None`` takes the learned one for 100."""
        codes, home = self._image_codes(X)
        return home.give(self._shares(codes, self._text_codes(texts), scale))

    def _shares(self, codes: Tensor, texts: Tensor, scale: float | None) -> Tensor:
        factor = self.scale_ if scale is None else scale
        return torch.softmax(factor * codes @ texts.T, 1)

    def predict(self, X: Any, prompts: Any = None) -> Any:
        """The class of each picture whose prompt is nearest, ``(n_samples,)``.

        Parameters
        ----------
        X : pictures
        prompts : names of classes, which go into ``template``; or a mapping of names to their texts, one
            or several, whose codes are averaged; None is the classes of ``add_class``
        """
        names, table = self._asked_classes(prompts)
        codes, _ = self._image_codes(X)
        return names[(codes @ table.T).argmax(1).cpu().numpy()]

    def predict_proba(self, X: Any, prompts: Any = None, scale: float | None = 100.0) -> Any:
        """``similarity`` to the classes of ``predict``, ``(n_samples, n_classes)``."""
        _, table = self._asked_classes(prompts)
        codes, home = self._image_codes(X)
        return home.give(self._shares(codes, table, scale))

    def add_class(self, name: str, prompts: str | Sequence[str] | None = None) -> Self:
        """Know a further class by its name, or by texts of its own; nothing is learned."""
        check_is_fitted(self, "energy_")
        asked: Any = [name] if prompts is None else {name: prompts}
        self._prompts = {**self._prompts, **named(asked, self.template)}
        return self

    @property
    def classes_(self) -> NDArray[Any]:
        return np.array(list(self._prompts), dtype=object)

    def _asked_classes(self, prompts: Any) -> tuple[NDArray[Any], Tensor]:
        """Names, and the mean code of the texts of each, ``(n_classes, k)``."""
        given: Mapping[str, list[str]] = (
            self._prompts if prompts is None else named(prompts, self.template)
        )
        if not given:
            raise ValueError(
                "there are no classes to choose from; pass prompts, such as ['dog', 'cat'], or call "
                "add_class first"
            )
        flat = [text for texts in given.values() for text in texts]
        codes = self._text_codes(flat).split([len(texts) for texts in given.values()])
        table = torch.stack([normalize(each.mean(0), dim=0) for each in codes])
        return np.array(list(given)), table

    def retrieve(self, query: Any, among: Any, k: int = 5) -> tuple[Any, Any]:
        """The k nearest rows of ``among`` to each query, and their cosines, ``(n_queries, k)`` each.

        Texts find pictures and pictures find texts, or rows of their own kind: lists of strings are texts.
        """
        q, a = (
            self._text_codes(rows) if _is_text(rows) else self._image_codes(rows)[0]
            for rows in (query, among)
        )
        return nearest(q, a, k)

    def score(self, X: Any, y: Any, k: int = 1) -> float:
        """Recall at k: how often one's own text is among the k nearest, and one's own picture; the mean
        of both. Equal texts are one's own too."""
        codes, texts = self._image_codes(X)[0], self._text_codes(y)
        words = self._texts(y, "y").strings()
        if len(words) != len(codes):
            raise ShapeError(f"X has {len(codes)} rows, y has {len(words)}; give one for each")
        label = np.unique(words, return_inverse=True)[1]
        both = [nearest(a, b, min(k, len(label)))[0] for a, b in ((codes, texts), (texts, codes))]
        return float(np.mean([(label[at] == label[:, None]).any(1).mean() for at in both]))


def _is_text(rows: Any) -> bool:
    if isinstance(rows, str | Texts):
        return True
    return not isinstance(rows, Tensor) and len(rows) > 0 and isinstance(rows[0], str)
