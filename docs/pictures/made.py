"""The picture of a masked network of columns."""

from __future__ import annotations

import numpy as np
import pandas as pd
from common import COLOURS, figure
from matplotlib.figure import Figure

from groundstate import MADE
from groundstate.nn.flows import MaskedMLP


def made() -> Figure:
    """What a masked network connects, and draws of a mixed table."""
    net = MaskedMLP(6, 1, (24, 24))
    seen = np.eye(6)
    for i in range(3):
        seen = getattr(net, f"mask{i}").numpy() @ seen
    fig, (left, right) = figure(2)
    left.imshow(seen > 0, cmap="Blues", vmin=0, vmax=1.5)
    left.set(
        xlabel="column it sees", ylabel="column it is about", title="strictly below the diagonal"
    )
    rng = np.random.default_rng(0)
    kind = rng.choice(["a", "b", "c"], 400, p=[0.2, 0.5, 0.3])
    size = np.select([kind == "a", kind == "b"], [3.0, -2.0], rng.choice([0.0, 5.0], 400))
    frame = pd.DataFrame({"kind": kind, "size": size + 0.4 * rng.normal(size=400)})
    model = MADE(4, hidden_layer_sizes=(32,), max_iter=60, random_state=0).fit(frame)
    drawn = model.sample(400, random_state=0)
    for shift, (rows, colour) in enumerate(((frame, COLOURS[0]), (drawn, COLOURS[1]))):
        at = rows["kind"].map({"a": 0, "b": 1, "c": 2}) + 0.3 * shift - 0.15
        jitter = 0.1 * np.random.default_rng(1).uniform(-1, 1, len(rows))
        right.scatter(at + jitter, rows["size"], s=4, color=colour)
    right.set(xticks=[0, 1, 2], xticklabels=["a", "b", "c"], title="rows (blue) and draws (orange)")
    return fig


PICTURES = {"MADE": made}
