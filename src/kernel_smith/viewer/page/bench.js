// A benchmark result: the leaderboard, levels and categories, every problem, and arms compared.

import { figure, frame, legend, rowsTable, speedColours, speedLegend } from "ks/chart.js";
import { download, h, s, tipped } from "ks/dom.js";
import { axisTimes, clock, count, duration, percent, range, times, withRange } from "ks/format.js";
import { sourceBlock } from "ks/highlight.js";
import { baselineName } from "ks/run_header.js";
import { counting, linear, log } from "ks/scales.js";
import { PORTION } from "ks/source.js";

const COLOURS = ["var(--who-model)", "var(--who-tuner)", "var(--who-mutator)", "var(--who-seed)", "var(--who-outside)", "var(--ink)"];
const VIEWS = { "": "Leaderboard", categories: "Categories", problems: "Problems", compare: "Comparison" };
const boardName = (board) => `${board.arm}, ${board.precision}`;
const link = (id, view = "", query = "") => `#/bench/${encodeURIComponent(id)}${view ? `/${view}` : ""}${query ? `?${query}` : ""}`;

export async function showBench(id, view, { source, query }) {
  const page = await source.get("result", id);
  const body = { "": leaderboard, categories, problems, compare }[view];
  if (!body) throw new Error(`A benchmark result has no view ${view}.`);
  return h("div", {}, head(page, view), h("div", { class: "stack" }, body(page, query)));
}

function head(page, view) {
  const { stamp } = page;
  const arms = count(page.arms.length, "arm");
  return h(
    "div",
    { class: "run-head" },
    h("nav", { class: "crumbs", "aria-label": "Where you are" }, h("a", { href: "#/" }, "Runs"), " / ", page.id),
    h("div", { class: "title-line" }, h("h1", {}, "Benchmark"), page.boards.some((board) => board.made_up) ? h("span", { class: "pill bad" }, "made up: nothing was measured") : null),
    h("p", { class: "meta" }, [Object.keys(stamp.suites).join(", "), arms, count(new Set(page.rows.map((row) => row.problem)).size, "problem"), clock(stamp.created_at), `kernel-smith ${stamp.kernel_smith}`].join(" · ")),
    h("nav", { class: "tabs", "aria-label": "Views of this result" }, Object.entries(VIEWS).filter(([name]) => name !== "compare" || page.comparisons.length).map(([name, title]) => h("a", { href: link(page.id, name), "aria-current": name === view ? "page" : null }, title))),
  );
}

function leaderboard(page) {
  const boards = [...page.boards].sort((a, b) => (b.average.amsr?.value ?? 0) - (a.average.amsr?.value ?? 0));
  const short = (interval, words) => (interval ? h("span", { class: "with-range" }, words(interval.value), h("small", {}, `${words(interval.low)} to ${words(interval.high)}`)) : "–");
  const against = [...new Set(boards.flatMap((board) => Object.keys(board.average.against)))];
  return [
    figure({
      title: "Leaderboard",
      note: "Averages of the levels, unweighted; below each its 95% interval. AMSR is the mean speedup over eager, where a problem that is not solved, or slower, counts 0.",
      legend: rowsTable(
        ["arm", "problems", "correct", "faster (fast_1)", "AMSR", "geometric mean", ...against.map((name) => `faster than ${baselineName(name)}`), "cost"],
        boards.map(({ arm, precision, average }) => [h("strong", {}, `${arm}, ${precision}`), String(average.problems), short(average.correct, percent), short(average.fast["1"], percent), short(average.amsr, times), short(average.geometric_mean, times), ...against.map((name) => short(average.against[name]?.faster, percent)), costWords(average.cost)]),
        [1],
      ),
    }),
    h("div", { class: "columns" }, fastFigure(boards), levelsFigure(boards)),
    aboutPanel(page),
  ];
}

const costWords = (cost) => [cost.dollars ? `$${cost.dollars.toFixed(2)}` : "", cost.tokens ? `${cost.tokens.toLocaleString("en-US")} tokens` : "", count(cost.evaluations, "evaluation"), duration(cost.seconds)].filter(Boolean).join(", ");

function fastFigure(boards) {
  const curves = boards.map((board) => Object.entries(board.average.fast).map(([p, share]) => ({ p: Number(p), share })).sort((a, b) => a.p - b.p));
  return figure({
    title: "Solved, and at least this fast",
    note: "The share of problems with a correct program that is more than so many times as fast as eager.",
    legend: legend(boards.map((board, index) => ({ name: boardName(board), colour: COLOURS[index % 6], shape: "line" }))),
    draw: (width) => {
      const most = Math.max(1, ...curves.flatMap((curve) => curve.map(({ p }) => p)));
      const chart = frame(width, 300, { label: `Shares of problems by speedup of ${boards.length} arms.`, x: (place) => linear([0, most], place), y: (place) => linear([0, 1], place), xFormat: (value) => `${value}×`, yFormat: percent, xLabel: "times as fast as eager" });
      curves.forEach((curve, index) => {
        const colour = COLOURS[index % 6];
        const width = 2.2 + 2.2 * (curves.length - 1 - index); // arms that are alike are seen beneath one another
        chart.plot.append(s("path", { class: "line", d: `M${curve.map(({ p, share }) => `${chart.x(p)} ${chart.y(share.value)}`).join("L")}`, style: { stroke: colour, "stroke-width": Math.min(9, width) } }));
        for (const { p, share } of curve) chart.plot.append(tipped(s("circle", { cx: chart.x(p), cy: chart.y(share.value), r: 4, style: { fill: colour } }), () => [boardName(boards[index]), `more than ${p}×: ${percent(share.value)}`, `95%: ${percent(share.low)} to ${percent(share.high)}`]));
      });
      return chart.svg;
    },
    table: () => rowsTable(["more than", ...boards.map(boardName)], (curves[0] ?? []).map(({ p }) => [`${p}×`, ...curves.map((curve) => percent(curve.find((point) => point.p === p)?.share.value ?? 0))])),
  });
}

function levelsFigure(boards) {
  const levels = [...new Set(boards.flatMap((board) => Object.keys(board.levels)))].sort();
  return figure({
    title: "Levels",
    legend: rowsTable(["level", "arm", "problems", "correct", "fast_1", "AMSR"], levels.flatMap((level) => boards.filter((board) => board.levels[level]).map((board) => { const scores = board.levels[level]; return [level, boardName(board), String(scores.problems), scores.correct ? percent(scores.correct.value) : "–", scores.fast["1"] ? percent(scores.fast["1"].value) : "–", times(scores.amsr?.value)]; })), [2, 3, 4, 5]),
  });
}

function aboutPanel(page) {
  const { stamp } = page;
  const rows = [["Measured on", page.places.join("; ") || "nothing was measured"], ["Commit", `${stamp.commit ?? "unknown"}${stamp.modified ? " (changed since)" : ""}`], ["Problems that cannot be judged", stamp.refused === "count" ? "count as not solved" : "are left out"], ["Seed", String(stamp.seed)], ["Judge its programs again", h("code", {}, page.verify)]];
  return figure({ title: "About this result", legend: h("dl", { class: "facts" }, rows.map(([name, words]) => [h("dt", {}, name), h("dd", {}, words)])) });
}

function categories(page) {
  const names = [...new Set(page.boards.flatMap((board) => Object.keys(board.categories)))].sort();
  const means = page.boards.flatMap((board) => names.map((name) => board.categories[name]?.geometric_mean?.value ?? null));
  const colours = speedColours(means);
  const field = (board, name) => {
    const scores = board.categories[name];
    if (!scores) return h("td", { class: "field empty" });
    const mean = scores.geometric_mean;
    const words = `${name}, ${boardName(board)}: ${scores.solved} of ${scores.problems} solved${mean ? `, geometric mean ${withRange(mean)}` : ""}`;
    return h("td", { class: "field" }, h("a", { class: "cell-link", href: link(page.id, "problems", new URLSearchParams({ category: name, arm: board.arm }).toString()), title: words, style: { "--cell": mean ? colours.of(mean.value) : "var(--line)" } }, h("span", { class: "hidden" }, `${name}, ${boardName(board)}: `), h("strong", {}, mean ? times(mean.value) : "–"), h("small", {}, `${scores.solved} of ${scores.problems} solved`)));
  };
  return figure({
    title: "Categories",
    note: "The geometric mean of the speedups of correct programs, and how many problems were solved.",
    legend: h("div", {}, speedLegend(colours, times), h("div", { class: "scroller", tabindex: "0", role: "region", "aria-label": "Categories" }, h("table", { class: "map" }, h("thead", {}, h("tr", {}, h("td", {}), page.boards.map((board) => h("th", { scope: "col" }, boardName(board))))), h("tbody", {}, names.map((name) => h("tr", {}, h("th", { scope: "row" }, name), page.boards.map((board) => field(board, name)))))))),
  });
}

function problems(page, query) {
  const filters = { q: query.get("q") ?? "", arm: query.get("arm") ?? "", category: query.get("category") ?? "", status: query.get("status") ?? "" };
  const holder = h("div", {});
  const found = () => [...page.rows.keys()].filter((at) => {
    const row = page.rows[at];
    return (!filters.arm || row.arm === filters.arm) && (!filters.category || row.category === filters.category) && (!filters.status || row.status === filters.status) && (!filters.q || `${row.problem} ${row.why}`.toLowerCase().includes(filters.q.toLowerCase()));
  });
  const draw = () => {
    const kept = Object.entries(filters).filter(([, value]) => value);
    history.replaceState(null, "", link(page.id, "problems", new URLSearchParams(kept).toString()));
    holder.replaceChildren(h("p", { class: "quiet", role: "status" }, count(found().length, "row")), problemTable(page, found()));
  };
  const choose = (name, title, values) => {
    const box = h("select", { id: `filter-${name}`, "aria-label": title }, h("option", { value: "" }, title), values.map((value) => h("option", { value, selected: value === filters[name] }, value)));
    box.addEventListener("change", () => ((filters[name] = box.value), draw()));
    return box;
  };
  const all = (name) => [...new Set(page.rows.map((row) => row[name]))].sort();
  const search = h("input", { type: "search", id: "search", value: filters.q, placeholder: "Search problems", "aria-label": "Search problems" });
  search.addEventListener("input", () => ((filters.q = search.value), draw()));
  draw();
  const json = () => download("problems.json", JSON.stringify(found().map((at) => page.rows[at]), null, 1), "application/json");
  const csv = () => download("problems.csv", problemsCsv(found().map((at) => page.rows[at])), "text/csv");
  return figure({
    title: "Problems",
    tools: h("div", { class: "toolbar" }, h("button", { type: "button", onclick: csv }, "CSV"), h("button", { type: "button", onclick: json }, "JSON")),
    legend: h("div", {}, h("div", { class: "toolbar" }, search, choose("arm", "Arm: all", all("arm")), choose("category", "Category: all", all("category")), choose("status", "Status: all", all("status"))), holder),
  });
}

// Bars grow with the logarithm: one problem that is 70 times as fast would leave nothing of the others.
function problemTable(page, found) {
  const all = page.rows.flatMap((row) => [row.speedups.eager?.value ?? 1, row.speedups.compile?.value ?? 1]);
  const [least, most] = [Math.min(0.5, ...all), Math.max(2, ...all)];
  const share = (value) => (100 * Math.log(value / least)) / Math.log(most / least);
  const bar = (interval) => (interval ? h("span", { class: "inline-bar" }, h("span", { class: "bar-track", "aria-hidden": "true" }, h("span", { class: interval.low > 1 ? "bar-fill faster" : "bar-fill", style: { width: `${share(interval.value)}%` } }), h("span", { class: "bar-one", style: { left: `${share(1)}%` } })), h("span", {}, withRange(interval))) : "–");
  const several = page.arms.length > 1 || new Set(page.rows.map((row) => row.precision)).size > 1;
  return h(
    "div",
    {},
    h("p", { class: "note" }, "Bars on a logarithmic scale; the mark is the speed of the baseline."),
    rowsTable(
      ["problem", ...(several ? ["arm"] : []), "category", "status", "against eager", "against torch.compile", "steps"],
      found.map((at) => {
        const row = page.rows[at];
        const arm = several ? [`${row.arm}, ${row.precision}`] : [];
        return [h("a", { href: link(page.id, `row/${at}`), class: "long-name" }, row.problem), ...arm, row.category, h("span", { class: row.status === "correct" ? "pill good" : "pill bad" }, row.status), bar(row.speedups.eager), bar(row.speedups.compile), String(row.cost.steps)];
      }),
      [several ? 6 : 5],
    ),
  );
}

function problemsCsv(rows) {
  const line = (row) => [row.arm, row.problem, row.precision, row.category, row.status, row.speedups.eager?.value, row.speedups.eager?.low, row.speedups.eager?.high, row.speedups.compile?.value, row.cost.steps, row.cost.dollars];
  const quoted = (value) => (typeof value === "string" ? `"${value.replace(/^[=+\-@\t]/, "'$&").replaceAll('"', '""')}"` : (value ?? ""));
  return ["arm,problem,precision,category,status,eager,eager_low,eager_high,compile,steps,dollars", ...rows.map((row) => line(row).map(quoted).join(","))].join("\n") + "\n";
}

function compare(page) {
  return page.comparisons.map((pair) => {
    const speed = (arm) => new Map(page.rows.filter((row) => row.arm === arm && row.precision === pair.precision && row.status === "correct" && row.speedups.eager).map((row) => [row.problem, row.speedups.eager]));
    const [first, second] = [speed(pair.a), speed(pair.b)];
    const both = [...first.keys()].filter((name) => second.has(name));
    const named = (names) => (names.length ? `${names.length}: ${names.slice(0, 8).join(", ")}${names.length > 8 ? ", …" : ""}` : "0");
    return figure({
      title: `${pair.b} against ${pair.a}, ${pair.precision}`,
      note: `${count(pair.paired, "problem")} judged in both. ${pair.ratio ? `On those that both solved, ${pair.b} is ${withRange(pair.ratio)} as fast, as a geometric mean.` : ""}`,
      legend: legend([{ name: `${pair.b} faster beyond doubt`, colour: "var(--fast)" }, { name: `${pair.b} slower beyond doubt`, colour: "var(--slow)" }, { name: "no difference shown", colour: "var(--who-other)" }]),
      draw: both.length ? (width) => drawPairs(pair, both, first, second, width) : null,
      table: () => rowsTable(["what", "problems"], [[`solved by ${pair.b} alone`, named(pair.gained)], [`solved by ${pair.a} alone`, named(pair.lost)], [`${pair.b} faster beyond doubt`, named(pair.faster)], [`${pair.b} slower beyond doubt`, named(pair.slower)]]),
    });
  });
}

function drawPairs(pair, both, first, second, width) {
  const all = both.flatMap((name) => [first.get(name).value, second.get(name).value, 1]);
  const [low, high] = [Math.min(...all) / 1.3, Math.max(...all) * 1.3];
  const words = axisTimes;
  const chart = frame(Math.min(width, 640), Math.min(width, 520), { label: `Speedups of ${both.length} problems: ${pair.a} across, ${pair.b} up.`, x: (place) => log([low, high], place), y: (place) => log([low, high], place), xLabel: pair.a, yLabel: pair.b, xFormat: words, yFormat: words });
  chart.plot.append(s("line", { class: "reference", x1: chart.x(low), y1: chart.y(low), x2: chart.x(high), y2: chart.y(high) }));
  for (const name of both) {
    const [a, b] = [first.get(name), second.get(name)];
    const kind = pair.faster.includes(name) ? "var(--fast)" : pair.slower.includes(name) ? "var(--slow)" : "var(--who-other)";
    chart.plot.append(tipped(s("circle", { cx: chart.x(a.value), cy: chart.y(b.value), r: 5, class: "roof-dot", style: { fill: kind } }), () => [name, `${pair.a}: ${times(a.value)} (${range(a.low, a.high)})`, `${pair.b}: ${times(b.value)} (${range(b.low, b.high)})`]));
  }
  return chart.svg;
}

export async function showRow(id, at, { source }) {
  const page = await source.get("result", id);
  const row = page.rows[at];
  if (!row) throw new Error(`This result has no row ${at}.`);
  const winner = row.winner ? (await source.get("winners", id, Math.floor(at / PORTION))).winners[at] : null;
  const facts = [["Arm", `${row.arm}, ${row.precision}`], ["Suite", [...new Set([row.suite, row.level])].join(", ")], ["Category", row.category], ["Ended", row.why || row.status], ...Object.entries(row.speedups).map(([name, interval]) => [`Against ${baselineName(name)}`, withRange(interval)]), ["Measured at full length", row.at_length ? "yes" : "no"], ["Cost", costWords(row.cost)], ["Run", row.run], ["Ends of programs", Object.entries(row.ends).map(([end, number]) => `${end}: ${number}`).join(", ")]];
  return h(
    "div",
    { class: "stack" },
    h("div", { class: "run-head" }, h("nav", { class: "crumbs", "aria-label": "Where you are" }, h("a", { href: link(id) }, page.id), " / ", h("a", { href: link(id, "problems") }, "Problems"), ` / ${row.problem}`), h("div", { class: "title-line" }, h("h1", {}, row.problem), h("span", { class: row.status === "correct" ? "pill good" : "pill bad" }, row.status))),
    figure({ title: "How it ended", legend: h("dl", { class: "facts" }, facts.filter(([, words]) => words).map(([name, words]) => [h("dt", {}, name), h("dd", {}, words)])) }),
    row.curve.length ? figure({ title: "Best so far", draw: (width) => drawCurve(row, width), note: "The 95% lower bound after each step." }) : null,
    row.caught.length ? figure({ title: "Caught", legend: rowsTable(["program", "reason", "what was seen"], row.caught.map((each) => [each.program.slice(0, 12), each.reason, each.message])) }) : null,
    winner ? figure({ title: "The verdict on the winner", legend: h("pre", { class: "words", tabindex: "0", role: "region", "aria-label": "The verdict" }, winner.words) }) : null,
    winner ? figure({ title: "The winning program", tools: h("button", { type: "button", class: "small", onclick: () => download(`${row.problem}.py`, winner.source, "text/x-python") }, "Download"), legend: sourceBlock(winner.source, "The winning program") }) : null,
  );
}

function drawCurve(row, width) {
  const end = Math.max(row.cost.steps, ...row.curve.map((point) => point.step));
  const chart = frame(width, 240, { label: `Best so far over ${end} steps.`, x: (place) => counting([0, end], place), y: (place) => linear([0, Math.max(1.1, ...row.curve.map((point) => point.speedup)) * 1.05], place), xLabel: "steps", yFormat: axisTimes });
  const path = row.curve.flatMap((point, index) => [`${chart.x(point.step)} ${chart.y(point.speedup)}`, `${chart.x(row.curve[index + 1]?.step ?? end)} ${chart.y(point.speedup)}`]);
  chart.plot.append(s("path", { class: "line", d: `M${path.join("L")}`, style: { stroke: "var(--ink)" } }), s("line", { class: "reference", x1: chart.left, x2: chart.right, y1: chart.y(1), y2: chart.y(1) }));
  return chart.svg;
}
