r"""Plain depth fails to train on digits, skips train; gradients by layer; adding against joining."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from groundstate.compute.random import Key
from groundstate.energy import ClassEnergy
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.experiments.neural.digits import Rows, cross_entropy, digits
from groundstate.learn import learn
from groundstate.nn import MLP, Residual, dense_branch, init_
from groundstate.nn.blocks.initialise import linear

WIDTH, DEPTHS, EPOCHS, SCALES = 32, (4, 16, 48), 10, (0.7, 1.0, 1.4)


def loss_of(net: nn.Module, rows: Rows, key: Key, epochs: int) -> float:
    """Training loss after plain steps."""
    energy = ClassEnergy(net, 64, 10)
    learn(energy, rows, optimizer="momentum", lr=0.05, epochs=epochs, batch_size=32, schedule="cosine",
          seed=key.fold("order"))  # fmt: skip
    return cross_entropy(energy, rows)


def gradient_norms(scale: float, rows: Rows, key: Key) -> list[float]:
    """Norm of the gradient in the weights of every layer of a plain net of 48 layers."""
    net = MLP(64, (WIDTH,) * 48, 10, generator=key.torch())
    layers = [m for m in net.modules() if isinstance(m, nn.Linear)]
    with torch.no_grad():
        for layer in layers:
            layer.weight.mul_(scale)
    loss = nn.functional.cross_entropy(net(rows["x"]), rows["y"])
    slopes: tuple[Tensor, ...] = torch.autograd.grad(loss, [m.weight for m in layers])
    return [float(s.norm()) for s in slopes]


def joined(key: Key, blocks: int, growth: int) -> nn.Sequential:
    """Blocks whose outputs are appended, and a linear layer."""
    layers: list[nn.Module] = [linear(64, WIDTH)]
    for i in range(blocks):
        branch = dense_branch(WIDTH + i * growth, growth, generator=key.fold("branch", i).torch())
        layers.append(Residual(branch, merge="concat"))
    net = nn.Sequential(*layers, nn.ReLU(), linear(WIDTH + blocks * growth, 10))
    for i in (0, len(net) - 1):
        init_(net[i], generator=key.fold("end", i).torch())
    return net


@experiment(
    "ARC-x-depth", theme="architectures", title="Plain depth fails to train digits", slow=True
)
def depth(seed: int = 0, *, quick: bool = False) -> Result:
    r"""A deeper net can do what a shallower one does, yet plain nets of 48 layers do not even fit their
    training rows. With :math:`h + f(h)/\sqrt K` they do. The gradient of every layer is
    :math:`\propto s^{K-1}` in the scale s of the weights: too small and it vanishes, too large and it
    explodes. Outputs of branches can be added or joined; at equal parameters both train.

    Digits, 1,200 rows, width 32, 10 epochs in batches of 32 with momentum 0.9 and a rate that falls
    from 0.05 to 0; He's weights times 0.7, 1 and 1.4 for the gradients.
    """
    key = Key.of(seed)
    train, _ = digits(key.fold("rows"), 1200)
    plain, skips = {}, {}
    for d in DEPTHS:
        own = key.fold("net", d)
        net = MLP(64, (WIDTH,) * d, 10, generator=own.torch())
        plain[d] = loss_of(net, train, own, EPOCHS)
        blocks = [
            Residual(dense_branch(WIDTH, WIDTH, generator=own.fold("b", i).torch()), scale="depth",
                     depth=d)
            for i in range(d - 1)
        ]  # fmt: skip
        first, last = (init_(linear(*s), generator=own.fold("end", s[0]).torch())
                       for s in ((64, WIDTH), (WIDTH, 10)))  # fmt: skip
        skips[d] = loss_of(nn.Sequential(first, *blocks, nn.ReLU(), last), train, own, EPOCHS)
    norms = {s: gradient_norms(s, train, key.fold("gradients")) for s in SCALES}
    ends = {s: row[0] / norms[1.0][0] for s, row in norms.items()}
    dense = joined(key.fold("dense"), 15, 13)
    added = nn.Sequential(*[
        init_(linear(64, WIDTH), generator=key.fold("a").torch()),
        *[Residual(dense_branch(WIDTH, WIDTH, generator=key.fold("c", i).torch()), scale="depth",
                   depth=26) for i in range(25)],
        nn.ReLU(), init_(linear(WIDTH, 10), generator=key.fold("z").torch()),
    ])  # fmt: skip
    counts = [sum(p.numel() for p in net.parameters()) for net in (dense, added)]
    both = [loss_of(net, train, key.fold("joined"), EPOCHS) for net in (dense, added)]
    claims = [
        Claim.above("plain, 48 layers: training loss", plain[48], 1.0),
        Claim.below("residual, 48 layers: training loss", skips[48], 0.1),
        Claim.above("plain: 48 layers less 4 layers", plain[48] - plain[4], 0.5),
        Claim.below("scale 0.7: gradient of the first layer over that at 1", ends[0.7], 1e-4),
        Claim.above("scale 1.4: the same", ends[1.4], 1e2),
        Claim.below("joined: training loss", both[0], 0.3),
        Claim.below("added, about as many parameters: training loss", both[1], 0.3),
    ]
    numbers = {"plain": plain, "residual": skips, "gradients": ends, "joined and added": both,
               "their parameters": counts}  # fmt: skip

    def draw(figure: Figure) -> None:
        left, other = figure.subplots(1, 2)
        for (name, row), colour in zip({"plain": plain, "residual": skips}.items(), COLOURS):
            left.semilogy(DEPTHS, list(row.values()), "o-", color=colour, label=name)
        left.set(xlabel="layers", ylabel="training loss", xticks=DEPTHS)
        for (s, each), colour in zip(norms.items(), COLOURS):
            other.semilogy(each, color=colour, label=f"He × {s}")
        other.set(xlabel="layer", ylabel="norm of its gradient at the start")
        for ax in (left, other):
            ax.legend()

    return Result(claims, numbers, draw, size=(9.0, 3.6))
