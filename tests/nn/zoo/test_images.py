"""Image networks: parameter counts, shapes, names, and what their settings change."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from groundstate.errors import ShapeError
from groundstate.nn import architectures, draw_layers, summary
from groundstate.nn.zoo.alexnet import AlexNet
from groundstate.nn.zoo.cnn import CNN
from groundstate.nn.zoo.densenet import DenseNet
from groundstate.nn.zoo.fcn import FCN
from groundstate.nn.zoo.lenet import LeNet
from groundstate.nn.zoo.resnet import ResNet
from groundstate.nn.zoo.unet import HourglassStack, UNet
from groundstate.nn.zoo.vgg import VGG, vgg_block
from groundstate.nn.zoo.vit import Block, ViT, patchify, unpatchify
from groundstate.store import dumps, loads


def meta(name: str, **settings: Any) -> nn.Module:
    with torch.device("meta"):
        made: nn.Module = architectures.architectures[name].obj(**settings)
    return made


def count(net: nn.Module) -> int:
    return sum(p.numel() for p in net.parameters())


def random(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize(
    ("name", "settings", "parameters"),
    [
        ("lenet", {}, 61_706),
        ("alexnet", {}, 61_100_840),
        ("alexnet", {"variant": "d2l", "in_channels": 1, "num_classes": 10}, 46_764_746),
        ("vgg11", {"in_channels": 1, "num_classes": 10}, 128_806_154),
        ("vgg11", {}, 132_863_336),
        ("vgg16", {}, 138_357_544),
        ("resnet18", {}, 11_689_512),
        ("resnet34", {}, 21_797_672),
        ("resnet50", {}, 25_557_032),
        ("resnet101", {}, 44_549_160),
        ("resnet20", {}, 269_722),
        ("resnet20", {"shortcut": "B"}, 272_474),
        ("resnet56", {}, 853_018),
        ("densenet121", {}, 7_978_856),
        ("unet", {}, 31_030_658),
        ("unet", {"base": 8, "depth": 3}, 120_690),
        ("vit_b_16", {}, 86_567_656),
    ],
)  # fmt: skip
def test_parameters(name: str, settings: dict[str, Any], parameters: int) -> None:
    assert count(meta(name, **settings)) == parameters


# First and last names of torchvision's state dicts, with their shapes and how many there are.
NAMES = {
    "alexnet": (16, {"features.0.weight": (64, 3, 11, 11), "classifier.6.bias": (1000,)}),
    "vgg11": (22, {"features.18.weight": (512, 512, 3, 3), "classifier.0.weight": (4096, 25088)}),
    "resnet50": (320, {
        "layer2.0.downsample.0.weight": (512, 256, 1, 1), "layer4.2.bn3.running_var": (2048,),
        "bn1.num_batches_tracked": (), "fc.weight": (1000, 2048),
    }),
    "densenet121": (727, {
        "features.conv0.weight": (64, 3, 7, 7),
        "features.denseblock3.denselayer24.conv2.weight": (32, 128, 3, 3),
        "features.transition1.conv.weight": (128, 256, 1, 1),
        "features.norm5.running_mean": (1024,), "classifier.weight": (1000, 1024),
    }),
    "vit_b_16": (152, {
        "class_token": (1, 1, 768), "conv_proj.weight": (768, 3, 16, 16),
        "encoder.pos_embedding": (1, 197, 768),
        "encoder.layers.encoder_layer_11.self_attention.in_proj_weight": (2304, 768),
        "encoder.layers.encoder_layer_0.mlp.3.weight": (768, 3072), "encoder.ln.bias": (768,),
        "heads.head.weight": (1000, 768),
    }),
    "fcn": (326, {
        "backbone.layer4.2.conv3.weight": (2048, 512, 1, 1),
        "classifier.0.weight": (512, 2048, 3, 3), "classifier.4.bias": (21,),
    }),
}  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_names_are_torchvisions(name: str) -> None:
    """Recorded from torchvision 0.29; its checkpoints load with strict=True and agree to the bit."""
    state = meta(name).state_dict()
    total, some = NAMES[name]
    assert len(state) == total
    assert {k: tuple(state[k].shape) for k in some} == some


def test_cnn_shapes_and_heads() -> None:
    net = CNN((4, 8, 16), in_channels=1, num_classes=10)
    sizes = [r.output_shape for r in summary(net, (1, 32, 32)).rows if r.kind == "MaxPool2d"]
    assert sizes == [(4, 16, 16), (8, 8, 8), (16, 4, 4)]
    assert net(random(2, 1, 32, 32)).shape == net(random(2, 1, 20, 41)).shape == (2, 10)
    flat = CNN((4, 8), "flatten", image_size=(12, 16), in_channels=1, num_classes=5)
    assert count(flat.classifier) == (8 * 3 * 4 + 1) * 5  # (C·H·W + 1)·K
    assert flat(random(2, 1, 12, 16)).shape == (2, 5)
    with pytest.raises(ShapeError, match=r"flatten head for images of \(12, 16\), got \(16, 16\)"):
        flat(random(2, 1, 16, 16))
    most = CNN((4,), "gmp", hidden=(6,), in_channels=1, num_classes=2)
    assert most(random(1, 1, 8, 8)).shape == (1, 2)
    for wrong in ({"head": "mean"}, {"head": "flatten"}, {"channels": ()}):
        with pytest.raises(ValueError, match="head|image_size|channels"):
            CNN(**wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="leave nothing"):
        CNN((2, 2, 2), "flatten", image_size=4)
    assert draw_layers(summary(net, (1, 32, 32))).nodes == 1 + 3 + 3 + 1 + 1


def test_lenet_shapes() -> None:
    rows = {r.name: r.output_shape for r in summary(LeNet(), (1, 28, 28)).rows}
    found = [rows[f"features.{i}"] for i in (0, 2, 3, 5)]
    assert found == [(6, 28, 28), (6, 14, 14), (16, 10, 10), (16, 5, 5)]
    assert count(LeNet("relu", "max")) == 61_706
    with pytest.raises(ShapeError, match="28×28"):
        LeNet()(random(1, 1, 32, 32))
    with pytest.raises(ValueError, match="'avg' or 'max'"):
        LeNet(pool="min")


def test_alexnet_sides() -> None:
    net = meta("alexnet", variant="d2l", in_channels=1, num_classes=10)
    table = summary(net, (1, 224, 224))
    kept = [r for r in table.rows if r.kind in ("Conv2d", "MaxPool2d")]
    assert [r.output_shape[-1] for r in kept] == [54, 26, 26, 12, 12, 12, 12, 5]
    drops = [m for m in net.modules() if isinstance(m, nn.Dropout)]
    assert len(drops) == 2 and {d.p for d in drops} == {0.5}
    both = {"LeNet": summary(LeNet(), (1, 28, 28)), "AlexNet": table}
    picture = draw_layers(both)
    assert "LeNet" in picture.svg and "AlexNet" in picture.svg and picture.nodes == 8 + 13
    with pytest.raises(ValueError, match="variant is one of"):
        AlexNet("first")


def test_vgg_blocks() -> None:
    assert vgg_block(3, 2, 4)(random(1, 2, 10, 10)).shape == (1, 4, 5, 5)
    table = summary(meta("vgg11"), (3, 224, 224))
    sides = [r.output_shape[-1] for r in table.rows if r.kind == "MaxPool2d"]
    assert sides == [112, 56, 28, 14, 7]
    small = VGG(((1, 2), (3, 4)), batch_norm=True, hidden=5, in_channels=1, num_classes=3)
    assert small.eval()(random(2, 1, 29, 31)).shape == (2, 3)
    assert [m.shape[-1] for m in small.stages(random(1, 1, 32, 32))] == [16, 8]


def test_evolution_in_one_picture() -> None:
    several = {
        "LeNet": summary(LeNet(), (1, 28, 28)),
        "AlexNet": summary(meta("alexnet"), (3, 224, 224)),
        "VGG-11": summary(meta("vgg11"), (3, 224, 224)),
    }
    assert draw_layers(several).nodes > 30


def test_resnet_orders_and_shortcuts() -> None:
    x = random(2, 1, 16, 16)
    small: dict[str, Any] = {"stem": "cifar", "width": 4, "in_channels": 1, "num_classes": 3}
    pre = ResNet((1, 2), preactivation=True, zero_init=True, shortcut="A", **small).eval()
    assert isinstance(pre.bn1, nn.Identity)  # the first layer is linear
    # branches at 0: only skips are left
    h = pre.conv1(x)
    down = nn.functional.pad(h[:, :, ::2, ::2], (0, 0, 0, 0, 2, 2))
    assert torch.allclose(pre.stages(x)[-1], torch.relu(pre.bn_last(down)), atol=1e-6)
    for block in ("basic", "bottleneck"):
        for first in (True, False):
            for cut in ("A", "B"):
                net = ResNet((1, 1), block, first, shortcut=cut, **small)
                assert net(x).shape == (2, 3)
    post = ResNet((1, 1), zero_init=True, **small).eval()
    assert torch.allclose(post.stages(x)[0], torch.relu(post.bn1(post.conv1(x))), atol=1e-6)
    for wrong in ({"block": "wide"}, {"stem": "large"}, {"shortcut": "C"}, {"output_stride": 4}):
        with pytest.raises(ValueError, match="is"):
            ResNet((1,), **wrong)  # type: ignore[arg-type]


def test_stride_sits_in_the_three_by_three() -> None:
    net = meta("resnet50")
    block = net.get_submodule("layer2.0")
    assert block.conv1.stride == (1, 1) and block.conv2.stride == (2, 2)  # type: ignore[union-attr]


def test_dense_channels() -> None:
    net = DenseNet(32, (4, 1), 64, in_channels=1, num_classes=2)
    transition = net.get_submodule("features.transition1.conv")
    assert isinstance(transition, nn.Conv2d)
    assert (transition.in_channels, transition.out_channels) == (192, 96)  # 64 + 4·32, halved
    plain = DenseNet(4, (2,), 8, bn_size=0, in_channels=1, num_classes=2)
    assert plain(random(2, 1, 32, 32)).shape == (2, 2)
    assert plain.get_submodule("features.denseblock1.denselayer1.conv1").kernel_size == (3, 3)
    x = random(2, 1, 32, 32).requires_grad_()
    torch.manual_seed(0)
    kept = DenseNet(4, (2, 2), 8, in_channels=1, num_classes=2)
    again = DenseNet(4, (2, 2), 8, memory_efficient=True, in_channels=1, num_classes=2)
    again.load_state_dict(kept.state_dict())
    slopes = [torch.autograd.grad(net.eval()(x).sum(), x)[0] for net in (kept, again)]
    assert torch.allclose(slopes[0], slopes[1], atol=1e-6)
    with pytest.raises(ValueError, match="compression"):
        DenseNet(compression=0.0)


@pytest.mark.parametrize("up", ["transpose", "resize"])
@pytest.mark.parametrize("merge", ["concat", "add"])
def test_unet_keeps_the_size(up: str, merge: str) -> None:
    net = UNet(2, 3, base=2, depth=3, up=up, merge=merge)
    for h, w in ((8, 8), (13, 30), (1, 7), (17, 16)):
        assert net(random(1, 2, h, w)).shape == (1, 3, h, w)


def test_unet_settings() -> None:
    table = summary(meta("unet", base=4, depth=4), (1, 1024, 1024))
    sides = {r.output_shape[-1] for r in table.rows if r.name.startswith("down.1")}
    assert sides == {512}  # after s poolings W/2^s
    for dim in (1, 2, 3):
        net = UNet(1, 2, base=2, depth=2, n_dim=dim, norm="batch").eval()
        assert net(random(2, 1, *[9] * dim)).shape == (2, 2, *[9] * dim)
    plain = UNet(1, 1, base=2, depth=2, skips=False)
    assert plain(random(1, 1, 8, 8)).shape == (1, 1, 8, 8)
    timed = UNet(1, 1, base=2, depth=2, cond_dim=3)
    x = random(2, 1, 8, 8)
    one, two = timed(x, torch.zeros(2, 3)), timed(x, torch.ones(2, 3))
    assert not torch.allclose(one, two)
    with pytest.raises(ShapeError, match="cond_dim=3 and got no condition"):
        timed(x)
    with pytest.raises(ShapeError, match=r"\(N, 3\), got \(2, 4\)"):
        timed(x, torch.zeros(2, 4))
    for wrong in ({"up": "pixel"}, {"merge": "mean"}, {"n_dim": 4}, {"depth": 0}):
        with pytest.raises(ValueError, match="up|merge|n_dim|depth"):
            UNet(**wrong)  # type: ignore[arg-type]
    stack = HourglassStack(3, 1, 2, base=2, depth=2)
    assert stack(x).shape == (2, 2, 8, 8) and len(stack.stack) == 3


@pytest.mark.parametrize("stride", [8, 16, 32])
@pytest.mark.parametrize("skips", [False, True])
def test_fcn_gives_the_size_of_its_input(stride: int, skips: bool) -> None:
    net = FCN("resnet18", 3, stride, skips=skips, width=2, aux=not skips).eval()
    for h, w in ((64, 64), (70, 45), (33, 100)):
        assert net(random(1, 3, h, w)).shape == (1, 3, h, w)
    coarse = net.backbone.stages(random(1, 3, 64, 64))[-1]
    assert coarse.shape[-1] == 64 // (32 if skips else stride)
    assert len(net.scores) == ({32: 0, 16: 1, 8: 2}[stride] if skips else 0)


def test_fcn_errors() -> None:
    with pytest.raises(ValueError, match="got 'vgg11'; use resnet18"):
        FCN("vgg11")
    with pytest.raises(ValueError, match="stride is 8, 16 or 32"):
        FCN("resnet18", stride=4)


def test_patches_and_back() -> None:
    x = random(2, 3, 512, 512)
    quadrants = patchify(x, 256)
    assert quadrants.shape == (2, 4, 3 * 256 * 256)
    assert torch.equal(unpatchify(quadrants, 256, (512, 512)), x)
    assert torch.equal(quadrants[:, 1].view(2, 3, 256, 256), x[:, :, :256, 256:])
    with pytest.raises(ShapeError, match="no multiples of the patch, 3"):
        patchify(x, 3)
    with pytest.raises(ShapeError, match="no image of"):
        unpatchify(quadrants, 256, (256, 512))


def test_a_conditioned_block_starts_as_the_identity() -> None:
    block, x = Block(8, 2, 16, 0.0, cond_dim=5), random(2, 7, 8)
    assert torch.equal(block(x, random(2, 5)), x)
    denoiser = ViT(8, 4, 8, 2, 2, None, 5, in_channels=3, num_classes=3)
    assert denoiser(random(2, 3, 8, 8), random(2, 5)).shape == (2, 3, 8, 8)
    with pytest.raises(ShapeError, match="cond_dim=5 and got no condition"):
        denoiser(random(2, 3, 8, 8))


def test_vit_sizes_and_pools() -> None:
    net = ViT(16, 4, 8, 1, 2, "mean", in_channels=1, num_classes=3).eval()
    assert net(random(2, 1, 16, 16)).shape == net(random(2, 1, 24, 8)).shape == (2, 3)
    assert net.positions(4, 4) is net.encoder.pos_embedding
    with pytest.raises(ShapeError, match="patches of 4²"):
        net(random(1, 1, 15, 16))
    for wrong in ({"pool": "max"}, {"patch": 5}, {"dim": 9, "heads": 2}):
        with pytest.raises(ValueError, match="pool|patch|dim"):
            ViT(**{"image_size": 16, "patch": 4, "dim": 8, "depth": 1, "heads": 2, **wrong})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "net",
    [
        CNN((2, 3), "flatten", image_size=8, in_channels=1, num_classes=2),
        ResNet((1,), stem="cifar", width=2, in_channels=1, num_classes=2),
        VGG(((1, 2),), hidden=3, in_channels=1, num_classes=2),
        UNet(1, 1, base=2, depth=1),
        HourglassStack(1, 1, 1, base=2, depth=1, up="resize"),
        ViT(8, 4, 8, 1, 2, in_channels=1, num_classes=2),
    ],
)
def test_files(net: nn.Module) -> None:
    x = random(2, 1, 8, 8)
    again = loads(dumps(net.eval()))
    assert type(again) is type(net) and torch.equal(again.eval()(x), net(x))
