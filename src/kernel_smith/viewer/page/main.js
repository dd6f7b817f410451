// The application: which view an address means, and what stands above all of them.

import { h, hideTip, replace } from "ks/dom.js";
import { Run } from "ks/model.js";
import { openSource } from "ks/source.js";
import { showArchive } from "ks/archive.js";
import { showBench, showRow } from "ks/bench.js";
import { showCandidate } from "ks/candidate.js";
import { showCandidates } from "ks/candidates.js";
import { showCompare } from "ks/compare.js";
import { showLineage } from "ks/lineage.js";
import { showOverview } from "ks/overview.js";
import { showRoofline } from "ks/roofline.js";
import { showContents } from "ks/runs.js";
import { showTiming } from "ks/timing.js";
import { runHeader } from "ks/run_header.js";

const source = openSource();
const models = new Map();
const RUN_VIEWS = {
  "": ["Overview", showOverview],
  candidates: ["Candidates", showCandidates],
  lineage: ["Lineage", showLineage],
  archive: ["Archive", showArchive],
  timing: ["Timing", showTiming],
  roofline: ["Roofline", showRoofline],
};

// "#/run/ID/step/3?by=model" -> {path: ["run", "ID", "step", "3"], query}
function address() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?", 2);
  return { path: path.split("/").filter(Boolean).map(decodeURIComponent), query: new URLSearchParams(query ?? "") };
}

async function loadRun(id) {
  const page = await source.get("run", id);
  if (models.get(id)?.page !== page) models.set(id, { page, run: new Run(page) });
  return models.get(id).run;
}

async function render() {
  const { path, query } = address();
  const context = { source, query, loadRun };
  const [kind, id, view = "", detail] = path;
  if (kind === "run" && view === "step") {
    const run = await loadRun(id);
    return [`Step ${detail} of ${run.task}`, await showCandidate(run, Number(detail), context)];
  }
  if (kind === "run" && RUN_VIEWS[view]) {
    const run = await loadRun(id);
    const [title, show] = RUN_VIEWS[view];
    return [`${run.task}: ${title}`, h("div", {}, runHeader(run, view, RUN_VIEWS), await show(run, context))];
  }
  if (kind === "compare") return ["Compare runs", await showCompare(context)];
  if (kind === "bench" && view === "row") return ["A problem", await showRow(id, Number(detail), context)];
  if (kind === "bench") return ["Benchmark", await showBench(id, view, context)];
  const contents = await source.get("contents");
  if (!kind && !source.live && contents.runs.length + contents.results.length === 1) {
    const only = contents.runs.length ? `#/run/${encodeURIComponent(contents.runs[0].id)}` : `#/bench/${encodeURIComponent(contents.results[0])}`;
    location.replace(only);
    return null;
  }
  if (!kind) return ["Runs", await showContents(contents, context)];
  throw new Error(`Nothing is called ${path.join("/")}.`);
}

let drawing = 0;
async function show({ moved }) {
  const turn = ++drawing;
  hideTip();
  const main = document.getElementById("main");
  const place = moved ? null : { focus: document.activeElement?.id, top: window.scrollY };
  try {
    const drawn = await render();
    if (turn !== drawing || drawn === null) return;
    document.title = `${drawn[0]} · kernel-smith`;
    replace(main, drawn[1]);
  } catch (error) {
    if (turn !== drawing) return;
    replace(main, h("h1", {}, "This cannot be shown"), h("p", {}, error.message), h("p", {}, h("a", { href: "#/" }, "All there is")));
  }
  main.dataset.ready = location.hash || "#/";
  // Drawings are made once their width is known: the view is complete two frames later.
  requestAnimationFrame(() => requestAnimationFrame(() => (main.dataset.opened ??= Math.round(performance.now()))));
  if (place) {
    window.scrollTo(0, place.top);
    if (place.focus) document.getElementById(place.focus)?.focus({ preventScroll: true });
  } else {
    window.scrollTo(0, 0);
    main.focus({ preventScroll: true });
  }
}

// Light, dark, or as the system has it.
function themeButton() {
  const kept = () => {
    try {
      return localStorage.getItem("kernel-smith-theme") ?? "";
    } catch {
      return ""; // a file that may keep nothing
    }
  };
  const apply = (theme) => {
    if (theme) document.documentElement.dataset.theme = theme;
    else delete document.documentElement.dataset.theme;
  };
  const dark = () => (document.documentElement.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  apply(kept());
  const button = h("button", { type: "button", id: "theme" }, dark() ? "Light" : "Dark");
  button.addEventListener("click", () => {
    const next = dark() ? "light" : "dark";
    apply(next);
    try {
      localStorage.setItem("kernel-smith-theme", next);
    } catch {
      // It holds for this page alone.
    }
    button.textContent = dark() ? "Light" : "Dark";
    show({ moved: false });
  });
  return button;
}

function start() {
  const state = h("span", { class: "live", id: "live", role: "status" });
  replace(document.getElementById("top"), h("a", { class: "brand", href: "#/" }, "kernel-smith"), state, themeButton());
  window.addEventListener("hashchange", () => show({ moved: true }));
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") hideTip();
    if (event.key === "/" && !event.target.closest("input, textarea, select")) {
      const search = document.getElementById("search");
      if (search) {
        event.preventDefault();
        search.focus();
      }
    }
  });
  let waiting = null;
  source.watch(
    () => {
      // Many changes, one drawing; large runs less often.
      const size = Math.max(0, ...[...models.values()].map(({ run }) => run.size));
      waiting ??= setTimeout(() => ((waiting = null), show({ moved: false })), 400 + size / 2);
    },
    (connected) => (state.textContent = connected ? "live" : "connection lost; trying again"),
  );
  show({ moved: true });
}

start();
