"""``groundstate studio``: saved models in the browser, on this machine only."""

from __future__ import annotations

import socket
import sys
import threading
import webbrowser
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from groundstate.cli.loading import inner, load_model, named, rows_for
from groundstate.cli.screen import Screen
from groundstate.errors import DataError, Unsupported
from groundstate.models.rows.kinds import TABLE


def studio(
    models: list[str], data: str | None, target: str | None, port: int, browser: bool,
    device: str | None, json: bool,
) -> None:  # fmt: skip
    """Load the models, say where the studio is, and serve it until it is interrupted."""
    for package in ("fastapi", "uvicorn"):
        if find_spec(package) is None:
            raise Unsupported(
                f"the studio needs {package}; install it with pip install 'groundstate[studio]'"
            )
    import uvicorn

    from groundstate.studio.app import app
    from groundstate.studio.guard import LOOPBACK
    from groundstate.studio.loaded import Loaded

    held = []
    for path in models:
        model = load_model(_saved(path), device)
        X, y = (None, None) if data is None else _rows(model, data, target)
        held.append(Loaded(Path(path).stem, model, path, X, y))
    built = app(held)
    listening = _listen(LOOPBACK, port)
    address = f"http://{LOOPBACK}:{listening.getsockname()[1]}"
    screen = Screen(json)
    screen.data({"address": address, "models": [loaded.key for loaded in held]})
    screen.show(f"studio: {address}  (Ctrl+C ends it)")
    sys.stdout.flush()  # whoever started it waits for the address
    if browser:
        threading.Timer(0.5, webbrowser.open, (address,)).start()
    server = uvicorn.Server(uvicorn.Config(built, log_level="warning", lifespan="off"))
    with listening:
        server.run(sockets=[listening])


def _saved(path: str) -> str:
    """A saved model, or the one in a folder that ``groundstate fit`` wrote."""
    inside = Path(path) / "model.gs"
    return str(inside) if inside.exists() else path


def _listen(host: str, port: int) -> socket.socket:
    """A socket on the loopback; an error says that the port is taken."""
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((host, port))
        found.listen()  # who asks before the server is up waits, and is not refused
    except OSError as error:
        found.close()
        raise DataError(
            f"port {port} cannot be used ({error.strerror}); name another with --port"
        ) from None
    return found


def _rows(model: Any, source: str, target: str | None) -> tuple[Any, Any]:
    """Rows of a table or pictures for a model, and the labels among them."""
    if getattr(inner(model), "rows", TABLE) != TABLE:
        return rows_for(model, source), None
    from groundstate.data import read

    table, name = read(source), target or getattr(model, "target_", None)
    if target is not None and target not in table.columns:
        raise DataError(f"--target {target!r} is no column of {source!r}")
    y = None
    if name in table.columns:
        y = table.with_target(name).y
        table = table.with_target(name).features
    known = getattr(model, "feature_names_in_", None)
    if known is not None:
        return table.select([str(column) for column in known]), y
    if getattr(model, "n_features_in_", table.n_columns) != table.n_columns:
        one_more = table.n_columns == model.n_features_in_ + 1 and y is None
        way = "name the column of labels with --target" if one_more else "--data is for its rows"
        raise DataError(
            f"{named(model)} was fitted on {model.n_features_in_} columns and {source!r} has "
            f"{table.n_columns}; {way}"
        )
    return table.matrix(), y
