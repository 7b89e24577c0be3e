"""Densities and draws of flows against zuko and normflows, at equal sizes.

The masked networks of normflows stand in one residual block, the least that its spline flow takes; its MAF
is turned round, so that densities take one pass as in the others.
"""

from __future__ import annotations

from typing import Any

from groundstate.bench import Benchmark, Peer

HIDDEN = (64, 64)


def data(size: tuple[str, int, int], seed: int) -> dict[str, Any]:
    import torch

    from groundstate.nn import flows

    name, features, rows = size
    made = {
        "nsf": lambda: flows.NSF(features, n_transforms=3, hidden_layer_sizes=HIDDEN),
        "maf": lambda: flows.MAF(features, n_transforms=3, hidden_layer_sizes=HIDDEN),
        "realnvp": lambda: flows.RealNVP(features, n_transforms=6, hidden_layer_sizes=HIDDEN),
    }
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(rows, features, generator=g)
    return {"flow": made[name](), "x": x, "size": size, "rows": rows}


def _peer(data: dict[str, Any]) -> Any:
    import zuko

    name, features, _ = data["size"]
    if "peer" not in data:
        made = {"nsf": zuko.flows.NSF, "maf": zuko.flows.MAF, "realnvp": zuko.flows.RealNVP}
        transforms = 6 if name == "realnvp" else 3
        data["peer"] = made[name](features, transforms=transforms, hidden_features=HIDDEN)
    return data["peer"]


def _normflows(data: dict[str, Any]) -> Any:
    import normflows as nf
    import torch

    name, features, _ = data["size"]
    if "normflows" not in data:
        width = HIDDEN[0]
        layers: list[Any] = []
        for _ in range(6 if name == "realnvp" else 3):
            if name == "nsf":
                made = nf.flows.AutoregressiveRationalQuadraticSpline(
                    features, 1, width, num_bins=8, tail_bound=5.0
                )
                layers.append(made)
            elif name == "maf":
                made = nf.flows.MaskedAffineAutoregressive(features, width, num_blocks=1)
                layers.append(nf.flows.Reverse(made))
            else:
                half = (features + 1) // 2
                net = nf.nets.MLP([half, *HIDDEN, 2 * (features - half)], init_zeros=True)
                layers += [nf.flows.AffineCouplingBlock(net), nf.flows.Permute(features, "swap")]
        data["normflows"] = nf.NormalizingFlow(nf.distributions.DiagGaussian(features), layers)
        data["normflows"].to(torch.float32).eval()
    return data["normflows"]


def normflows_density(data: dict[str, Any]) -> Any:
    import torch

    with torch.no_grad():
        return _normflows(data).log_prob(data["x"])


def normflows_draws(data: dict[str, Any]) -> Any:
    import torch

    with torch.no_grad():
        return _normflows(data).sample(data["rows"])[0]


def density(data: dict[str, Any]) -> Any:
    import torch

    with torch.no_grad():
        return data["flow"].log_prob(data["x"])


def peer_density(data: dict[str, Any]) -> Any:
    import torch

    with torch.no_grad():
        return _peer(data)().log_prob(data["x"])


def draws(data: dict[str, Any]) -> Any:
    import torch

    with torch.no_grad():
        return data["flow"].sample(data["rows"], generator=torch.Generator().manual_seed(0))


def peer_draws(data: dict[str, Any]) -> Any:
    import torch

    with torch.no_grad():
        return _peer(data)().sample((data["rows"],))


SIZES = {
    f"{name} {d}x{n}": (name, d, n)
    for name in ("nsf", "maf", "realnvp")
    for d, n in ((2, 64), (16, 1024))
}

DENSITY = Benchmark(
    name="flow-density",
    title="log densities of neural spline flows, MAF and RealNVP",
    sizes=SIZES,
    data=data,
    ours={"groundstate": density},
    peers={"zuko": Peer(peer_density, "zuko"), "normflows": Peer(normflows_density, "normflows")},
    score=lambda data, out: float(out.mean()),
    score_name="mean log density at the start",
    target=1.0,
)

DRAWS = Benchmark(
    name="flow-draws",
    title="draws of neural spline flows, MAF and RealNVP",
    sizes=SIZES,
    data=data,
    ours={"groundstate": draws},
    peers={"zuko": Peer(peer_draws, "zuko"), "normflows": Peer(normflows_draws, "normflows")},
    score=lambda data, out: float(out.std()),
    score_name="standard deviation of the draws",
    target=1.0,
)
