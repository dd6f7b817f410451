// A run's columns, asked for step by step. A position is a place in the columns.

import { stageWords, times } from "ks/format.js";

export class Run {
  constructor(page) {
    Object.assign(this, page);
    this.size = page.steps.step.length;
    this.byStep = new Map(page.steps.step.map((step, position) => [step, position]));
    this.heldSet = new Set(page.held);
    this.order = this.evaluationOrder();
    this.children = this.childrenOf();
    this.bestSpeedup = page.best === null ? null : this.interval(page.best);
  }

  // Position -> the how manieth evaluation it was, counted from 1; 0 while it is being evaluated.
  evaluationOrder() {
    const { ended } = this.steps;
    const order = new Array(this.size).fill(0);
    const done = [...ended.keys()].filter((position) => ended[position] !== null).sort((a, b) => ended[a] - ended[b]);
    done.forEach((position, index) => (order[position] = index + 1));
    return order;
  }

  childrenOf() {
    const children = Array.from({ length: this.size }, () => []);
    this.steps.parent.forEach((parent, position) => {
      if (parent !== null && parent !== position) children[parent].push(position);
    });
    return children;
  }

  who = (position) => this.names.proposers[this.steps.proposer[position]];
  model = (position) => (this.steps.model[position] === null ? "" : this.names.models[this.steps.model[position]]);
  stage = (position) => (this.steps.stage[position] === null ? null : this.names.stages[this.steps.stage[position]]);
  reason = (position) => (this.steps.reason[position] === null ? "" : this.names.reasons[this.steps.reason[position]]);
  cell = (position) => (this.steps.cell[position] === null ? null : this.names.cells[this.steps.cell[position]]);
  value = (position) => this.steps.value[position];
  timed = (position) => this.steps.value[position] !== null;
  summary = (position) => this.steps.summary[position];

  interval(position) {
    const { value, low, high } = this.steps;
    return value[position] === null ? null : { value: value[position], low: low[position], high: high[position] };
  }

  outcome(position) {
    if (this.timed(position)) return times(this.value(position));
    return stageWords(this.stage(position));
  }

  // Seconds of evaluating, as if one place did it after another: two at once in one place count once.
  evaluatingSeconds() {
    const turns = this.spans.flatMap(({ begin, end }) => [[begin, 1], [end, -1]]).sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    let [busy, active, since] = [0, 0, 0];
    for (const [at, change] of turns) {
      busy += Math.min(active, this.lanes) * (at - since);
      [active, since] = [active + change, at];
    }
    return busy;
  }

  ancestors(position) {
    const path = [position];
    const seen = new Set(path);
    for (let parent = this.steps.parent[position]; parent !== null && !seen.has(parent); parent = this.steps.parent[parent]) {
      seen.add(parent);
      path.unshift(parent);
    }
    return path;
  }

  link = (position) => `#/run/${encodeURIComponent(this.id)}/step/${this.steps.step[position]}`;
  view = (name, query = "") => `#/run/${encodeURIComponent(this.id)}${name ? `/${name}` : ""}${query ? `?${query}` : ""}`;

  describe(position) {
    const interval = this.interval(position);
    const lines = [`Step ${this.steps.step[position]} · ${this.who(position)}`];
    lines.push(interval ? `${times(interval.value)} the speed of eager` : this.outcome(position));
    if (interval) lines.push(`95%: ${interval.low.toFixed(2)} to ${interval.high.toFixed(2)}`);
    if (this.summary(position)) lines.push(this.summary(position).split("\n", 1)[0].slice(0, 90));
    return lines;
  }
}
