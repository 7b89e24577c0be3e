"""The training of a GAN against the same modules in a loop written by hand."""

from __future__ import annotations

from typing import Any

from groundstate.bench import Benchmark, Peer

BATCH, CODE, RATE = 100, 16, 1e-3
HIDDEN = {16: (64, 64), 64: (128, 128), 784: (256, 512)}


def data(size: tuple[int, int, int], seed: int) -> dict[str, Any]:
    import torch

    n, d, epochs = size
    noise = torch.Generator().manual_seed(seed)
    mix = torch.randn(2, d, generator=noise)
    x = torch.randn(n, 2, generator=noise) @ mix + 0.3 * torch.randn(n, d, generator=noise)
    return {"x": x, "epochs": epochs, "hidden": HIDDEN[d]}


def modules(data: dict[str, Any]) -> tuple[Any, Any]:
    import torch

    from groundstate.nn.adversarial import DenseDiscriminator, DenseGenerator

    d, hidden = data["x"].shape[1], data["hidden"]
    draws = torch.Generator().manual_seed(0)
    critic = DenseDiscriminator(d, hidden[::-1], generator=draws)
    return critic, DenseGenerator(CODE, hidden, [1] * d, generator=draws)


def ours(data: dict[str, Any]) -> Any:
    from groundstate.energy.networks.adversarial import AdversarialEnergy
    from groundstate.learn import Stochastic, fit
    from groundstate.learn.rules.adversarial.game import Game

    critic, maker = modules(data)
    energy = AdversarialEnergy(critic, maker, data["x"].shape[1])
    solver = Stochastic(lr=RATE, batch_size=BATCH, max_epochs=data["epochs"], tol=None)
    fit(energy, {"x": data["x"]}, Game(), solver, random_state=0)
    return critic, maker


def torch_loop(data: dict[str, Any]) -> Any:
    import torch
    from torch.nn.functional import softplus

    critic, maker = modules(data)
    x = data["x"]
    of_critic = torch.optim.Adam(critic.parameters(), lr=RATE)
    of_maker = torch.optim.Adam(maker.parameters(), lr=RATE)
    torch.manual_seed(0)
    for _ in range(data["epochs"]):
        for rows in torch.randperm(len(x)).split(BATCH):
            fake = maker(torch.randn(len(rows), CODE))
            loss = softplus(-critic(x[rows])).mean() + softplus(critic(fake.detach())).mean()
            of_critic.zero_grad()
            loss.backward()
            of_critic.step()
            loss = softplus(-critic(maker(torch.randn(len(rows), CODE)))).mean()
            of_maker.zero_grad()
            loss.backward()
            of_maker.step()
    return critic, maker


def spread(data: dict[str, Any], nets: tuple[Any, Any]) -> float:
    """The standard deviation of what is made over that of the data."""
    import torch

    with torch.no_grad():
        made = nets[1](torch.randn(1000, CODE, generator=torch.Generator().manual_seed(1)))
    return round(float(made.std() / data["x"].std()), 2)


GAN = Benchmark(
    name="gan",
    title="GAN training: the engine against a loop written by hand",
    sizes={
        "2000x16": (2_000, 16, 20),
        "4000x64": (4_000, 64, 10),
        "2000x784": (2_000, 784, 4),
    },
    data=data,
    ours=ours,
    peers={"torch loop": Peer(torch_loop, "torch", "torch")},
    score=spread,
    score_name="spread of draws, 1 is right",
    better="high",
    target=0.95,
)
