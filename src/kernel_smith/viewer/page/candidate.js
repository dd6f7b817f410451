// One candidate: what it changed, what the judge says of it, its program, and how to repeat it.

import { figure, rowsTable, whoColour } from "ks/chart.js";
import { diffBlock } from "ks/diff.js";
import { copyButton, download, h } from "ks/dom.js";
import { bin, clock, cost, firstLine, gain, gainRange, percent, range, seconds, stageWords, times } from "ks/format.js";
import { sourceBlock } from "ks/highlight.js";
import { PORTION } from "ks/source.js";
import { latencyFigure, workloadFigure } from "ks/workloads.js";

const KINDS = { step: "First evaluation", again: "Measured again", full: "Measured at full length" };
const MOST_CHILDREN = 12;

export async function showCandidate(run, step, { source }) {
  const at = run.byStep.get(step);
  if (at === undefined) throw new Error(`Run ${run.id} has no step ${step}.`);
  const load = async (position) => (await source.get("steps", run.id, Math.floor(position / PORTION))).steps[position];
  const page = await load(at);
  const parent = run.steps.parent[at];
  const before = parent === null ? null : await load(parent);
  const last = page.measured[page.measured.length - 1]?.evaluation;
  return h(
    "div",
    { class: "stack candidate" },
    head(run, at),
    h("div", { class: "columns" }, changePanel(run, at, page, before), verdictPanel(run, at, page)),
    evidence(last),
    before ? diffPanel(run, at, page, before) : null,
    sourcePanel(run, at, page),
    talkPanel(page, run.model(at)),
    reproducePanel(run, at),
    familyPanel(run, at),
  );
}

function head(run, at) {
  const next = (position, words) => (position >= 0 && position < run.size ? h("a", { href: run.link(position), class: "button" }, words) : null);
  const interval = run.interval(at);
  const who = run.who(at);
  return h(
    "div",
    { class: "run-head" },
    h("nav", { class: "crumbs", "aria-label": "Where you are" }, h("a", { href: "#/" }, "Runs"), " / ", h("a", { href: run.view("") }, run.id), " / ", h("a", { href: run.view("candidates") }, "Candidates"), ` / step ${run.steps.step[at]}`),
    h("div", { class: "title-line" }, h("h1", {}, `Step ${run.steps.step[at]}`), h("span", { class: "pill" }, h("span", { class: "key dot", style: { "--key": whoColour(who) }, "aria-hidden": "true" }), `by ${who}`), outcomePill(run, at), at === run.best ? h("span", { class: "pill good" }, "the best") : run.heldSet.has(at) ? h("span", { class: "pill calm" }, "was the best") : null, h("span", { class: "grow" }), next(at - 1, "← Previous"), next(at + 1, "Next →")),
    h("p", { class: "meta" }, [interval ? `${times(interval.value)} the speed of eager PyTorch, 95%: ${range(interval.low, interval.high)}` : stageWords(run.stage(at)), run.model(at), run.steps.candidate[at]].filter(Boolean).join(" · ")),
  );
}

function outcomePill(run, at) {
  const low = run.steps.low[at];
  const high = run.steps.high[at];
  if (low === null) return h("span", { class: run.stage(at) === "ok" ? "pill calm" : "pill bad" }, stageWords(run.stage(at)));
  if (low > 1) return h("span", { class: "pill good" }, "faster");
  return h("span", { class: "pill warn" }, high < 1 ? "slower" : "no difference shown");
}

function changePanel(run, at, page, before) {
  const parent = run.steps.parent[at];
  const [now, then] = [run.value(at), parent === null ? null : run.value(parent)];
  const rows = [
    ["Changed", run.summary(at) || "–"],
    ["From", before ? h("a", { href: run.link(parent) }, `step ${run.steps.step[parent]} (${run.outcome(parent)})`) : "nothing: a first program"],
    ["Against it", against(run, parent, page) ?? (now && then ? `${gain(now, then)}, measured apart` : null)],
    ["Compiles to", run.steps.twin[at] ? "the same as an earlier candidate" : null],
    ["Cell", run.cell(at)?.map(bin).join(" / ")],
    ["Island", run.steps.island[at]],
    ["Evaluated in", seconds(run.steps.seconds[at])],
    ["Model", page.usage ? `${run.model(at)}: ${cost(page.usage)}` : null],
  ];
  return figure({ title: "The change", legend: h("dl", { class: "facts" }, rows.filter(([, words]) => words !== null && words !== undefined).map(([name, words]) => [h("dt", {}, name), h("dd", {}, typeof words === "object" ? words : String(words))])) });
}

// The last measuring of both side by side, if there was one.
function against(run, parent, page) {
  const same = (each) => each.evaluation.beside?.gain && parent !== null && each.evaluation.beside.candidate_hash.startsWith(run.steps.candidate[parent]);
  const found = page.measured.filter(same).at(-1);
  return found ? `${gainRange(found.evaluation.beside.gain)}, side by side` : null;
}

function verdictPanel(run, at, page) {
  const node = figure({ title: "The verdict" });
  if (!page.measured.length) node.append(h("p", { class: "quiet" }, "It is being evaluated."));
  [...page.measured].reverse().forEach((each, index) => {
    const words = h("pre", { class: "words", tabindex: "0", role: "region", "aria-label": KINDS[each.kind] }, each.words);
    node.append(index === 0 ? h("div", {}, h("h3", {}, `${KINDS[each.kind]}, ${clock(each.at)}`), words) : h("details", {}, h("summary", {}, `${KINDS[each.kind]}: ${firstLine(each.words)}`), words));
  });
  return node;
}

function evidence(evaluation) {
  if (!evaluation) return null;
  const parts = [];
  if (evaluation.worst) parts.push(worstPanel(evaluation.worst));
  if (evaluation.timing) parts.push(workloadFigure(evaluation.timing.workloads, "Workload by workload"), latencyFigure(evaluation.timing.workloads, "Time per call"));
  if (evaluation.device_kernels?.length) parts.push(deviceKernels(evaluation.device_kernels));
  if (evaluation.kernels?.length) parts.push(sharesPanel(evaluation.kernels));
  if (evaluation.accuracy?.histogram?.length) parts.push(errorsPanel(evaluation.accuracy));
  return parts.length ? h("div", { class: "columns" }, parts) : null;
}

function worstPanel(worst) {
  const rows = [["Workload", worst.workload], ["Inputs", worst.inputs], ["Output", worst.output], ["Index", `[${worst.index.join(", ")}]`], ["Got", worst.got], ["Expected", worst.expected], ["Largest error allowed", worst.allowed]];
  return figure({ title: "The worst element", note: "Where the result was furthest from what is allowed.", legend: h("dl", { class: "facts" }, rows.map(([name, value]) => [h("dt", {}, name), h("dd", {}, String(value))])) });
}

function bars(rows) {
  return h("ul", { class: "bars" }, rows.map(([name, share, words, colour]) => h("li", {}, h("span", { class: "bar-name clip", title: name }, name), h("span", { class: "bar-track", "aria-hidden": "true" }, h("span", { class: "bar-fill", style: { width: `${100 * share}%`, background: colour } })), h("span", { class: "bar-figure" }, words))));
}

const ORIGINS = { authored: "var(--fast)", library: "var(--who-tuner)", interpreter: "var(--who-start)", runtime: "var(--who-seed)", kernel: "var(--who-outside)" };

function sharesPanel(kernels) {
  return figure({ title: "Where the time went", note: "Samples of the timed calls, by the module that the code came from.", legend: bars(kernels.filter((each) => each.share >= 0.005).map((each) => [`${each.module} (${each.origin})`, each.share, percent(each.share), ORIGINS[each.origin] ?? "var(--who-other)"])) });
}

function deviceKernels(kernels) {
  return figure({
    title: "Kernels on the device",
    legend: bars(kernels.map((each) => [each.name, each.share, percent(each.share), each.origin === "library" ? ORIGINS.library : ORIGINS.authored])),
    table: () => rowsTable(["kernel", "launches", "per call", "registers", "spills", "occupancy", "grid", "block"], kernels.map((each) => [each.name, String(each.launches), seconds(each.seconds), String(each.registers ?? "–"), String(each.spills ?? "–"), each.occupancy === undefined || each.occupancy === null ? "–" : percent(each.occupancy), (each.grid ?? []).join(" × "), (each.block ?? []).join(" × ")]), [1, 2, 3, 4, 5]),
  });
}

function errorsPanel(accuracy) {
  const total = accuracy.histogram.reduce((sum, bin) => sum + bin.elements, 0);
  if (!total) return null;
  let below = 0;
  const rows = accuracy.histogram.map((bin) => {
    const name = bin.up_to === null ? `beyond ${below}` : `up to ${bin.up_to} of what is allowed`;
    below = bin.up_to ?? below;
    return [name, bin.elements / total, percent(bin.elements / total), "var(--who-mutator)"];
  });
  return figure({ title: "Errors", note: "Elements of the worst inputs, by their error over the allowed one.", legend: bars(rows.filter(([, share]) => share > 0)) });
}

function diffPanel(run, at, page, before) {
  const { node, added, removed } = diffBlock(before.source, page.source, `What step ${run.steps.step[at]} changed`);
  return figure({ title: `Difference to step ${before.step}`, note: `${added} lines added, ${removed} removed.`, legend: node });
}

function sourcePanel(run, at, page) {
  const name = fileName(run, at);
  const tools = h("div", { class: "toolbar" }, copyButton(page.source, "the program"), h("button", { type: "button", class: "small", onclick: () => download(name, page.source, "text/x-python") }, "Download"));
  return figure({ title: "The program", tools, legend: sourceBlock(page.source, "The program") });
}

const fileName = (run, at) => `${run.task}_step${run.steps.step[at]}.py`;

function talkPanel(page, model) {
  if (!page.messages.length) return null;
  const text = (role, content) => h("details", {}, h("summary", {}, `${role} (${content.length.toLocaleString("en-US")} characters)`), h("pre", { class: "words", tabindex: "0", role: "region", "aria-label": role }, content));
  return figure({ title: "Prompt and answer", note: `What ${model || "the model"} was sent, and what it answered.`, legend: h("div", {}, page.messages.map(([role, content]) => text(`Prompt: ${role}`, content)), text("Answer", page.response)) });
}

function reproducePanel(run, at) {
  const name = fileName(run, at);
  const fill = (command) => command.replace("STEP", run.steps.step[at]).replace("FILE", name);
  const commands = [fill(run.commands.source), fill(run.commands.evaluate)];
  return figure({ title: "Judge it yourself", note: "The first command writes the program, the second measures it at full length.", tools: copyButton(commands.join("\n"), "the commands"), legend: h("pre", { class: "code", tabindex: "0", role: "region", "aria-label": "Commands" }, h("code", {}, commands.map((line) => h("span", { class: "line" }, line, "\n")))) });
}

function familyPanel(run, at) {
  const line = (position) => h("li", {}, h("a", { href: run.link(position) }, `Step ${run.steps.step[position]}`), ` ${run.outcome(position)}, by ${run.who(position)}`, h("span", { class: "quiet" }, ` ${firstLine(run.summary(position))}`));
  const children = [...run.children[at]].sort((a, b) => (run.value(b) ?? 0) - (run.value(a) ?? 0));
  return h(
    "div",
    { class: "columns" },
    figure({ title: "How it came about", legend: h("ol", { class: "plain path" }, run.ancestors(at).map(line)) }),
    figure({ title: "What was made from it", note: children.length > MOST_CHILDREN ? `The fastest ${MOST_CHILDREN} of ${children.length}.` : null, legend: children.length ? h("ul", { class: "plain" }, children.slice(0, MOST_CHILDREN).map(line)) : h("p", { class: "quiet" }, "Nothing so far.") }),
  );
}
