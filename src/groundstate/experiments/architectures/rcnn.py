r"""Where the time of R-CNN, Fast R-CNN and Faster R-CNN goes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from groundstate.compute.random import Key, seeded
from groundstate.data import make_shapes
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.nn.detection.backbone import ConvBody
from groundstate.nn.detection.boxes import iou
from groundstate.nn.detection.fast_rcnn import FastRCNN
from groundstate.nn.detection.rcnn import FasterRCNN
from groundstate.nn.detection.regions import selective_search
from groundstate.nn.detection.roi import crop_resize

SIDE, CROP, SCENES, ROUNDS = 128, 48, 40, 15
COUNTS = (50, 100, 200, 500, 1000, 2000)
TAKEN = (2, 5, 10, 20, 50, 100, 200)
SEARCH: dict[str, Any] = {"scale": 20.0, "min_size": 10}


def seconds(work: Callable[[], Any], repeats: int = 7) -> float:
    """The shortest processor time of a call; what else the machine does hardly counts."""
    work()
    spent = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        spent.append(time.process_time() - start)
    return min(spent)


def passed(net: FastRCNN, x: torch.Tensor, regions: torch.Tensor) -> tuple[float, float]:
    """Processor times of the convolutions and of pooling and head in one pass of Fast R-CNN."""
    net.maps(x)
    start = time.process_time()
    maps = net.maps(x)
    middle = time.process_time()
    net.roi_heads(maps, regions, (SIDE, SIDE))
    return middle - start, time.process_time() - middle


def some_boxes(n: int, rng: np.random.Generator) -> torch.Tensor:
    """n regions of 10 to 60 pixels."""
    side = rng.uniform(10, 60, (n, 2))
    corner = rng.uniform(0, 1, (n, 2)) * (SIDE - side)
    return torch.from_numpy(np.concatenate([corner, corner + side], 1)).float()


def recalls(images: Any, truths: Any) -> list[float]:
    """Share of the shapes that one of the k largest regions overlaps by half."""
    best: list[list[float]] = [[] for _ in TAKEN]
    for image, boxes in zip(images, truths, strict=True):
        found = selective_search(image, **SEARCH).boxes
        overlap = iou(boxes, found)
        for each, k in zip(best, TAKEN, strict=True):
            each += (overlap[:, -k:].max(1) >= 0.5).tolist()
    return [float(np.mean(each)) for each in best]


@experiment(
    "ARC-x-rcnn", theme="architectures", title="Each R-CNN removes one bottleneck", slow=True
)
def rcnn(seed: int = 0, *, quick: bool = False) -> Result:
    r"""R-CNN warps every region of a picture and runs the network on each, so that its time
    :math:`t \propto R` grows with the number of regions. Fast R-CNN runs the convolutions once and
    pools their map, whose time does not depend on the regions; then finding the regions by selective
    search takes most of the time. Faster R-CNN proposes them from the map.

    Scenes of 128 × 128 pixels, a network of three stages, 50 to 2000 regions (500 in a quick run);
    processor times of a picture. More regions of selective search cover more of the shapes.
    """
    key = Key.of(seed)
    rng = np.random.default_rng(key.fold("boxes").low)
    scenes = make_shapes(10 if quick else SCENES, SIDE, (1, 5), random_state=key.fold("scenes"))
    x = torch.from_numpy(np.asarray(scenes.images[:1])).float()
    with seeded(key.fold("weights")):
        body = ConvBody((16, 32, 64)).eval()
        fast = FastRCNN(4, hidden=256, **SEARCH).eval()
        sizes = (16, 24, 32, 48)
        faster = FasterRCNN(
            4, fpn=64, sizes=sizes, levels=3, hidden=256, proposals=(200, 100)
        ).eval()
    image, counts = (SIDE, SIDE), [n for n in COUNTS if n <= 500 or not quick]
    passes = {"R-CNN": 0, "Fast R-CNN": 0}

    def count(name: str) -> Callable[..., None]:
        def hook(_: Any, given: Any, __: Any) -> None:
            passes[name] += len(given[0])

        return hook

    many: list[float] = []
    with torch.no_grad():
        maps = fast.maps(x)
        given = {n: torch.cat([torch.zeros(n, 1), some_boxes(n, rng)], 1) for n in counts}
        for regions in given.values():

            def warped(regions: torch.Tensor = regions) -> None:
                for part in regions.split(250):  # in parts, as memory would ask for
                    body(crop_resize(x, part, CROP))

            watched = [body.register_forward_hook(count("R-CNN")),
                       fast.backbone.register_forward_hook(count("Fast R-CNN"))]  # fmt: skip
            passes.update(dict.fromkeys(passes, 0))
            warped()
            fast.roi_heads(fast.maps(x), regions, image)
            for each in watched:
                each.remove()
            many.append(seconds(warped, 3))
        # in turns, so that a busy moment of the machine meets all numbers of regions
        clock = np.array([[passed(fast, x, r) for r in given.values()] for _ in range(ROUNDS)])
        one, heads = clock.min(0).T.tolist()
        own = torch.from_numpy(selective_search(x[0].numpy(), **SEARCH).boxes).float()
        regions = torch.cat([torch.zeros(len(own), 1), own], 1)
        search = seconds(lambda: selective_search(x[0].numpy(), **SEARCH))
        head = seconds(lambda: fast.roi_heads(maps, regions, image))
        shared = faster.maps(x)
        pyramid = seconds(lambda: faster.maps(x))
        network = seconds(lambda: faster.rpn.proposals(faster.rpn(shared, image)))
    slope = float(np.polyfit(np.log(counts), np.log(many), 1)[0])
    middle = float(np.median(one))
    apart = max(abs(v / middle - 1) for v in one)
    recall = recalls(scenes.images, scenes.boxes)
    claims = [
        Claim.equal("pictures through the convolutions of R-CNN", passes["R-CNN"], counts[-1]),
        Claim.equal("pictures through those of Fast R-CNN", passes["Fast R-CNN"], 1),
        Claim.between("slope of log time against log regions, R-CNN", slope, 0.8, 1.2).on_the_clock(),
        Claim.at_most("change of the time of Fast R-CNN's convolutions", apart, 0.2).on_the_clock(),
        Claim.above("selective search beside all else of Fast R-CNN", search / (middle + head), 1.0)
        .on_the_clock(),
        Claim.below("proposals of the network beside selective search", network / search, 0.5)
        .on_the_clock(),
        Claim.at_least("shapes covered by all regions", recall[-1], 0.95),
        Claim.above("of these, not yet by the ten largest", recall[-1] - recall[2], 0.0),
        Claim.at_least("least rise of the covered share with more regions", min(np.diff(recall)), 0.0),
    ]  # fmt: skip
    numbers = {"regions": list(TAKEN), "recall": recall, "found": len(own), "passes": passes}
    spent = {"R-CNN": many, "convolutions": one, "heads": heads, "selective search": search,
             "pyramid": pyramid, "network's proposals": network, "head": head}  # fmt: skip

    def draw(figure: Figure) -> None:
        left, middle_, right = figure.subplots(1, 3)
        left.loglog(counts, many, "o-", color=COLOURS[4], label="R-CNN, a pass each")
        left.loglog(counts, one, "o-", color=COLOURS[0], label="Fast: convolutions")
        left.loglog(counts, heads, "o-", color=COLOURS[1], label="Fast: pooling and head")
        left.set(xlabel="regions", ylabel="seconds of a picture")
        left.legend()
        per_region = many[-1] / counts[-1] * len(own)
        bars = {
            "proposals": (search, search, network),
            "convolutions": (per_region, middle, pyramid),
            "head": (0.0, head, head),
        }
        low = np.zeros(3)
        for (name, heights), colour in zip(bars.items(), (COLOURS[2], COLOURS[0], COLOURS[1])):
            middle_.bar(("R-CNN", "Fast", "Faster"), heights, bottom=low, color=colour, label=name)
            low = low + np.array(heights)
        middle_.set(ylabel=f"seconds, {len(own)} regions")
        middle_.legend()
        right.semilogx(TAKEN, recall, "o-", color=COLOURS[2])
        right.set(xlabel="regions of selective search", ylabel="shapes covered", ylim=(0, 1.03))

    return Result(claims, numbers, draw, seconds=spent, size=(9.0, 3.0))
