r"""Many nets in one program: the same results, in a fraction of the time."""

from __future__ import annotations

import time

import torch

from groundstate.compute.device import threads
from groundstate.compute.random import Key
from groundstate.energy.networks.network import NetworkClassEnergy
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.learn import NLL, Stochastic, fit, fit_population
from groundstate.nn import MLP

ROWS, SOLO = 1280, 8  # SOLO members are also trained one by one
MEMBERS, SIZES = (16, 64, 256), (32, 128)


@experiment("NEU-X-population", theme="neural", title="Populations are faster and equal", slow=True)
def population(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Small nets spend their time on launching operations, not on arithmetic. M nets with parameters
    stacked to :math:`\Theta \in R^{M\times D}` take one launch per operation for all, since
    :math:`\nabla_\Theta\sum_mJ_m(\theta_m)` has the gradient of net m in row m. Every member is the net
    it would have been alone.

    Nets 10-32-32-3 with a seed and an order of the rows each, Adam, two passes over 1,280 rows in
    batches of 32 and 128; M = 16, 64 and 256 on one thread. The loop is eight nets trained one after
    the other, its time per net times M. Quick runs leave M = 256 out.
    """
    key, members = Key.of(seed), MEMBERS[:2] if quick else MEMBERS
    g = key.fold("rows").torch()
    x = torch.randn(ROWS, 10, generator=g)
    teacher = MLP(10, (16,), 3, "tanh", generator=key.fold("teacher").torch())
    with torch.no_grad():
        data = {"x": x, "y": teacher(x).argmax(1)}

    def nets(count: int) -> list[NetworkClassEnergy]:
        return [NetworkClassEnergy(10, 3, MLP(10, (32, 32), 3, generator=key.fold("net", i).torch()))
                for i in range(count)]  # fmt: skip

    seeds = [key.fold("order", i) for i in range(max(members))]
    apart: dict[str, float] = {}
    spent: dict[str, dict[str, float]] = {}
    with threads(1):
        for size in SIZES:
            solver = Stochastic(lr=1e-3, batch_size=size, max_epochs=2, tol=None)
            fit_population(nets(2), data, NLL(), solver, random_state=seeds[:2])  # warm up
            alone = nets(SOLO)
            start = time.perf_counter()
            for net, own in zip(alone, seeds):
                fit(net, data, NLL(), solver, random_state=own)
            each = (time.perf_counter() - start) / SOLO
            row = {}
            for M in members:
                together = nets(M)
                start = time.perf_counter()
                fit_population(together, data, NLL(), solver, random_state=seeds[:M])
                row[str(M)] = time.perf_counter() - start
                row[f"loop {M}"] = M * each
                apart[f"B = {size}, M = {M}"] = max(
                    float((p - q).detach().abs().max())
                    for a, b in zip(alone, together)
                    for p, q in zip(a.parameters(), b.parameters())
                )
            spent[str(size)] = row
    share = {f"B = {s}, M = {M}": spent[str(s)][str(M)] / spent[str(s)][f"loop {M}"]
             for s in SIZES for M in members}  # fmt: skip
    claims = [
        *[Claim.at_most(f"{name}: member against the same net alone", gap, 1e-5)
          for name, gap in apart.items()],
        *[Claim.at_most(f"{name}: time over that of the loop", part, 1 / 3).on_the_clock()
          for name, part in share.items() if "M = 16" not in name],
    ]  # fmt: skip
    numbers = {"largest difference": apart, "members": list(members), "batch sizes": list(SIZES)}

    def draw(figure: Figure) -> None:
        for ax, size in zip(figure.subplots(1, 2, sharey=True), SIZES):
            row = spent[str(size)]
            ax.loglog(members, [row[f"loop {M}"] for M in members], "o-", color=COLOURS[5],
                      label="one after the other")  # fmt: skip
            ax.loglog(members, [row[str(M)] for M in members], "o-", color=COLOURS[0],
                      label="as one program")  # fmt: skip
            ax.set(title=f"batches of {size}", xlabel="nets", ylabel="seconds")
            ax.legend()

    return Result(claims, numbers, draw, seconds={**spent, "share": share}, size=(8.5, 3.4))
