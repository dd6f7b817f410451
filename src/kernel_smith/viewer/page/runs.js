// All there is: runs, to be opened or compared, and benchmark results.

import { h } from "ks/dom.js";
import { clock, cost, count, duration, range, times } from "ks/format.js";
import { statePill } from "ks/run_header.js";

export async function showContents(contents, { query }) {
  const wanted = (query.get("q") ?? "").toLowerCase();
  const chosen = new Set();
  const compare = h("button", { type: "button", id: "compare", disabled: true }, "Compare the chosen runs");
  compare.addEventListener("click", () => (location.hash = `#/compare?runs=${[...chosen].map(encodeURIComponent).join(",")}`));
  const body = h("tbody", {});
  const fill = (text) => {
    const found = contents.runs.filter((run) => `${run.id} ${run.task} ${run.backend} ${run.state}`.toLowerCase().includes(text));
    body.replaceChildren(...found.map((run) => row(run, chosen, compare)));
  };
  const search = h("input", { type: "search", id: "search", placeholder: "Search runs", "aria-label": "Search runs", value: wanted });
  search.addEventListener("input", () => fill(search.value.toLowerCase()));
  fill(wanted);
  return h(
    "div",
    { class: "stack" },
    h("h1", {}, "Runs"),
    contents.runs.length
      ? h(
          "section",
          { class: "panel", "aria-label": "Runs" },
          h("div", { class: "toolbar" }, search, compare),
          h(
            "div",
            { class: "scroller", tabindex: "0", role: "region", "aria-label": "Table of runs" },
            h("table", { class: "runs" }, h("thead", {}, h("tr", {}, ["", "task", "best", "95% interval", "state", "evaluations", "took", "cost", "started"].map((name) => h("th", { scope: "col" }, name || h("span", { class: "hidden" }, "compare"))))), body),
          ),
        )
      : h("p", { class: "quiet" }, "There are no runs yet. Start one: ", h("code", {}, "kernel-smith optimize TASK")),
    contents.results.length ? h("section", { class: "panel" }, h("h2", {}, "Benchmark results"), h("ul", { class: "plain" }, contents.results.map((id) => h("li", {}, h("a", { href: `#/bench/${encodeURIComponent(id)}` }, id))))) : null,
  );
}

function row(run, chosen, compare) {
  const box = h("input", { type: "checkbox", "aria-label": `Compare ${run.id}` });
  box.checked = chosen.has(run.id);
  box.addEventListener("change", () => {
    if (box.checked) chosen.add(run.id);
    else chosen.delete(run.id);
    compare.disabled = chosen.size < 2;
    compare.textContent = chosen.size < 2 ? "Compare the chosen runs" : `Compare ${count(chosen.size, "run")}`;
  });
  const { best } = run;
  return h(
    "tr",
    {},
    h("td", {}, box),
    h("td", {}, h("a", { href: `#/run/${encodeURIComponent(run.id)}` }, run.task), h("div", { class: "quiet" }, run.id)),
    h("td", {}, h("strong", {}, best ? times(best.value) : "–"), run.confirmed ? h("span", { class: "pill good tiny" }, "confirmed") : null),
    h("td", {}, best ? range(best.low, best.high) : "–"),
    h("td", {}, statePill(run.state)),
    h("td", { class: "number" }, run.evaluations.toLocaleString("en-US")),
    h("td", {}, duration((new Date(run.last) - new Date(run.started)) / 1000)),
    h("td", {}, run.cost ? cost(run.cost.usage) : h("span", { class: "quiet" }, "reading …")),
    h("td", {}, clock(run.started)),
  );
}
