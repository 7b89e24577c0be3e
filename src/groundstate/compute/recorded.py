"""Work on a GPU that is launched once, recorded as a CUDA graph, and replayed.

A small network's step is some dozens of kernels of a few microseconds each, and launching them takes
longer than running them. A replay runs the same kernels in the same order on the same memory: the
same numbers without the launches.
"""

from __future__ import annotations

import gc
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor

from groundstate.compute.foreign.torch import tree_flatten, tree_map
from groundstate.errors import NotApplicable

_WARM = 3  # passes before recording: libraries allocate their workspaces outside the graph


class Recording:
    """One recorded piece of work.

    Parameters
    ----------
    work : a function of the inputs without synchronisation; what it returns keeps its memory
    inputs : tensors, None, and lists, tuples and dictionaries of them
    state : what the work changes; recording leaves it as it was
    generator : the one that the work draws from, on the GPU; replays draw on from where it stands
    settled : whether an input that is the same tensor as last time, and that no operation of torch has
        changed since, still holds the same numbers, and need not be copied again; not so for what
        replays write to

    Raises
    ------
    NotApplicable
        Where CUDA cannot record the work, or it draws from a generator on the CPU: a replay would
        repeat the recorded draws. CUDA's own global generator is part of every graph.
    """

    def __init__(
        self,
        work: Callable[..., Any],
        inputs: Any,
        state: Sequence[Tensor],
        generator: torch.Generator | None = None,
        settled: bool = False,
    ) -> None:
        self.work, self.generator, self.settled = work, generator, settled
        self.last: list[tuple[Tensor, int]] = []
        self.inputs = tree_map(lambda t: t.clone() if isinstance(t, Tensor) else t, inputs)
        self.held = [t for t in tree_flatten(self.inputs)[0] if isinstance(t, Tensor)]
        before = [tensor.clone() for tensor in state]
        drawn, places = _on_the_cpu(), _on_the_gpu(generator)
        try:
            self.warm_up()
            for own, place in places:
                own.set_state(place)
            if _on_the_cpu() != drawn:
                raise NotApplicable("it draws random numbers in every step")
            self.record()
        except RuntimeError as error:
            reason = str(error).splitlines()[0]
            raise NotApplicable(f"CUDA cannot record it ({reason})") from error
        finally:
            for tensor, saved in zip(state, before, strict=True):
                tensor.copy_(saved)

    def warm_up(self) -> None:
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(_WARM):
                self.work(*self.inputs)
        torch.cuda.current_stream().wait_stream(side)

    def record(self) -> None:
        self.graph, side = torch.cuda.CUDAGraph(), torch.cuda.Stream()
        torch.cuda.synchronize()
        # as torch.cuda.graph, without its collection of garbage: a graph of an earlier run that is
        # freed in here would spoil the recording, but nothing is collected in here
        with no_collection(), torch.cuda.stream(side):
            if self.generator is not None:
                self.graph.register_generator_state(self.generator)
            self.graph.capture_begin()
            try:
                self.outputs = self.work(*self.inputs)
            finally:
                self.graph.capture_end()
        torch.cuda.current_stream().wait_stream(side)

    def replay(self) -> None:
        self.graph.replay()

    def __call__(self, *inputs: Any) -> Any:
        """The outputs for other inputs of these shapes; good until the next call."""
        given = [t for t in tree_flatten(inputs)[0] if isinstance(t, Tensor)]
        before, self.last = self.last, []
        for i, (held, tensor) in enumerate(zip(self.held, given, strict=True)):
            # tensors made for inference count no changes
            stamp = tensor, -1 if tensor.is_inference() else tensor._version
            same = before and before[i][0] is tensor and before[i][1] == stamp[1] >= 0
            if not same:
                held.copy_(tensor)
            if self.settled:
                self.last.append(stamp)
        self.replay()
        return self.outputs


class Recorder:
    """Replays work, recorded once for each shape of its inputs.

    Parameters
    ----------
    work, state, generator, settled : as in ``Recording``
    most : shapes that are recorded; others raise ``NotApplicable``
    """

    kind = Recording

    def __init__(
        self,
        work: Callable[..., Any],
        state: Callable[[], Sequence[Tensor]],
        most: int = 8,
        generator: torch.Generator | None = None,
        settled: bool = False,
    ) -> None:
        self.work, self.state, self.most, self.generator = work, state, most, generator
        self.settled = settled
        self.recordings: dict[Any, Recording] = {}

    def __call__(self, *inputs: Any, key: Any = None) -> Any:
        """The outputs; ``key`` tells apart what shapes do not."""
        leaves, spec = tree_flatten(inputs)
        shapes = tuple((t.shape, t.dtype) if isinstance(t, Tensor) else t for t in leaves)
        kind = shapes, str(spec), key
        found = self.recordings.get(kind)
        if found is None:
            if len(self.recordings) >= self.most:
                raise NotApplicable(f"there are more than {self.most} shapes of batches")
            found = self.recordings[kind] = self.kind(
                self.work, inputs, self.state(), self.generator, self.settled
            )
        return found(*inputs)

    def forget(self) -> None:
        """Memory that was recorded is no longer the right one."""
        self.recordings = {}


def _on_the_cpu() -> list[Any]:
    """Where the global generators of the CPU stand."""
    return [torch.get_rng_state().numpy().tobytes(), random.getstate(), _numpy_words()]


def _on_the_gpu(generator: torch.Generator | None) -> list[tuple[torch.Generator, Tensor]]:
    """The generators that a graph draws on from, with the places where they stand."""
    found = [] if generator is None else [generator]
    if torch.cuda.is_initialized():
        found.append(torch.cuda.default_generators[torch.cuda.current_device()])
    return [(one, one.get_state()) for one in found]


def _numpy_words() -> Any:
    state: Any = np.random.get_state(legacy=False)  # noqa: NPY002
    inner = state["state"]
    return inner["key"].tobytes(), inner["pos"], state["has_gauss"]


@contextmanager
def no_collection() -> Iterator[None]:
    """Python's cycle collector rests inside the block: where many objects are made that all stay, it
    takes as long as making them.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
