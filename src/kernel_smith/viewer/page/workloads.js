// A kernel on each workload: against every baseline, and how its calls are distributed.

import { figure, frame, legend, rowsTable } from "ks/chart.js";
import { h, s, tipped } from "ks/dom.js";
import { axisSeconds, axisTimes, seconds, times, withRange } from "ks/format.js";
import { baselineName } from "ks/run_header.js";
import { linear, log } from "ks/scales.js";

const COLOURS = ["var(--who-model)", "var(--who-tuner)", "var(--who-seed)", "var(--who-mutator)"];
const ROW = 22;
const LEAST_PLOT = 260; // pixels

export function workloadFigure(workloads, title) {
  if (!workloads.length) return figure({ title, legend: h("p", { class: "quiet" }, "Nothing has been timed.") });
  const baselines = workloads[0].baselines.map((each) => each.baseline);
  return figure({
    title,
    note: "How many times as fast as each baseline; whiskers are 95% intervals.",
    legend: legend(baselines.map((name, index) => ({ name: baselineName(name), colour: COLOURS[index % 4], shape: "area" }))),
    draw: (width) => drawBars(workloads, baselines, width),
    table: () => rowsTable(["workload", "seconds per call", "P99", ...baselines.map(baselineName)], workloads.map((each) => [each.workload, seconds(each.candidate.p50), seconds(each.candidate.p99), ...each.baselines.map((one) => withRange(one.speedup))]), [1, 2]),
  });
}

function drawBars(workloads, baselines, width) {
  const group = baselines.length * ROW + 30;
  const most = Math.max(1.2, ...workloads.flatMap((each) => each.baselines.map((one) => one.speedup.high)));
  const height = workloads.length * group + 50;
  const chart = frame(width, height, {
    label: `Speed on each workload. ${workloads.map((each) => `${each.workload}: ${each.baselines.map((one) => `${times(one.speedup.value)} ${one.baseline}`).join(", ")}`).join("; ")}`,
    x: (place) => linear([0, most * 1.05], place),
    y: (place) => Object.assign(linear([0, 1], place), { ticks: () => [] }),
    xFormat: axisTimes,
    left: 14,
    right: 64, // room for the figure of the longest bar
    top: 4,
  });
  chart.plot.append(s("line", { class: "reference", x1: chart.x(1), x2: chart.x(1), y1: 4, y2: chart.bottom }));
  workloads.forEach((each, index) => {
    const top = 4 + index * group;
    chart.plot.append(s("text", { class: "row-name", x: 14, y: top + 14 }, `${each.workload}: ${seconds(each.candidate.p50)} per call`));
    each.baselines.forEach((one, line) => {
      const y = top + 22 + line * ROW;
      const { value, low, high } = one.speedup;
      const bar = s("rect", { x: chart.left, y, width: Math.max(1, chart.x(value) - chart.left), height: ROW - 7, rx: 3, style: { fill: COLOURS[line % 4] } });
      chart.plot.append(tipped(bar, () => [`${each.workload} against ${baselineName(one.baseline)}`, withRange(one.speedup), `${seconds(one.seconds.p50)} → ${seconds(each.candidate.p50)}`]));
      chart.plot.append(s("path", { class: "whisker", d: `M${chart.x(low)} ${y + 7.5}H${chart.x(high)}M${chart.x(low)} ${y + 4}v7M${chart.x(high)} ${y + 4}v7` }));
      chart.plot.append(s("text", { class: "bar-value", x: chart.x(high) + 8, y: y + 12 }, times(value)));
    });
  });
  return chart.svg;
}

// From the median to the slowest hundredth of calls.
export function latencyFigure(workloads, title) {
  const rows = workloads.flatMap((each) => [
    { name: `${each.workload}: this kernel`, colour: "var(--good)", at: each.candidate },
    ...each.baselines.map((one, index) => ({ name: `${each.workload}: ${baselineName(one.baseline)}`, colour: COLOURS[index % 4], at: one.seconds })),
  ]);
  return figure({
    title,
    note: "Seconds per call: the dot is the median, the end of the line the slowest of a hundred calls (P99).",
    draw: (width) => drawRanges(rows, width),
    table: () => rowsTable(["what", "median", "P99"], rows.map((row) => [row.name, seconds(row.at.p50), seconds(row.at.p99)]), [1, 2]),
  });
}

export function drawRanges(rows, width) {
  const low = Math.min(...rows.map((row) => row.at.p50));
  const high = Math.max(...rows.map((row) => row.at.p99));
  const longest = 24 + 7 * rows.reduce((most, row) => Math.max(most, row.name.length), 0);
  const beside = width - longest > LEAST_PLOT; // else names stand above what they name
  const line = beside ? 26 : 34;
  const chart = frame(width, rows.length * line + 50, {
    label: `Time per call. ${rows.map((row) => `${row.name}: ${seconds(row.at.p50)}, P99 ${seconds(row.at.p99)}`).join("; ")}`,
    x: (place) => (high / low > 8 ? log([low / 1.1, high * 1.15], place) : linear([0, high * 1.1], place)),
    y: (place) => Object.assign(linear([0, 1], place), { ticks: () => [] }),
    xFormat: axisSeconds,
    left: beside ? longest : 14,
    top: 4,
    xTicks: Math.max(2, Math.floor((width - (beside ? longest : 0)) / 130)),
    links: rows.some((row) => row.href),
  });
  rows.forEach((row, index) => {
    const y = 4 + index * line + (beside ? 16 : 26);
    const text = s("text", beside ? { class: "row-name", x: longest - 12, y: y + 4, "text-anchor": "end" } : { class: "row-name", x: 14, y: y - 9 }, row.name);
    const mark = s("g", {}, s("line", { class: "range", x1: chart.x(row.at.p50), x2: chart.x(row.at.p99), y1: y, y2: y, style: { stroke: row.colour } }), s("circle", { cx: chart.x(row.at.p50), cy: y, r: 4.5, style: { fill: row.colour } }));
    const linked = row.href ? s("a", { href: row.href, "aria-label": row.name }, text, mark) : s("g", {}, text, mark);
    chart.plot.append(tipped(linked, () => [row.name, `median ${seconds(row.at.p50)}`, `P99 ${seconds(row.at.p99)}`]));
  });
  return chart.svg;
}

