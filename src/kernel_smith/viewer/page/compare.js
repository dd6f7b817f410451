// Several runs in one picture and one table.

import { figure, frame, legend, rowsTable } from "ks/chart.js";
import { h } from "ks/dom.js";
import { axisTimes, cost, duration, range, times } from "ks/format.js";
import { MEASURES, drawCurve, drawReference } from "ks/progress.js";
import { statePill } from "ks/run_header.js";
import { speedScale } from "ks/scales.js";

const COLOURS = ["var(--who-model)", "var(--who-tuner)", "var(--who-mutator)", "var(--who-seed)", "var(--who-outside)", "var(--ink)"];
const BANDS_UP_TO = 3;

export async function showCompare({ query, loadRun }) {
  const ids = (query.get("runs") ?? "").split(",").filter(Boolean).map(decodeURIComponent);
  if (!ids.length) throw new Error("Choose runs to compare in the list of runs.");
  const runs = await Promise.all(ids.map(loadRun));
  const several = new Set(runs.map((run) => run.task)).size > 1;
  return h(
    "div",
    { class: "stack" },
    h("nav", { class: "crumbs", "aria-label": "Where you are" }, h("a", { href: "#/" }, "Runs"), " / Compare"),
    h("h1", {}, `${runs.length} runs side by side`),
    several ? h("p", { class: "note" }, "These runs are of different tasks: their speedups are over different references.") : null,
    Object.values(MEASURES).map((measure) =>
      figure({
        title: `Best so far over ${measure.words}`,
        note: runs.length > BANDS_UP_TO ? null : "Bands are 95% intervals.",
        legend: legend(runs.map((run, index) => ({ name: `${run.task}, ${run.method} (${run.id.slice(-4)})`, colour: COLOURS[index % COLOURS.length], shape: "line" }))),
        draw: (width) => draw(runs, measure, width),
      }),
    ),
    figure({
      title: "In figures",
      legend: rowsTable(
        ["run", "method", "state", "best", "95% interval", "confirmed", "evaluations", "correct", "gains", "took", "cost", "machine"],
        runs.map((run) => {
          const best = run.bestSpeedup;
          return [h("a", { href: run.view("") }, run.id), run.method, statePill(run.state), times(best?.value), h("span", { class: "with-range" }, best ? range(best.low, best.high) : "–"), run.confirmed ? "yes" : "no", String(run.funnel.evaluated), String(run.funnel.honest), String(run.gains.length), h("span", { class: "with-range" }, duration(run.seconds)), cost(run.usage), run.machine];
        }),
        [6, 7, 8],
      ),
    }),
  );
}

function draw(runs, measure, width) {
  const end = Math.max(1, ...runs.map(measure.end));
  const values = runs.flatMap((run) => run.curve.flatMap((point) => (runs.length > BANDS_UP_TO ? [point.best.value] : [point.best.high, point.best.low])));
  const chart = frame(width, 340, {
    label: `Best so far of ${runs.length} runs: ${runs.map((run) => `${run.id} ${times(run.bestSpeedup?.value)}`).join(", ")}`,
    x: (place) => measure.scale([0, end], place),
    y: (place) => speedScale(values.length ? values : [1], place),
    xLabel: measure.words,
    yLabel: "speed of eager PyTorch",
    yFormat: axisTimes,
  });
  drawReference(chart);
  runs.forEach((run, index) => {
    const colour = COLOURS[index % COLOURS.length];
    const band = runs.length > BANDS_UP_TO ? null : `color-mix(in oklab, ${colour} 16%, transparent)`;
    drawCurve(chart, run.curve, measure, measure.end(run), colour, band);
  });
  return chart.svg;
}
