// Move in the plane of codes; see the decoded row, the codes of the data, and ways between two points.

import { api, colour, css, el, frame, latest, nothing, number, option, paint, picture, put, python } from "/static/studio.js";
import { Plot, dots, line } from "/static/plot.js";

const main = document.getElementById("main");
const { key, refused } = await frame();
if (key === null) nothing(main, "Latent plane", refused ?? "No model here has a code of two numbers or more.");
else start(await api(`/latent-plane/${encodeURIComponent(key)}/codes`));

function start(codes) {
  const where = `/latent-plane/${encodeURIComponent(key)}`, said = el("p", { class: "error" });
  const canvas = el("canvas", { class: "plane", "aria-label": "The plane of codes" }), sample = el("div", { class: "sample" });
  const place = el("p", { class: "muted small mono" }, "move over the plane"), walk = el("div"), legend = el("div", { class: "legend" });
  const plane = { i: 0, j: 1, row: null };
  let ends = [], way = null, grid = null, cursor = null;

  const axis = (name, label) => el("select", { "aria-label": label, onchange: e => { plane[name] = Number(e.target.value); again(); } },
    ...Array.from({ length: codes.size }, (_, k) => option(k, `z${k}`, k === plane[name])));
  const held = el("select", { onchange: () => { plane.row = null; background(); } }, option("mean", "at their mean", true), option("row", "of the row nearest to a click"));
  const box = (text, on, change) => { const input = el("input", { type: "checkbox", checked: on, onchange: change }); return [input, el("label", {}, input, text)]; };
  const [showGrid, gridLabel] = box("decoded grid", !!codes.picture, () => background());
  const [showDots, dotsLabel] = box("codes of the data", true, () => plot.paint());
  const mode = el("select", { onchange: () => travel() }, ...codes.modes.map(m => option(m, m)));

  put(main, el("h1", {}, "Latent plane"),
    el("p", { class: "sub" }, "Every point of the plane is a code; the model decodes the one under the pointer. Click two points to walk from one to the other."),
    el("div", { class: "row" }, el("label", {}, "across", axis("i", "axis across")), el("label", {}, "up", axis("j", "axis up")),
      codes.size > 2 ? el("label", {}, "other axes", held) : null, codes.picture ? gridLabel : null, codes.points.length ? dotsLabel : null), said,
    el("div", { class: "split wide" }, el("section", {}, el("div", {}, canvas), legend),
      el("section", { class: "stick" }, sample, place,
        el("div", { class: "row" }, el("label", {}, "way", mode), el("button", { onclick: () => { ends = []; way = null; put(walk); plot.paint(); } }, "Forget it")))),
    walk,
    python("import groundstate", `model = groundstate.load("${key}.gs")`, "Z = model.transform(X)", "model.inverse_transform([[0.3, -1.2]])", 'model.interpolate(X[0], X[1], n=10, mode="slerp")', "model.latent_grid(12)"));

  const names = codes.labels ? [...new Set(codes.labels)].sort((a, b) => a.localeCompare(b, "en", { numeric: true })) : [];
  put(legend, ...names.map((n, k) => { const dot = el("i"); dot.style.background = colour(k); return el("span", {}, dot, n); }));

  const plot = new Plot(canvas, { ratio: 0.86 });
  plot.layers = [drawGrid, drawDots, drawWay, drawCursor];

  // the decoded grid: one small picture per cell of the plane
  function drawGrid(p, c) {
    if (!showGrid.checked || !grid?.pictures) return;
    const k = Math.round(Math.sqrt(grid.pictures.count)), b = p.box, w = b.w / k, h = b.h / k;
    c.imageSmoothingEnabled = false; c.globalAlpha = .55;
    const side = Math.min(w, h) * .94, { width, height } = grid.pictures, s = side / Math.max(width, height);
    grid.made.forEach((m, n) => c.drawImage(m, b.x + (n % k + .5) * w - width * s / 2, b.y + (Math.floor(n / k) + .5) * h - height * s / 2, width * s, height * s));
    c.globalAlpha = 1;
  }
  function drawDots(p, c) { if (showDots.checked) dots(p, c, codes.points, i => codes.labels ? colour(names.indexOf(codes.labels[i])) : css("accent")); }
  function drawWay(p, c) {
    if (way) { line(p, c, way, css("paper"), 6); line(p, c, way, css("ink"), 2.5);  }
    ends.forEach((e, k) => {
      c.beginPath(); c.arc(p.x(e[0]), p.y(e[1]), 9, 0, 7); c.fillStyle = css("ink"); c.fill();
      c.fillStyle = css("paper"); c.font = "bold 11px system-ui, sans-serif"; c.textAlign = "center"; c.textBaseline = "middle"; c.fillText("AB"[k], p.x(e[0]), p.y(e[1]) + .5);
    });
  }
  function drawCursor(p, c) {
    if (!cursor) return;
    c.beginPath(); c.arc(p.x(cursor[0]), p.y(cursor[1]), 6, 0, 7); c.lineWidth = 3; c.strokeStyle = css("paper"); c.stroke();
    c.lineWidth = 1.6; c.strokeStyle = css("ink"); c.stroke();
  }

  const fail = error => { said.textContent = error?.message ?? ""; };
  const decode = latest(at => api(`${where}/decode`, { ...plane, at: [at] }), (d, at) => {
    put(sample, shown(d, 0)); place.textContent = `z${plane.i} = ${number(at[0])}, z${plane.j} = ${number(at[1])}`;
  }, fail);

  // a row: a picture, or bars of its columns
  function shown(rows, k) {
    if (rows.pictures) return picture(rows.pictures, k);
    const values = rows.values[k], most = Math.max(...values.map(Math.abs), 1e-12);
    return el("div", { class: "bars" }, ...values.slice(0, 40).flatMap((v, i) => {
      const fill = el("i"); fill.style.width = `${100 * Math.abs(v) / most}%`; fill.style.background = css(v < 0 ? "second" : "accent");
      return [el("span", {}, codes.columns[i] ?? `x${i}`), el("div", { class: "bar" }, fill), el("span", { class: "num" }, number(v))];
    }));
  }

  const background = latest(() => showGrid.checked && codes.picture ? api(`${where}/grid`, { ...plane, k: 14, low: plot.low, high: plot.high }) : Promise.resolve(null),
    found => { grid = found; if (grid) grid.made = Array.from({ length: grid.pictures.count }, (_, n) => picture(grid.pictures, n)); plot.paint(); }, fail);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => background(1));
  new MutationObserver(() => { grid?.made.forEach(m => m.paint(m)); plot.paint(); }).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });

  async function travel() {
    if (ends.length < 2) return;
    try {
      const found = await api(`${where}/walk`, { ...plane, a: ends[0], b: ends[1], n: 12, mode: mode.value });
      way = found.points; fail(null);
      const count = found.rows.pictures?.count ?? found.rows.values.length;
      put(walk, el("h2", {}, "From A to B"), codes.picture
        ? el("div", { class: "walk" }, ...Array.from({ length: count }, (_, k) => picture(found.rows.pictures, k)))
        : el("div", { class: "row" }, shown(found.rows, 0), shown(found.rows, count - 1)));
      plot.paint();
    } catch (error) { fail(error); }
  }

  const nearest = at => codes.points.reduce((best, p, k) => {
    const d = ((p[0] - at[0]) / (plot.high[0] - plot.low[0])) ** 2 + ((p[1] - at[1]) / (plot.high[1] - plot.low[1])) ** 2;
    return d < best[0] ? [d, k] : best;
  }, [Infinity, null])[1];

  const move = e => { const at = plot.at(e); if (!at) return; cursor = at; decode(at); plot.paint(); };
  canvas.addEventListener("pointermove", move);
  canvas.addEventListener("pointerdown", e => {
    let at = plot.at(e);
    if (!at) return;
    if (held.value === "row" && codes.points.length) { const k = nearest(at); plane.row = codes.rows[k]; at = codes.points[k]; background(1); }
    ends = ends.length === 2 ? [at] : [...ends, at]; way = ends.length < 2 ? null : way;
    move(e); travel(); plot.paint();
  });

  async function again() {
    try { codes = await api(`${where}/codes?i=${plane.i}&j=${plane.j}`); ends = []; way = null; grid = null; put(walk); fail(null); ready(); } catch (error) { fail(error); }
  }
  function ready() {
    plot.set(codes.low, codes.high, [`z${plane.i}`, `z${plane.j}`]);
    cursor = [0, 1].map(k => (codes.low[k] + codes.high[k]) / 2); decode(cursor); background(1);
  }
  ready();
}
