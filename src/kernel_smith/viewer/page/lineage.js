// The tree of programs: what was made from what, coloured by speed.
//
// Each program shows its fastest children; the others wait behind "and N more", so that a run of
// ten thousand steps is drawn as quickly as one of fifty.

import { figure, rowsTable, speedColours, speedLegend, whoColour } from "ks/chart.js";
import { h, s, tipped } from "ks/dom.js";
import { count, firstLine, times } from "ks/format.js";

const SHOWN = 5; // children of each program
const SMALL = 150; // steps; in larger runs only programs that led to a gain show their children
const LINE = 26;
const COLUMN = 118;
const DEEPEST_LEVELS = 400;

export function showLineage(run) {
  const opened = new Set();
  const path = new Set(run.best === null ? [] : run.ancestors(run.best));
  const gainful = new Set(run.held.flatMap((position) => run.ancestors(position)));
  const colours = speedColours(run.steps.value);
  const holder = h("div", { class: "tree-scroller", tabindex: "0", role: "region", "aria-label": "The tree of programs; scroll for more" });
  const draw = () => holder.replaceChildren(tree(run, { opened, path, gainful, colours, open }));
  const open = (position) => {
    opened.add(position);
    draw();
    holder.querySelector(`[data-position="${run.children[position][0]}"]`)?.focus();
  };
  draw();
  return h(
    "div",
    { class: "stack" },
    figure({
      title: "Lineage",
      note: "Each dot is a step, with its number and its speed over eager. Lines lead from a program to what was made of it; the thick path led to the best kernel. Rings took the lead; hollow dots failed.",
      legend: h("div", {}, speedLegend(colours, times), holder),
      table: run.best === null ? null : () => pathTable(run),
    }),
  );
}

function pathTable(run) {
  return rowsTable(["step", "proposed by", "speedup", "what was changed"], run.ancestors(run.best).map((position) => [h("a", { href: run.link(position) }, String(run.steps.step[position])), run.who(position), run.outcome(position), firstLine(run.summary(position))]), [0]);
}

// Which children of a program are drawn, and how many are not.
function chosen(run, position, { opened, gainful }) {
  if (run.size > SMALL && !gainful.has(position) && !opened.has(position)) return { shown: [], hidden: run.children[position].length };
  const all = [...run.children[position]].sort((a, b) => Number(gainful.has(b)) - Number(gainful.has(a)) || (run.value(b) ?? -1) - (run.value(a) ?? -1));
  const limit = opened.has(position) ? all.length : SHOWN;
  const shown = all.filter((child, index) => index < limit || gainful.has(child));
  return { shown, hidden: all.length - shown.length };
}

function tree(run, state) {
  const roots = [...run.steps.parent.keys()].filter((position) => run.steps.parent[position] === null);
  const places = [];
  const links = [];
  let line = 0;
  let deepest = 0;
  // Not recursive: a line of descent can be long.
  const place = (root) => {
    const stack = [{ position: root, depth: 0, parent: null, done: false }];
    while (stack.length) {
      const each = stack.pop();
      if (each.done) {
        each.node.y = (each.node.first + each.node.last) / 2;
        continue;
      }
      deepest = Math.max(deepest, each.depth);
      const node = { position: each.position, depth: each.depth, y: 0, children: [] };
      Object.assign(node, { more: each.more ?? 0, alone: each.alone });
      places.push(node);
      if (each.parent) each.parent.children.push(node);
      const { shown, hidden } = each.more || each.depth > DEEPEST_LEVELS ? { shown: [], hidden: 0 } : chosen(run, each.position, state);
      if (shown.length + hidden === 1 || (hidden && !shown.length)) line += 0.7; // room for the name above a straight line
      if (!shown.length && !hidden) {
        node.y = line++;
        continue;
      }
      const below = shown.map((child) => ({ position: child, depth: each.depth + 1, parent: node, done: false }));
      if (hidden) below.push({ position: each.position, depth: each.depth + 1, parent: node, done: false, more: hidden, alone: !shown.length });
      stack.push({ done: true, node: { get first() { return node.children[0].y; }, get last() { return node.children[node.children.length - 1].y; }, set y(value) { node.y = value; } } });
      stack.push(...below.reverse());
    }
  };
  roots.forEach(place);
  for (const node of places) for (const child of node.children) links.push([node, child]);
  return drawTree(run, state, places, links, { line, deepest });
}

function drawTree(run, state, places, links, { line, deepest }) {
  const [width, height] = [(deepest + 1) * COLUMN + 190, line * LINE + 24];
  const x = (node) => 44 + node.depth * COLUMN; // half of a first program's name stands to its left
  const y = (node) => 20 + node.y * LINE;
  const svg = s("svg", { width, height, viewBox: `0 0 ${width} ${height}`, class: "tree", role: "group", "aria-label": `Tree of ${count(run.size, "program")}` });
  for (const [node, child] of links) {
    const [x1, y1, x2, y2] = [x(node), y(node), x(child), y(child)];
    const bend = (x1 + x2) / 2;
    const thick = !child.more && state.path.has(child.position) && state.path.has(node.position);
    svg.append(s("path", { class: thick ? "edge best" : "edge", d: `M${x1} ${y1}C${bend} ${y1} ${bend} ${y2} ${x2} ${y2}` }));
  }
  for (const node of places) svg.append(node.more ? more(run, node, state, x(node), y(node)) : program(run, node, state, x(node), y(node)));
  return svg;
}

function program(run, node, { colours, path, gainful }, x, y) {
  const { position } = node;
  const timed = run.timed(position);
  const onPath = path.has(position);
  const dot = s("circle", { cx: x, cy: y, r: position === run.best ? 9 : 6.5, class: timed ? "program" : "program failed", style: timed ? { fill: colours.of(run.value(position)) } : {} });
  const ring = run.heldSet.has(position) ? s("circle", { cx: x, cy: y, r: position === run.best ? 13 : 10, class: "ring", style: { stroke: whoColour(run.who(position)) } }) : null;
  const words = `${run.steps.step[position]} · ${timed ? times(run.value(position)) : "failed"}`;
  const above = node.children.length > 0; // beside it are the lines to its children
  const label = s("text", { x: above ? x : x + (ring ? 16 : 11), y: above ? y - (position === run.best ? 19 : ring ? 15 : 11) : y + 4, "text-anchor": above ? "middle" : null, class: onPath ? "node-name strong" : gainful.has(position) ? "node-name" : "node-name quiet" }, words);
  const link = s("a", { href: run.link(position), "data-position": position, "aria-label": [words, ...run.describe(position)].join(". ") }, ring, dot, label);
  return tipped(link, () => run.describe(position));
}

function more(run, node, { open }, x, y) {
  const words = node.alone ? `${node.more} made from it` : `and ${node.more} more`;
  const button = s("g", { class: "more", tabindex: "0", role: "button", "aria-label": `${words}: show all programs made from step ${run.steps.step[node.position]}` }, s("rect", { x: x - 8, y: y - 10, width: 7 * words.length + 14, height: 20, rx: 10 }), s("text", { x, y: y + 4 }, words));
  const act = (event) => {
    if (event.type === "keydown" && event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    open(node.position);
  };
  button.addEventListener("click", act);
  button.addEventListener("keydown", act);
  return button;
}
