"""Pictures of models of pictures: tasks, predictions and their evidence, augmentations."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import torch
from common import COLOURS, figure
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from sklearn.datasets import load_digits

from groundstate import ImageClassifier
from groundstate.data import make_shapes
from groundstate.nn.augment import preset


@cache
def _digits() -> tuple[ImageClassifier, np.ndarray, np.ndarray]:
    X, y = load_digits(return_X_y=True)
    X = X.reshape(-1, 1, 8, 8) / 16
    model = ImageClassifier(
        "cnn", {"channels": (16, 32)}, max_epochs=12, lr=1e-2, random_state=0, device="cpu"
    )
    return model.fit(X[:1200], y[:1200]), X[1200:], y[1200:]


def _plain(ax: Any) -> None:
    ax.set(xticks=[], yticks=[])


def image_classifier() -> Figure:
    """Eight new digits, the evidence for their labels (Grad-CAM) and the probabilities."""
    model, X, y = _digits()
    model_maps, proba = model.explain(X[:8]), model.predict_proba(X[:8])
    fig = Figure(figsize=(8, 3.6), layout="constrained")
    axes = fig.subplots(3, 8, height_ratios=(2, 2, 1))
    for i in range(8):
        top, middle, low = axes[:, i]
        label = int(model.classes_[proba[i].argmax()])
        top.imshow(X[i, 0], cmap="Greys")
        top.set_title(str(label), color=COLOURS[2] if label == y[i] else COLOURS[1])
        middle.imshow(X[i, 0], cmap="Greys", alpha=0.5)
        middle.imshow(model_maps[i], cmap="Reds", alpha=0.6)
        low.bar(range(10), proba[i], color=COLOURS[0])
        low.set_ylim(0, 1)
        for ax in (top, middle, low):
            _plain(ax)
    for ax, name in zip(axes[:, 0], ("picture", "evidence", "p(y | x)")):
        ax.set_ylabel(name)
    return fig


def image_tasks() -> Figure:
    """Four questions to one picture: which class, where, which and where, which pixels."""
    scene = make_shapes(1, random_state=3)[0]
    picture = scene.image.transpose(1, 2, 0)
    fig = Figure(figsize=(8, 4.4), layout="constrained")
    grid = fig.add_gridspec(2, 4, height_ratios=(1, 2))
    root = fig.add_subplot(grid[0, :])
    root.set(xlim=(0, 4), ylim=(0, 1))
    root.axis("off")
    root.text(2, 0.85, "What is on the picture?", ha="center", va="center", fontweight="bold")
    tasks = (
        ("classify", "label"), ("localise", "label and box"),
        ("detect", "boxes and labels"), ("segment", "mask"),
    )  # fmt: skip
    names = ("", "circle", "square", "triangle")
    for i, (task, answer) in enumerate(tasks):
        root.plot([2, i + 0.5], [0.72, 0.4], color="grey", lw=1)
        root.text(i + 0.5, 0.3, task, ha="center", va="center", fontweight="bold")
        root.text(i + 0.5, 0.08, f"→ {answer}", ha="center", va="center", fontsize=9)
        ax = fig.add_subplot(grid[1, i])
        ax.imshow(picture)
        _plain(ax)
        areas = [(b[2] - b[0]) * (b[3] - b[1]) for b in scene.boxes]
        largest = int(np.argmax(areas))
        if task == "classify":
            ax.set_xlabel(names[int(scene.labels[largest])])
        shown = [largest] if task == "localise" else range(len(scene.boxes))
        if task in ("localise", "detect"):
            for k in shown:
                x1, y1, x2, y2 = scene.boxes[k]
                edge = COLOURS[int(scene.labels[k])]
                ax.add_patch(Rectangle((x1, y1), x2 - x1, y2 - y1, fill=False, ec=edge, lw=2))
                ax.text(x1, y1 - 1, names[int(scene.labels[k])], color=edge, fontsize=8)
        if task == "segment":
            masked = np.ma.masked_equal(scene.semantic, 0)
            ax.imshow(masked, cmap="viridis", alpha=0.75, vmin=0, vmax=3)
    return fig


def image_augment() -> Figure:
    """One picture and what the three augmentations make of it."""
    image = torch.from_numpy(make_shapes(1, random_state=3).images)
    fig = Figure(figsize=(8, 4.2), layout="constrained")
    axes = fig.subplots(3, 6)
    for row, name in zip(axes, ("light", "photo", "strong")):
        many = image.expand(5, -1, -1, -1)
        augment = preset(name)
        assert augment is not None
        changed = augment(many, torch.Generator().manual_seed(0))
        for ax, one in zip(row, [image[0], *changed]):
            ax.imshow(one.permute(1, 2, 0).clamp(0, 1))
            _plain(ax)
        row[0].set_ylabel(name)
    return fig


def image_confusion() -> Figure:
    """Which digits are taken for which, with a picture of each mistake."""
    model, X, y = _digits()
    found = model.predict(X)
    fig, (left, right) = figure(2, height=3.6)
    table = np.zeros((10, 10), int)
    np.add.at(table, (y, found), 1)
    left.imshow(np.log1p(table), cmap="Blues")
    for i, j in zip(*np.nonzero(table)):
        left.text(j, i, table[i, j], ha="center", va="center", fontsize=7)
    left.set(xlabel="predicted", ylabel="true", xticks=range(10), yticks=range(10))
    wrong = np.flatnonzero(found != y)[:12]
    right.axis("off")
    for k, i in enumerate(wrong):
        ax = right.inset_axes([0.25 * (k % 4), 0.68 - 0.34 * (k // 4), 0.22, 0.26])
        ax.imshow(X[i, 0], cmap="Greys")
        ax.set_title(f"{y[i]} as {found[i]}", fontsize=8)
        _plain(ax)
    return fig


PICTURES = {
    "ImageClassifier": image_classifier,
    "image_tasks": image_tasks,
    "image_augment": image_augment,
    "image_confusion": image_confusion,
}
