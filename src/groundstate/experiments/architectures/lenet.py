r"""ReLU and max pooling against sigmoid and mean in LeNet; what AlexNet added."""

from __future__ import annotations

from torch import nn

from groundstate.compute.random import Key
from groundstate.energy import ClassEnergy
from groundstate.experiments.architectures.pictures import built, digit_images, drawn, right
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.learn import learn
from groundstate.nn.zoo.lenet import LeNet

FORMS = [("relu", "max"), ("relu", "avg"), ("sigmoid", "max"), ("sigmoid", "avg")]
ABLATION = {"all": ("relu", 0.5), "no dropout": ("relu", 0.0), "sigmoid": ("sigmoid", 0.5)}


def small_alexnet(activation: str, dropout: float) -> nn.Sequential:
    act = {"relu": nn.ReLU, "sigmoid": nn.Sigmoid}[activation]
    return nn.Sequential(
        built(nn.Conv2d, 1, 12, 5, 2, 2), act(), nn.MaxPool2d(3, 2),
        built(nn.Conv2d, 12, 24, 3, padding=1), act(), nn.MaxPool2d(3, 2),
        nn.Flatten(), built(nn.Linear, 24 * 4, 64), act(), nn.Dropout(dropout),
        built(nn.Linear, 64, 10),
    )  # fmt: skip


@experiment(
    "ARC-x-lenet", theme="architectures", title="ReLU and max beat sigmoid and mean", slow=True
)
def lenet(seed: int = 0, *, quick: bool = False) -> Result:
    r"""LeNet's sigmoids have slopes :math:`\sigma'\le\tfrac14`, which four layers multiply: in few epochs
    almost nothing is learned. ReLU has the slope 1 where it is on, and a maximum hands on the strongest
    response where a mean dilutes it. AlexNet added both, and dropout.

    1,000 digits at 28 × 28 pixels, 6 epochs of steps with rate 0.03 and momentum 0.9 in batches of 32,
    He's weights for ReLU and Glorot's for sigmoids (a rate of 0.1 diverges from torch's own); the others
    of 1,797 to judge. A reduced AlexNet is learned with rate 0.02.
    """
    key = Key.of(seed)
    train, test = digit_images(key.fold("rows"), 1000, 28)
    epochs = 3 if quick else 6
    found, curves = {}, {}
    for form in FORMS:
        name = f"{form[0]} + {form[1]}"
        net = drawn(built(LeNet, *form), key.fold(name))
        energy = ClassEnergy(net, (1, 28, 28), 10)
        run = learn(energy, train, optimizer="momentum", lr=0.03, epochs=epochs, batch_size=32,
                    seed=key.fold("order"))  # fmt: skip
        curves[name] = [float(v) for v in run.history.objective]
        found[name] = right(energy.eval(), test)
    parts = {}
    for name, settings in ABLATION.items():
        net = drawn(small_alexnet(*settings), key.fold("alex", name))
        energy = ClassEnergy(net, (1, 28, 28), 10)
        learn(energy, train, optimizer="momentum", lr=0.02, epochs=epochs, batch_size=32,
              seed=key.fold("order"))  # fmt: skip
        parts[name] = right(energy.eval(), test)
    claims = [
        Claim.at_least("ReLU + max: accuracy", found["relu + max"], 0.8),
        Claim.at_most("sigmoid + mean: accuracy", found["sigmoid + avg"], 0.3),
        Claim.above("ReLU less sigmoid, max pooling", found["relu + max"] - found["sigmoid + max"], 0.3),
        Claim.above("reduced AlexNet: ReLU less sigmoid", parts["all"] - parts["sigmoid"], 0.3),
    ]  # fmt: skip

    def draw(figure: Figure) -> None:
        left, middle = figure.subplots(1, 2)
        for (name, curve), colour in zip(curves.items(), COLOURS):
            left.plot(range(1, len(curve) + 1), curve, "o-", color=colour, label=name)
        left.set(xlabel="epochs", ylabel="training loss")
        left.legend()
        names = [*found, *parts]
        middle.barh(names, [*found.values(), *parts.values()], color=COLOURS[0])
        middle.set(xlabel="accuracy on new digits", xlim=(0, 1))

    return Result(claims, {"LeNet": found, "reduced AlexNet": parts}, draw, size=(9.0, 3.8))
