// The first page: what is loaded, what each model can answer, and examples to begin with.

import { api, el, frame, number, put } from "/static/studio.js";

const main = document.getElementById("main");
const { front } = await frame();
const models = el("div", { class: "cards" }), examples = el("div", { class: "cards" }), said = el("p", { class: "error" });
const title = el("h2", {}, "Models");

put(main, el("h1", {}, "One energy, and what it can answer"),
  el("p", { class: "sub" }, "A model is an energy e(x, y, z): low where values fit together. Learning shapes it, inference finds its low places. Here you can look at both."),
  title, models, el("h2", {}, "Begin with an example"),
  el("p", { class: "sub" }, "Small fits of a few seconds on data that comes with the package. Your own: ",
    el("span", { class: "mono" }, "groundstate studio model.gs --data table.csv")), examples, said);

function card(m) {
  const more = el("div");
  const detail = el("details", { ontoggle: async e => { if (e.target.open && !more.childElementCount) about(m.key, more); } },
    el("summary", {}, "What it can answer"), more);
  return el("article", { class: "card" }, el("h3", {}, m.key), el("p", { class: "muted small" }, `${m.name} · ${m.source}`),
    el("span", { class: "chip" }, m.task), " ", el("span", { class: "chip" }, `${m.rows} rows`), " ",
    el("span", { class: "chip" }, m.n_rows ? `${m.n_rows.toLocaleString("en")} rows to draw` : "no rows to draw"),
    el("div", { class: "row" }, ...m.ways.map(w => w.reason === null
      ? el("a", { class: "link", href: `/${w.page}?model=${encodeURIComponent(m.key)}` }, w.title)
      : el("span", { class: "link off", title: w.reason }, w.title))), detail);
}

async function about(key, where) {
  try {
    const a = await api(`/models/${encodeURIComponent(key)}`);
    put(where, el("p", {}, a.summary), a.formula ? el("p", { class: "mono" }, a.formula) : null,
      el("table", {}, ...Object.entries(a.parts).map(([what, words]) => el("tr", {}, el("th", {}, what), el("td", { class: "mono" }, words)))),
      el("table", {}, el("tr", {}, ...["question", "method", ""].map(t => el("th", {}, t))),
        ...a.abilities.map(b => el("tr", {}, el("td", {}, `${b.operation} ${b.free}`), el("td", {}, b.method), el("td", { class: "muted" }, b.exact ? "exact" : "approximate")))),
      Object.keys(a.learned).length ? el("p", { class: "muted small" }, Object.entries(a.learned).map(([k, v]) => `${k} ${v}`).join(" · ")) : null);
  } catch (error) { put(where, el("p", { class: "error" }, error.message)); }
}

function offer(example, jobs) {
  const job = jobs.filter(j => j.example === example.name).at(-1), runs = job && (job.state === "running" || job.state === "paused");
  return el("article", { class: "card" }, el("h3", {}, example.title), el("p", { class: "muted" }, example.words),
    el("div", { class: "row" }, el("button", { class: "main", disabled: !!runs, onclick: () => start(example.name) }, runs ? "fitting …" : "Fit"),
      el("span", { class: "muted small" }, example.model)),
    job ? el("progress", { max: job.epochs || 1, value: job.epoch }) : null,
    job ? el("p", { class: job.error ? "error" : "muted small" }, job.error ?? (runs
      ? `epoch ${job.epoch} of ${job.epochs || "…"}, objective ${number(job.curve.at(-1))}` : `${job.state} after ${number(job.seconds)} s`)) : null);
}

async function start(name) {
  try { await api(`/examples/${name}/fit`, {}); said.textContent = ""; } catch (error) { said.textContent = error.message; }
  refresh();
}

let known = "";
function show(now) {
  const keys = now.models.map(m => m.key).join();
  if (keys !== known || !models.childElementCount) {
    known = keys;
    put(models, ...(now.models.length ? now.models.map(card) : [el("p", { class: "muted" }, "None yet: fit an example below, or start with saved models.")]));
    if (now.models.length) frame();
  }
  put(examples, ...now.examples.map(e => offer(e, now.jobs)));
  return now.jobs.some(j => j.state === "running");
}

let timer = null;
async function refresh() {
  clearTimeout(timer);
  try { if (show(await api("/studio"))) timer = setTimeout(refresh, 400); } catch (error) { said.textContent = error.message; }
}
if (show(front)) refresh();
