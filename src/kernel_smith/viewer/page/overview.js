// A run at a glance: its result, how it came about, how far steps came, who proposed what.

import { figure, rowsTable, whoColour } from "ks/chart.js";
import { progressFigure } from "ks/progress.js";
import { h } from "ks/dom.js";
import { count, cost, duration, firstLine, gain, percent, times, tokens } from "ks/format.js";
import { verdict } from "ks/run_header.js";
import { utilisationFigure } from "ks/utilisation.js";
import { workloadFigure } from "ks/workloads.js";

export function showOverview(run) {
  return h(
    "div",
    { class: "stack" },
    h("div", { class: "top-row" }, verdict(run), tiles(run)),
    progressFigure(run),
    h("div", { class: "columns" }, gainsPanel(run), funnelFigure(run)),
    h("div", { class: "columns" }, sharesFigure(run), workloadFigure(run.workloads, "The best kernel, workload by workload")),
    utilisationFigure(run),
    settingsPanel(run),
  );
}

function tiles(run) {
  const { funnel, budget } = run;
  const limit = budget.evaluations ? `of ${budget.evaluations.toLocaleString("en-US")} in the budget` : "evaluated";
  const tile = (figure, words, more) => h("div", { class: "tile" }, h("strong", {}, figure), h("span", {}, words), h("small", {}, more));
  return h(
    "div",
    { class: "tiles", role: "group", "aria-label": "The run in figures" },
    tile(funnel.evaluated.toLocaleString("en-US"), funnel.evaluated === 1 ? "evaluation" : "evaluations", limit),
    tile(percent(funnel.evaluated ? funnel.honest / funnel.evaluated : 0), "correct", `${funnel.honest.toLocaleString("en-US")} of ${funnel.evaluated.toLocaleString("en-US")}`),
    tile(duration(run.seconds), "from begin to end", `${duration(run.evaluatingSeconds())} evaluating${run.lanes > 1 ? `, ${run.lanes} at once` : ""}`),
    tile(run.usage.requests ? (run.usage.dollars ? `$${run.usage.dollars.toFixed(2)}` : tokens(run.usage).toLocaleString("en-US")) : "0", run.usage.requests ? (run.usage.dollars ? "for models" : "tokens") : "requests to models", run.usage.requests ? `${count(run.usage.requests, "request")}, ${cost(run.usage)}` : "none was asked"),
  );
}

// Side by side with the former best where that was measured: figures of different moments differ by more than the gain.
function change({ speedup, before, beside }) {
  if (before === null) return h("span", { class: "quiet" }, " to begin with");
  if (beside) return [h("span", { class: beside.low > 1 ? "up" : "quiet" }, ` ${gain(beside.value, 1)}`), h("span", { class: "quiet" }, ` (${gain(beside.low, 1)} to ${gain(beside.high, 1)} side by side)`)];
  if (speedup.value < before) return h("span", { class: "quiet" }, " when the former best fell back");
  return h("span", { class: "up" }, ` ${gain(speedup.value, before)}`);
}

function gainsPanel(run) {
  const items = run.gains.map((each) => {
    const position = run.byStep.get(each.step);
    const who = run.who(position);
    return h(
      "li",
      {},
      h("span", { class: "key dot", style: { "--key": whoColour(who) }, "aria-hidden": "true" }),
      h("div", {}, h("a", { href: run.link(position) }, `Step ${each.step}`), ` by ${who}: `, h("strong", {}, times(each.speedup.value)), change(each), h("div", { class: "quiet clip" }, firstLine(run.summary(position)))),
    );
  });
  return figure({
    title: "Who made it faster",
    note: "Steps that took the lead and kept it when they were measured again.",
    draw: null,
    tools: null,
    legend: items.length ? h("ol", { class: "gains" }, items) : h("p", { class: "quiet" }, "No step has been timed yet."),
  });
}

const GATES = [
  ["proposed", "proposed"],
  ["evaluated", "evaluated"],
  ["compiled", "compiled"],
  ["correct", "correct results"],
  ["honest", "honest"],
  ["faster", "faster than eager, 95% lower bound"],
];

function funnelFigure(run) {
  const most = Math.max(1, run.funnel.proposed);
  const bars = GATES.map(([gate, words], index) => {
    const number = run.funnel[gate];
    const before = index ? run.funnel[GATES[index - 1][0]] : number;
    return h(
      "li",
      {},
      h("span", { class: "bar-name" }, words),
      h("span", { class: "bar-track", "aria-hidden": "true" }, h("span", { class: `bar-fill ${gate}`, style: { width: `${(100 * number) / most}%` } })),
      h("span", { class: "bar-figure" }, h("strong", {}, number.toLocaleString("en-US")), before > number ? h("small", {}, ` −${(before - number).toLocaleString("en-US")}`) : null),
    );
  });
  const dropped = run.dropped.reduce((sum, each) => sum + each.count, 0);
  return figure({
    title: "How far steps came",
    note: dropped ? `${count(dropped, "proposal")} more ${dropped === 1 ? "was" : "were"} dropped before evaluation, mostly: ${run.dropped[0].why}.` : null,
    legend: h("ul", { class: "bars" }, bars),
    table: failures(run),
  });
}

function failures(run) {
  const counts = new Map();
  for (let position = 0; position < run.size; position++) {
    if (!run.reason(position)) continue;
    const key = `${run.stage(position)}\n${run.reason(position)}`;
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  if (!counts.size) return null;
  const rows = [...counts].sort((a, b) => b[1] - a[1]).map(([key, number]) => {
    const [stage, reason] = key.split("\n");
    return [h("a", { href: run.view("candidates", new URLSearchParams({ end: stage }).toString()) }, stage), reason, String(number)];
  });
  return () => rowsTable(["stage", "reason", "steps"], rows, [2]);
}

function sharesFigure(run) {
  const rows = new Map();
  for (let position = 0; position < run.size; position++) {
    const model = run.model(position);
    const name = model ? `${run.who(position)}: ${model}` : run.who(position);
    const row = rows.get(name) ?? { who: run.who(position), model, steps: 0, timed: 0, faster: 0, bests: 0 };
    row.steps += 1;
    row.timed += run.timed(position) ? 1 : 0;
    row.faster += (run.steps.low[position] ?? 0) > 1 ? 1 : 0;
    row.bests += run.heldSet.has(position) ? 1 : 0;
    rows.set(name, row);
  }
  const sorted = [...rows].sort((a, b) => b[1].steps - a[1].steps);
  const most = Math.max(1, ...sorted.map(([, row]) => row.steps));
  const bar = ([name, row]) =>
    h(
      "li",
      {},
      h("span", { class: "bar-name" }, h("a", { href: run.view("candidates", new URLSearchParams(row.model ? { by: row.who, model: row.model } : { by: row.who }).toString()) }, name)),
      h("span", { class: "bar-track", "aria-hidden": "true" }, h("span", { class: "bar-fill", style: { width: `${(100 * row.steps) / most}%`, background: whoColour(row.who), opacity: 0.35 } }), h("span", { class: "bar-fill over", style: { width: `${(100 * row.timed) / most}%`, background: whoColour(row.who) } })),
      h("span", { class: "bar-figure" }, h("strong", {}, percent(row.steps / Math.max(1, run.size))), h("small", {}, row.bests ? ` ${count(row.bests, "new best")}` : "")),
    );
  return figure({
    title: "Who proposed what",
    note: "Share of all steps; the solid part was correct and timed.",
    legend: h("ul", { class: "bars" }, sorted.map(bar)),
    table: () =>
      rowsTable(
        ["proposed by", "steps", "timed", "faster", "new bests", "tokens", "cost"],
        sorted.map(([name, row]) => {
          const usage = row.model ? run.model_usage[row.model] : null;
          return [name, row.steps, row.timed, row.faster, row.bests, usage ? tokens(usage).toLocaleString("en-US") : "–", usage ? `$${usage.dollars.toFixed(2)}` : "–"].map(String);
        }),
        [1, 2, 3, 4, 5, 6],
      ),
  });
}

function settingsPanel(run) {
  const limits = Object.entries(run.budget).filter(([, value]) => value !== null).map(([name, value]) => `${value.toLocaleString("en-US")} ${name.replace("_", " ")}`);
  const rows = [
    ["Why it ended", run.ended ?? (run.state === "running" ? "it goes on" : "it was interrupted")],
    ["Budget", limits.join(", ") || "none"],
    ["Precision", run.precision],
    ["Evaluated at once", String(run.lanes)],
    ["Task", run.description.replace(/\n(?!\n)/g, " ")],
  ];
  return figure({
    title: "About this run",
    legend: h("dl", { class: "facts" }, rows.filter(([, words]) => words).map(([name, words]) => [h("dt", {}, name), h("dd", {}, words)]), h("dt", {}, "Go on"), h("dd", {}, h("code", {}, run.commands.resume))),
  });
}
