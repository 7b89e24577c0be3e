"""Devices and dtypes: kept as the user chose them, refused with a way out."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from groundstate.compute import (
    as_tensor,
    one_device,
    resolve_device,
    resolve_dtype,
    same_convolutions,
    threads,
)
from groundstate.errors import DataError, Unsupported


def test_devices() -> None:
    assert resolve_device(None).type == "cpu"
    assert resolve_device("cpu") == resolve_device(torch.device("cpu"))
    assert resolve_device(None, like=torch.zeros(1, device="meta")).type == "meta"
    assert resolve_device("auto").type in ("cpu", "cuda")


def test_missing_gpu_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(Unsupported, match="device='cuda' was asked for but torch sees no GPU"):
        resolve_device("cuda")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    with pytest.raises(Unsupported, match=r"sees 1 GPU\(s\), numbered from 0"):
        resolve_device("cuda:1")
    with pytest.raises(Unsupported, match="device='gpu' is no torch device; use 'cpu', 'cuda'"):
        resolve_device("gpu")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (np.zeros(1, np.float32), torch.float32),
        (np.zeros(1), torch.float64),
        (np.zeros(1, int), torch.float64),
        (np.zeros(1, bool), torch.float64),
        (np.zeros(1, np.float16), torch.float64),
        (torch.zeros(1), torch.float32),
        (torch.zeros(1, dtype=torch.bfloat16), torch.float64),
        ([1, 2], torch.float64),
    ],
)
def test_float32_and_float64_stay(given: object, expected: torch.dtype) -> None:
    assert resolve_dtype(given) == expected
    assert as_tensor(given).dtype == expected


def test_no_silent_copies() -> None:
    array = np.zeros((3, 2))
    as_tensor(array)[0, 0] = 5.0
    assert array[0, 0] == 5.0
    tensor = torch.zeros(3)
    assert as_tensor(tensor) is tensor


def test_arrays_that_torch_cannot_share_are_copied() -> None:
    array = np.arange(4.0)
    assert as_tensor(array[::-1]).tolist() == [3, 2, 1, 0]
    assert as_tensor(array.astype(">f8")).tolist() == array.tolist()
    array.flags.writeable = False
    as_tensor(array)[0] = 9.0
    assert array[0] == 0.0


def test_text_is_refused() -> None:
    with pytest.raises(DataError, match="encode text, dates and mixed columns first"):
        as_tensor(np.array(["a", "b"]))


def test_one_device_names_both() -> None:
    x, theta = torch.zeros(1), torch.zeros(1, device="meta")
    assert one_device(x=x, z=None).type == "cpu"
    with pytest.raises(Unsupported, match="x is on cpu but theta is on meta"):
        one_device(x=x, theta=theta)
    with pytest.raises(
        Unsupported, match=r"tensor 0 is on cpu but tensor 1 is on meta.*\.to\('cpu'"
    ):
        one_device(x, theta)


def test_threads_are_put_back() -> None:
    before = torch.get_num_threads()
    with threads(1):
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == before


def test_convolutions_of_cudnn_are_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    cudnn = torch.backends.cudnn
    monkeypatch.setattr(cudnn, "deterministic", False)
    monkeypatch.setattr(cudnn, "benchmark", True)
    with pytest.raises(KeyError), same_convolutions():
        assert (cudnn.deterministic, cudnn.benchmark) == (True, False)
        raise KeyError
    assert (cudnn.deterministic, cudnn.benchmark) == (False, True)
