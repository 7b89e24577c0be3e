r"""Transfer of networks behind classifiers: new heads, fine-tuning, another distribution of rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import torch
from torch import Tensor, nn

from groundstate.errors import DataError, ShapeError, StoreError, Unsupported
from groundstate.learn.base import Rule
from groundstate.learn.solvers.networks.estimator import NetworkTraining
from groundstate.math.linalg.matrix_functions import inv_sqrtm, sqrtm
from groundstate.models.networks.seeds import init_key
from groundstate.models.rows.making import make_network
from groundstate.models.rows.network import pieces
from groundstate.models.rows.network_roles import RowNetworkClassifier
from groundstate.nn.blocks.norms import refit_norm
from groundstate.nn.blocks.transfer import Freeze, Transferred, layers_of, transfer

_BATCH = 64  # rows at a time, of statistics


class TransferClassifier(RowNetworkClassifier):
    """A classifier whose network can come from elsewhere and go on elsewhere.

    Parameters
    ----------
    freeze : bool, int or "backbone"
        What keeps its weights in ``fit``: False nothing, True or "backbone" all but the head, a number
        the first layers; for networks that come with weights. Batch norms of frozen layers keep their
        statistics.
    """

    freeze: Any
    _start: nn.Module | None = None  # the network of the next fit

    # --- networks with weights -----------------------------------------------------------

    def load_backbone(self, path: Any) -> Self:
        """Take weights from a file for the next ``fit`` or ``finetune``; the head is made anew.

        Parameters
        ----------
        path : a model that groundstate saved, or a checkpoint with the names of the architecture
            (``.safetensors``, or ``.pth`` of torch, read without running code), such as torchvision's
        """
        kept = Path(path)
        if not kept.exists():
            raise DataError(f"there is no file {str(path)!r} to take weights from")
        if kept.suffix in (".safetensors", ".pth", ".pt", ".bin"):
            self._start = self._filled(_state(kept), str(path))
            return self
        from groundstate.store import load

        source = load(kept)
        if not isinstance(source, RowNetworkClassifier):
            raise DataError(f"{str(path)!r} holds a {type(source).__name__}, no network classifier")
        net = source.network_
        self._start = deepcopy(net.net if isinstance(net, Transferred) else net)
        return self

    def _filled(self, state: Mapping[str, Tensor], path: str) -> nn.Module:
        """The named architecture with the weights of a checkpoint, but for its head."""
        key = init_key(self.random_state).fold("init")
        network, given = self._architecture()
        net = make_network(network, {}, given, self.rows, key)
        own = net.state_dict()
        head = _head(net)
        wanted = {k: v for k, v in own.items() if not k.startswith(head + ".")}
        lost = [k for k in wanted if k not in state]
        wrong = [k for k in wanted if k in state and state[k].shape != own[k].shape]
        if lost or wrong:
            what = (
                f"lacks {lost[0]!r}" if lost else
                f"has {wrong[0]!r} of shape {tuple(state[wrong[0]].shape)}, not "
                f"{tuple(own[wrong[0]].shape)}"
            )  # fmt: skip
            raise DataError(
                f"{path!r} is no checkpoint of network={network!r}: it {what}; name its "
                "architecture, and its settings in network_params"
            )
        net.load_state_dict({**own, **{k: state[k] for k in wanted}})
        return net

    def _made(self, X: Any, y: Any) -> nn.Module:
        self._fresh = self._with_weights(X, y)
        return self._fresh

    def _with_weights(self, X: Any, y: Any) -> nn.Module:
        given = self._start is not None or isinstance(self.network, nn.Module)
        net = deepcopy(self._start) if self._start is not None else super()._made(X, y)
        freeze = _freeze(self.freeze)
        if isinstance(net, Transferred) or (freeze == "none" and not given):
            return net
        k = len(self.classes_)
        if freeze == "none" and (not _linear(net) or _last(net).out_features == k):
            return net
        return self._with_head(net, k, freeze)

    def _with_head(
        self, net: nn.Module, k: int, freeze: Freeze, decay: float = 1.0, new: bool = False
    ) -> Transferred:
        """The network with k outputs; a head that has them stays unless a new one is wanted."""
        last = _last(net)
        head = k if new or last.out_features != k else deepcopy(last)
        key = init_key(self.random_state).fold("head")
        return transfer(net, head, freeze, decay=decay, generator=key.torch())

    # --- fine-tuning ---------------------------------------------------------------------

    def finetune(
        self,
        X: Any,
        y: Any = None,
        *,
        freeze: Literal["backbone"] | int | None = "backbone",
        lr_decay: float = 0.9,
        sample_weight: Any = None,
    ) -> Self:
        r"""Learn a new task with the backbone of this model.

        New classes get a new head; where y has the classes that are known the head stays too, and
        with ``freeze=None, lr_decay=1`` this is training that goes on.

        Parameters
        ----------
        X, y, sample_weight : rows of the new task
        freeze : "backbone" learns the head alone, None everything, a number freezes so many layers
            from the input on; their batch norms keep their statistics
        lr_decay : factor on the learning rate from layer to layer, from the head down
        """
        if not 0 < lr_decay <= 1:
            raise ValueError(f"lr_decay is a factor in (0, 1], got {lr_decay}")
        learned = hasattr(self, "energy_")
        if not learned and self._start is None:
            raise ValueError(
                "finetune goes on from a network with weights: fit first, or load_backbone(path)"
            )
        net: Any = self.network_ if learned else self._start
        rows, labels, encoded = self._checked(X, y)
        classes = encoded["classes_"]
        same = learned and np.array_equal(self.classes_, classes)
        settings = self._start, self.warm_start
        self.warm_start = same and freeze is None and lr_decay == 1
        if not self.warm_start:
            body = net.net if isinstance(net, Transferred) else net
            self._start = self._with_head(
                body, len(classes), _freeze(freeze), lr_decay, new=not same
            )
        self._keeps_preparation = learned
        try:
            return self.fit(rows, classes[labels], sample_weight)
        finally:
            self._start, self.warm_start = settings
            del self._keeps_preparation

    _keeps_preparation = False

    def _training(self, rule: Rule, total: float) -> NetworkTraining:
        found = super()._training(rule, total)
        net = self.__dict__.pop("_fresh", None)
        net = self._net if net is None else net
        scales = {
            id(p): scale
            for module in net.modules()
            if isinstance(module, Transferred)
            for p, scale in module.learning_rate_scales()
            if scale != 1
        }
        if scales and self._descent is not None:
            self._descent.scale = scales
        elif scales:
            raise Unsupported(
                f"optimizer={self.optimizer!r} has one rate for all layers; use 'adamw', 'adam', "
                "'sgd', 'momentum' or 'nesterov', or lr_decay=1"
            )
        return found

    # --- another distribution ------------------------------------------------------------

    @torch.no_grad()
    def adapt(
        self, X_target: Any, X_source: Any = None, *, method: Literal["bn", "coral"] = "bn"
    ) -> Self:
        r"""Adapt to rows of the same form but another distribution, without labels.

        Parameters
        ----------
        X_target : rows that will come
        X_source : rows that were learned from, for "coral"
        method : "bn" estimates the statistics of the batch norms again on the target; "coral" maps the
            features f before the head to the mean and covariance of the source,
            :math:`C_s^{1/2}C_t^{-1/2}(f-\mu_t)+\mu_s`, by new weights of the head
        """
        try:
            target, _ = self._rows(X_target)
        except ShapeError as error:
            raise ShapeError(
                f"adapt takes rows of the form that was learned ({error}); another input space is "
                "general transfer: train a new network on it, or bring its rows into this form"
            ) from None
        device = self.energy_.placement()[0]
        if method == "bn":
            if not any(isinstance(m, nn.modules.batchnorm._BatchNorm) for m in self._net.modules()):
                raise Unsupported("the network has no batch norms to adapt; use method='coral'")
            refit_norm(self._net, list(pieces(target, device, _BATCH)))
            self.energy_.eval()
            return self
        if method != "coral":
            raise ValueError(f"method is 'bn' or 'coral', got {method!r}")
        if X_source is None:
            raise ValueError("method='coral' compares the target with X_source, the learned rows")
        source, _ = self._rows(X_source)
        net = self._net
        head = _last(net)
        (mean_s, cov_s), (mean_t, cov_t) = (
            _moments(_features(net, head, pieces(rows, device, _BATCH)))
            for rows in (source, target)
        )
        A = sqrtm(cov_s) @ inv_sqrtm(cov_t)  # (d, d)
        W = head.weight.double()
        head.bias.add_((W @ (mean_s - A @ mean_t)).to(head.bias))
        head.weight.copy_((W @ A).to(head.weight))
        return self


def _linear(net: nn.Module) -> list[str]:
    return [name for name, layer in layers_of(net) if isinstance(layer, nn.Linear) and name]


def _head(net: nn.Module) -> str:
    """The name of the last linear layer."""
    found = _linear(net)
    if not found:
        raise Unsupported(
            f"transfer needs a body under a last linear layer; {type(net).__name__} has none"
        )
    return found[-1]


def _last(net: nn.Module) -> nn.Linear:
    found = net.get_submodule(_head(net))
    assert isinstance(found, nn.Linear)
    return found


def _freeze(freeze: Any) -> Freeze:
    if freeze is None or freeze is False:
        return "none"
    return "body" if freeze is True or freeze == "backbone" else freeze


def _state(path: Path) -> dict[str, Tensor]:
    try:
        if path.suffix == ".safetensors":
            from safetensors.torch import load_file

            return load_file(path)
        found = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # damaged files make readers raise anything
        raise StoreError(f"{str(path)!r} cannot be read as a checkpoint: {error}") from error
    found = found.get("state_dict", found) if isinstance(found, dict) else None
    if not isinstance(found, dict) or not all(isinstance(v, Tensor) for v in found.values()):
        raise StoreError(f"{str(path)!r} holds no weights by name")
    return {str(name).removeprefix("module."): v for name, v in found.items()}


def _features(net: nn.Module, head: nn.Module, batches: Iterator[Tensor]) -> Tensor:
    """What the head is given, ``(n, d)``, in float64."""
    seen: list[Tensor] = []
    handle = head.register_forward_pre_hook(lambda _, given: seen.append(given[0].double()))
    try:
        for batch in batches:
            net(batch)
    finally:
        handle.remove()
    return torch.cat(seen).flatten(1)


def _moments(f: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and covariance, with a small ridge where there are few rows."""
    if len(f) < 2:
        raise DataError(f"a covariance needs at least 2 rows, got {len(f)}")
    cov = torch.cov(f.T).reshape(f.shape[1], f.shape[1])
    ridge = 1e-3 * cov.diagonal().mean().clamp_min(1e-12)
    return f.mean(0), cov + ridge * torch.eye(len(cov), dtype=f.dtype, device=f.device)
