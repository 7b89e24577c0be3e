r"""What attention knows of order, and what positions add."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from groundstate.compute.random import Key
from groundstate.energy import ClassEnergy, Finite, Sequence, SequenceEnergy
from groundstate.errors import ShapeError
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.learn import NLL, fit
from groundstate.learn.train.stochastic import Stochastic
from groundstate.nn import GPT, RoPE, SinusoidalPositions, TransformerEncoder

D, SHORT, LONG = 16, 32, 64
KINDS = ("none", "learned", "sinusoidal", "rope")


@experiment(
    "ARC-x-pos", theme="architectures", title="Attention is order-blind; positions and length",
    slow=True,
)  # fmt: skip
def positions(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Without positions an encoder is equivariant to any order of its items, so that which of two
    marked items came first cannot be decided. Added positions expand into four terms, which a common
    shift changes; rotations leave :math:`q_i^\top k_j` a function of :math:`j - i`. Learned
    positions end where training ended; scores between sinusoids fall with distance.

    An encoder in double precision; small transformers that are asked for the order of two marks, and
    causal ones on a repeating sequence, trained to 32 items and asked for 64.
    """
    key = Key.of(seed)
    g = key.fold("x").torch()
    stack = TransformerEncoder(D, 2, 2, generator=key.fold("stack").torch()).double().eval()
    x = torch.randn(2, 10, D, generator=g, dtype=torch.float64)
    order = torch.randperm(10, generator=g)
    with torch.no_grad():
        drift = float((stack(x[:, order]) - stack(x)[:, order]).abs().max())
        place = SinusoidalPositions(D)
        seen = float((stack(place(x)[:, order]) - stack(place(x[:, order]))).abs().max())
    q, k = torch.randn(2, 1, 1, 10, D, generator=g, dtype=torch.float64)
    rope = RoPE(D)
    turned = float((rope(q, 5) @ rope(k, 5).mT - rope(q, 0) @ rope(k, 0).mT).abs().max())
    table = place.table(40).double()
    added = [(q[0, 0] + table[s : s + 10]) @ (k[0, 0] + table[s : s + 10]).mT for s in (0, 5)]
    fall = (table @ table[0]).tolist()
    order_task = {kind: _order(kind, key, 30) for kind in ("none", "sinusoidal")}
    nll = {kind: _repeats(kind, key, 5 if quick else 12) for kind in KINDS[1:]}
    try:
        _net("learned", key)(torch.zeros(1, LONG, dtype=torch.int64))
        past = "no error"
    except ShapeError:
        past = "ShapeError"
    claims = [
        Claim.below("no positions: change under a permutation, undone", drift, 1e-12),
        Claim.above("with positions: the same", seen, 1e-2),
        Claim.between("no positions: accuracy of 'which came first'", order_task["none"], 0.4, 0.6),
        Claim.at_least("with positions: the same", order_task["sinusoidal"], 0.8),
        Claim.below("RoPE: change of scores under a common shift", turned, 1e-6),
        Claim.above("added positions: the same", float((added[1] - added[0]).abs().max()), 1e-2),
        Claim.equal("learned positions behind their end", past, "ShapeError"),
        Claim.above("sinusoids: P₀·P₀ against P₀·P₁, P₁ against P₃", min(fall[0] - fall[1],
                    fall[1] - fall[3]), 0.0),
    ]  # fmt: skip
    numbers = {"drift": drift, "order": order_task, "nll": nll, "fall": fall[:20]}

    def draw(figure: Figure) -> None:
        left, middle, right = figure.subplots(1, 3)
        one = (rope(q, 0) @ rope(q[..., :1, :].expand_as(q), 0).mT)[0, 0]
        left.imshow(one.numpy(), cmap="RdBu_r")
        left.set(title="RoPE: one key at all places", xlabel="key", ylabel="query")
        middle.imshow((table[:20] @ table[:20].mT).numpy(), cmap="RdBu_r")
        middle.set(title="sinusoids: P·P", xlabel="position")
        for colour, (kind, values) in zip(COLOURS, nll.items()):
            right.plot(values, color=colour, label=kind)
        right.axvline(SHORT, color="#889", ls=":")
        right.set(title="nats per symbol", xlabel="position", ylim=(0, None))
        right.legend()

    return Result(claims, numbers, draw, size=(10.0, 3.2))


class _First(nn.Module):
    """Scores of which of two marks came first, from the mean of an encoder's outputs."""

    def __init__(self, kind: str, generator: torch.Generator) -> None:
        super().__init__()
        self.embed = nn.Parameter(torch.randn(3, D, generator=generator))
        self.stack = TransformerEncoder(D, 2, 1, generator=generator)
        self.head = nn.Parameter(0.1 * torch.randn(D, 2, generator=generator))
        self.place = SinusoidalPositions(D) if kind == "sinusoidal" else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        h: Tensor = self.stack(self.place(self.embed[x])).mean(1)
        return h @ self.head


def _order(kind: str, key: Key, epochs: int) -> float:
    """Accuracy for 1,000 new rows of 8 items with two marks."""
    g = key.fold("order").torch()

    def rows(n: int) -> dict[str, Tensor]:
        at = torch.rand(n, 8, generator=g).argsort(1)[:, :2]
        x = torch.zeros(n, 8, dtype=torch.int64)
        x.scatter_(1, at, torch.tensor([1, 2]).expand(n, 2))
        return {"x": x, "y": (at[:, 0] < at[:, 1]).long()}

    energy = ClassEnergy(_First(kind, g), Sequence(Finite(3), 8), 2)
    solver = Stochastic(lr=1e-2, batch_size=64, max_epochs=epochs)
    fit(energy, rows(640), NLL(), solver, random_state=key.fold("steps"))
    new = rows(1000)
    with torch.no_grad():
        return float((energy.scores(new["x"]).argmax(1) == new["y"]).double().mean())


def _net(kind: str, key: Key) -> GPT:
    return GPT(
        8, SHORT if kind == "learned" else LONG, 32, 2, 2, positions=kind,
        generator=key.fold("gpt").torch(),
    )  # fmt: skip


def _repeats(kind: str, key: Key, epochs: int) -> list[float]:
    """Mean nats of each position of sequences that repeat themselves after 6 symbols."""
    g = key.fold("repeats").torch()

    def rows(n: int, length: int) -> Tensor:
        return torch.randint(8, (n, 6), generator=g).repeat(1, length // 6 + 1)[:, :length]

    net = _net(kind, key)
    solver = Stochastic(lr=3e-3, batch_size=32, max_epochs=epochs)
    energy = SequenceEnergy(net, 8, SHORT, bos=0)
    fit(energy, {"y": rows(640, SHORT)}, NLL(), solver, random_state=key.fold("steps"))
    length = SHORT if kind == "learned" else LONG
    with torch.no_grad():
        each = SequenceEnergy(net, 8, length, bos=0).token_energies(rows(200, length))
    return [float(v) for v in each.mean(0)]
