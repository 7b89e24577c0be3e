"""The training of a VAE against the same modules in a loop written by hand."""

from __future__ import annotations

from typing import Any

from groundstate.bench import Benchmark, Peer

BATCH = 128
HIDDEN = {16: (32,), 64: (128, 64), 784: (512, 256)}
CODE = 2


def data(size: tuple[int, int, int], seed: int) -> dict[str, Any]:
    import torch

    n, d, epochs = size
    noise = torch.Generator().manual_seed(seed)
    mix = torch.randn(CODE, d, generator=noise)
    x = torch.randn(n, CODE, generator=noise) @ mix + 0.3 * torch.randn(n, d, generator=noise)
    return {"x": x, "epochs": epochs, "hidden": HIDDEN[d]}


def modules(data: dict[str, Any]) -> tuple[Any, Any]:
    from groundstate.nn.blocks.mlp import MLP

    d, hidden = data["x"].shape[1], data["hidden"]
    return MLP(d, hidden, 2 * CODE), MLP(CODE, hidden[::-1], d)


def ours(data: dict[str, Any]) -> Any:
    from groundstate.energy import DeepLatentEnergy
    from groundstate.energy.latent.deep.priors import NormalPrior
    from groundstate.learn import NegativeELBO, Stochastic, fit
    from groundstate.nn import likelihood

    encoder, decoder = modules(data)
    energy = DeepLatentEnergy(
        decoder, likelihood("gaussian", data["x"].shape[1]), NormalPrior(CODE)
    )
    solver = Stochastic(batch_size=BATCH, max_epochs=data["epochs"], tol=None)
    fit(energy, {"x": data["x"]}, NegativeELBO(encoder), solver, random_state=0)
    return encoder, decoder


def torch_loop(data: dict[str, Any]) -> Any:
    import torch

    encoder, decoder = modules(data)
    x = data["x"]
    adam = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=1e-3)
    torch.manual_seed(0)
    for _ in range(data["epochs"]):
        for rows in torch.randperm(len(x)).split(BATCH):
            batch = x[rows]
            mean, logvar = encoder(batch).chunk(2, 1)
            z = mean + (0.5 * logvar).exp() * torch.randn_like(mean)
            reconstruction = 0.5 * (batch - decoder(z)).square().sum(1)
            kl = 0.5 * (mean.square() + logvar.exp() - 1 - logvar).sum(1)
            loss = (reconstruction + kl).mean()
            adam.zero_grad()
            loss.backward()
            adam.step()
    return encoder, decoder


def loss(data: dict[str, Any], nets: tuple[Any, Any]) -> float:
    """The mean loss of the training rows, at the mean code."""
    import torch

    encoder, decoder = nets
    with torch.no_grad():
        mean, logvar = encoder(data["x"]).chunk(2, 1)
        kl = 0.5 * (mean.square() + logvar.exp() - 1 - logvar).sum(1)
        return float((0.5 * (data["x"] - decoder(mean)).square().sum(1) + kl).mean())


VAE = Benchmark(
    name="vae",
    title="VAE training: the engine against a loop written by hand",
    sizes={
        "2000x16": (2_000, 16, 20),
        "4000x64": (4_000, 64, 10),
        "2000x784": (2_000, 784, 4),
    },
    data=data,
    ours=ours,
    peers={"torch loop": Peer(torch_loop, "torch", "torch")},
    score=loss,
    score_name="loss",
    target=0.95,
)
