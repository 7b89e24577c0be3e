r"""How signals travel through a network: activations forward, gradients backward."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from groundstate.energy.base import Energy
from groundstate.learn.base import Rule
from groundstate.learn.callbacks import Callback, Run
from groundstate.learn.callbacks.held_out import evaluating

if TYPE_CHECKING:
    from matplotlib.figure import Figure

VANISHING, EXPLODING, DEAD = 1e-6, 1e6, 0.5
SATURATED: dict[type[nn.Module], Callable[[Tensor], Tensor]] = {  # slope below 4 % of the largest
    nn.Sigmoid: lambda h: (h - 0.5).abs() > 0.49,
    nn.Tanh: lambda h: h.abs() > 0.98,
}
RECTIFIERS = (nn.ReLU, nn.ReLU6, nn.Threshold)


@dataclass(frozen=True)
class LayerSignal:
    """What one layer does to the signals.

    Attributes
    ----------
    name, kind : where the layer stands and its class
    variance : of its outputs over rows and units
    gradient : root mean square of the loss's gradient in its outputs
    dead : share of rectifier units that are zero on every row
    saturated : share of sigmoid and tanh outputs where the slope is nearly zero
    ratio : norm of the weight's gradient over the norm of the weight
    """

    name: str
    kind: str
    variance: float
    gradient: float
    dead: float = 0.0
    saturated: float = 0.0
    ratio: float = math.nan


@dataclass(frozen=True)
class Signals:
    """The layers from input to output, and what is wrong with them.

    Attributes
    ----------
    layers : tuple of ``LayerSignal``
    warnings : list of sentences
    """

    layers: tuple[LayerSignal, ...]

    @property
    def vanishing(self) -> float:
        """Smallest gradient of a layer over that of the output."""
        return min((row.gradient for row in self.layers), default=math.nan) / self._last

    @property
    def exploding(self) -> float:
        """Largest gradient of a layer over that of the output."""
        return max((row.gradient for row in self.layers), default=math.nan) / self._last

    @property
    def _last(self) -> float:
        return self.layers[-1].gradient or math.nan

    @property
    def warnings(self) -> list[str]:
        found = []
        for word, share, bad in (
            ("vanish", self.vanishing, self.vanishing < VANISHING),
            ("explode", self.exploding, self.exploding > EXPLODING),
        ):
            if bad:
                found.append(
                    f"gradients {word}: {share:.1e} of the output layer's; use residual layers, "
                    "normalisation or another initialisation"
                )
        found += [
            f"{row.dead:.0%} of the units of {row.name} are dead; lower the learning rate or use "
            "a leaky activation"
            for row in self.layers
            if row.dead > DEAD
        ]
        return found

    def plot(self) -> Figure:
        """Variance of activations and size of gradients over depth, on log scales."""
        from matplotlib.figure import Figure

        fig = Figure(figsize=(7.0, 3.0), layout="constrained")
        depth = range(1, len(self.layers) + 1)
        panels = (("variance of activations", "variance"), ("size of gradients", "gradient"))
        for i, (title, attribute) in enumerate(panels):
            ax = fig.add_subplot(1, 2, i + 1)
            ax.semilogy(depth, [getattr(row, attribute) for row in self.layers], "o-")
            ax.set(title=title, xlabel="layer")
        return fig


def probe(
    net: nn.Module,
    batch: Tensor | Mapping[str, Tensor],
    loss: Rule | Callable[[Tensor], Tensor] | None = None,
    *,
    generator: torch.Generator | None = None,
) -> Signals:
    r"""Look at every layer of a network on one batch; the network is left as it was.

    In a rectifier network of width D whose weights have variance :math:`\sigma_\Omega^2`, the
    variance of pre-activations follows :math:`\sigma'^2 = \tfrac12 D\,\sigma_\Omega^2\,\sigma^2`.

    Parameters
    ----------
    net : module or energy
    batch : the input ``(B, ...)`` of a module, or the variables of an energy
    loss : function of the output, or a rule for an energy
        None sends a random gradient of variance 1 back from the output.
    generator : source of that gradient; a fixed seed by default

    Returns
    -------
    Signals

    Examples
    --------
    >>> import torch
    >>> from torch import nn
    >>> net = nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 1))
    >>> with torch.no_grad():
    ...     _ = net[0].weight.zero_(), net[0].bias.fill_(-1.0)
    >>> signals = probe(net, torch.randn(8, 2))
    >>> [row.kind for row in signals.layers], signals.layers[1].dead
    (['Linear', 'ReLU', 'Linear'], 1.0)
    """
    outputs: list[tuple[str, nn.Module, Tensor]] = []

    def keep(name: str) -> Callable[..., None]:
        def hook(module: nn.Module, args: Any, output: Any) -> None:
            if isinstance(output, Tensor) and output.is_floating_point() and output.requires_grad:
                outputs.append((name, module, output))

        return hook

    leaves = [(n, m) for n, m in net.named_modules() if not list(m.children())]
    handles = [m.register_forward_hook(keep(n)) for n, m in leaves]
    buffers = {n: b.detach().clone() for n, b in net.named_buffers()}  # batch norm counts rows
    quiet = evaluating(loss) if isinstance(loss, Rule) else nullcontext()
    try:
        with torch.enable_grad(), quiet:
            target, seed = _forward(net, batch, loss, generator)
            if not outputs:
                raise ValueError(
                    f"{type(net).__name__} has no layers whose outputs depend on parameters"
                )
            weights = [_weight(m) for _, m, _ in outputs]
            wanted = [h for _, _, h in outputs] + [w for w in weights if w is not None]
            found = torch.autograd.grad(
                target, wanted, seed, allow_unused=True, materialize_grads=True
            )
    finally:
        for handle in handles:
            handle.remove()
        for name, buffer in net.named_buffers():
            buffer.copy_(buffers[name])
    return Signals(_rows(outputs, weights, found))


def _forward(
    net: nn.Module, batch: Any, loss: Any, generator: torch.Generator | None
) -> tuple[Tensor, Tensor | None]:
    if isinstance(net, Energy):
        if isinstance(loss, Rule):
            return loss.mean(net, batch, generator=generator)[0], None
        out = net(**batch)
    else:
        x = batch if isinstance(batch, Tensor) else batch["x"]
        out = net(x.detach().requires_grad_(x.is_floating_point()))
    if loss is not None:
        return loss(out).mean(), None
    if generator is None:
        generator = torch.Generator(device=out.device).manual_seed(0)
    return out, torch.randn(out.shape, generator=generator, device=out.device, dtype=out.dtype)


def _weight(module: nn.Module) -> Tensor | None:
    weight = getattr(module, "weight", None)
    return weight if isinstance(weight, nn.Parameter) and weight.requires_grad else None


@torch.no_grad()
def _rows(
    outputs: Sequence[tuple[str, nn.Module, Tensor]],
    weights: Sequence[Tensor | None],
    found: Sequence[Tensor],
) -> tuple[LayerSignal, ...]:
    """All numbers on the device first, then one transfer."""
    slopes = iter(found[len(outputs) :])
    table = []
    for (_, module, h), weight, g in zip(outputs, weights, found[: len(outputs)], strict=True):
        zero = h.new_zeros(())
        units = h.transpose(1, -1).flatten(0, -2) if h.ndim > 1 else h[:, None]  # (rows, units)
        rectified = isinstance(module, RECTIFIERS)
        dead = (units <= 0).all(0).double().mean() if rectified else zero
        saturation = SATURATED.get(type(module))
        saturated = zero if saturation is None else saturation(h).double().mean()
        ratio = zero.new_tensor(math.nan)
        if weight is not None:
            ratio = next(slopes).norm() / weight.norm()
        variance, size = h.double().var(unbiased=False), g.double().square().mean().sqrt()
        numbers = (variance, size, dead, saturated, ratio)
        table.append(torch.stack([n.double() for n in numbers]))
    listed = torch.stack(table).tolist()
    return tuple(
        LayerSignal(name, type(module).__name__, *numbers)
        for (name, module, _), numbers in zip(outputs, listed, strict=True)
    )


class Probe(Callback):
    """Probe the network every so many epochs while it learns.

    Parameters
    ----------
    every : epochs between looks
    batch : rows to look at, by variable name; None takes the first training rows
    rows : how many training rows to take

    Attributes
    ----------
    signals : list of (epoch, ``Signals``)

    Examples
    --------
    >>> import torch
    >>> from groundstate.energy import NetClassEnergy
    >>> from groundstate.learn import SoftMin, Stochastic, fit
    >>> data = {"x": torch.randn(16, 2), "y": torch.arange(16) % 2}
    >>> watch = Probe(every=2)
    >>> solver = Stochastic(max_epochs=4, tol=None)
    >>> _ = fit(NetClassEnergy(2, 2, (8,)), data, SoftMin(), solver, callbacks=[watch])
    >>> [epoch for epoch, _ in watch.signals]
    [2, 4]
    """

    def __init__(
        self, every: int = 1, batch: Mapping[str, Tensor] | None = None, rows: int = 256
    ) -> None:
        self.batch, self.every, self.rows = batch, every, rows

    def on_begin(self, run: Run) -> None:
        self.signals: list[tuple[int, Signals]] = []

    def on_epoch(self, run: Run) -> None:
        if run.epoch % self.every:
            return
        batch = self.batch
        if batch is None:
            batch = {k: v[: self.rows] for k, v in run.problem.resident.items()}
        device = run.energy.placement()[0]
        generator = run.problem.key.fold("probe", run.epoch).torch(device)
        signals = probe(run.energy, batch, run.problem.rule, generator=generator)
        self.signals.append((run.epoch, signals))
        run.logs["dead"] = max(row.dead for row in signals.layers)
        run.logs["vanishing"], run.logs["exploding"] = signals.vanishing, signals.exploding

    def state(self) -> dict[str, Any]:
        return {"signals": [[e, [list(_values(r)) for r in s.layers]] for e, s in self.signals]}

    def load(self, state: dict[str, Any]) -> None:
        self.signals = [
            (int(epoch), Signals(tuple(LayerSignal(*row) for row in rows)))
            for epoch, rows in state["signals"]
        ]


def _values(row: LayerSignal) -> tuple[Any, ...]:
    return (row.name, row.kind, row.variance, row.gradient, row.dead, row.saturated, row.ratio)


def gradient_autocorrelation(
    nets: nn.Module | Sequence[nn.Module], line: Tensor, output: int = 0
) -> Tensor:
    r"""Autocorrelation of :math:`dy/dx` along a line, mean over nets.

    With :math:`g_i` the centred slopes on an even grid,
    :math:`c_k = \sum_i g_i g_{i+k} / \sum_i g_i^2`. Deep plain nets have slopes like white noise
    (shattered gradients), shallow and residual nets do not.

    Parameters
    ----------
    nets : one network of one input, or several
    line : (n,) or (n, 1) evenly spaced inputs
    output : which output of the network

    Returns
    -------
    Tensor (n,), lag 0 is 1

    Examples
    --------
    >>> net = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1))
    >>> gradient_autocorrelation(net, torch.linspace(-2, 2, 32))[0].item()
    1.0
    """
    many = [nets] if isinstance(nets, nn.Module) else list(nets)
    points = line.reshape(-1, 1)
    n = len(points)
    gaps = points.diff(dim=0)
    if n < 3 or bool((gaps - gaps.mean()).abs().max() > 1e-3 * gaps.mean().abs()):
        raise ValueError("line must hold at least 3 evenly spaced inputs, as torch.linspace gives")
    total = torch.zeros(n, dtype=torch.float64, device=points.device)
    for net in many:
        x = points.detach().clone().requires_grad_(True)
        y = net(x).reshape(n, -1)[:, output]
        slope = torch.autograd.grad(y.sum(), x)[0].reshape(-1).double()  # (n,)
        g = slope - slope.mean()
        spectrum = torch.fft.rfft(g, 2 * n)  # zero padding: no wrapping around
        c = torch.fft.irfft(spectrum.abs().square(), 2 * n)[:n]
        total += c / c[0].clamp_min(torch.finfo(c.dtype).tiny)
    return total / len(many)
