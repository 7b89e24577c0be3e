"""``groundstate predict``, ``infer``, ``sample`` and ``generate``: questions to a saved model."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable, Iterator
from inspect import signature
from itertools import chain
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from groundstate.cli.answers import writer_of
from groundstate.cli.loading import (
    column_name,
    inner,
    load_model,
    named,
    rows_for,
    without_distribution,
)
from groundstate.cli.screen import Screen
from groundstate.data import read, written
from groundstate.data.messages import count
from groundstate.errors import DataError, Unsupported
from groundstate.models.generative.tables.table_generator import TableGenerator
from groundstate.models.tables.table import TablePredictor
from groundstate.store import manifest
from groundstate.study import single_rows

MODES = ("min", "marginal", "sample")
_LEVEL = 0.9


def predict(
    model: str, table: str, out: str, proba: bool, device: str | None, json: bool, quiet: bool,
    edges: str | None = None, interval: bool = False, set_of: bool = False, level: float | None = None,
    *, why: bool = False, background: str | None = None, seed: int = 0,
) -> None:  # fmt: skip
    """Print or write the predicted column, with probabilities, intervals or sets if asked; boxes and
    forecasts as lines, masks into a folder."""
    screen, loaded = Screen(json, not quiet), load_model(model, device)
    if not hasattr(loaded, "predict"):
        raise Unsupported(
            f"{named(loaded)} does not predict; ask it with groundstate infer --free z"
        )
    write = writer_of(loaded)
    if write is not None:
        return write(loaded, model, table, out, level, screen)
    level = _LEVEL if level is None else level
    rows = rows_for(loaded, table, edges)
    found = {column_name(loaded): loaded.predict(rows)}
    if proba:
        if not hasattr(loaded, "predict_proba"):
            raise Unsupported(
                f"{named(loaded)} gives no probabilities; leave --proba out, or fit a model that "
                "does, such as LogisticRegression"
            )
        table_of = np.asarray(loaded.predict_proba(rows))  # (n, K)
        labels = getattr(loaded, "classes_", range(table_of.shape[1]))
        found |= {f"p({label})": table_of[:, k] for k, label in enumerate(labels)}
    kept = manifest(model)["meta"].get("errors") if interval or set_of else None
    if interval:
        ends = single_rows.intervals(loaded, kept, rows, level)
        found |= {"low": ends.low, "high": ends.high}
    if set_of:
        member = single_rows.sets(loaded, kept, rows, level)
        found["set"] = [" | ".join(map(str, member[i])) for i in range(len(member))]
    answers = pl.DataFrame({k: np.asarray(v) for k, v in found.items()})
    if why:
        from groundstate.cli.why import why as reasons

        nested = json and out == "-"
        answers = answers.with_columns(
            reasons(loaded, rows, background, seed, nested, screen).values()
        )
    screen.frame(answers, out)


def infer(
    model: str,
    table: str,
    free: str,
    mode: str,
    n: int,
    temperature: float,
    out: str,
    seed: int,
    device: str | None,
    json: bool,
    quiet: bool,
) -> None:
    """Print or write the best values, free energies or draws of the free variable."""
    screen, loaded = Screen(json, not quiet), load_model(model, device)
    if mode not in MODES:
        raise DataError(f"--mode is min, marginal or sample, got {mode!r}")
    if not temperature > 0:
        raise DataError(f"--temperature is a positive number, got {temperature}")
    if isinstance(loaded, TableGenerator):
        if free != "x" or mode == "marginal":
            raise Unsupported(
                "a synthetic table fills gaps: use --free x with --mode min or sample"
            )
        gaps = {"x": written(table)}
        drawn = loaded.infer(gaps, "x", mode, n=n, T=temperature, random_state=seed)
        return screen.frame(drawn, out)
    estimator = inner(loaded)
    if not hasattr(estimator, "energy_"):
        raise Unsupported(f"{named(loaded)} has no energy, so nothing can be inferred from it")
    target = getattr(loaded, "target_", "y")
    variable = "y" if free == target else free
    if variable not in estimator.energy_.spaces:
        known = ", ".join(estimator.energy_.spaces)
        raise DataError(f"--free {free!r} is no variable of {named(loaded)}; it has {known}")
    if variable == "x" and not hasattr(estimator, "sample"):
        raise without_distribution(loaded, "x cannot be inferred")
    observed = _observed(loaded, table, variable, target)
    options = {"n": n, "T": temperature, "random_state": seed}
    # what is neither asked for nor observed is free too, so that the question is whole
    rest = [v for v in estimator.energy_.spaces if v != variable and v not in observed]
    found = loaded.infer(observed, (variable, *rest), mode, **options)
    found = found[variable] if isinstance(found, dict) else found
    screen.frame(_answers(found, column_name(loaded) if variable == "y" else variable, mode), out)


def _observed(model: Any, source: str, free: str, target: str) -> dict[str, Any]:
    """What the table holds; where x is free, its cells too, and only the empty ones are inferred."""
    if free != "x":
        return {"x": rows_for(model, source)}
    if not isinstance(model, TablePredictor):
        table, known = read(source), {}
        if "y" in inner(model).energy_.spaces and target in table.columns:
            table = table.with_target(target)
            known = {"y": table.y}
        return {**known, "x": table.features.matrix() if known else table.matrix()}
    table = written(source).table(schema=model.schema_.with_target(None), gaps=True)
    rows = table.select(model.preparation_.schema_.names)
    if "y" not in inner(model).energy_.spaces or target not in table.columns:
        return {"x": rows}
    open_y = table.frame[target].null_count()
    if not open_y:
        return {"x": rows, "y": table.with_target(target).y}
    if open_y < table.n_rows:
        sys.stderr.write(
            f"note: {target!r} is empty in {count(open_y, 'row')} and is left open in all of them; "
            "split the table to use it where it is known\n"
        )
    return {"x": rows}


def _answers(found: Any, name: str, mode: str) -> pl.DataFrame:
    if isinstance(found, pl.DataFrame):
        return found
    values = np.asarray(found)
    if mode == "marginal":
        return pl.DataFrame({"free_energy": values})
    if mode == "sample":  # (n, B, ...)
        parts = [_columns(draw, name if len(values) == 1 else f"{name} draw {i + 1}")
                 for i, draw in enumerate(values)]  # fmt: skip
        return pl.concat(parts, how="horizontal")
    return _columns(values, name)


def _columns(values: NDArray[Any], name: str) -> pl.DataFrame:
    """One column, or one per component of a vector.  # (B,) or (B, d)"""
    if values.ndim == 1:
        return pl.DataFrame({name: values})
    flat = values.reshape(len(values), -1)
    if flat.shape[1] == 1:
        return pl.DataFrame({name: flat[:, 0]})
    return pl.DataFrame({f"{name}{i}": flat[:, i] for i in range(flat.shape[1])})


def sample(
    model: str, n: int, out: str, seed: int, device: str | None, json: bool, quiet: bool,
    condition: str | None = None, temperature: float = 1.0,
) -> None:  # fmt: skip
    """Print or write new rows; pictures go to a folder."""
    screen, loaded = Screen(json, not quiet), load_model(model, device)
    if not hasattr(loaded, "sample"):
        raise without_distribution(loaded, "no row can be drawn from it")
    given: dict[str, Any] = {"random_state": seed}
    takes = signature(loaded.sample).parameters
    if condition is not None:
        if "y" not in takes:
            raise Unsupported(f"{named(loaded)} draws rows without a label; leave --y out")
        given["y"] = _label(loaded, condition)
    if temperature != 1.0:
        if "T" not in takes:
            raise Unsupported(f"{named(loaded)} draws rows at temperature 1 only")
        given["T"] = temperature
    blocks = _drawn(loaded, n, given)
    first = next(blocks)
    if not hasattr(first, "columns") and np.ndim(first) > 2:
        if out == "-":
            raise DataError("the model makes pictures; name a folder with --out FOLDER")
        write_pictures(out, chain([first], blocks))
        screen.data({"out": out, "n": n})
        screen.show(f"{n} pictures: {out}")
        return
    screen.frames((_framed(block) for block in chain([first], blocks)), out)


def _drawn(model: Any, n: int, given: dict[str, Any]) -> Iterator[Any]:
    """New rows, block by block where the model can, so that memory does not grow with their number."""
    if hasattr(model, "iter_samples"):
        yield from model.iter_samples(n, **given)
        return
    drawn = model.sample(n, **given)
    yield drawn[0] if isinstance(drawn, tuple) else drawn


def _framed(drawn: Any) -> pl.DataFrame:
    if isinstance(drawn, pl.DataFrame):
        return drawn
    return pl.DataFrame(drawn) if hasattr(drawn, "columns") else _columns(np.asarray(drawn), "x")


def _label(model: Any, word: str) -> Any:
    """A label as the model knows it: of its classes the one that is written so, else a number."""
    inside = getattr(model, "estimator_", model)
    seen = getattr(inside, "condition_", None)
    if seen is None and isinstance(model, TableGenerator):
        pairs = [part.partition("=") for part in word.split(",")]
        if not all(between for _, between, _ in pairs):
            raise DataError(
                f"--y takes columns and their values for this model, such as "
                f"{model.columns_[0].name}=VALUE, got {word!r}"
            )
        return {name.strip(): value.strip() for name, _, value in pairs}
    if seen is None:
        raise Unsupported(f"{named(model)} was fitted without labels; leave --y out")
    if seen.classes is None:
        try:
            return [float(v) for v in word.split(",")]
        except ValueError:
            raise DataError(f"--y takes numbers for this model, got {word!r}") from None
    found = [c for c in seen.classes.tolist() if str(c) == word]
    if not found:
        raise DataError(f"--y {word!r} is no class; there are {', '.join(map(str, seen.classes))}")
    return found[0]


def write_pictures(folder: str, blocks: Iterable[Any]) -> None:
    """Pictures in [0, 1] as PNG files 0001.png, ... and a wall of the first of them."""
    from matplotlib.image import imsave

    from groundstate.report.generators import tiled, wall
    from groundstate.store import RunDir

    done, shown = 0, list[Any]()
    with RunDir(folder) as run:
        for block in blocks:
            for picture in np.asarray(block):
                done += 1
                buffer = io.BytesIO()
                sheet = tiled(picture[None])[:-1, :-1]
                imsave(buffer, sheet, cmap="gray", vmin=0, vmax=1, format="png")
                run.write_bytes(f"{done:04d}.png", buffer.getvalue())
                shown += [picture] if len(shown) < 64 else []
        run.write_bytes("wall.png", wall(np.stack(shown)))


def generate(
    model: str,
    prompt: str,
    n: int,
    tokens: int,
    method: str,
    temperature: float,
    top_k: int | None,
    top_p: float | None,
    seed: int,
    device: str | None,
    json: bool,
) -> None:
    """Print texts that begin with the prompt, one below the other."""
    loaded = load_model(model, device)
    if not hasattr(loaded, "generate"):
        raise Unsupported(
            f"{named(loaded)} generates no text; fit a LanguageModel and save it, or draw rows with "
            "groundstate sample"
        )
    if method not in ("sample", "greedy", "beam"):
        raise DataError(f"--method is sample, greedy or beam, got {method!r}")
    if temperature < 0:
        raise DataError(f"--temperature is at least 0, got {temperature}")
    texts = loaded.generate(
        prompt, n=n, max_new_tokens=tokens, method=method, temperature=temperature, top_k=top_k,
        top_p=top_p, beams=max(4, n), random_state=seed,
    )  # fmt: skip
    screen = Screen(json)
    screen.data({"prompt": prompt, "texts": texts})
    screen.show("\n\n".join(texts))
