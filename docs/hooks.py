"""MkDocs hook: tables made from the package, and the navigation of folders of pages.

A page writes ``{{ table: models }}`` where a table belongs. Nothing generated is kept in the
repository, and a table that cannot be made stops the build.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
PARTS = ("energies", "rules", "penalties", "solvers", "methods")
FAMILIES = {  # page of docs/families: the families of the registry it tells about
    "linear": ("linear",),
    "margins": ("svm",),
    "kernels": ("kernels", "processes"),
    "neighbors": ("neighbors",),
    "bayes": ("bayes", "discriminant"),
    "trees": ("trees",),
    "ensembles": ("ensembles",),
    "networks": ("networks",),
    "physics": ("physics",),
    "rows": ("vision", "text", "sequences", "graphs"),
    "metrics": ("metrics", "outliers"),
    "latent": ("clusters", "factors"),
    "mixtures": ("mixtures",),
    "manifolds": ("manifolds",),
    "energy": ("energy",),
    "flows": ("flows",),
    "autoregressive": ("autoregressive",),
    "autoencoders": ("autoencoders",),
    "adversarial": ("adversarial",),
    "contrastive": ("representations",),
    "diffusion": ("diffusion",),
    "graphical": ("graphical",),
}
MARK = re.compile(r"^\{\{ table: (?P<name>[\w-]+) \}\}$", re.M)


def on_config(config: Any) -> Any:
    """Fill the folders of pages into the navigation."""
    config.nav = _fill(config.nav, Path(config.docs_dir))
    return config


def on_files(files: Any, config: Any) -> Any:
    """Draw every picture of docs/pictures with the package and add it to the site."""
    from mkdocs.structure.files import File

    for name, svg in pictures(Path(config.docs_dir) / "pictures"):
        files.append(File.generated(config, f"assets/pictures/{name}.svg", content=svg))
    return files


def pictures(folder: Path) -> Iterable[tuple[str, bytes]]:
    """Draw the figures that the modules of a folder list in ``PICTURES``, one after the other."""
    import matplotlib

    for path in sorted(folder.glob("*.py")):
        for name, draw in getattr(_drawing(path.stem, folder), "PICTURES", {}).items():
            out = BytesIO()
            with matplotlib.rc_context({"svg.hashsalt": name, "svg.fonttype": "none"}):
                draw().savefig(out, format="svg", metadata={"Date": None})
            yield name, out.getvalue()


def _drawing(name: str, folder: Path = ROOT / "docs" / "pictures") -> Any:
    """A module of pictures; they import each other by plain names."""
    sys.path.insert(0, str(folder))
    try:
        return import_module(name)
    finally:
        sys.path.remove(str(folder))


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Put the generated tables in their places."""
    return MARK.sub(lambda match: make(match["name"]), markdown)


def make(name: str) -> str:
    """Return one generated table as Markdown."""
    if name not in TABLES:
        raise ValueError(f"a page asks for the table {name!r}; there are: {', '.join(TABLES)}")
    return TABLES[name]()


def model_pages(docs: Path) -> list[str]:
    """Return the pages of docs/models, the index first."""
    pages = sorted((docs / "models").glob("*.md"), key=lambda p: (p.stem != "index", p.stem))
    return [f"models/{page.name}" for page in pages]


def _fill(nav: list[Any], docs: Path) -> list[Any]:
    written = set(re.findall(r"[\w/-]+\.md", yaml.safe_dump(nav)))
    folders = {
        "MODELS": model_pages(docs),
        "FAMILIES": [f"families/{name}.md" for name in FAMILIES],
        "GUIDES": [f"guides/{p.name}" for p in sorted((docs / "guides").glob("*.md"))],
        "GALLERY": [f"gallery/{p.name}" for p in sorted((docs / "gallery").glob("*.md"))],
        "DECISIONS": [f"decisions/{p.name}" for p in sorted((docs / "decisions").glob("*.md"))],
        "CONCEPTS": [
            f"concepts/{p.name}"
            for p in sorted((docs / "concepts").glob("*.md"))
            if f"concepts/{p.name}" not in written
        ],
    }

    def walk(items: Iterable[Any]) -> list[Any]:
        filled: list[Any] = []
        for item in items:
            if isinstance(item, str):
                filled += folders.get(item, [item])
            else:
                ((title, value),) = item.items()
                inner = walk(value) if isinstance(value, list) else folders.get(value, value)
                filled.append({title: inner})
        return filled

    return walk(nav)


def table(header: Sequence[str], rows: Iterable[Sequence[object]], empty: str) -> str:
    """Return a Markdown table, or a sentence when there is no row."""
    body = ["| " + " | ".join(_cell(value) for value in row) + " |" for row in rows]
    if not body:
        return f"*{empty}*"
    return "\n".join(["| " + " | ".join(header) + " |", "|" + " --- |" * len(header), *body])


def _cell(value: object) -> str:
    return str(value).replace("|", "\\|").replace("\n", " ")


def models_table() -> str:
    """Return every estimator: family, task, one line."""
    from groundstate.registry import models

    here = ROOT / "docs" / "models"

    def title(name: str) -> str:
        return f"[{name}]({name}.md)" if (here / f"{name}.md").is_file() else name

    rows = sorted(models, key=lambda row: (row.family, row.name))
    cells = [
        (title(row.name), row.family, row.task, row.role, row.rows, row.summary) for row in rows
    ]
    header = ("model", "family", "task", "role", "rows", "in one line")
    return table(header, cells, "No model is registered yet.")


def family_table(page: str) -> Callable[[], str]:
    """Return a maker of the table of the models that one page of docs/families tells about."""

    def made() -> str:
        from groundstate.registry import models

        rows = [row for row in models if row.family in FAMILIES[page]]
        cells = [(f"[{row.name}](../models/{row.name}.md)", row.task, row.summary) for row in rows]
        return table(
            ("model", "task", "in one line"), sorted(cells), "No model of this family yet."
        )

    return made


def parts_table(kind: str) -> Callable[[], str]:
    """Return a maker of the table of one kind of part."""

    def made() -> str:
        from groundstate import registry

        rows = [
            (f"`{row.name}`", f"${row.formula}$" if row.formula else "", row.summary)
            for row in getattr(registry, kind)
        ]
        return table(("name", "formula", "in one line"), rows, f"No {kind} are registered yet.")

    return made


def activations_table() -> str:
    """Return every activation with what is known about it."""
    import math

    from groundstate.nn import ACTIVATIONS

    def number(value: float) -> str:
        return f"{value:.4g}".replace("inf", "∞")

    smooth = {-1: "a jump", 0: "continuous", 1: "C¹", math.inf: "C^∞"}
    rows = [
        (f"`{a.name}`", f"${a.formula}$", f"({number(a.low)}, {number(a.high)})",
         smooth[a.smooth], "yes" if a.monotone else "no", number(a.bound), a.init)
        for a in ACTIVATIONS.values()
    ]  # fmt: skip
    header = ("name", "formula", "range", "smoothness", "monotone", "largest slope", "init")
    return table(header, rows, "No activation is registered yet.")


def experiments_table() -> str:
    """Return every experiment with the claim it checks."""
    from groundstate.registry import experiments

    rows = [(f"`{row.name}`", row.theme, row.title) for row in experiments]
    return table(("id", "theme", "claim"), rows, "No experiment is registered yet.")


def coverage_table() -> str:
    """Return the ledger: which object, test and run answers each specification id."""
    ledger = tomllib.loads((ROOT / "docs" / "coverage.toml").read_text())

    def code(value: str | list[str]) -> str:
        return "<br>".join(f"`{v}`" for v in ([value] if isinstance(value, str) else value))

    rows = [
        (
            f"`{key}`",
            code(row.get("object", [])),
            code(row.get("test", [])),
            code(row.get("run", [])),
        )
        for key, row in sorted(ledger.items())
    ]
    return table(("id", "object", "test", "run"), rows, "The ledger is empty.")


def benchmarks_table() -> str:
    """Return the committed results, one table per benchmark and machine."""
    from groundstate.bench import discover, read_csv
    from groundstate.bench.table import show_seconds

    declared = discover(ROOT / "bench")
    parts: list[str] = []
    for path in sorted((ROOT / "bench" / "results").glob("*.csv")):
        rows = read_csv(path)
        for machine in dict.fromkeys(row["machine"] for row in rows):
            own = [row for row in rows if row["machine"] == machine]
            first = own[0]
            title = declared[first["benchmark"]].title if first["benchmark"] in declared else ""
            body = table(
                ("size", "contestant", "median time", "speed", "peak MiB", first["score_name"]),
                [
                    (
                        row["size"],
                        f"**{row['contestant']}**" if row["ours"] == "True" else row["contestant"],
                        show_seconds(float(row["median_s"])),
                        f"{float(row['speed']):.2f}x" if row["speed"] else "",
                        f"{float(row['peak_mib']) + float(row['device_mib']):.1f}",
                        row["score"],
                    )
                    for row in own
                ],
                "",
            )
            days = sorted({row["date"] for row in own})
            threads = " or ".join(sorted({row["threads"] for row in own}))
            newest = max(own, key=lambda row: row["date"])["versions"]
            note = (
                f"{machine}, {threads} threads. {newest}. {' to '.join({days[0]: 0, days[-1]: 0})}"
            )
            parts.append(f"### {first['benchmark']}\n\n{title}\n\n{body}\n\n{note}.")
    return "\n\n".join(parts) or "*No result is committed yet.*"


def cross_table() -> str:
    """Return energies × rules: exact, approximate or refused, asked from the parts themselves."""
    import torch

    from groundstate.registry import energies, rules

    rows = []
    columns = [rule for rule in rules if rule.make is not None]
    for energy in energies:
        if energy.make is None or energy.batch is None:
            continue
        cells = [
            _meet(energy.make(), rule.make, energy.batch(8, torch.Generator().manual_seed(0)))
            for rule in columns
        ]
        rows.append((f"`{energy.name}`", *cells))
    return table(("energy", *(f"`{rule.name}`" for rule in columns)), rows, "No pair yet.")


def _meet(energy: Any, make_rule: Any, batch: Any) -> str:
    from groundstate.errors import Unsupported

    try:
        rule = make_rule(energy)
        if rule.reason_against(energy, batch) is not None:
            return "–"
    except Unsupported:
        return "–"
    return "●" if rule.is_exact(energy, batch) else "○"


def inference_table() -> str:
    """Return energies × inference methods: the operations each method can do."""
    import torch

    from groundstate.registry import energies, methods

    columns = [method for method in methods if method.make is not None]
    rows = []
    for row in energies:
        if row.make is None or row.batch is None:
            continue
        energy, batch = row.make(), row.batch(8, torch.Generator().manual_seed(0))
        rows.append((f"`{row.name}`", *(_does(energy, batch, column.make) for column in columns)))
    return table(("energy", *(f"`{column.name}`" for column in columns)), rows, "No pair yet.")


def _does(energy: Any, batch: Any, make_method: Any) -> str:
    from groundstate.errors import Unsupported

    try:
        method = make_method(energy)
    except Unsupported:
        return "–"
    done = set()
    for free in energy.spaces:
        given = {name: value for name, value in batch.items() if name != free}
        done |= {
            operation
            for operation in method.operations
            if method.reason_against(energy, operation, free, given) is None
        }
    return "<br>".join(sorted(done)) or "–"


def folders_table() -> str:
    """Return the folders of the package with the first line of their docstrings."""
    import ast

    source = ROOT / "src" / "groundstate"
    rows = []
    for init in sorted(source.rglob("__init__.py")):
        where = init.parent.relative_to(source)
        depth = len(where.parts)
        if not depth or (where.parts[0] == "experiments" and depth > 1):
            continue
        modules = len([path for path in init.parent.glob("*.py") if path.name != "__init__.py"])
        doc = (ast.get_docstring(ast.parse(init.read_text())) or "").split("\n")[0]
        name = "\u2003" * (depth - 1) + f"`{where.parts[-1]}/`"
        rows.append((name, modules, doc))
    return table(("folder", "modules", "what it holds"), rows, "The package has no folders.")


def maps_table() -> str:
    """Return the numbers of the maps of digits, measured now."""
    rows = _drawing("common").experiment("UNSX-ladder").numbers["maps"]
    names = list(next(iter(rows.values())))
    cells = [(name, *(f"{row[key]:.3f}" for key in names)) for name, row in rows.items()]
    return table(("map", *names), cells, "No map was made.")


QUESTIONS = (
    "energy", "score_samples", "sample", "sample(y=)", "impute", "infer", "encode", "reconstruct",
    "interpolate", "mixed columns",
)  # fmt: skip


def generators_table() -> str:
    """Generators and questions: what each answers, found by asking a small fitted one."""
    sys.path.insert(0, str(ROOT))
    try:
        from tests.contracts.test_generator import CASES, mixed
    finally:
        sys.path.remove(str(ROOT))
    rows = []
    for name, case in sorted(CASES.items()):
        found = _answered(case, mixed)
        rows.append((f"[{name}](../models/{name}.md)", *(found[q] for q in QUESTIONS)))
    return table(("model", *QUESTIONS), rows, "No generator is registered yet.")


def _answered(case: Any, mixed: Callable[[], Any]) -> dict[str, str]:
    """By question a mark, or what kind of density it is."""
    import warnings

    import numpy as np

    from groundstate.errors import Unsupported

    X = case.rows()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = case.fit()
        gaps = np.array(X[:2], float)
        gaps.reshape(2, -1)[:, 0] = np.nan
        asked: dict[str, Callable[[], Any]] = {
            "sample": lambda: model.sample(2, random_state=0),
            "sample(y=)": lambda: case.fit(np.arange(len(X)) % 2).sample(2, y=1, random_state=0),
            "impute": lambda: model.impute(gaps, "sample", random_state=0),
            "energy": lambda: model.energy(X[:2]),
            "encode": lambda: model.transform(X[:2]),
            "reconstruct": lambda: model.reconstruct(X[:2]),
            "interpolate": lambda: model.interpolate(X[0], X[1], 3),
            "infer": lambda: model.infer({"x": gaps}, "x", "sample", random_state=0),
            "mixed columns": lambda: case.fit(X=mixed()),
        }
        kind = model.log_prob_kind_
        found = {"score_samples": "–" if kind == "none" else kind}
        for question, ask in asked.items():
            refused = {"sample(y=)": "y", "infer": "impute", "mixed columns": "mixed"}
            if refused.get(question, question) in case.not_for:
                found[question] = "–"
                continue
            try:
                ask()
                found[question] = "✓"
            except (Unsupported, AttributeError):
                found[question] = "–"
    return found


TABLES: dict[str, Callable[[], str]] = {
    "models": models_table,
    "generators": generators_table,
    **{f"family-{page}": family_table(page) for page in FAMILIES},
    "maps": maps_table,
    "experiments": experiments_table,
    "activations": activations_table,
    "coverage": coverage_table,
    "benchmarks": benchmarks_table,
    "cross": cross_table,
    "inference": inference_table,
    "folders": folders_table,
    **{
        kind: parts_table(kind) for kind in ("energies", "rules", "penalties", "solvers", "methods")
    },
}
