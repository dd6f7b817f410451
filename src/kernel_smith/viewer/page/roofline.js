// How far kernels are from what the device can do: bytes per second, or flops over intensity.

import { figure, frame, legend, rowsTable, whoColour } from "ks/chart.js";
import { h, s, tipped } from "ks/dom.js";
import { count, percent, plain, rate } from "ks/format.js";
import { linear, log } from "ks/scales.js";

export function showRoofline(run, { query }) {
  if (!run.rooflines.length || !run.ceilings) return figure({ title: "Roofline", legend: h("p", { class: "quiet" }, "What the device can do at best is measured on GPUs only; this run has none of it.") });
  const workloads = [...new Set(run.rooflines.map((point) => point.workload))];
  let workload = query.get("workload") ?? workloads[0];
  const holder = h("div", { class: "stack" });
  const draw = () => holder.replaceChildren(...figures(run, workload, choose));
  const choose = workloads.length < 2 ? null : h("select", { id: "workload", "aria-label": "Workload" }, workloads.map((name) => h("option", { value: name, selected: name === workload }, name)));
  choose?.addEventListener("change", () => {
    workload = choose.value;
    history.replaceState(null, "", run.view("roofline", new URLSearchParams({ workload }).toString()));
    draw();
  });
  draw();
  return holder;
}

function figures(run, workload, choose) {
  const points = run.rooflines.filter((point) => point.workload === workload);
  const ranked = [...points].sort((a, b) => b.share - a.share);
  const table = () =>
    rowsTable(["step", "bound by", "share of the limit", "bytes per second", "flops per second"], ranked.slice(0, 100).map((point) => [h("a", { href: run.link(point.position) }, String(run.steps.step[point.position])), point.bound, percent(point.share), rate(point.bytes_per_second, "B/s"), point.flops_per_second ? rate(point.flops_per_second, "FLOP/s") : "–"]), [0, 2, 3, 4]);
  const keys = legend(run.names.proposers.map((name) => ({ name, colour: whoColour(name) })));
  const best = ranked[0];
  const note = `${count(points.length, "candidate")} on workload ${workload}; the nearest to its limit, step ${run.steps.step[best.position]}, reaches ${percent(best.share)} of it. The limits were measured on ${run.ceilings.device.name}.`;
  const withFlops = points.filter((point) => point.intensity);
  const shown = [figure({ title: "Memory", note, tools: choose, legend: keys, draw: (width) => drawMemory(run, points, width), table })];
  if (withFlops.length) shown.unshift(figure({ title: "Roofline", note: "Flops and bytes are the reference's, so all candidates of a workload stand above one another.", legend: keys, draw: (width) => drawRoofs(run, withFlops, width) }));
  return shown;
}

function dot(run, point, x, y) {
  const best = point.position === run.best;
  const link = s("a", { href: run.link(point.position), "aria-label": [...run.describe(point.position), `${percent(point.share)} of the limit`].join(". ") }, s("circle", { cx: x, cy: y, r: best ? 7 : 4, class: best ? "roof-dot best" : "roof-dot", style: { fill: whoColour(run.who(point.position)) } }));
  return tipped(link, () => [...run.describe(point.position), `${percent(point.share)} of its limit (${point.bound})`]);
}

function drawMemory(run, points, width) {
  const ceiling = run.ceilings.copy_bytes_per_second;
  const most = points.reduce((high, point) => Math.max(high, point.bytes_per_second), ceiling);
  const chart = frame(width, 340, { label: `Bytes per second of ${points.length} candidates; the limit is ${rate(ceiling, "B/s")}.`, x: (place) => linear([0, Math.max(1, ...points.map((point) => run.order[point.position]))], place), y: (place) => linear([0, most * 1.1], place), xLabel: "evaluations", yLabel: "bytes per second", yFormat: (value) => (value ? rate(value, "B/s") : "0"), left: 104, links: true });
  chart.plot.append(s("line", { class: "roof", x1: chart.left, x2: chart.right, y1: chart.y(ceiling), y2: chart.y(ceiling) }), s("text", { class: "reference-name", x: chart.right - 4, y: chart.y(ceiling) - 7, "text-anchor": "end" }, `a large copy: ${rate(ceiling, "B/s")}`));
  for (const point of points) chart.plot.append(dot(run, point, chart.x(run.order[point.position]), chart.y(point.bytes_per_second)));
  return chart.svg;
}

function drawRoofs(run, points, width) {
  const { copy_bytes_per_second: copy, flops_per_second: peaks } = run.ceilings;
  const intensities = points.map((point) => point.intensity);
  const top = Math.max(...Object.values(peaks));
  const [low, high] = [Math.min(...intensities, 1) / 4, Math.max(...intensities, top / copy) * 4];
  const slowest = Math.min(...points.map((point) => point.flops_per_second), copy * low);
  const chart = frame(width, 380, { label: `Roofline: ${points.length} candidates under ${rate(copy, "B/s")} and up to ${rate(top, "FLOP/s")}.`, x: (place) => log([low, high], place), y: (place) => log([slowest / 2, top * 2], place), xLabel: "flops per byte", yLabel: "flops per second", xFormat: plain, yFormat: (value) => rate(value, "FLOP/s"), left: 122, links: true });
  for (const [precision, peak] of Object.entries(peaks)) {
    const corner = peak / copy;
    chart.plot.append(s("path", { class: "roof", d: `M${chart.x(low)} ${chart.y(copy * low)}L${chart.x(Math.min(corner, high))} ${chart.y(Math.min(peak, copy * high))}L${chart.x(high)} ${chart.y(Math.min(peak, copy * high))}` }), s("text", { class: "reference-name", x: chart.right - 4, y: chart.y(peak) - 5, "text-anchor": "end" }, `${precision} ${rate(peak, "FLOP/s")}`));
  }
  for (const point of points) chart.plot.append(dot(run, point, chart.x(point.intensity), chart.y(point.flops_per_second)));
  return chart.svg;
}
