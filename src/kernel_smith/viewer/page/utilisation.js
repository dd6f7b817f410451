// How busy the evaluators were over the time of a run.

import { figure, frame, legend, rowsTable } from "ks/chart.js";
import { h, s } from "ks/dom.js";
import { percent } from "ks/format.js";
import { linear } from "ks/scales.js";

const KINDS = [
  ["step", "first evaluations", "var(--who-mutator)"],
  ["again", "measuring again", "var(--who-tuner)"],
  ["full", "at full length", "var(--who-seed)"],
];

export function utilisationFigure(run) {
  const share = run.seconds ? Math.min(1, run.evaluatingSeconds() / run.seconds / run.lanes) : 0;
  return figure({
    title: "Use of the evaluators",
    note: `On average ${percent(share)} of ${run.lanes === 1 ? "the one place" : `${run.lanes} places`} to evaluate ${run.lanes === 1 ? "was" : "were"} in use.`,
    legend: legend(KINDS.map(([, name, colour]) => ({ name, colour, shape: "area" }))),
    draw: (width) => draw(run, width, share),
    table: () => rowsTable(["what", "times", "seconds"], KINDS.map(([kind, name]) => { const own = run.spans.filter((span) => span.what === kind); return [name, String(own.length), own.reduce((sum, span) => sum + span.end - span.begin, 0).toFixed(1)]; }), [1, 2]),
  });
}

function draw(run, width, share) {
  if (!run.spans.length) return h("p", { class: "quiet" }, "Nothing has been evaluated yet.");
  const end = Math.max(1, run.seconds);
  const bins = Math.max(20, Math.min(240, Math.floor(width / 5)));
  const used = KINDS.map(() => new Float64Array(bins));
  for (const span of run.spans) {
    const kind = KINDS.findIndex(([name]) => name === span.what);
    const [from, to] = [(span.begin / end) * bins, (span.end / end) * bins];
    for (let bin = Math.max(0, Math.floor(from)); bin < Math.min(bins, Math.ceil(to)); bin++) used[kind][bin] += Math.max(0, Math.min(to, bin + 1) - Math.max(from, bin)) / run.lanes;
  }
  const minutes = end >= 120;
  const chart = frame(width, 190, {
    label: `Use of the evaluators over time: ${percent(share)} on average.`,
    x: (place) => linear([0, minutes ? end / 60 : end], place),
    y: (place) => linear([0, 1], place),
    xLabel: minutes ? "minutes" : "seconds",
    yFormat: (value) => percent(value),
    yTicks: 2,
  });
  const base = new Float64Array(bins);
  KINDS.forEach(([, , colour], kind) => {
    const [above, below] = [[], []];
    for (let bin = 0; bin < bins; bin++) {
      const [left, right] = [chart.left + (bin / bins) * (chart.right - chart.left), chart.left + ((bin + 1) / bins) * (chart.right - chart.left)];
      const [low, high] = [Math.min(1, base[bin]), Math.min(1, base[bin] + used[kind][bin])];
      above.push(`${left.toFixed(1)} ${chart.y(high).toFixed(1)}L${right.toFixed(1)} ${chart.y(high).toFixed(1)}`);
      below.unshift(`${right.toFixed(1)} ${chart.y(low).toFixed(1)}L${left.toFixed(1)} ${chart.y(low).toFixed(1)}`);
      base[bin] = base[bin] + used[kind][bin];
    }
    chart.plot.append(s("path", { class: "use", d: `M${above.join("L")}L${below.join("L")}Z`, style: { fill: colour } }));
  });
  return chart.svg;
}
