"""Densities and draws of flows against zuko, at equal sizes."""

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
    peers={"zuko": Peer(peer_density, "zuko")},
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
    peers={"zuko": Peer(peer_draws, "zuko")},
    score=lambda data, out: float(out.std()),
    score_name="standard deviation of the draws",
    target=1.0,
)
