"""One set of colours for page and pictures, in light, in dark and on paper."""

from __future__ import annotations

from typing import Any

# Pictures are drawn with these stand-ins, which become CSS variables of the page that shows them.
INK, MUTED, ACCENT, SECOND, LINE, PAPER = (
    "#100001", "#200002", "#300003", "#400004", "#500005", "#600006",
)  # fmt: skip
# colours that can be told apart in light, in dark and by most colour-blind readers
GROUPS = (ACCENT, SECOND, "#3f9c68", "#9467bd", "#c9a227", "#4db6c4", "#d16ba5", "#8a8f98")
VARIABLES = {
    INK: "var(--ink)",
    MUTED: "var(--muted)",
    ACCENT: "var(--accent)",
    SECOND: "var(--second)",
    LINE: "var(--line)",
    PAPER: "var(--paper)",
}

RC: Any = {
    "svg.fonttype": "none",  # text stays text: it scales, can be searched and read aloud
    "svg.id": None,
    "font.family": "sans-serif",
    "font.size": 10.0,
    "axes.edgecolor": LINE,
    "axes.labelcolor": MUTED,
    "axes.titlecolor": INK,
    "axes.titlesize": 11.0,
    "axes.titlelocation": "left",
    "axes.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "figure.facecolor": "none",
    "text.color": INK,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": MUTED,
    "ytick.labelcolor": INK,
    "grid.color": LINE,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "lines.linewidth": 1.8,
}

CSS = """
:root { --ink: #1c2430; --muted: #5b6675; --accent: #2b6cb0; --second: #c05621; --line: #d5dbe3;
  --paper: #ffffff; --soft: #f4f6f9; --good: #2f855a; --warn: #b7791f; --bad: #c53030; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ef; --muted: #9aa5b4; --accent: #63a4e8;
  --second: #ed9a5b; --line: #38414f; --paper: #14181f; --soft: #1d232d; --good: #68d391;
  --warn: #f6c667; --bad: #fc8181; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
main { max-width: 60rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0 0 .25rem; }
h2 { font-size: 1.15rem; margin: 2.4rem 0 .6rem; }
h3 { font-size: 1rem; margin: 1.4rem 0 .3rem; }
p, li { max-width: 46rem; }
.sub, .words, figcaption { color: var(--muted); }
.words, figcaption { font-size: .9rem; }
.verdict { background: var(--soft); border-left: 4px solid var(--accent); border-radius: 6px;
  padding: .9rem 1.1rem; margin: 1.2rem 0; font-size: 1.06rem; }
.verdict p { margin: .35rem 0; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .38rem .7rem .38rem 0; border-bottom: 1px solid var(--line);
  vertical-align: top; }
th { color: var(--muted); font-weight: 600; font-size: .85rem; }
td.n, th.n { text-align: right; }
tr.best td { font-weight: 600; }
figure { margin: 1.2rem 0; }
figure svg { width: 100%; height: auto; max-height: 32rem; display: block; }
svg text { font-family: system-ui, -apple-system, "Segoe UI", Roboto, sans-serif !important; }
.serious { color: var(--bad); } .warning { color: var(--warn); } .info { color: var(--muted); }
.tag { font-size: .78rem; font-weight: 600; text-transform: uppercase; letter-spacing: .04em; }
code, pre { font: .88em/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
pre { background: var(--soft); padding: .8rem 1rem; border-radius: 6px; overflow-x: auto; }
dt { font-weight: 600; margin-top: .6rem; } dd { margin: 0; color: var(--muted); max-width: 46rem; }
@media (max-width: 40rem) { body { font-size: 15px; } main { padding: 1rem .8rem 3rem; } }
@media print { :root { --ink: #000; --muted: #444; --accent: #1a4f8b; --second: #9c4221;
  --line: #bbb; --paper: #fff; --soft: #f6f6f6; } main { max-width: none; padding: 0; }
  h2 { break-after: avoid; } figure, tr, .verdict { break-inside: avoid; } }
"""

__all__ = ["ACCENT", "CSS", "GROUPS", "INK", "LINE", "MUTED", "PAPER", "RC", "SECOND", "VARIABLES"]
