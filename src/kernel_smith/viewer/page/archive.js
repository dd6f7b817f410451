// The archive as a map: one field per kind of program, with the best of each, and what lies in it.

import { figure, speedColours, speedLegend } from "ks/chart.js";
import { h, replace } from "ks/dom.js";
import { bin, count, firstLine, range, times } from "ks/format.js";

const MOST_LISTED = 40;

export function showArchive(run, { query }) {
  const [columns, rows] = [run.axes[0], run.axes[1]];
  if (!columns || !run.names.cells.length) return figure({ title: "Archive", legend: h("p", { class: "quiet" }, "No correct program has been sorted into a cell yet.") });
  const islands = [...new Set(run.steps.island.filter((island) => island !== null))].sort();
  const state = { island: query.get("island") ?? "", cell: query.get("cell") ?? "" };
  const colours = speedColours(run.steps.value);
  const map = h("div", { class: "scroller", tabindex: "0", role: "region", "aria-label": "Map of the archive" });
  const list = h("div", { "aria-live": "polite" });
  const draw = () => {
    const kept = Object.entries(state).filter(([, value]) => value);
    history.replaceState(null, "", run.view("archive", new URLSearchParams(kept).toString()));
    const cells = gather(run, state.island);
    replace(map, grid(run, cells, { columns, rows, colours, state, choose }));
    replace(list, state.cell ? drill(run, state.cell, cells.get(state.cell) ?? []) : h("p", { class: "quiet" }, "Choose a field to see its programs."));
  };
  const choose = (cell) => {
    state.cell = state.cell === cell ? "" : cell;
    draw();
    document.getElementById(fieldId(run, cell))?.focus();
  };
  const island = h("select", { id: "island", "aria-label": "Island" }, h("option", { value: "" }, "All islands"), islands.map((name) => h("option", { value: name, selected: String(name) === state.island }, `Island ${name}`)));
  island.addEventListener("change", () => ((state.island = island.value), draw()));
  draw();
  return h(
    "div",
    { class: "stack" },
    figure({
      title: "Archive",
      note: `Programs by ${columns.name} (${columns.description})${rows ? ` and ${rows.name} (${rows.description})` : ""}. Each field shows its fastest program and how many it has seen.`,
      tools: islands.length > 1 ? island : null,
      legend: h("div", {}, speedLegend(colours, times), map),
    }),
    h("section", { class: "panel", "aria-label": "Programs of the chosen field" }, list),
  );
}

// "column/row" -> positions, the fastest first.
function gather(run, island) {
  const cells = new Map();
  for (let position = 0; position < run.size; position++) {
    const cell = run.cell(position);
    if (!cell || !run.timed(position) || (island !== "" && String(run.steps.island[position]) !== island)) continue;
    const key = cell.join(" / ");
    if (!cells.has(key)) cells.set(key, []);
    cells.get(key).push(position);
  }
  for (const found of cells.values()) found.sort((a, b) => run.steps.low[b] - run.steps.low[a]);
  return cells;
}

function grid(run, cells, { columns, rows, colours, state, choose }) {
  const seen = (axis) => new Set(run.names.cells.map((cell) => cell[axis]));
  const across = columns.bins.filter((name) => seen(0).has(name));
  const down = rows ? rows.bins.filter((name) => seen(1).has(name)) : [""];
  const field = (column, row) => {
    const keys = [...cells.keys()].filter((key) => key.split(" / ")[0] === column && (!rows || key.split(" / ")[1] === row));
    if (!keys.length) return h("td", { class: "field empty" }, h("span", { class: "hidden" }, "empty"));
    const key = keys[0];
    const found = cells.get(key);
    const best = run.value(found[0]);
    const button = h("button", { type: "button", id: fieldId(run, key), "aria-pressed": String(state.cell === key), style: { "--cell": colours.of(best) } }, h("span", { class: "hidden" }, `${key}, the best: `), h("strong", {}, times(best)), h("small", {}, count(found.length, "program")));
    button.addEventListener("click", () => choose(key));
    return h("td", { class: "field" }, button);
  };
  return h(
    "table",
    { class: "map" },
    h("caption", {}, rows ? `${columns.name} →, ${rows.name} ↓` : columns.name),
    h("thead", {}, h("tr", {}, h("td", {}), across.map((name) => h("th", { scope: "col" }, bin(name))))),
    h("tbody", {}, down.map((row) => h("tr", {}, h("th", { scope: "row" }, bin(row)), across.map((column) => field(column, row))))),
  );
}

const fieldId = (run, key) => `field-${run.names.cells.findIndex((cell) => cell.join(" / ") === key)}`;

function drill(run, cell, found) {
  const line = (position) => {
    const interval = run.interval(position);
    return h("li", {}, h("a", { href: run.link(position) }, `Step ${run.steps.step[position]}`), " ", h("strong", {}, times(interval.value)), h("span", { class: "quiet" }, ` (${range(interval.low, interval.high)}) by ${run.who(position)}: ${firstLine(run.summary(position))}`));
  };
  return [
    h("h2", {}, cell.split(" / ").map(bin).join(", ")),
    h("p", { class: "note" }, `${count(found.length, "program")}, by their 95% lower bound. `, h("a", { href: run.view("candidates", new URLSearchParams({ cell }).toString()) }, "All in the table")),
    h("ol", { class: "plain" }, found.slice(0, MOST_LISTED).map(line)),
  ];
}
