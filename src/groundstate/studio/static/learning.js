// Fits while they learn: their curves side by side, and a hand on them.

import { api, colour, css, el, frame, number, put } from "/static/studio.js";
import { Plot, line } from "/static/plot.js";

const main = document.getElementById("main");
const { front } = await frame();
const canvas = el("canvas", { class: "plane" }), list = el("div"), said = el("p", { class: "error" });
const scaled = el("input", { type: "checkbox", checked: true, onchange: () => show(known) });
let known = [];

function offer(e) {
  const field = (name, value, step) => el("input", { type: "number", value, step, min: 0, name });
  const epochs = field("epochs", e.epochs, 1), rate = field("rate", e.rate, "any"), seed = field("seed", 0, 1);
  return el("article", { class: "card" }, el("h3", {}, e.title),
    el("div", { class: "row" }, el("label", {}, "epochs", epochs), el("label", {}, "learning rate", rate), el("label", {}, "seed", seed)),
    el("div", { class: "row" }, el("button", { class: "main", onclick: async () => {
      try { await api(`/examples/${e.name}/fit`, { epochs: Number(epochs.value), rate: Number(rate.value), seed: Number(seed.value) }); said.textContent = ""; }
      catch (error) { said.textContent = error.message; }
      refresh();
    } }, "Fit"), el("span", { class: "muted small" }, e.model)));
}

put(main, el("h1", {}, "Learning"),
  el("p", { class: "sub" }, "The objective of every fit after each epoch, while it runs. A pause waits, a stop keeps what was learned; change the learning rate or the seed and see the curves side by side."),
  el("div", { class: "cards" }, ...front.examples.map(offer)), said,
  el("div", { class: "row" }, el("h2", {}, "Curves"), el("label", { title: "each curve from 1 at its first epoch to 0 at its lowest" }, scaled, "on one scale")),
  el("div", {}, canvas), list);

const plot = new Plot(canvas, { ratio: 0.3, names: ["epoch", "objective"] });
plot.layers = [(p, c) => known.forEach((j, k) => { if (j.drawn?.length > 1) line(p, c, j.drawn, colour(k)); })];

const job = (j, k) => {
  const dot = el("i"), act = what => async () => { try { await api(`/jobs/${j.id}/${what}`, {}); } catch (error) { said.textContent = error.message; } refresh(); };
  dot.style.background = colour(k);
  const live = j.state === "running" || j.state === "paused", how = Object.entries(j.settings).map(([n, v]) => `${n} ${v}`).join(", ");
  return el("div", { class: "job" },
    el("div", {}, el("span", { class: "legend" }, el("span", {}, dot, `${j.title}${how ? ` · ${how}` : ""}`)),
      el("progress", { max: j.epochs || 1, value: j.epoch }),
      el("p", { class: j.error ? "error" : "muted small" }, j.error ?? `${j.state} · epoch ${j.epoch} of ${j.epochs || "…"} · objective ${number(j.curve.at(-1), 4)} · ${number(j.seconds)} s`)),
    el("div", { class: "strip" }, live ? el("button", { onclick: act(j.state === "paused" ? "resume" : "pause") }, j.state === "paused" ? "Go on" : "Pause") : null,
      live ? el("button", { onclick: act("stop") }, "Stop") : null, j.key ? el("a", { href: `/?model=${encodeURIComponent(j.key)}` }, "Model") : null));
};

function show(jobs) {
  known = jobs;
  for (const j of jobs) {
    const curve = j.curve.filter(v => v !== null), low = Math.min(...curve), first = curve[0];
    j.drawn = curve.map((v, i) => [i + 1, scaled.checked ? (first > low ? (v - low) / (first - low) : 0) : v]);
  }
  put(list, ...(jobs.length ? jobs.map(job).reverse() : [el("p", { class: "muted" }, "Nothing runs yet.")]));
  const all = jobs.flatMap(j => j.drawn), ys = all.map(p => p[1]);
  if (all.length) { const low = Math.min(...ys), high = Math.max(...ys), edge = (high - low || 1) * .05; plot.set([1, low - edge], [Math.max(2, ...jobs.map(j => j.epochs)), high + edge], ["epoch", scaled.checked ? "objective, 1 first, 0 lowest" : "objective"]); }
}

let timer = null;
async function refresh() {
  clearTimeout(timer);
  try { const now = await api("/studio"); show(now.jobs); if (now.jobs.some(j => j.state === "running")) timer = setTimeout(refresh, 350); }
  catch (error) { said.textContent = error.message; }
}
refresh();
