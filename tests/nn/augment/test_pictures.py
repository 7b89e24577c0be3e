"""Affine maps, colours and mixed examples of pictures; masks and boxes move along.

Numbers marked (tv) are torchvision 0.2x's ``transforms.v2.functional`` on the same inputs.
"""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from groundstate import vision
from groundstate.energy import ClassEnergy
from groundstate.energy.spaces import label_grid
from groundstate.errors import ShapeError, Unsupported
from groundstate.learn import Augmented, SoftMin
from groundstate.nn.augment import (
    Affine,
    Augment,
    ColourJitter,
    CutMix,
    Cutout,
    Mixup,
    Rotate,
    mixed_labels,
    move_boxes,
    move_images,
    move_masks,
    preset,
)
from groundstate.nn.augment.affine import identity
from groundstate.nn.augment.colour import _blend, grey, turned

ALL = {
    "flip": 0.5, "flip_vertical": 0.5, "shift": 0.2, "crop": (0.5, 1.0), "rotate": 40.0,
    "scale": (0.7, 1.4),
}  # fmt: skip


def g(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def pictures(n: int = 6, c: int = 3, h: int = 9, w: int = 12) -> Tensor:
    return torch.rand(n, c, h, w, generator=g(5))


def matrix(angle: float, scale: float, shift: tuple[float, float]) -> Tensor:
    """torchvision's affine: out = scale R(angle) p + shift."""
    a = math.radians(angle)
    forward = scale * torch.tensor([[math.cos(a), -math.sin(a)], [math.sin(a), math.cos(a)]])
    A = torch.linalg.inv(forward)
    return torch.cat([A, -(A @ torch.tensor(shift))[:, None]], 1)[None]


def test_identity_parameters_give_the_input() -> None:
    x = pictures()
    for still in (Affine(), ColourJitter(0, 0, 0, 0), Cutout(0.0), Affine(**ALL, p=0.0)):
        assert torch.equal(still(x, g()), x)
    assert torch.equal(move_images(x, identity(6)), x)
    boxes = torch.rand(6, 2, 4, generator=g())
    assert torch.equal(move_boxes(boxes, identity(6), (9, 12))[0], boxes)
    for mix in (Mixup(0.0), CutMix(0.0)):
        assert torch.equal(mix(x, g())[0], x)


def test_affine_is_torchvisions() -> None:
    y = torch.arange(12.0).view(1, 1, 3, 4)
    expected = torch.tensor([
        1.4736969, 3.6140499, 2.6690709, 1.7240929, 5.3343162, 6.9174680, 5.9724893, 5.0275111,
        1.9197757, 5.7714481, 9.2759065, 8.3309288,
    ])  # (tv) affine(angle=30, translate=[1, 0], scale=1.2)  # fmt: skip
    moved = move_images(y, matrix(30, 1.2, (1.0, 0.0)))
    assert torch.allclose(moved.flatten(), expected, atol=1e-5)


def test_mirrors_turns_and_whole_shifts() -> None:
    x = pictures(2)
    assert torch.allclose(Affine(flip=1.0)(x), x.flip(-1), atol=1e-5)
    assert torch.allclose(Affine(flip_vertical=1.0)(x), x.flip(-2), atol=1e-5)
    square = pictures(1, h=8, w=8)
    assert torch.allclose(
        move_images(square, matrix(90, 1.0, (0.0, 0.0))), square.rot90(-1, (2, 3)), atol=1e-4
    )
    moved = move_images(x, matrix(0, 1.0, (2.0, 1.0)).expand(2, 2, 3))
    assert torch.allclose(moved[:, :, 1:, 2:], x[:, :, :-1, :-2], atol=1e-5)
    assert not moved[:, :, 0].any() and not moved[:, :, :, :2].any()


@pytest.mark.parametrize("fill", ["zeros", "border", "reflection"])
def test_affine_keeps_shapes_seeds_and_evaluation(fill: str) -> None:
    x, transform = pictures(), Affine(**ALL, fill=fill)
    a, b = transform(x, g(3)), transform(x, g(3))
    assert a.shape == x.shape and torch.equal(a, b) and not torch.equal(a, x)
    assert torch.equal(transform.eval()(x), x)
    half = Affine(**ALL, fill=fill, p=0.5)(pictures(400), g())
    changed = (half != pictures(400)).flatten(1).any(1)
    assert 0.4 < float(changed.double().mean()) < 0.6


def test_a_window_stays_inside() -> None:
    M = Affine(crop=(0.25, 0.25)).draw(500, (10, 20), g())
    corners = torch.tensor([[-10.0, -5.0], [10.0, 5.0]])
    seen = torch.einsum("nij,cj->nci", M[:, :, :2], corners) + M[:, None, :, 2]
    assert bool((seen.abs() <= torch.tensor([10.0, 5.0]) + 1e-4).all())
    assert torch.allclose(seen[:, 1] - seen[:, 0], torch.tensor([10.0, 5.0]).expand(500, 2))


@pytest.mark.parametrize("seed", range(5))
def test_a_moved_box_contains_the_moved_mask(seed: int) -> None:
    masks = torch.zeros(40, 30, 40, dtype=torch.bool)
    boxes = torch.empty(40, 4)
    for i in range(40):
        left, top = (int(torch.randint(5, 15, (), generator=g(100 * seed + i))) for _ in range(2))
        masks[i, top : top + 9, left : left + 12] = True
        boxes[i] = torch.tensor([left, top, left + 12, top + 9])
    M = Affine(**ALL).draw(40, (30, 40), g(seed))
    moved, (found, visible) = move_masks(masks, M), move_boxes(boxes, M, (30, 40))
    assert moved.dtype == torch.bool and bool(((visible >= 0) & (visible <= 1 + 1e-6)).all())
    for mask, (x1, y1, x2, y2) in zip(moved, found.tolist(), strict=True):
        rows, columns = mask.nonzero(as_tuple=True)
        if len(rows):
            assert x1 <= int(columns.min()) + 0.5 and int(columns.max()) + 0.5 <= x2
            assert y1 <= int(rows.min()) + 0.5 and int(rows.max()) + 0.5 <= y2


def test_boxes_follow_mirrors_and_shifts() -> None:
    box = torch.tensor([[1.0, 2.0, 4.0, 6.0]])
    mirrored = torch.tensor([[[-1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]])
    assert move_boxes(box, mirrored, (9, 12))[0].tolist() == [[8.0, 2.0, 11.0, 6.0]]
    found, visible = move_boxes(box, matrix(0, 1.0, (-2.0, 0.0)), (9, 12))
    assert torch.allclose(found, torch.tensor([[0.0, 2.0, 2.0, 6.0]]))
    assert visible.tolist() == pytest.approx([2 / 3])
    gone, none = move_boxes(box, matrix(0, 1.0, (-9.0, 0.0)), (9, 12))
    assert none.tolist() == [0.0] and gone[0, 0] == gone[0, 2] == 0


def test_labels_from_outside() -> None:
    masks = torch.full((1, 6, 6), 3)
    moved = move_masks(masks, matrix(0, 1.0, (2.0, 0.0)), outside=255)
    assert (moved[0, :, :2] == 255).all() and (moved[0, :, 2:] == 3).all()


def test_pictures_masks_and_boxes_together() -> None:
    x = torch.zeros(3, 1, 12, 12)
    masks = torch.zeros(3, 12, 12, dtype=torch.int64)
    masks[:, 3:8, 4:9] = 2
    x[:, 0] = masks / 2
    boxes = [
        torch.tensor([[4.0, 3.0, 9.0, 8.0]]),
        torch.zeros(0, 4),
        torch.tensor([[4.0, 3.0, 9.0, 8.0]] * 2),
    ]
    augment = Augment([Affine(**ALL, mode="nearest"), ColourJitter(0, 0, 0)], generator=g(1))
    views = augment.together(x, masks=masks, boxes=boxes)
    assert torch.equal(views.masks.float() / 2, views.images[:, 0])
    assert [len(b) for b in views.boxes] == [1, 0, 2] == [len(v) for v in views.visible]
    each = [masks[i : i + 1].bool() for i in range(3)]
    again = Augment([Affine(**ALL, mode="nearest")], generator=g(1)).together(x, masks=each)
    assert all(torch.equal(a[0], b > 0) for a, b in zip(again.masks, views.masks, strict=True))
    still = augment.eval().together(x, masks=masks, boxes=boxes)
    assert torch.equal(still.images, x) and still.boxes[0] is boxes[0]
    with pytest.raises(
        Unsupported, match="Rotate moves pixels but not masks and boxes; use Affine"
    ):
        Augment([Rotate()]).together(x, masks=masks)


def test_a_rule_moves_the_labels_of_pixels() -> None:
    net = torch.nn.Conv2d(1, 2, 1)
    with torch.no_grad():
        net.weight.copy_(torch.tensor([-9.0, 9.0]).view(2, 1, 1, 1))
        net.bias.copy_(torch.tensor([4.5, -4.5]))
    energy = ClassEnergy(net, (1, 8, 8), label_grid(2, 8, 8))
    y = torch.zeros(4, 8, 8, dtype=torch.int64)
    y[:, 2:6, 3:7] = 1
    batch = {"x": y[:, None].float(), "y": y}
    moves = Affine(shift=0.25, rotate=90.0, mode="nearest")
    loss = Augmented(SoftMin(), Augment([moves], generator=g()), masks="y")(energy, batch).loss
    apart = Augmented(SoftMin(), Augment([moves], generator=g()))(energy, batch).loss
    assert float(loss.detach().mean()) < 0.1 < float(apart.detach().mean())
    with pytest.raises(Unsupported, match="masks are not mixed"):
        Augmented(SoftMin(), Augment([], mixup=1.0), masks="y")


def test_colours_are_torchvisions() -> None:
    x = (torch.arange(12.0).view(1, 3, 2, 2) / 12)[:, [2, 0, 1]]
    hue = [0.6666667, 0.75, 0.8333333, 0.9166667, 0.0666666, 0.1499999, 0.2333333, 0.3166666,
           0.0, 0.0833333, 0.1666667, 0.25]  # (tv) adjust_hue(x, 0.1)  # fmt: skip
    by = torch.full((1, 1, 1, 1), 0.1)
    assert turned(x, by).flatten().tolist() == pytest.approx(hue, abs=1e-6)
    assert torch.allclose(turned(turned(x, by), -by), x, atol=1e-6)
    less = _blend(x, grey(x), torch.tensor(0.5)).flatten()[:4].tolist()
    assert less == pytest.approx([0.4519667, 0.5352958, 0.618625, 0.7019542])  # (tv)
    more = _blend(x, grey(x).mean((2, 3), keepdim=True), torch.tensor(1.5)).flatten()[:4].tolist()
    assert more == pytest.approx([0.8188729, 0.9438729, 1.0, 1.0])  # (tv)


def test_colour_jitter() -> None:
    x = pictures()
    out = ColourJitter(0.4, 0.4, 0.4, 0.2)(x, g())
    assert out.shape == x.shape and float(out.min()) >= 0 and float(out.max()) <= 1
    assert torch.equal(out, ColourJitter(0.4, 0.4, 0.4, 0.2)(x, g()))
    one = pictures(c=1)
    assert torch.equal(ColourJitter(0, 0, 0.9, 0.5)(one, g()), one)  # grey has neither
    only = ColourJitter(0.5, 0, 0)(x * 0.5, g())
    ratio = (only / (x * 0.5)).flatten(1)
    assert torch.allclose(ratio, ratio[:, :1].expand_as(ratio), atol=1e-4)


def test_cutout_hides_a_square() -> None:
    x = pictures(200, c=1, h=10, w=10)
    out = Cutout(0.4, p=1.0)(x, g())
    hidden = (out != x).sum((1, 2, 3))
    assert int(hidden.max()) == 16 and int(hidden.min()) >= 1
    i = int(hidden.argmax())
    value = out[i][out[i] != x[i]]
    assert torch.allclose(value, x[i].mean().expand_as(value))


def test_mixed_labels_sum_to_one() -> None:
    x, y = pictures(64), torch.arange(64) % 5
    for augment in (Augment([], mixup=0.4), Augment([], cutmix=1.0), Augment([], 0.4, cutmix=1.0)):
        mixed, partner, share = augment.mix(x, g())
        labels = mixed_labels(y, partner, share, 5)
        assert torch.allclose(labels.sum(1), torch.ones(64)) and bool((labels >= 0).all())
        assert mixed.shape == x.shape and augment.mixes and not augment.label_preserving
        assert torch.equal(augment.eval().mix(x)[0], x)


def test_cutmix_counts_the_pixels_that_stayed() -> None:
    x = torch.arange(32.0).view(32, 1, 1, 1).expand(32, 1, 9, 7)
    mixed, partner, share = CutMix(1.0)(x, g())
    stayed = (mixed == x).float().mean((1, 2, 3))
    moved = partner != torch.arange(32)
    assert torch.allclose(stayed[moved], share[moved], atol=1e-6)


def test_outside_is_the_mean_colour() -> None:
    x = torch.rand(2, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    M = torch.tensor([[[1.0, 0.0, 100.0], [0.0, 1.0, 0.0]], [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]])
    moved = move_images(x, M, fill="mean")
    assert torch.allclose(moved[0], x[0].mean((1, 2), keepdim=True).expand(3, 8, 8), atol=1e-6)
    assert torch.equal(moved[1], x[1])


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Affine(flip=2.0), "flip is a probability"),
        (lambda: Affine(crop=(0.0, 1.0)), "crop is a range"),
        (lambda: Affine(scale=(2.0, 1.0)), "scale is a range"),
        (lambda: Affine(rotate=-1.0), "at least 0"),
        (lambda: Affine(fill="black"), "fill is one of zeros"),
        (lambda: ColourJitter(hue=0.7), r"hue is in \[0, 0.5\]"),
        (lambda: Cutout(2.0), "size is a share"),
        (lambda: CutMix(-1.0), "alpha must be at least 0"),
        (lambda: preset("heavy"), "augment is one of none, light, scenes, photo, strong"),
    ],
)
def test_bad_settings(make: object, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        make()  # type: ignore[operator]


def test_only_pictures() -> None:
    for transform in (Affine(shift=0.1), ColourJitter(), Cutout(p=1.0)):
        with pytest.raises(ShapeError, match=r"images \(B, C, H, W\)"):
            transform(torch.zeros(3, 4), g())


def test_presets() -> None:
    assert preset("none") is None and preset("light").label_preserving
    for name in ("light", "photo", "strong"):
        out = preset(name)(pictures(), g())
        assert out.shape == pictures().shape and bool(torch.isfinite(out).all())
    assert preset("strong").mixes and vision.augment.preset is preset
