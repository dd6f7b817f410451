// The best so far, with its interval, over all candidates; and the same for several runs.

import { figure, frame, legend, points, rowsTable, whoColour } from "ks/chart.js";
import { h, hideTip, s, showTip, tipped } from "ks/dom.js";
import { axisTimes, firstLine, range, times } from "ks/format.js";
import { counting, linear, speedScale } from "ks/scales.js";

const NAMES_FROM = 560; // pixels
export const MEASURES = {
  evaluations: { words: "evaluations", scale: counting, of: (point) => point.evaluations, position: (run, position) => run.order[position], end: (run) => run.funnel.evaluated },
  minutes: { words: "minutes", scale: linear, of: (point) => point.at / 60, position: (run, position) => run.steps.ended[position] / 60, end: (run) => run.seconds / 60 },
};

export function progressFigure(run) {
  let measure = "evaluations";
  const box = h("div", {});
  const drawAll = () => box.replaceChildren(make());
  const tools = () =>
    h(
      "div",
      { class: "switch", role: "group", "aria-label": "Horizontal axis" },
      Object.keys(MEASURES).map((name) => h("button", { type: "button", id: `axis-${name}`, "aria-pressed": String(name === measure), onclick: () => ((measure = name), drawAll(), document.getElementById(`axis-${name}`).focus()) }, MEASURES[name].words)),
    );
  const make = () =>
    figure({
      title: "Best so far",
      note: "Each dot is a candidate. The line is the best kernel known at that time, the band its 95% interval; rings mark who took the lead.",
      tools: tools(),
      wide: true,
      draw: (width) => draw(run, MEASURES[measure], width),
      legend: legend([...run.names.proposers.map((name) => ({ name, colour: whoColour(name) })), { name: "best so far", colour: "var(--ink)", shape: "line" }, { name: "95% interval", colour: "var(--band)", shape: "area" }, ...(run.shown.length ? [{ name: "the winner at full length", colour: "var(--good)", shape: "diamond" }] : [])]),
      table: () => rowsTable(["evaluations", "minutes", "step", "speedup", "95% interval"], run.curve.map((point) => [String(point.evaluations), (point.at / 60).toFixed(1), h("a", { href: run.link(run.byStep.get(point.step)) }, String(point.step)), times(point.best.value), range(point.best.low, point.best.high)]), [0, 1, 2, 3]),
    });
  drawAll();
  return box;
}

function draw(run, measure, width) {
  const timed = [...run.steps.value.keys()].filter((position) => run.timed(position) && run.order[position]);
  const values = [...timed.map((position) => run.value(position)), ...run.curve.map((point) => point.best.high), ...run.shown.slice(0, 1).map((each) => each.speedup.high)];
  const end = Math.max(1, measure.end(run));
  const failed = [...run.order.keys()].filter((position) => run.order[position] && !run.timed(position));
  const chart = frame(width, width < 600 ? 300 : 400, {
    label: summary(run),
    links: true,
    x: (place) => measure.scale([0, end], place),
    y: ([bottom, top]) => speedScale(values.length ? values : [1], [bottom - (failed.length ? 16 : 0), top]),
    xLabel: measure.words,
    yLabel: "speed of eager PyTorch",
    yFormat: axisTimes,
    xFormat: (value) => value.toLocaleString("en-US"),
    right: run.shown.length ? 58 : 16,
  });
  drawReference(chart);
  drawFailures(run, measure, chart, failed);
  drawCurve(chart, run.curve, measure, end, "var(--ink)", "var(--band)");
  drawGains(run, measure, chart);
  drawConfirmation(run, chart);
  return points(chart, {
    xs: timed.map((position) => chart.x(measure.position(run, position))),
    ys: timed.map((position) => chart.y(run.value(position))),
    colour: (index) => whoColour(run.who(timed[index])),
    radius: timed.length > 2000 ? 1.7 : timed.length > 300 ? 2.4 : 3.4,
    alpha: timed.length > 2000 ? 0.35 : 0.6,
    onNear: (index, event) => (index < 0 ? hideTip() : showTip(run.describe(timed[index]), event.clientX, event.clientY)),
    onPick: (index) => (location.hash = run.link(timed[index])),
  });
}

function summary(run) {
  if (!run.curve.length) return "No candidate has been timed yet.";
  const last = run.curve[run.curve.length - 1];
  return `Best so far: after ${run.funnel.evaluated} evaluations ${times(last.best.value)} the speed of eager PyTorch, 95% interval ${range(last.best.low, last.best.high)}; ${run.gains.length} steps took the lead.`;
}

export function drawReference(chart) {
  const y = chart.y(1);
  if (y < chart.top || y > chart.bottom) return;
  chart.plot.append(s("line", { class: "reference", x1: chart.left, x2: chart.right, y1: y, y2: y }), s("text", { class: "reference-name", x: chart.right - 4, y: y - 6, "text-anchor": "end" }, "eager PyTorch, 1×"));
}

function drawFailures(run, measure, chart, failed) {
  if (!failed.length) return;
  const shown = failed.length > 1500 ? failed.filter((_, index) => index % Math.ceil(failed.length / 1500) === 0) : failed;
  const path = shown.map((position) => `M${chart.x(measure.position(run, position)).toFixed(1)} ${chart.bottom - 9}v6`).join("");
  chart.plot.append(s("path", { class: "rug", d: path }, s("title", {}, `${failed.length} steps failed`)));
}

export function drawCurve(chart, curve, measure, end, ink, band) {
  if (!curve.length) return;
  const [above, below, line] = [[], [], []];
  curve.forEach((point, index) => {
    const from = chart.x(measure.of(point));
    const to = chart.x(index + 1 < curve.length ? measure.of(curve[index + 1]) : end);
    for (const x of [from, to]) {
      above.push(`${x.toFixed(1)} ${chart.y(point.best.high).toFixed(1)}`);
      below.unshift(`${x.toFixed(1)} ${chart.y(point.best.low).toFixed(1)}`);
      line.push(`${x.toFixed(1)} ${chart.y(point.best.value).toFixed(1)}`);
    }
  });
  if (band) chart.plot.append(s("path", { class: "band", d: `M${[...above, ...below].join("L")}Z`, style: { fill: band } }));
  chart.plot.append(s("path", { class: "line", d: `M${line.join("L")}`, style: { stroke: ink } }));
}

// Rings where the lead changed, with names as far as there is room for them.
function drawGains(run, measure, chart) {
  const rings = run.gains.map((each) => ({ each, x: chart.x(measure.of(each)), y: chart.y(each.speedup.value) }));
  const taken = rings.map(({ x, y }) => ({ left: x - 9, right: x + 9, top: y - 9, bottom: y + 9 }));
  for (const { each, x, y } of rings) {
    const position = run.byStep.get(each.step);
    const who = run.who(position);
    const words = `Step ${each.step} by ${who}: ${times(each.speedup.value)}. ${firstLine(run.summary(position))}`;
    const link = s("a", { href: run.link(position), "aria-label": words }, s("circle", { class: "gain", cx: x, cy: y, r: 7, style: { stroke: whoColour(who) } }));
    chart.plot.append(tipped(link, () => run.describe(position)));
    const name = `${who} ${times(each.speedup.value)}`;
    const place = chart.width < NAMES_FROM ? null : freePlace(name, x, y, taken, chart);
    if (place) chart.plot.append(s("text", { class: "gain-name", x: place.left, y: place.bottom - 3 }, name));
  }
}

// Above or below a ring, to its right or its left, where nothing else is.
function freePlace(name, x, y, taken, chart) {
  const width = 7 * name.length;
  for (const [left, top] of [[x + 4, y - 27], [x - width - 4, y - 27], [x + 4, y + 12], [x - width - 4, y + 12]]) {
    const box = { left, right: left + width, top, bottom: top + 16 };
    const inside = box.left > chart.left && box.right < chart.right && box.top > chart.top - 10 && box.bottom < chart.bottom;
    const free = taken.every((other) => box.right < other.left || box.left > other.right || box.bottom < other.top || box.top > other.bottom);
    if (inside && free) return taken.push(box) && box;
  }
  return null;
}

// What the winner showed once more, which chose nobody: beside the plot, on the same scale.
function drawConfirmation(run, chart) {
  const shown = run.shown[0];
  if (!shown || run.best === null) return;
  const { value, low, high } = shown.speedup;
  const x = chart.right + 26;
  const mark = s("a", { href: run.link(run.best), "aria-label": `At full length: ${times(value)}, 95% interval ${range(low, high)}` }, s("path", { class: "confirm", d: `M${x} ${chart.y(high)}V${chart.y(low)}M${x - 5} ${chart.y(high)}h10M${x - 5} ${chart.y(low)}h10` }), s("rect", { class: "confirm-dot", x: x - 6, y: chart.y(value) - 6, width: 12, height: 12, transform: `rotate(45 ${x} ${chart.y(value)})` }));
  chart.plot.append(tipped(mark, () => ["The winner, measured at full length", `${times(value)} the speed of eager`, `95%: ${range(low, high)}`]));
  chart.plot.append(s("text", { class: "gain-name", x, y: Math.min(chart.bottom - 4, chart.y(low) + 18), "text-anchor": "middle" }, times(value)));
}
