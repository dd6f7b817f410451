// How far kernels are from what the device can do: bytes per second, or flops over intensity.

import { figure, frame, legend, rowsTable, whoColour } from "ks/chart.js";
import { h, s, tipped } from "ks/dom.js";
import { count, percent, plain, rate } from "ks/format.js";
import { baselineName } from "ks/run_header.js";
import { counting, linear, log } from "ks/scales.js";

const AROUND = 6; // times as far as points and corner of the roof

export function showRoofline(run, { query }) {
  if (!run.rooflines.length || !run.ceilings) return figure({ title: "Roofline", legend: h("p", { class: "quiet" }, "What the device can do at best is measured on GPUs only; this run has none of it.") });
  const workloads = [...new Set(run.rooflines.map((point) => point.workload))];
  let workload = query.get("workload") ?? busiest(run);
  const holder = h("div", { class: "stack" });
  const draw = () => holder.replaceChildren(...figures(run, workload, choose));
  const choose = workloads.length < 2 ? null : h("select", { id: "workload", "aria-label": "Workload" }, workloads.map((name) => h("option", { value: name, selected: name === workload }, name)));
  choose?.addEventListener("change", () => {
    workload = choose.value;
    history.replaceState(null, "", run.view("roofline", new URLSearchParams({ workload }).toString()));
    draw();
  });
  draw();
  return h("div", { class: "stack" }, nearness(run, workloads), holder);
}

// Small workloads are often far from every limit, and say little of a kernel.
const busiest = (run) => run.rooflines.reduce((most, point) => (point.share > most.share ? point : most)).workload;

const bestPoint = (run, workload) => run.rooflines.find((point) => point.position === run.best && point.workload === workload);

// [name, how many times as fast the best kernel is] of whatever it was timed beside on a workload.
const baselines = (run, workload, name = baselineName) => (run.workloads.find((each) => each.workload === workload)?.baselines ?? []).map((each) => [name(each.baseline), each.speedup.value]);
const shortName = (name) => (name === "max-autotune" ? name : baselineName(name)); // beside a line there is little room

function nearness(run, workloads) {
  const rows = workloads.map((workload) => [workload, bestPoint(run, workload)]).filter(([, point]) => point);
  if (!rows.length) return null;
  const names = baselines(run, rows[0][0]).map(([name]) => name);
  const bar = (share, kind) => h("span", { class: "inline-bar" }, h("span", { class: "bar-track", "aria-hidden": "true" }, h("span", { class: `bar-fill ${kind}`, style: { width: `${Math.min(100, 100 * share)}%` } })), h("span", {}, percent(share)));
  const cells = ([workload, point]) => [workload, LIMITS[point.bound] ?? point.bound, bar(point.share, "faster"), ...baselines(run, workload).map(([, speedup]) => bar(point.share / speedup, ""))];
  return figure({ title: "How near to the limit", note: `The share of what ${run.ceilings.device.name} can do at best that the best kernel, step ${run.steps.step[run.best]}, reaches on each workload, and that PyTorch reaches.`, legend: rowsTable(["workload", "limit", "this kernel", ...names], rows.map(cells)) });
}

const LIMITS = { memory: "memory bandwidth", compute: "arithmetic", launch: "launching kernels" };

function figures(run, workload, choose) {
  const points = run.rooflines.filter((point) => point.workload === workload);
  const ranked = [...points].sort((a, b) => b.share - a.share);
  const table = () =>
    rowsTable(["step", "bound by", "share of the limit", "bytes per second", "flops per second"], ranked.slice(0, 100).map((point) => [h("a", { href: run.link(point.position) }, String(run.steps.step[point.position])), point.bound, percent(point.share), rate(point.bytes_per_second, "B/s"), point.flops_per_second ? rate(point.flops_per_second, "FLOP/s") : "–"]), [0, 2, 3, 4]);
  const keys = () => legend(run.names.proposers.map((name) => ({ name, colour: whoColour(name) })));
  const nearest = ranked[0];
  const note = `${count(points.length, "candidate")} on workload ${workload}; the nearest to its limit, step ${run.steps.step[nearest.position]}, reaches ${percent(nearest.share)} of it. The ring marks the best kernel of the run.`;
  const withFlops = points.filter((point) => point.intensity);
  const bandwidth = (more) => figure({ title: "Memory bandwidth", legend: keys(), draw: (width) => drawMemory(run, points, width), ...more });
  if (!withFlops.length) return [bandwidth({ note, tools: choose, table })];
  const roofs = figure({ title: "Roofline", note: `${note} Flops and bytes are the reference's, so all stand above one another.`, tools: choose, legend: keys(), draw: (width) => drawRoofs(run, withFlops, width), table });
  return points.some((point) => point.bound === "memory") ? [roofs, bandwidth({ note: "The same candidates by the bytes that they move at least." })] : [roofs];
}

function dot(run, point, x, y) {
  const best = point.position === run.best;
  const link = s("a", { href: run.link(point.position), "aria-label": [...run.describe(point.position), `${percent(point.share)} of the limit`].join(". ") }, s("circle", { cx: x, cy: y, r: best ? 7 : 4, class: best ? "roof-dot best" : "roof-dot", style: { fill: whoColour(run.who(point.position)) } }));
  return tipped(link, () => [...run.describe(point.position), `${percent(point.share)} of its limit (${point.bound})`]);
}

// Where eager PyTorch and its compiler are, from how many times as fast the best kernel is. `of`: its rate.
function drawBaselines(run, chart, points, of, [x1, x2] = [chart.left, chart.right]) {
  const best = bestPoint(run, points[0].workload);
  if (!best) return;
  for (const [y, name] of apart(baselines(run, best.workload, shortName).map(([name, speedup]) => [chart.y(of(best) / speedup), name])))
    chart.plot.append(s("line", { class: "reference", x1, x2, y1: y, y2: y }), s("text", { class: "reference-name", x: x1 + 6, y: y - 5 }, name));
}

// Names that would be written over one another share a line.
function apart(marks) {
  const found = [];
  for (const [y, name] of marks.sort(([a], [b]) => a - b)) {
    const last = found.at(-1);
    if (last && y - last[0] < 16) last[1] += `, ${name}`;
    else found.push([y, name]);
  }
  return found;
}

function drawMemory(run, points, width) {
  const ceiling = run.ceilings.copy_bytes_per_second;
  const most = points.reduce((high, point) => Math.max(high, point.bytes_per_second), ceiling);
  const last = points.reduce((high, point) => Math.max(high, run.order[point.position]), 1);
  const chart = frame(width, 340, { label: `Bytes per second of ${count(points.length, "candidate")}; the limit is ${rate(ceiling, "B/s")}.`, x: (place) => counting([0, last + 0.5], place), y: (place) => linear([0, most * 1.1], place), xLabel: "evaluations", yLabel: "bytes per second", yFormat: (value) => (value ? rate(value, "B/s") : "0"), left: 104, links: true });
  chart.plot.append(s("line", { class: "roof", x1: chart.left, x2: chart.right, y1: chart.y(ceiling), y2: chart.y(ceiling) }), s("text", { class: "reference-name", x: chart.right - 4, y: chart.y(ceiling) - 7, "text-anchor": "end" }, `a large copy: ${rate(ceiling, "B/s")}`));
  drawBaselines(run, chart, points, (point) => point.bytes_per_second);
  for (const point of points) chart.plot.append(dot(run, point, chart.x(run.order[point.position]), chart.y(point.bytes_per_second)));
  return chart.svg;
}

function drawRoofs(run, points, width) {
  const { copy_bytes_per_second: copy, flops_per_second: peaks } = run.ceilings;
  const roofs = [...new Set(points.map((point) => point.precision))].filter((precision) => peaks[precision]);
  const top = Math.max(...roofs.map((precision) => peaks[precision]), ...points.map((point) => point.flops_per_second));
  const intensities = [...points.map((point) => point.intensity), ...roofs.map((precision) => peaks[precision] / copy)];
  const [low, high] = [Math.min(...intensities) / AROUND, Math.max(...intensities) * AROUND];
  const slowest = Math.min(...points.map((point) => point.flops_per_second), copy * low);
  const chart = frame(width, 380, { label: `Roofline: ${count(points.length, "candidate")} under ${rate(copy, "B/s")} and up to ${rate(top, "FLOP/s")}.`, x: (place) => log([low, high], place), y: (place) => log([slowest / 1.5, top * 1.6], place), xLabel: "flops per byte", yLabel: "flops per second", xFormat: plain, yFormat: (value) => rate(value, "FLOP/s"), left: 122, links: true });
  for (const precision of roofs) {
    const peak = peaks[precision];
    chart.plot.append(s("path", { class: "roof", d: `M${chart.x(low)} ${chart.y(copy * low)}L${chart.x(peak / copy)} ${chart.y(peak)}L${chart.x(high)} ${chart.y(peak)}` }), s("text", { class: "reference-name", x: chart.right - 4, y: chart.y(peak) - 7, "text-anchor": "end" }, `${precision}: ${rate(peak, "FLOP/s")}`));
  }
  const slope = chart.x(low * AROUND ** 0.5);
  chart.plot.append(s("text", { class: "reference-name", x: slope + 12, y: chart.y(copy * low * AROUND ** 0.5) + 14 }, `a large copy: ${rate(copy, "B/s")}`));
  const middle = chart.x(points[0].intensity);
  drawBaselines(run, chart, points, (point) => point.flops_per_second, [middle - 110, middle + 110]);
  for (const point of points) chart.plot.append(dot(run, point, chart.x(point.intensity), chart.y(point.flops_per_second)));
  return chart.svg;
}
