// What all pages share: questions to the server, elements, the bar, colours and pictures.

export async function api(path, body) {
  const init = body === undefined ? {} :
    { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  let answer;
  try { answer = await fetch("/api" + path, init); }
  catch { throw new Error("the studio does not answer; is it still running?"); }
  const told = await answer.json().catch(() => ({ error: "the studio failed; its terminal says why" }));
  if (!answer.ok) throw new Error(told.error ?? `the studio answered ${answer.status}`);
  return told;
}

export function el(tag, props = {}, ...inside) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (name === "class") made.className = value;
    else if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name in made) made[name] = value;
    else made.setAttribute(name, value);
  }
  made.append(...inside.filter(v => v !== null && v !== undefined));
  return made;
}

export const put = (where, ...inside) => { where.replaceChildren(...inside.filter(v => v)); return where; };
export const option = (value, text, selected) => el("option", { value, selected: !!selected }, text);
export const number = (v, digits = 3) => v === null || v === undefined ? "–" : String(Number(v.toPrecision(digits)));

// Asks at most one question at a time and then the newest of those that came up meanwhile.
export function latest(ask, show, failed) {
  let busy = false, next = null;
  const go = async what => {
    if (busy) { next = what; return; }
    busy = true;
    try { show(await ask(what), what); failed?.(null); }
    catch (error) { failed?.(error); }
    busy = false;
    if (next !== null) { const again = next; next = null; go(again); }
  };
  return go;
}

// --- the bar -----------------------------------------------------------------------------

const PAGE = document.documentElement.dataset.page;
try { const kept = localStorage.getItem("theme"); if (kept) document.documentElement.dataset.theme = kept; } catch { /* none kept */ }

export function isDark() {
  return getComputedStyle(document.documentElement).colorScheme === "dark";
}

function turn() {
  const theme = isDark() ? "light" : "dark";
  document.documentElement.dataset.theme = theme;
  try { localStorage.setItem("theme", theme); } catch { /* not kept */ }
  repaint();
}

// The bar of a page; resolves to {front, key} with the model to show, or key null when there is none.
export async function frame() {
  const bar = document.getElementById("bar"), front = await api("/studio");
  const can = model => model.ways.find(w => w.page === PAGE)?.reason === null;
  const shown = front.models.filter(can), asked = new URLSearchParams(location.search).get("model");
  const about = front.models.some(m => m.ways.some(w => w.page === PAGE)) && PAGE !== "home";
  const key = shown.find(m => m.key === asked)?.key ?? shown[0]?.key ?? null;
  const kept = asked ?? key, tail = kept ? `?model=${encodeURIComponent(kept)}` : "";
  const nav = el("nav", {}, ...front.pages.map(p => el("a", {
    href: `/${p.page}${tail}`, class: p.page === PAGE ? "here" : "", title: p.summary }, p.title)));
  const choice = about && shown.length ? el("select", { "aria-label": "Model",
    onchange: e => { location.search = "?model=" + encodeURIComponent(e.target.value); } },
    ...shown.map(m => option(m.key, `${m.key} · ${m.name}`, m.key === key))) : null;
  put(bar, el("a", { class: "brand", href: "/" }, "groundstate ", el("span", {}, "studio")), nav,
    el("div", { class: "right" }, choice, el("button", { onclick: turn, title: "Light or dark", "aria-label": "Light or dark" }, "◐")));
  const model = front.models.find(m => m.key === asked);
  return { front, key, refused: model && !can(model) ? model.ways.find(w => w.page === PAGE)?.reason : null };
}

export function nothing(main, title, what) {
  put(main, el("h1", {}, title), el("p", { class: "sub" }, what),
    el("p", {}, el("a", { class: "link", href: "/" }, "Fit a small example")));
}

// --- colours -----------------------------------------------------------------------------

const parse = text => [1, 3, 5].map(i => parseInt(text.trim().slice(i, i + 2), 16));
export const css = name => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
export const rgb = name => parse(css(name));
const mix = (a, b, t) => a.map((v, i) => v + (b[i] - v) * t);
export const GROUPS = ["#2b6cb0", "#c05621", "#3f9c68", "#9467bd", "#c9a227", "#4db6c4", "#d16ba5", "#8a8f98",
  "#7a9a01", "#e15759", "#5b6ee1", "#b07d4f"];
export const colour = i => GROUPS[i % GROUPS.length];

// low energy is deep, high energy fades into the paper
const DEEP = [[20, 24, 82], [33, 82, 156], [52, 141, 170], [123, 193, 160], [219, 228, 172], [250, 244, 220]];
const DARK = [[150, 220, 255], [82, 165, 222], [52, 112, 178], [40, 70, 128], [28, 40, 76], [18, 22, 34]];
export function depth(t) {
  const stops = isDark() ? DARK : DEEP, at = Math.min(Math.max(t, 0), 1) * (stops.length - 1), i = Math.min(Math.floor(at), stops.length - 2);
  return mix(stops[i], stops[i + 1], at - i);
}

// --- pictures ----------------------------------------------------------------------------

export function bytes(stack) {
  const text = atob(stack.pixels), out = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) out[i] = text.charCodeAt(i);
  return out;
}

export function paint(canvas, draw) { canvas.paint = draw; draw(canvas); return canvas; }
export function repaint() { for (const c of document.querySelectorAll("canvas")) c.paint?.(c); }

// How a value becomes a colour: "ink" (a picture), "signed" (blue above 0, orange below).
function shade(stack, how) {
  const paper = rgb("paper"), ink = rgb("ink"), up = rgb("accent"), down = rgb("second"), span = stack.high - stack.low || 1;
  if (how === "ink") return b => mix(paper, ink, b / 255);
  const most = Math.max(Math.abs(stack.low), Math.abs(stack.high)) || 1;
  return b => { const v = (stack.low + span * b / 255) / most; return mix(paper, v < 0 ? down : up, Math.min(1, Math.abs(v))); };
}

export function picture(stack, index = 0, how = "ink", canvas = el("canvas", { class: "pixel" })) {
  const all = bytes(stack), { height: h, width: w, channels: c } = stack;
  canvas.width = w; canvas.height = h;
  return paint(canvas, () => {
    const context = canvas.getContext("2d"), image = context.createImageData(w, h), to = shade(stack, how), at = index * h * w * c;
    for (let i = 0; i < h * w; i++) {
      const rgbOf = c === 3 ? [all[at + 3 * i], all[at + 3 * i + 1], all[at + 3 * i + 2]] : to(all[at + i]);
      image.data.set([...rgbOf, 255], 4 * i);
    }
    context.putImageData(image, 0, 0);
  });
}

// A map over a picture, in warm colours where it is high.
export function overlay(base, heat, canvas) {
  canvas.getContext("2d", { willReadFrequently: true });
  picture(base, 0, "ink", canvas);
  const under = canvas.paint, hot = bytes(heat);
  return paint(canvas, () => {
    under(canvas);
    const context = canvas.getContext("2d"), image = context.getImageData(0, 0, canvas.width, canvas.height), red = rgb("second");
    for (let i = 0; i < heat.height * heat.width; i++) {
      const t = 0.75 * hot[i] / 255;
      for (let k = 0; k < 3; k++) image.data[4 * i + k] = image.data[4 * i + k] * (1 - t) + red[k] * t;
    }
    context.putImageData(image, 0, 0);
  });
}

export function python(...lines) {
  return el("details", {}, el("summary", {}, "The same in Python"), el("pre", {}, lines.join("\n")));
}
