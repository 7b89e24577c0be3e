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
:root { --ink: #1a2230; --muted: #5a6675; --accent: #2b6cb0; --second: #c05621; --line: #dce2ea;
  --paper: #ffffff; --soft: #f5f7fa; --good: #2f855a; --warn: #975a16; --bad: #c53030;
  --tint: #e6effa; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ef; --muted: #9aa5b4; --accent: #63a4e8;
  --second: #ed9a5b; --line: #343d4b; --paper: #12161c; --soft: #1a2029; --good: #68d391;
  --warn: #f6c667; --bad: #fc8181; --tint: #1d2f45; } }
* { box-sizing: border-box; }
html { scroll-behavior: smooth; -webkit-text-size-adjust: 100%; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
main { max-width: 66rem; margin: 0 auto; padding: 2.2rem 1.25rem 5rem; }
h1 { font-size: 2rem; line-height: 1.2; letter-spacing: -.015em; margin: 0 0 .25rem;
  overflow-wrap: anywhere; }
h2 { font-size: 1.4rem; line-height: 1.25; letter-spacing: -.01em; margin: 3.4rem 0 .4rem;
  padding-top: 1.1rem; border-top: 2px solid var(--ink); }
h3 { font-size: 1.06rem; margin: 1.9rem 0 .5rem; }
h4 { font-size: .95rem; margin: 0 0 .5rem; }
p, li { max-width: 48rem; } p { margin: .6rem 0; } li { margin: .25rem 0; }
.sub, .words, figcaption { color: var(--muted); }
.progress { color: var(--warn); margin: .4rem 0 0; font-size: .92rem; }
.sub { margin: 0; } .words, figcaption { font-size: .88rem; }
.verdict { background: var(--soft); border-left: 4px solid var(--accent); border-radius: 8px;
  padding: 1rem 1.3rem; margin: 1.4rem 0 1rem; }
.verdict p { margin: .45rem 0; max-width: 54rem; }
.verdict p:first-child { font-size: 1.22rem; line-height: 1.45; font-weight: 600; }
.cards { display: grid; gap: .8rem; grid-template-columns: repeat(6, 1fr); }
.card { border: 1px solid var(--line); border-radius: 10px; padding: .85rem 1rem;
  grid-column: span 2; }
.card.main { grid-column: 1 / -1; }
.card p { margin: 0; } .card .name, .card .below { color: var(--muted); font-size: .86rem; }
.card .value { font-size: 1.6rem; font-weight: 650; line-height: 1.25; letter-spacing: -.01em;
  font-variant-numeric: tabular-nums; margin: .1rem 0; }
.card.main .value { font-size: 2.7rem; color: var(--accent); line-height: 1.15; }
.scale { position: relative; height: 12px; border-radius: 6px; background: var(--soft);
  border: 1px solid var(--line); margin: .5rem 0 .45rem; }
.scale i { position: absolute; display: block; }
.scale .band { top: 0; bottom: 0; background: var(--accent); opacity: .35; border-radius: 5px; }
.scale .dot { top: -3px; width: 16px; height: 16px; margin-left: -8px; border-radius: 50%;
  background: var(--accent); border: 2px solid var(--paper); }
.scale .base { top: -5px; bottom: -5px; width: 3px; margin-left: -1.5px; background: var(--second);
  border-radius: 2px; }
nav { display: flex; flex-wrap: wrap; gap: .45rem; margin: 1.2rem 0 0; }
nav a { color: var(--accent); background: var(--tint); text-decoration: none; font-size: .88rem;
  padding: .25rem .75rem; border-radius: 99px; }
nav a:hover, nav a:focus { text-decoration: underline; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums;
  font-size: .95rem; }
th, td { text-align: left; padding: .5rem 1.2rem .5rem 0; border-bottom: 1px solid var(--line);
  vertical-align: top; }
th:last-child, td:last-child { padding-right: 0; }
th { color: var(--muted); font-weight: 600; font-size: .84rem; vertical-align: bottom; }
td.n, th.n { text-align: right; } td.n { white-space: nowrap; }
.range { white-space: nowrap; }
.meaning { display: block; color: var(--muted); font-size: .86rem; }
.mark { color: var(--accent); font-size: .8rem; font-weight: 600; white-space: nowrap;
  margin-left: .3rem; }
tr.best > td { background: var(--tint); } tr.best > td:first-child { padding-left: .5rem; }
.figures { display: grid; gap: 1rem; margin: 1.1rem 0;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 27rem), 1fr)); }
figure { margin: 0; border: 1px solid var(--line); border-radius: 10px; padding: .9rem 1rem;
  min-width: 0; }
figure.wide { grid-column: 1 / -1; }
figure svg { width: 100%; height: auto; display: block; margin: 0 auto .5rem; }
@media (min-width: 52rem) {
  figure:only-child:not(.wide) { display: grid; grid-template-columns: minmax(0, 31rem) 1fr;
    grid-template-rows: auto 1fr; column-gap: 1.5rem; }
  figure:only-child:not(.wide) svg { grid-row: 1 / 3; margin: 0; }
  figure:only-child:not(.wide) h4 { grid-area: 1 / 2; }
}
.key { display: inline-block; width: 3px; height: .8em; border-radius: 2px; margin: 0 .35em 0 .9em;
  background: var(--second); vertical-align: -.08em; }
svg text { font-family: system-ui, -apple-system, "Segoe UI", Roboto, sans-serif !important; }
.serious { color: var(--bad); } .warning { color: var(--warn); } .info { color: var(--muted); }
.tag { font-size: .78rem; font-weight: 600; text-transform: uppercase; letter-spacing: .04em; }
code, pre { font: .88em/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
code { overflow-wrap: anywhere; }
pre { background: var(--soft); padding: .8rem 1rem; border-radius: 8px; white-space: pre-wrap;
  overflow-wrap: anywhere; }
details > summary { cursor: pointer; color: var(--accent); font-size: .92rem; margin: .6rem 0; }
dt { font-weight: 600; margin-top: .6rem; } dd { margin: 0; color: var(--muted); max-width: 48rem; }
@media (max-width: 40rem) {
  body { font-size: 15px; } main { padding: 1.2rem .9rem 3rem; }
  h1 { font-size: 1.6rem; } h2 { margin-top: 2.6rem; }
  .verdict { padding: .8rem 1rem; } .verdict p:first-child { font-size: 1.1rem; }
  .cards { grid-template-columns: 1fr 1fr; gap: .6rem; } .card { grid-column: span 1; }
  .card:last-child:nth-child(odd) { grid-column: span 1; } .card .value { font-size: 1.35rem; }
  .card.main .value { font-size: 2.3rem; }
  figure { padding: .7rem .6rem; }
  table:not(.stacked) { font-size: .82rem; }
  table:not(.stacked) th, table:not(.stacked) td { padding-right: .5rem; overflow-wrap: anywhere; }
  table:not(.stacked) td.n { white-space: normal; }
  table:not(.stacked) td:first-child { min-width: 6.5em; }
  table.stacked thead { display: none; }
  table.stacked, table.stacked tbody { display: block; }
  table.stacked tr { display: block; padding: .55rem 0; border-bottom: 1px solid var(--line); }
  table.stacked td { display: flow-root; border: 0; padding: .1rem 0; text-align: right; white-space: normal; }
  table.stacked td:first-child { display: block; text-align: left; font-weight: 600; }
  table.stacked td:first-child .meaning { font-weight: 400; }
  table.stacked td:not(:first-child)::before { content: attr(data-label); color: var(--muted);
    font-size: .86rem; text-align: left; float: left; margin-right: 1rem; max-width: 55%; }
  table.stacked td.none { display: none; }
  table.stacked tr.best { background: var(--tint); padding-left: .5rem; padding-right: .5rem; }
  table.stacked tr.best > td { background: none; padding-left: 0; }
}
@media print { :root { --ink: #000; --muted: #444; --accent: #1a4f8b; --second: #9c4221;
  --line: #bbb; --paper: #fff; --soft: #f6f6f6; --tint: #eef3f9; }
  body { font-size: 10.5pt; } main { max-width: none; padding: 0; } nav { display: none; }
  h1 { font-size: 18pt; } h2 { font-size: 14pt; margin-top: 1.6rem; }
  h2, h3 { break-after: avoid; } figure, tr, .verdict, .card { break-inside: avoid; }
  .figures { grid-template-columns: 1fr 1fr; gap: .6rem; } .words { break-before: avoid; }
  figure:last-child:nth-child(odd) { grid-column: 1 / -1; }
  figure svg { max-height: 5.6cm; } figure.wide svg { max-height: 12cm; }
  figure:only-child:not(.wide) { display: grid; grid-template-columns: 9cm 1fr;
    grid-template-rows: auto 1fr; column-gap: .5cm; }
  figure:only-child:not(.wide) svg { grid-row: 1 / 3; margin: 0; max-height: 7cm; }
  figure:only-child:not(.wide) h4 { grid-area: 1 / 2; } figcaption { font-size: 8.5pt; }
  .scroll { overflow: visible; } table { font-size: 8.5pt; }
  th, td { overflow-wrap: break-word; padding: .25rem .6rem .25rem 0; }
  .cards { grid-template-columns: repeat(3, 1fr); } .card { grid-column: span 1; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; } }
"""
# colours of the drawings on a page that has none of these variables: a notebook, light or dark
NOTEBOOK = (
    "--ink:currentColor;--muted:#7a8594;--accent:#3b82c4;--second:#c8692f;--line:#a9b3c0;"
    "--paper:transparent"
)
