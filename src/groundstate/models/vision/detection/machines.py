"""The last step of R-CNN: support vector machines and box regressions on the features of regions."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from groundstate.models.linear.least_squares.ridge import Ridge
from groundstate.models.svm.linear_svc import LinearSVC
from groundstate.nn.detection.boxes import encode, iou
from groundstate.nn.detection.region_cnn import RCNN

NEGATIVE, NEAR = 0.3, 0.6  # IoU below which a region is background, and from which boxes are moved
C, ALPHA = 0.01, 1.0


@torch.no_grad()
def fit_machines(net: RCNN, pictures: Any, objects: Any, weight: Any = None) -> None:
    r"""Fit ``LinearSVC`` for each class and ``Ridge`` for its offsets on the features of regions.

    Positive are the true boxes of a class, negative the regions that overlap none of them by 0.3;
    regions that overlap a true box by 0.6 learn the offset to it.

    Parameters
    ----------
    net : the network, whose features are used as they are
    pictures : batches ``(B, C, H, W)`` as the network sees them
    objects : the boxes and classes of all pictures
    weight : ``(n,)`` of the pictures
    """
    was = net.training
    net.eval()
    sizes = objects.boxes.lengths.tolist()
    boxes, classes = (
        objects.boxes.values.double().cpu().split(sizes),
        objects.labels.values.cpu().split(sizes),
    )
    features, regions, picture, at = [], [], [], 0
    for x in pictures:
        found = net.proposals(x)
        for i in range(len(x)):
            own = torch.cat([boxes[at].to(x), found.boxes[i][found.real[i]].to(x)])
            numbered = torch.cat([own.new_full((len(own), 1), float(i)), own], 1)
            features.append(net.features(x, numbered).double().cpu())
            regions.append(own.double().cpu())
            picture.append(np.full(len(own), at))
            at += 1
    h, row = torch.cat(features).numpy(), np.concatenate(picture)
    own_weight = np.ones(at) if weight is None else np.asarray(weight, float)
    K, F = net.weight.shape
    machines = np.zeros((K, F)), np.zeros(K), np.zeros((K, 4, F)), np.zeros((K, 4))
    for k in range(K):
        sign, goal = [], []
        for i in range(at):
            labels = classes[i]
            same = boxes[i][labels == k + 1]
            overlap = iou(regions[i], same)
            best = overlap.amax(1) if len(same) else overlap.new_zeros(len(regions[i]))
            here = torch.where(best < NEGATIVE, -1, 0)
            here[: len(labels)][labels == k + 1] = 1
            sign.append(here)
            to = torch.full((len(best), 4), torch.nan, dtype=torch.float64)
            near = best >= NEAR
            if bool(near.any()):
                to[near] = encode(same[overlap[near].argmax(1)], regions[i][near])
            goal.append(to)
        y, t = torch.cat(sign).numpy(), torch.cat(goal).numpy()
        used = y != 0
        if len(np.unique(y[used])) == 2:
            machine = LinearSVC(C=C, max_iter=10_000).fit(h[used], y[used], own_weight[row[used]])
            machines[0][k], machines[1][k] = machine.coef_[0], machine.intercept_[0]
        near = ~np.isnan(t[:, 0])
        if near.any():
            moved = Ridge(alpha=ALPHA).fit(h[near], t[near], own_weight[row[near]])
            machines[2][k], machines[3][k] = moved.coef_, moved.intercept_
    net.judge(*(torch.from_numpy(part) for part in machines))
    net.train(was)
