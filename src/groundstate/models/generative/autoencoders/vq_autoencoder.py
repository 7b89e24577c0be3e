r"""The autoencoder whose code is a few entries of a codebook."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from groundstate.compute.foreign.sklearn import Interval
from groundstate.compute.random import Key
from groundstate.compute.thread_policy import answering
from groundstate.energy.base import Energy
from groundstate.learn.base import Rule
from groundstate.learn.rules.codes.penalties import Commitment
from groundstate.learn.rules.codes.reconstruction import Reconstruction
from groundstate.models.generative.autoencoders.base import AutoencoderBase
from groundstate.nn.blocks.quantise import Quantiser
from groundstate.registry import models


@models.register(family="autoencoders", task="representation", role="generator", auto=False)
class VQAutoencoder(AutoencoderBase):
    r"""An autoencoder with vector quantisation: parts of the code are entries of a codebook C,

    .. math:: \min_{f, g, C} E\bigl[-\log p(x \mid g(q(f(x)))) + \|\mathrm{sg}(f(x)) - q(f(x))\|^2
        + \beta\|f(x) - \mathrm{sg}(q(f(x)))\|^2\bigr], \qquad
        q(z) = \arg\min_{c \in C}\|z - c\| \text{ for every part of } z,

    with the gradient of the code straight through q (van den Oord et al. 2017). A row is then
    ``n_components / code_size`` whole numbers (``tokens``). It has no density; ``LatentDiffusion`` or an
    autoregressive model of the tokens learns which codes are frequent.

    Parameters
    ----------
    n_codes : int, default=512
        Vectors of the codebook.
    code_size : int or None, default=None
        Length of a vector; divides ``n_components``. None is 2, or 1 where that is odd.
    commitment : float, default=0.25
        β.

    Attributes
    ----------
    codebook_ : (n_codes, code_size) array

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import VQAutoencoder
    >>> t = np.random.default_rng(0).uniform(0, 2 * np.pi, 300)
    >>> X = np.column_stack([np.cos(t), np.sin(t), np.cos(t) * np.sin(t)])
    >>> model = VQAutoencoder(2, n_codes=32, hidden_layer_sizes=(32,), max_iter=40, random_state=0).fit(X)
    >>> model.tokens(X).shape, model.transform(X).shape, model.codebook_.shape
    ((300, 1), (300, 2), (32, 2))
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_codes": [Interval(Integral, 2, None, closed="left")],
        "code_size": [Interval(Integral, 1, None, closed="left"), None],
        "commitment": [Interval(Real, 0, None, closed="left")],
    }
    wide_codes = True
    n_codes: int
    code_size: int | None
    commitment: float

    def __init__(
        self,
        n_components: int = 8,
        n_codes: int = 512,
        code_size: int | None = None,
        commitment: float = 0.25,
        hidden_layer_sizes: Any = (128, 64),
        activation: str = "relu",
        likelihood: Any = "squared",
        likelihood_scale: Any = 1.0,
        network: Any = None,
        solver: Any = "adam",
        learning_rate_init: float = 1e-3,
        batch_size: int = 128,
        max_iter: int = 200,
        alpha: float = 0.0,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: float = 10,
        tol: float = 1e-4,
        warm_start: bool = False,
        scale: str | None = "auto",
        ema_decay: float | None = None,
        verbose: Any = False,
        random_state: Any = None,
        device: Any = "auto",
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    # --- learning ------------------------------------------------------------------------

    def _energy_of(self, x: Tensor, y: Tensor | None, key: Key) -> Energy:  # type: ignore[override]
        size = self.code_size or (1 if self._code % 2 else 2)
        if self._code % size:
            raise ValueError(f"code_size={size} must divide the length {self._code} of the code")
        energy: Any = super()._energy_of(x, y, key)
        quantiser = Quantiser(self.n_codes, size, key.fold("book").torch())
        energy.encoder = nn.Sequential(energy.encoder, quantiser).to(x.device, x.dtype)
        with torch.no_grad():  # the book begins at codes of noise as wide as rows, within reach
            inputs = energy.likelihood.n_inputs + energy.condition
            noise = torch.randn(self.n_codes, inputs, generator=key.fold("noise").torch())
            codes = energy.encoder[0](noise.to(x)).reshape(-1, size)
            quantiser.book.copy_(codes[: self.n_codes])
        made: Energy = energy
        return made

    def _loss(self, energy: Energy) -> Rule:
        return Reconstruction(penalty=Commitment(self.commitment))

    # --- answers -------------------------------------------------------------------------

    @property
    def _quantiser(self) -> Quantiser:
        found: Any = self.energy_.encoder[1]  # type: ignore[index]
        assert isinstance(found, Quantiser)
        return found

    def _decode(self, z: Tensor, y: Tensor | None) -> Tensor:
        return super()._decode(self._quantiser(z), y)

    def _draw(
        self, n: int, y: Tensor | None, T: float, generator: torch.Generator
    ) -> tuple[Tensor, Tensor | None]:
        z = self._quantiser(self.energy_.prior.draw(n, y, T=T, generator=generator))
        return self._around(self.energy_.decode(z, y), generator), z

    @property
    def codebook_(self) -> Any:
        book: Tensor = self._quantiser.book.detach()
        return book.cpu().numpy()

    def tokens(self, X: Any, y: Any = None) -> Any:
        """Numbers of the codebook's vectors in the code of each row, ``(n_samples, parts)``."""
        x, home = self._rows(X)
        c = self._contexts_of(y, x)
        with answering(self.energy_, x):
            parts = [self._quantiser.index(self._encode(a, b)) for a, b in self._blocks(x, c)]
            return home.give(torch.cat(parts))
