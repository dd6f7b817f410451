// Every candidate of a run: searched, filtered and sorted; only the rows in sight are elements.

import { h, download, replace } from "ks/dom.js";
import { whoColour } from "ks/chart.js";
import { count, firstLine, range, seconds, stageWords, times } from "ks/format.js";

const ROW = 44;
const SPARE = 8; // rows beyond what is in sight
const COLUMNS = [
  ["step", "step", (run, at) => run.steps.step[at]],
  ["speed", "speedup", (run, at) => run.steps.value[at]],
  ["low", "95% interval", (run, at) => run.steps.low[at]],
  ["end", "outcome", (run, at) => run.stage(at)],
  ["by", "proposed by", (run, at) => run.who(at)],
  ["what", "what was changed", (run, at) => run.summary(at)],
  ["p50", "per call", (run, at) => run.steps.p50[at]],
];

export function showCandidates(run, { query }) {
  const filters = { q: query.get("q") ?? "", by: query.get("by") ?? "", end: query.get("end") ?? "", model: query.get("model") ?? "", cell: query.get("cell") ?? "", sort: query.get("sort") ?? "step" };
  const table = new VirtualTable(run, filters, (changes) => change(changes));
  const counted = h("p", { class: "quiet", role: "status" });
  const refresh = () => {
    const found = select(run, filters);
    table.fill(found);
    counted.textContent = found.length === run.size ? count(run.size, "candidate") : `${found.length.toLocaleString("en-US")} of ${count(run.size, "candidate")}`;
    return found;
  };
  const change = (changes) => {
    Object.assign(filters, changes);
    const kept = Object.entries(filters).filter(([name, value]) => value && !(name === "sort" && value === "step"));
    history.replaceState(null, "", run.view("candidates", new URLSearchParams(kept).toString()));
    refresh();
  };
  const search = h("input", { type: "search", id: "search", value: filters.q, placeholder: "Search changes, reasons", "aria-label": "Search candidates" });
  search.addEventListener("input", () => change({ q: search.value }));
  const choose = (name, title, values, words = (value) => value) => {
    const box = h("select", { id: `filter-${name}`, "aria-label": title }, h("option", { value: "" }, title), values.map((value) => h("option", { value, selected: value === filters[name] }, words(value))));
    box.addEventListener("change", () => change({ [name]: box.value }));
    return box;
  };
  refresh();
  return h(
    "section",
    { class: "panel", "aria-label": "Candidates" },
    h(
      "div",
      { class: "toolbar" },
      search,
      choose("by", "Proposed by: all", run.names.proposers),
      run.names.models.length ? choose("model", "Model: all", run.names.models) : null,
      choose("end", "Outcome: all", ["faster", "best", ...run.names.stages], (stage) => ({ faster: "faster than eager", best: "was the best" })[stage] ?? stageWords(stage)),
      run.names.cells.length ? choose("cell", "Cell: all", run.names.cells.map((cell) => cell.join(" / "))) : null,
      h("span", { class: "grow" }),
      h("button", { type: "button", id: "csv", onclick: () => download(`${run.id}.csv`, asCsv(run, select(run, filters)), "text/csv") }, "CSV"),
      h("button", { type: "button", id: "json", onclick: () => download(`${run.id}.json`, JSON.stringify(asObjects(run, select(run, filters)), null, 1), "application/json") }, "JSON"),
    ),
    counted,
    table.node,
  );
}

function select(run, { q, by, end, model, cell, sort }) {
  const text = q.toLowerCase();
  const found = [];
  for (let at = 0; at < run.size; at++) {
    if (by && run.who(at) !== by) continue;
    if (model && run.model(at) !== model) continue;
    if (end === "faster" ? !((run.steps.low[at] ?? 0) > 1) : end === "best" ? !run.heldSet.has(at) : end && run.stage(at) !== end) continue;
    if (cell && run.cell(at)?.join(" / ") !== cell) continue;
    if (text && !`${run.steps.step[at]} ${run.summary(at)} ${run.reason(at)} ${run.steps.candidate[at]} ${run.model(at)}`.toLowerCase().includes(text)) continue;
    found.push(at);
  }
  const down = sort.startsWith("-");
  const of = COLUMNS.find(([name]) => name === sort.replace("-", ""))?.[2] ?? COLUMNS[0][2];
  const keys = new Map(found.map((at) => [at, of(run, at)]));
  return found.sort((a, b) => {
    const [x, y] = [keys.get(a), keys.get(b)];
    if (x === y) return a - b;
    if (x === null || x === "") return 1; // what is not known comes last, whichever way
    if (y === null || y === "") return -1;
    return (x < y ? -1 : 1) * (down ? -1 : 1);
  });
}

class VirtualTable {
  constructor(run, filters, change) {
    Object.assign(this, { run, filters, change, found: [] });
    this.head = h("div", { class: "vrow vhead", role: "row", "aria-rowindex": "1" });
    this.body = h("div", { class: "vbody", role: "rowgroup" });
    this.node = h("div", { class: "vtable", role: "table", "aria-label": "Candidates", tabindex: "0", id: "candidates" }, h("div", { role: "rowgroup", class: "vtop" }, this.head), this.body);
    this.node.addEventListener("scroll", () => requestAnimationFrame(() => this.draw()), { passive: true });
    this.node.addEventListener("keydown", (event) => this.walk(event));
    new ResizeObserver(() => this.draw()).observe(this.node);
  }

  fill(found) {
    this.found = found;
    this.drawn = "";
    replace(this.head, COLUMNS.map(([name, title]) => this.title(name, title)));
    this.node.setAttribute("aria-rowcount", found.length + 1);
    this.body.style.height = `${Math.max(1, found.length) * ROW}px`;
    this.node.scrollTop = 0;
    this.draw();
  }

  title(name, words) {
    const { sort } = this.filters;
    const [mine, down] = [sort.replace("-", "") === name, sort.startsWith("-")];
    const button = h("button", { type: "button", id: `sort-${name}` }, words, h("span", { "aria-hidden": "true" }, mine ? (down ? " ↓" : " ↑") : ""));
    const first = ["speed", "low"].includes(name) ? `-${name}` : name;
    button.addEventListener("click", () => {
      this.change({ sort: mine ? (down ? name : `-${name}`) : first });
      document.getElementById(`sort-${name}`).focus();
    });
    return h("div", { role: "columnheader", class: `c-${name}`, "aria-sort": mine ? (down ? "descending" : "ascending") : "none" }, button);
  }

  draw() {
    const first = Math.max(0, Math.floor(this.node.scrollTop / ROW) - SPARE);
    const last = Math.min(this.found.length, first + Math.ceil(this.node.clientHeight / ROW) + 2 * SPARE);
    const drawn = `${first}-${last}-${this.found.length}`;
    if (drawn === this.drawn) return;
    this.drawn = drawn;
    const focused = document.activeElement?.closest?.("[data-index]")?.dataset.index;
    const rows = [];
    for (let index = first; index < last; index++) rows.push(this.row(index));
    replace(this.body, rows.length ? rows : h("p", { class: "quiet pad" }, "No candidate is like this."));
    if (focused !== undefined) this.body.querySelector(`[data-index="${focused}"] a`)?.focus({ preventScroll: true });
  }

  row(index) {
    const { run } = this;
    const at = this.found[index];
    const who = run.who(at);
    const interval = run.interval(at);
    const cell = (name, ...content) => h("div", { role: "cell", class: `c-${name}` }, content);
    return h(
      "div",
      { class: at === run.best ? "vrow best" : "vrow", role: "row", "aria-rowindex": index + 2, "data-index": index, style: { top: `${index * ROW}px` } },
      cell("step", h("a", { href: run.link(at) }, String(run.steps.step[at]))),
      cell("speed", interval ? h("strong", {}, times(interval.value)) : "–", at === run.best ? h("span", { class: "pill good tiny" }, "best") : null),
      cell("low", interval ? range(interval.low, interval.high) : ""),
      cell("end", stageWords(run.stage(at))),
      cell("by", h("span", { class: "key dot", style: { "--key": whoColour(who) }, "aria-hidden": "true" }), who),
      cell("what", run.reason(at) ? h("span", { class: "bad-text" }, `${run.reason(at)} `) : null, firstLine(run.summary(at))),
      cell("p50", seconds(run.steps.p50[at])),
    );
  }

  // Arrow keys go from row to row, also to those that are not drawn yet.
  walk(event) {
    const moves = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -Infinity, End: Infinity };
    if (!(event.key in moves) || event.target.closest(".vhead")) return;
    event.preventDefault();
    const now = event.target.closest("[data-index]");
    const from = now ? Number(now.dataset.index) : -1;
    const to = Math.max(0, Math.min(this.found.length - 1, from + moves[event.key]));
    const [top, bottom] = [to * ROW, (to + 2) * ROW];
    if (top < this.node.scrollTop) this.node.scrollTop = top;
    if (bottom > this.node.scrollTop + this.node.clientHeight) this.node.scrollTop = bottom - this.node.clientHeight + ROW;
    this.drawn = "";
    this.draw();
    this.body.querySelector(`[data-index="${to}"] a`)?.focus({ preventScroll: true });
  }
}

function asObjects(run, found) {
  return found.map((at) => ({
    step: run.steps.step[at],
    candidate: run.steps.candidate[at],
    proposer: run.who(at),
    model: run.model(at) || null,
    parent: run.steps.parent[at] === null ? null : run.steps.step[run.steps.parent[at]],
    stage: run.stage(at),
    reason: run.reason(at) || null,
    speedup: run.steps.value[at],
    low: run.steps.low[at],
    high: run.steps.high[at],
    p50_seconds: run.steps.p50[at],
    p99_seconds: run.steps.p99[at],
    proposed_after_seconds: run.steps.proposed[at],
    evaluating_seconds: run.steps.seconds[at],
    cell: run.cell(at)?.join(" / ") ?? null,
    island: run.steps.island[at],
    summary: run.summary(at),
  }));
}

function asCsv(run, found) {
  const rows = asObjects(run, found);
  const names = Object.keys(rows[0] ?? { step: 0 });
  // A text that begins like a formula must not become one.
  const quoted = (value) => (typeof value === "string" ? `"${value.replace(/^[=+\-@\t]/, "'$&").replaceAll('"', '""')}"` : (value ?? ""));
  return [names.join(","), ...rows.map((row) => names.map((name) => quoted(row[name])).join(","))].join("\n") + "\n";
}
