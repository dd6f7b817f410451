// What stands above every view of a run: its name, its result, and the way to the other views.

import { h } from "ks/dom.js";
import { clock, count, duration, range, times } from "ks/format.js";

export function runHeader(run, current, views) {
  return h(
    "div",
    { class: "run-head" },
    h("nav", { class: "crumbs", "aria-label": "Where you are" }, h("a", { href: "#/" }, "Runs"), " / ", h("span", {}, run.id)),
    h("div", { class: "title-line" }, h("h1", {}, run.task), statePill(run.state), run.made_up ? h("span", { class: "pill bad" }, "made up: nothing was measured") : null),
    h("p", { class: "meta" }, facts(run).join(" · ")),
    h(
      "nav",
      { class: "tabs", "aria-label": "Views of this run" },
      Object.entries(views)
        .filter(([name]) => name !== "roofline" || run.rooflines.length)
        .map(([name, [title]]) =>
          h("a", { href: run.view(name), id: `tab-${name || "overview"}`, "aria-current": name === current ? "page" : null }, title, name === "candidates" ? h("span", { class: "badge" }, run.size.toLocaleString("en-US")) : null),
        ),
    ),
  );
}

function facts(run) {
  const words = [run.backend, run.method === "islands" ? "islands" : run.method, run.machine, clock(run.started), duration(run.seconds)];
  if (run.resumed) words.push(`resumed ${count(run.resumed, "time")}`);
  return words.filter(Boolean);
}

export function statePill(state) {
  const kinds = { running: "good", ended: "calm", interrupted: "warn" };
  return h("span", { class: `pill ${kinds[state]}` }, state);
}

// The result in one look: how fast, how certain, and against what.
export function verdict(run) {
  if (!run.bestSpeedup)
    return h("section", { class: "panel hero", "aria-label": "Result" }, h("p", { class: "hero-figure" }, "–"), h("div", {}, h("h2", {}, "No correct and timed kernel yet"), h("p", { class: "quiet" }, run.ended ?? "The run goes on.")));
  const shown = run.shown.length ? run.shown : [{ baseline: "eager", speedup: run.bestSpeedup }];
  const [first, ...others] = shown;
  return h(
    "section",
    { class: "panel hero", "aria-label": "Result" },
    h("p", { class: "hero-figure" }, times(first.speedup.value)),
    h(
      "div",
      { class: "hero-words" },
      h("h2", {}, `the speed of ${baselineName(first.baseline)}`),
      h("p", {}, `95% interval ${range(first.speedup.low, first.speedup.high)}`),
      others.map((each) => h("p", {}, `${times(each.speedup.value)} the speed of ${baselineName(each.baseline)} (95%: ${range(each.speedup.low, each.speedup.high)})`)),
      h("p", {}, confirmation(run)),
    ),
    h("p", { class: "hero-link" }, h("a", { class: "button", href: run.link(run.best) }, `See the kernel: step ${run.steps.step[run.best]}`)),
  );
}

export const baselineName = (name) => ({ eager: "eager PyTorch", compile: "torch.compile", "max-autotune": "torch.compile with max-autotune", graph: "eager as a CUDA graph" })[name] ?? name;

function confirmation(run) {
  if (run.confirmed) return h("span", { class: "pill good" }, "confirmed at full length");
  if (run.shown.length) {
    const missing = run.shown.filter((each) => each.speedup.low <= 1).map((each) => baselineName(each.baseline));
    return h("span", { class: "pill warn" }, `not shown to be faster than ${missing.join(" and ")}`);
  }
  return h("span", { class: "pill warn" }, `not measured at full length${run.unconfirmed ? `: ${run.unconfirmed}` : " yet"}`);
}
