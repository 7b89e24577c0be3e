// Draw a picture; see the prediction, where the class is seen, every map, and what excites a unit.

import { api, css, el, frame, latest, nothing, number, overlay, paint, picture, put, python, rgb } from "/static/studio.js";

const main = document.getElementById("main"), SIDE = 280, STROKE = 30;
const { key, refused } = await frame();
if (key === null) nothing(main, "Look inside", refused ?? "No model here names what is on a picture.");
else start(await api(`/look-inside/${encodeURIComponent(key)}`));

function start(net) {
  const [channels, height, width] = net.shape, said = el("p", { class: "error" });
  const pad = el("canvas", { class: "draw", width: SIDE, height: Math.round(SIDE * height / width), "aria-label": "Draw here" });
  const ink = el("canvas", { width: pad.width, height: pad.height }), brush = ink.getContext("2d", { willReadFrequently: true });
  const seen = el("canvas", { class: "pixel" }), heat = el("canvas", { class: "pixel" });
  const bars = el("div", { class: "bars" }), layers = el("div"), unit = el("div", { class: "unit", hidden: true });
  const centre = el("input", { type: "checkbox", checked: true, onchange: () => send() });
  let chosen = null;

  const ask = latest(body => api(`/look-inside/${encodeURIComponent(key)}/see`, body), show, error => { said.textContent = error?.message ?? ""; });
  const strip = net.pictures ? el("div", { class: "strip" }, ...Array.from({ length: net.pictures.count }, (_, i) =>
    el("button", { title: net.labels[i] ?? `row ${i}`, onclick: () => { clear(); mark(i); ask({ row: i }); } }, picture(net.pictures, i)))) : null;

  put(main, el("h1", {}, "Look inside"),
    el("p", { class: "sub" }, `Draw, and follow the picture through ${net.layers.length} layers with ${net.parameters.toLocaleString("en")} parameters. Blue is above zero, orange below; a click on a map shows what excites that unit most.`),
    el("div", { class: "split" },
      el("section", { class: "stick" }, pad,
        el("div", { class: "row" }, el("button", { onclick: () => { clear(); mark(null); send(); } }, "Clear"), el("label", { title: "Move and scale what is drawn to fill the picture" }, centre, "centre it")),
        said, el("div", { class: "pair" },
          el("figure", {}, seen, el("figcaption", {}, "what the network gets")),
          el("figure", {}, heat, el("figcaption", {}, "where the class is seen"))),
        bars, strip ? el("p", { class: "muted small" }, "or one of the data:") : null, strip),
      el("section", {}, layers, unit)),
    python("import groundstate", `model = groundstate.load("${key}.gs")`, "groundstate.explain.feature_maps(model, x)", "groundstate.explain.filters(model)", "groundstate.explain.maximise_activation(model, layer, unit)", "model.explain(x)  # where the class is seen"));

  // --- drawing
  const show_ink = () => paint(pad, () => {
    const c = pad.getContext("2d"), [r, g, b] = rgb("ink");
    c.clearRect(0, 0, pad.width, pad.height); c.drawImage(ink, 0, 0);
    c.globalCompositeOperation = "source-in"; c.fillStyle = `rgb(${r} ${g} ${b})`; c.fillRect(0, 0, pad.width, pad.height);
    c.globalCompositeOperation = "source-over";
  });
  function clear() { brush.clearRect(0, 0, ink.width, ink.height); show_ink(); }
  function mark(i) { strip?.querySelectorAll("button").forEach((b, k) => b.classList.toggle("on", k === i)); }
  const at = e => { const r = pad.getBoundingClientRect(); return [(e.clientX - r.left) * pad.width / r.width, (e.clientY - r.top) * pad.height / r.height]; };
  let last = null;
  pad.addEventListener("pointerdown", e => { pad.setPointerCapture(e.pointerId); last = at(e); stroke(last); mark(null); });
  pad.addEventListener("pointermove", e => { if (last) for (const part of e.getCoalescedEvents?.() ?? [e]) stroke(at(part)); });
  for (const name of ["pointerup", "pointercancel"]) pad.addEventListener(name, () => { last = null; });
  function stroke(to) {
    brush.lineWidth = STROKE; brush.lineCap = brush.lineJoin = "round"; brush.strokeStyle = "#000";
    brush.beginPath(); brush.moveTo(...last); brush.lineTo(to[0] + .01, to[1]); brush.stroke();
    last = to; show_ink(); send();
  }

  // what is drawn as the pixels of a picture: the mean of the ink in each
  function pixels() {
    const all = brush.getImageData(0, 0, ink.width, ink.height).data, W = ink.width, H = ink.height;
    let box = [0, 0, W, H];
    if (centre.checked) {
      let [x0, y0, x1, y1] = [W, H, 0, 0];
      for (let y = 0; y < H; y++) for (let x = 0; x < W; x++) if (all[4 * (y * W + x) + 3] > 60) { x0 = Math.min(x0, x); x1 = Math.max(x1, x + 1); y0 = Math.min(y0, y); y1 = Math.max(y1, y + 1); }
      if (x1 > x0) {
        const size = Math.max((y1 - y0) / height, (x1 - x0) / width) * 1.02, w = size * width, h = size * height;
        box = [(x0 + x1 - w) / 2, (y0 + y1 - h) / 2, w, h];
      }
    }
    const out = [];
    for (let j = 0; j < height; j++) for (let i = 0; i < width; i++) {
      let sum = 0;
      const n = 6;
      for (let a = 0; a < n; a++) for (let b = 0; b < n; b++) {
        const x = Math.floor(box[0] + box[2] * (i + (a + .5) / n) / width), y = Math.floor(box[1] + box[3] * (j + (b + .5) / n) / height);
        if (x >= 0 && y >= 0 && x < W && y < H) sum += all[4 * (y * W + x) + 3];
      }
      out.push(net.low + (net.high - net.low) * sum / (n * n * 255));
    }
    return Array.from({ length: channels }, () => out).flat();
  }
  function send() { ask({ pixels: pixels() }); }

  // --- answers
  function show(answer) {
    picture(answer.picture, 0, "ink", seen); overlay(answer.picture, answer.cam, heat);
    const best = Math.max(...answer.probabilities);
    put(bars, ...net.classes.flatMap((name, i) => {
      const p = answer.probabilities[i], on = p === best ? " best" : "", fill = el("i");
      fill.style.width = `${100 * p}%`;
      return [el("span", { class: on }, name), el("div", { class: "bar" + on }, fill), el("span", { class: "num" }, `${(100 * p).toFixed(1)} %`)];
    }));
    const maps = Object.fromEntries(answer.maps.map(m => [m.layer, m.maps]));
    for (const layer of net.layers) if (maps[layer.name]) fill(layer, maps[layer.name]);
  }

  const drawn = {};
  function fill(layer, stack) {
    if (!drawn[layer.name]) {
      const buttons = Array.from({ length: stack.count }, (_, k) => el("button", { title: `unit ${k}`, onclick: () => excite(layer, k, buttons[k]) }, el("canvas", { class: "pixel" })));
      const rest = layer.shape[0] - stack.count;
      drawn[layer.name] = buttons;
      layers.append(el("div", { class: "layer" },
        el("div", { class: "row" }, el("h3", {}, `${layer.kind} `, el("span", { class: "muted small mono" }, layer.name)),
          el("span", { class: "muted small" }, `${layer.shape.join(" × ")}${layer.parameters ? ` · ${layer.parameters.toLocaleString("en")} parameters` : ""}${rest > 0 ? ` · ${rest} more maps` : ""}`)),
        layer.filters ? el("div", { class: "maps filters" }, ...Array.from({ length: layer.filters.count }, (_, k) => { const c = picture(layer.filters, k, "signed"); c.title = `filter ${k}`; return c; })) : null,
        layer.filters ? el("p", { class: "muted small" }, "filters, and below what they make of the picture") : null,
        el("div", { class: "maps" }, ...buttons)));
    }
    drawn[layer.name].forEach((b, k) => picture(stack, k, "signed", b.firstChild));
  }

  async function excite(layer, k, button) {
    chosen?.classList.remove("on"); chosen = button; button.classList.add("on");
    unit.hidden = false;
    put(unit, el("p", { class: "muted" }, `climbing for unit ${k} of ${layer.name} …`));
    try {
      const d = await api(`/look-inside/${encodeURIComponent(key)}/maximise`, { layer: layer.name, unit: k });
      const more = d.best_of_data === null ? "" : d.activation > d.best_of_data ? ", more than any picture of the data" : ", which a picture of the data exceeds";
      put(unit, el("div", { class: "row" }, el("h3", {}, `Unit ${k} of ${layer.kind} ${layer.name}`), el("button", { onclick: () => { unit.hidden = true; chosen?.classList.remove("on"); } }, "Close")),
        el("p", { class: "muted small" }, `The picture with the lowest energy e(x) = −h(x), found by gradient steps on x${more}.`),
        el("div", { class: "pair" },
          el("figure", {}, picture(d.picture), el("figcaption", {}, `activation ${number(d.activation)}`)),
          d.nearest ? el("figure", {}, picture(d.nearest), el("figcaption", {}, `best of the data: ${number(d.best_of_data)}`)) : null));
    } catch (error) { put(unit, el("p", { class: "error" }, error.message)); }
  }

  show_ink();
  if (net.pictures) { mark(0); ask({ row: 0 }); } else send();
}
