// A plane with axes on a canvas: ticks, places, and a sharp picture on every screen.

import { css, paint } from "/static/studio.js";

export function ticks(low, high, about = 5) {
  const raw = (high - low) / about, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map(m => m * power).find(s => s >= raw), out = [];
  for (let v = Math.ceil(low / step) * step; v <= high + step * 1e-9; v += step) out.push(Math.abs(v) < step * 1e-9 ? 0 : v);
  return out.map(v => [v, String(Number(v.toPrecision(6)))]);
}

export class Plot {
  // draw(plot, context) paints inside the frame; ratio is height over width
  constructor(canvas, { ratio = 0.8, margin = [10, 12, 40, 52], names = ["", ""] } = {}) {
    Object.assign(this, { canvas, ratio, margin, names, low: [0, 0], high: [1, 1], layers: [] });
    new ResizeObserver(() => this.paint()).observe(canvas.parentElement);
    paint(canvas, () => this.paint());
  }

  set(low, high, names = this.names) { Object.assign(this, { low, high, names }); this.paint(); }

  get box() {
    const [top, right, bottom, left] = this.margin;
    return { x: left, y: top, w: this.wide - left - right, h: this.tall - top - bottom };
  }

  x(v) { const b = this.box; return b.x + b.w * (v - this.low[0]) / (this.high[0] - this.low[0]); }
  y(v) { const b = this.box; return b.y + b.h * (1 - (v - this.low[1]) / (this.high[1] - this.low[1])); }

  // the point of the plane under a pointer, or null outside of the frame
  at(event) {
    const r = this.canvas.getBoundingClientRect(), b = this.box;
    const u = ((event.clientX - r.left) * this.wide / r.width - b.x) / b.w, v = ((event.clientY - r.top) * this.tall / r.height - b.y) / b.h;
    if (u < 0 || u > 1 || v < 0 || v > 1) return null;
    return [this.low[0] + u * (this.high[0] - this.low[0]), this.high[1] - v * (this.high[1] - this.low[1])];
  }

  paint() {
    const { canvas } = this, wide = canvas.parentElement?.clientWidth ?? 0;
    if (!wide) return;
    this.wide = wide; this.tall = Math.round(Math.min(wide * this.ratio, Math.max(320, innerHeight * 0.72)));
    const sharp = devicePixelRatio || 1;
    canvas.width = Math.round(wide * sharp); canvas.height = Math.round(this.tall * sharp);
    canvas.style.height = `${this.tall}px`;
    const c = canvas.getContext("2d"), b = this.box;
    c.setTransform(sharp, 0, 0, sharp, 0, 0);
    c.clearRect(0, 0, wide, this.tall);
    c.save(); c.beginPath(); c.rect(b.x, b.y, b.w, b.h); c.clip();
    for (const draw of this.layers) draw(this, c);
    c.restore();
    this.axes(c, b);
  }

  axes(c, b) {
    c.strokeStyle = css("line"); c.lineWidth = 1; c.strokeRect(b.x + .5, b.y + .5, b.w - 1, b.h - 1);
    c.fillStyle = css("muted"); c.font = "12px system-ui, sans-serif";
    c.textAlign = "center"; c.textBaseline = "top";
    for (const [v, text] of ticks(this.low[0], this.high[0], Math.max(2, b.w / 90))) c.fillText(text, this.x(v), b.y + b.h + 5);
    c.fillText(this.names[0], b.x + b.w / 2, b.y + b.h + 22);
    c.textAlign = "right"; c.textBaseline = "middle";
    for (const [v, text] of ticks(this.low[1], this.high[1], Math.max(2, b.h / 60))) c.fillText(text, b.x - 6, this.y(v));
    c.save(); c.translate(11, b.y + b.h / 2); c.rotate(-Math.PI / 2); c.textAlign = "center"; c.fillText(this.names[1], 0, 0); c.restore();
  }
}

export function dots(plot, c, points, colours, size = 2.6) {
  c.lineWidth = .7; c.strokeStyle = css("paper");
  points.forEach((p, i) => {
    if (p[0] === null || p[1] === null) return;
    c.beginPath(); c.arc(plot.x(p[0]), plot.y(p[1]), size, 0, 7); c.fillStyle = colours(i); c.fill(); c.stroke();
  });
}

export function line(plot, c, points, stroke, width = 2) {
  c.beginPath();
  points.forEach((p, i) => i ? c.lineTo(plot.x(p[0]), plot.y(p[1])) : c.moveTo(plot.x(p[0]), plot.y(p[1])));
  c.strokeStyle = stroke; c.lineWidth = width; c.lineJoin = "round"; c.stroke();
}

// Lines of one height through an n x n grid of values (lowest row first), by marching squares.
export function contour(plot, c, values, n, level) {
  const px = i => plot.low[0] + (plot.high[0] - plot.low[0]) * i / (n - 1), py = j => plot.low[1] + (plot.high[1] - plot.low[1]) * j / (n - 1);
  c.beginPath();
  for (let j = 0; j < n - 1; j++) for (let i = 0; i < n - 1; i++) {
    const v = [values[j * n + i], values[j * n + i + 1], values[(j + 1) * n + i + 1], values[(j + 1) * n + i]];
    if (v.some(e => e === null)) continue;
    const corners = [[i, j], [i + 1, j], [i + 1, j + 1], [i, j + 1]], cuts = [];
    for (let k = 0; k < 4; k++) {
      const a = v[k], b = v[(k + 1) % 4];
      if ((a < level) === (b < level)) continue;
      const t = (level - a) / (b - a), [p, q] = [corners[k], corners[(k + 1) % 4]];
      cuts.push([plot.x(px(p[0] + t * (q[0] - p[0]))), plot.y(py(p[1] + t * (q[1] - p[1])))]);
    }
    for (let k = 0; k + 1 < cuts.length; k += 2) { c.moveTo(...cuts[k]); c.lineTo(...cuts[k + 1]); }
  }
  c.stroke();
}
