// What changed between two texts, line by line.

import { h } from "ks/dom.js";
import { highlightLines, spans } from "ks/highlight.js";

const CONTEXT = 3;
const LARGEST = 4_000_000; // cells of the table; beyond that, all that differs counts as changed

// [["same" | "removed" | "added", line of the first, line of the second], ...]
export function compareLines(before, after) {
  let start = 0;
  while (start < before.length && start < after.length && before[start] === after[start]) start++;
  let [endA, endB] = [before.length, after.length];
  while (endA > start && endB > start && before[endA - 1] === after[endB - 1]) [endA, endB] = [endA - 1, endB - 1];
  const changes = [];
  for (let line = 0; line < start; line++) changes.push(["same", line, line]);
  changes.push(...middle(before, after, start, endA, endB));
  for (let line = endA; line < before.length; line++) changes.push(["same", line, line - endA + endB]);
  return changes;
}

// The longest common subsequence of what lies between the common beginning and the common end.
function middle(before, after, start, endA, endB) {
  const [rows, columns] = [endA - start, endB - start];
  const changes = [];
  if (rows * columns > LARGEST) {
    for (let line = start; line < endA; line++) changes.push(["removed", line, null]);
    for (let line = start; line < endB; line++) changes.push(["added", null, line]);
    return changes;
  }
  const width = columns + 1;
  const longest = new Uint16Array((rows + 1) * width);
  for (let a = rows - 1; a >= 0; a--)
    for (let b = columns - 1; b >= 0; b--)
      longest[a * width + b] = before[start + a] === after[start + b] ? longest[(a + 1) * width + b + 1] + 1 : Math.max(longest[(a + 1) * width + b], longest[a * width + b + 1]);
  let [a, b] = [0, 0];
  while (a < rows || b < columns) {
    if (a < rows && b < columns && before[start + a] === after[start + b]) changes.push(["same", start + a++, start + b++]);
    else if (a < rows && (b === columns || longest[(a + 1) * width + b] >= longest[a * width + b + 1])) changes.push(["removed", start + a++, null]);
    else changes.push(["added", null, start + b++]);
  }
  return changes;
}

export function diffBlock(before, after, label) {
  const [old, now] = [before.replace(/\n$/, ""), after.replace(/\n$/, "")];
  const changes = compareLines(old.split("\n"), now.split("\n"));
  const [oldLines, newLines] = [highlightLines(old), highlightLines(now)];
  const near = new Set();
  changes.forEach(([kind], index) => {
    if (kind !== "same") for (let other = index - CONTEXT; other <= index + CONTEXT; other++) near.add(other);
  });
  const rows = [];
  let hidden = 0;
  const skip = () => {
    if (hidden) rows.push(h("span", { class: "line fold" }, `… ${hidden} unchanged ${hidden === 1 ? "line" : "lines"} …\n`));
    hidden = 0;
  };
  changes.forEach(([kind, a, b], index) => {
    if (!near.has(index)) return hidden++;
    skip();
    const sign = { same: " ", removed: "−", added: "+" }[kind];
    rows.push(h("span", { class: `line ${kind}` }, h("span", { class: "sign" }, sign), spans(kind === "removed" ? oldLines[a] : newLines[b]), "\n"));
  });
  skip();
  const [added, removed] = ["added", "removed"].map((wanted) => changes.filter(([kind]) => kind === wanted).length);
  return { node: h("pre", { class: "code diff", tabindex: "0", role: "region", "aria-label": label }, h("code", {}, rows)), added, removed };
}
