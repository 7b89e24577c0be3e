// The energy over two columns as a landscape with the data, and the descent from where one clicks.

import { api, colour, css, depth, el, frame, latest, nothing, number, option, put, python } from "/static/studio.js";
import { Plot, contour, dots, line } from "/static/plot.js";

const main = document.getElementById("main"), LEVELS = 14, FINE = 72;
const { key, refused } = await frame();
if (key === null) nothing(main, "Energy", refused ?? "No model here has two columns to draw.");
else start(await api(`/energy/${encodeURIComponent(key)}`));

function start(axes) {
  const where = `/energy/${encodeURIComponent(key)}`, said = el("p", { class: "error" }), words = el("p", { class: "muted" });
  const canvas = el("canvas", { class: "plane", "aria-label": "The landscape" }), scale = el("canvas", { class: "plane" }), fall = el("canvas", { class: "plane" });
  const legend = el("div", { class: "legend" }), list = el("div");
  const plane = { i: 0, j: 1, y: null };
  let land = null, image = null, levels = [], ranks = [], paths = [];

  const axis = (name, label) => el("select", { "aria-label": label, onchange: e => { plane[name] = Number(e.target.value); again(); } },
    ...axes.columns.map((c, k) => option(k, c, k === plane[name])));
  const label = el("select", { onchange: e => { plane.y = e.target.value === "" ? null : Number(e.target.value); again(); } },
    option("", "summed out"), ...axes.classes.map((c, k) => option(k, c)));
  const steps = el("select", {}, option("adam", "many short steps"), option("newton", "few long steps (L-BFGS)"));
  const shown = el("input", { type: "checkbox", checked: true, onchange: () => plot.paint() });

  put(main, el("h1", {}, "Energy"),
    el("p", { class: "sub" }, "The strongest blue is the lowest energy: what fits together. Click anywhere, and inference goes down from there, step by step, as the model itself does when x is free",
      axes.target ? "; with y on an axis it goes to the prediction." : "."),
    el("div", { class: "row" }, el("label", {}, "across", axis("i", "axis across")), el("label", {}, "up", axis("j", "axis up")),
      axes.classes.length ? el("label", {}, "y", label) : null, el("label", {}, "by", steps), el("label", {}, shown, "data"),
      el("button", { onclick: () => { paths = []; told(); } }, "Clear")), said,
    el("div", { class: "split wide" }, el("section", {}, el("div", {}, canvas), legend, words),
      el("section", { class: "stick" }, el("h3", {}, "Height"), el("div", {}, scale), el("h3", {}, "Energy along the way"), el("div", {}, fall), list)),
    python("import groundstate", "from groundstate.models.paths import inference_path", `model = groundstate.load("${key}.gs")`, "model.energy(X)", "way = inference_path(model, x, [0, 1])", "way.x, way.energy"));

  const plot = new Plot(canvas, { ratio: 0.82 });
  plot.layers = [drawLand, drawDots, drawPaths];
  const bar = new Plot(scale, { ratio: 0.16, margin: [4, 12, 24, 12] });
  bar.paint = function () {
    const wide = scale.parentElement.clientWidth, c = scale.getContext("2d"), sharp = devicePixelRatio || 1;
    scale.width = wide * sharp; scale.height = 40 * sharp; scale.style.height = "40px"; c.setTransform(sharp, 0, 0, sharp, 0, 0);
    for (let x = 0; x < wide - 24; x++) { const [r, g, b] = depth(x / (wide - 24)); c.fillStyle = `rgb(${r} ${g} ${b})`; c.fillRect(12 + x, 2, 1.5, 14); }
    if (!ranks.length) return;
    c.fillStyle = css("muted"); c.font = "12px system-ui, sans-serif"; c.textBaseline = "top";
    [0, .25, .5, .75, 1].forEach(t => { c.textAlign = t === 0 ? "left" : t === 1 ? "right" : "center"; const v = ranks[Math.round(t * (ranks.length - 1))]; c.fillText(Math.abs(v) < 1e-6 * Math.abs(ranks.at(-1)) ? "0" : number(v), 12 + t * (wide - 24), 20); });
  };
  const curve = new Plot(fall, { ratio: 0.62, names: ["step", ""] , margin: [8, 10, 38, 44] });
  curve.layers = [(p, c) => paths.forEach((w, k) => line(p, c, w.energy.map((e, i) => [i, e]), colour(k + 1)))];

  // heights by rank: as much of the plane in every colour, whatever the range of the energy
  function drawLand(p, c) {
    if (!land) return;
    if (!image || image.theme !== css("paper")) {
      image = el("canvas", { width: land.n, height: land.n }); image.theme = css("paper");
      const k = image.getContext("2d"), data = k.createImageData(land.n, land.n);
      land.energy.forEach((e, at) => {
        const row = land.n - 1 - Math.floor(at / land.n), col = at % land.n;
        data.data.set([...(e === null ? [128, 128, 128] : depth(rank(e))), 255], 4 * (row * land.n + col));
      });
      k.putImageData(data, 0, 0);
    }
    const b = p.box; c.imageSmoothingEnabled = true; c.drawImage(image, b.x, b.y, b.w, b.h);
    c.strokeStyle = css("ink"); c.globalAlpha = .28; c.lineWidth = .8;
    for (const level of levels) contour(p, c, land.energy, land.n, level);
    c.globalAlpha = 1;
  }
  function rank(e) { let a = 0, b = ranks.length; while (a < b) { const m = (a + b) >> 1; if (ranks[m] < e) a = m + 1; else b = m; } return a / Math.max(1, ranks.length - 1); }
  const names = () => land?.labels ? [...new Set(land.labels)].sort((a, b) => a.localeCompare(b, "en", { numeric: true })) : [];
  function drawDots(p, c) {
    if (!land || !shown.checked) return;
    const known = names();
    dots(p, c, land.points, i => land.labels ? colour(known.indexOf(land.labels[i])) : css("second"));
  }
  function drawPaths(p, c) {
    paths.forEach((w, k) => {
      line(p, c, w.points, css("paper"), 5); line(p, c, w.points, colour(k + 1), 2.4);
      dots(p, c, w.points.slice(1, -1), () => colour(k + 1), 2.2); dots(p, c, [w.points[0], w.points.at(-1)], i => i ? css("ink") : colour(k + 1), 5);
    });
  }

  function told() {
    put(list, ...paths.map((w, k) => { const dot = el("i"); dot.style.background = colour(k + 1); return el("p", { class: "legend" }, el("span", {}, dot, w.words)); }));
    const all = paths.flatMap(w => w.energy).filter(e => e !== null);
    fall.hidden = !all.length;
    if (all.length) { const low = Math.min(...all), high = Math.max(...all), edge = (high - low || 1) * .06; curve.set([0, low - edge], [Math.max(1, ...paths.map(w => w.energy.length - 1)), high + edge]); }
    plot.paint();
  }

  const fail = error => { said.textContent = error?.message ?? ""; };
  const ask = latest(() => api(`${where}/contour`, { ...plane, n: FINE }), found => {
    land = found; image = null;
    ranks = land.energy.filter(e => e !== null).sort((a, b) => a - b);
    levels = Array.from({ length: LEVELS }, (_, k) => ranks[Math.floor((k + .5) / LEVELS * ranks.length)]).filter((v, k, all) => k === 0 || v > all[k - 1]);
    const known = names();
    put(legend, ...known.map((n, k) => { const dot = el("i"); dot.style.background = colour(k); return el("span", {}, dot, n); }));
    words.textContent = land.words;
    plot.set(land.low, land.high, [axes.columns[plane.i], axes.columns[plane.j]]); bar.paint();
  }, fail);
  function again() { paths = []; told(); ask(1); }

  canvas.addEventListener("pointerdown", async e => {
    const at = plot.at(e);
    if (!at) return;
    try {
      const way = await api(`${where}/path`, { ...plane, at, steps: steps.value });
      paths = [...paths.slice(-5), way]; fail(null); told();
    } catch (error) { fail(error); }
  });
  told(); ask(1);
}
