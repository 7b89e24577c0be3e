"""What people have as texts: lists, arrays and columns of strings, files and folders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from groundstate.compute.rows import Rows, Texts
from groundstate.data.reading import RowReader, as_list
from groundstate.data.text.files import read_labelled, read_texts
from groundstate.errors import DataError


class TextReader(RowReader):
    """Strings, one per row."""

    kind = "text"
    accepts = "a list, array or column of strings, a .txt or .jsonl file, a folder of such files"

    def takes(self, value: Any) -> bool:
        if isinstance(value, Texts):
            return True
        if isinstance(value, np.ndarray):
            text = value.dtype.kind in "UT" or (value.dtype == object and value.size > 0)
            return text and value.ndim == 1 and all(isinstance(v, str) for v in value[:100])
        rows = as_list(value) or []
        return bool(rows) and all(isinstance(v, str) for v in rows[:100])

    def read(self, value: Any) -> Rows:
        if isinstance(value, Texts):
            return value
        if isinstance(value, str | Path):
            return read_texts(value)
        shape = tuple(getattr(value, "shape", ()))
        if len(shape) > 1:
            raise DataError(
                f"texts are one column of strings, got {len(shape)} axes of shape {shape}; pass that "
                "column, such as X['text'] of a frame or X[:, 0] of an array"
            )
        rows = as_list(value) or []
        wrong = next((i for i, v in enumerate(rows) if not isinstance(v, str)), None)
        if wrong is not None:
            raise DataError(
                f"row {wrong} is {type(rows[wrong]).__name__}, expected a string in every row; "
                'replace missing texts by ""'
            )
        return Texts.of([str(v) for v in rows])

    def labelled(self, value: Any) -> tuple[Rows, Any] | None:
        return read_labelled(value) if isinstance(value, str | Path) else None
