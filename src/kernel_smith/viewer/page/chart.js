// What charts share: a frame with axes, a figure around it, legends, colours.

import { fitted, h, s } from "ks/dom.js";

const KNOWN = ["start", "seed", "tuner", "mutator", "chooser", "merger", "model", "outside"];
export const whoColour = (name) => `var(--who-${KNOWN.includes(name.split("/")[0]) ? name.split("/")[0] : "other"})`;

// From slow to fast, on a logarithmic scale between the ends.
export function speedColours(values) {
  const known = values.filter((value) => value > 0).sort((a, b) => a - b);
  const low = known.length ? known[Math.floor(known.length * 0.02)] : 1;
  const high = known.length ? known[known.length - 1] : 2;
  const span = Math.log(high / low) || 1;
  const of = (value) => {
    const share = Math.min(1, Math.max(0, Math.log(value / low) / span));
    return `color-mix(in oklab, var(--fast) ${(100 * share).toFixed(1)}%, var(--slow))`;
  };
  return { of, low, high };
}

// Axes around a plot: {svg, x, y, plot, width, height, left, top}. `links`: some of it can be chosen.
export function frame(width, height, { x, y, label, xLabel, yLabel, xFormat = String, yFormat = String, left = 62, right = 16, top = 14, bottom = 44, xTicks, yTicks, links = false }) {
  const inner = { left, top, right: width - right, bottom: height - bottom };
  const xs = x([inner.left, inner.right]);
  const ys = y([inner.bottom, inner.top]);
  const svg = s("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: links ? "group" : "img", "aria-label": label, class: "chart" });
  const grid = s("g", { class: "grid", "aria-hidden": "true" });
  for (const tick of ys.ticks(yTicks ?? Math.max(3, Math.floor((inner.bottom - inner.top) / 48)))) {
    grid.append(s("line", { x1: inner.left, x2: inner.right, y1: ys(tick), y2: ys(tick) }));
    grid.append(s("text", { x: inner.left - 8, y: ys(tick) + 4, "text-anchor": "end" }, yFormat(tick)));
  }
  for (const tick of xs.ticks(xTicks ?? Math.max(3, Math.floor((inner.right - inner.left) / 90)))) {
    grid.append(s("line", { class: "tick", x1: xs(tick), x2: xs(tick), y1: inner.bottom, y2: inner.bottom + 5 }));
    grid.append(s("text", { x: xs(tick), y: inner.bottom + 19, "text-anchor": "middle" }, xFormat(tick)));
  }
  grid.append(s("line", { class: "axis", x1: inner.left, x2: inner.right, y1: inner.bottom, y2: inner.bottom }));
  if (xLabel) grid.append(s("text", { class: "label", x: (inner.left + inner.right) / 2, y: height - 6, "text-anchor": "middle" }, xLabel));
  if (yLabel) grid.append(s("text", { class: "label", x: -(inner.top + inner.bottom) / 2, y: 13, transform: "rotate(-90)", "text-anchor": "middle" }, yLabel));
  const plot = s("g");
  svg.append(grid, plot);
  return { svg, plot, x: xs, y: ys, ...inner, width, height };
}

// A titled drawing. `table`: the same figures as rows, for those who cannot see it.
export function figure({ title, note, draw, legend, table, tools, id, wide }) {
  const node = h(
    "section",
    { class: wide ? "panel wide" : "panel", id, "aria-label": title },
    h("div", { class: "panel-head" }, h("h2", {}, title), tools),
    note ? h("p", { class: "note" }, note) : null,
    legend ?? null,
    draw ? fitted(draw) : null,
  );
  if (table) node.append(h("details", { class: "as-table" }, h("summary", {}, "The same as a table"), table()));
  return node;
}

export function legend(items) {
  return h(
    "ul",
    { class: "legend" },
    items.map(({ name, colour, shape = "dot" }) => h("li", {}, h("span", { class: `key ${shape}`, style: { "--key": colour }, "aria-hidden": "true" }), name)),
  );
}

export function speedLegend(colours, words) {
  return h("p", { class: "ramp-line" }, h("span", {}, words(colours.low)), h("span", { class: "ramp", "aria-hidden": "true" }), h("span", {}, words(colours.high)));
}

export function rowsTable(head, rows, numeric = []) {
  const kind = (column) => (numeric.includes(column) ? "number" : null);
  return h(
    "div",
    { class: "scroller", tabindex: "0", role: "region", "aria-label": "Table" },
    h(
      "table",
      {},
      h("thead", {}, h("tr", {}, head.map((name, column) => h("th", { scope: "col", class: kind(column) }, name)))),
      h("tbody", {}, rows.map((row) => h("tr", {}, row.map((cell, column) => h("td", { class: kind(column) }, cell))))),
    ),
  );
}

// Points that are too many for elements: one canvas beneath the chart, and the nearest is found.
export function points(chart, { xs, ys, colour, radius = 2.6, alpha = 0.55, onNear, onPick }) {
  const { width, height } = chart;
  const ratio = window.devicePixelRatio || 1;
  const canvas = h("canvas", { width: width * ratio, height: height * ratio, class: "points", "aria-hidden": "true", style: { width: `${width}px`, height: `${height}px` } });
  const drawing = canvas.getContext("2d");
  drawing.scale(ratio, ratio);
  drawing.globalAlpha = alpha;
  const probe = h("span", {});
  document.body.append(probe);
  const solid = new Map();
  const resolve = (name) => {
    if (!solid.has(name)) {
      probe.style.color = name;
      solid.set(name, getComputedStyle(probe).color);
    }
    return solid.get(name);
  };
  for (let index = 0; index < xs.length; index++) {
    if (Number.isNaN(ys[index])) continue;
    drawing.fillStyle = resolve(colour(index));
    drawing.beginPath();
    drawing.arc(xs[index], ys[index], radius, 0, 2 * Math.PI);
    drawing.fill();
  }
  probe.remove();
  const nearest = (event) => {
    const box = canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    let [found, least] = [-1, 18 * 18];
    for (let index = 0; index < xs.length; index++) {
      const distance = (xs[index] - x) ** 2 + (ys[index] - y) ** 2;
      if (distance < least) [found, least] = [index, distance];
    }
    return found;
  };
  const box = h("div", { class: "layers" }, canvas, chart.svg);
  box.addEventListener("pointermove", (event) => onNear(nearest(event), event));
  box.addEventListener("pointerleave", (event) => onNear(-1, event));
  box.addEventListener("click", (event) => {
    const found = nearest(event);
    if (found >= 0 && !event.target.closest("a")) onPick(found);
  });
  return box;
}
