// How fast candidates are: all of them as a histogram, the fastest with the spread of their calls.

import { figure, frame, legend, rowsTable, whoColour } from "ks/chart.js";
import { h, s, tipped } from "ks/dom.js";
import { axisTimes, count, range, seconds, times } from "ks/format.js";
import { linear, log } from "ks/scales.js";
import { drawRanges, workloadFigure } from "ks/workloads.js";

const FASTEST = 12;

export function showTiming(run) {
  const timed = [...run.steps.value.keys()].filter((position) => run.timed(position));
  if (!timed.length) return figure({ title: "Timing", legend: h("p", { class: "quiet" }, "No candidate has been timed yet.") });
  const fastest = [...timed].filter((position) => !run.steps.twin[position]).sort((a, b) => run.steps.low[b] - run.steps.low[a]).slice(0, FASTEST);
  return h(
    "div",
    { class: "stack" },
    histogramFigure(run, timed),
    h("div", { class: "columns" }, intervalsFigure(run, fastest), rangesFigure(run, fastest)),
    workloadFigure(run.workloads, "The best kernel, workload by workload"),
  );
}

function histogramFigure(run, timed) {
  const values = timed.map((position) => run.value(position));
  const low = values.reduce((a, b) => Math.min(a, b), 1) / 1.05;
  const high = values.reduce((a, b) => Math.max(a, b), 1) * 1.05;
  const bins = 48;
  const width = Math.log(high / low) / bins;
  const table = run.names.proposers.map(() => new Array(bins).fill(0));
  for (const position of timed) table[run.steps.proposer[position]][Math.min(bins - 1, Math.floor(Math.log(run.value(position) / low) / width))] += 1;
  const edges = Array.from({ length: bins + 1 }, (_, bin) => low * Math.exp(bin * width));
  return figure({
    title: "Speed of all candidates",
    note: `${count(timed.length, "candidate")} that ${timed.length === 1 ? "was" : "were"} correct and timed.`,
    wide: true,
    legend: legend(run.names.proposers.map((name) => ({ name, colour: whoColour(name), shape: "area" }))),
    draw: (size) => {
      const sums = edges.slice(1).map((_, bin) => table.reduce((sum, row) => sum + row[bin], 0));
      const chart = frame(size, 280, { label: `Histogram of the speeds of ${timed.length} candidates, from ${times(Math.min(...values.slice(0, 1), low * 1.05))} to ${times(high / 1.05)}.`, x: (place) => log([low, high], place), y: (place) => linear([0, Math.max(...sums) * 1.08], place), xLabel: "speed of eager PyTorch", yLabel: "candidates", xFormat: axisTimes, yFormat: (value) => (Number.isInteger(value) ? value.toLocaleString("en-US") : "") });
      const filled = new Array(bins).fill(0);
      table.forEach((row, who) =>
        row.forEach((number, bin) => {
          if (!number) return;
          const [x1, x2] = [chart.x(edges[bin]), chart.x(edges[bin + 1])];
          const [top, bottom] = [chart.y(filled[bin] + number), chart.y(filled[bin])];
          filled[bin] += number;
          const bar = s("rect", { x: x1 + 0.75, y: top, width: Math.max(1, x2 - x1 - 1.5), height: Math.max(1, bottom - top), style: { fill: whoColour(run.names.proposers[who]) } });
          chart.plot.append(tipped(bar, () => [`${times(edges[bin])} to ${times(edges[bin + 1])}`, `${count(number, "candidate")} by ${run.names.proposers[who]}`]));
        }),
      );
      chart.plot.append(s("line", { class: "reference", x1: chart.x(1), x2: chart.x(1), y1: chart.top, y2: chart.bottom }), s("text", { class: "reference-name", x: chart.x(1) + 6, y: chart.top + 10 }, "eager"));
      return chart.svg;
    },
    table: () => rowsTable(["from", "to", ...run.names.proposers], edges.slice(0, -1).map((edge, bin) => [times(edge), times(edges[bin + 1]), ...table.map((row) => String(row[bin]))]).filter((row) => row.slice(2).some((cell) => cell !== "0")), [0, 1, 2, 3, 4, 5]),
  });
}

function intervalsFigure(run, fastest) {
  return figure({
    title: "The fastest, and how certain that is",
    note: "The dot is the estimate, the line its 95% interval. Ranked by the lower bound.",
    draw: (width) => {
      const line = 30;
      const high = Math.max(...fastest.map((position) => run.steps.high[position]));
      const low = Math.min(1, ...fastest.map((position) => run.steps.low[position]));
      const chart = frame(width, fastest.length * line + 52, { label: `Speedups of the fastest: ${fastest.map((position) => `step ${run.steps.step[position]} ${times(run.value(position))}, ${range(run.steps.low[position], run.steps.high[position])}`).join("; ")}`, x: (place) => linear([low * 0.95, high * 1.04], place), y: (place) => Object.assign(linear([0, 1], place), { ticks: () => [] }), xFormat: axisTimes, left: 118, top: 6, links: true });
      fastest.forEach((position, index) => {
        const y = 6 + index * line + 16;
        const { value, low: from, high: to } = run.interval(position);
        const colour = whoColour(run.who(position));
        const name = `${run.steps.step[position]} · ${run.who(position)}`;
        const link = s("a", { href: run.link(position), "aria-label": [name, ...run.describe(position)].join(". ") }, s("text", { class: "row-name", x: 110, y: y + 4, "text-anchor": "end" }, name), s("line", { class: "range", x1: chart.x(from), x2: chart.x(to), y1: y, y2: y, style: { stroke: colour } }), s("circle", { cx: chart.x(value), cy: y, r: 5, style: { fill: colour } }));
        chart.plot.append(tipped(link, () => run.describe(position)));
      });
      return chart.svg;
    },
  });
}

function rangesFigure(run, fastest) {
  const rows = fastest.filter((position) => run.steps.p50[position]).map((position) => ({ name: `${run.steps.step[position]} · ${run.who(position)}: ${seconds(run.steps.p50[position])}`, colour: whoColour(run.who(position)), href: run.link(position), at: { p50: run.steps.p50[position], p99: run.steps.p99[position] } }));
  return figure({
    title: "Time per call of the fastest",
    note: `On workload ${run.workloads[0]?.workload ?? ""}: from the median to the slowest of a hundred calls (P99).`,
    draw: (width) => drawRanges(rows, width),
  });
}

