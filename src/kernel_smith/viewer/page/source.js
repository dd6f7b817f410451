// Where data comes from: parts of this file, or the server that sent it. Both know the same names.
//
//   contents              what there is
//   run/ID                a run without what is long
//   steps/ID/PORTION      programs, evaluations and prompts of some of its steps
//   result/ID             a benchmark result
//   winners/ID/PORTION    the winning programs of some of its rows

export const PORTION = 32;

export function openSource() {
  return document.querySelector("script[data-part]") ? new Embedded() : new Live();
}

class Source {
  known = new Map();

  get(...words) {
    const name = words.join("/");
    if (!this.known.has(name)) {
      const asked = this.read(words);
      this.known.set(name, asked);
      asked.catch(() => this.known.delete(name));
    }
    return this.known.get(name);
  }
}

class Embedded extends Source {
  live = false;

  // A large file is still being read when the first pages of it are shown.
  async find(name) {
    const look = () => [...document.querySelectorAll("script[data-part]")].find((node) => node.dataset.part === name);
    if (!look() && document.readyState === "loading") await new Promise((done) => document.addEventListener("DOMContentLoaded", done, { once: true }));
    return look();
  }

  async read(words) {
    const node = await this.find(words.join("/"));
    if (!node) throw new Error(`This file does not contain ${words.join(" ")}.`);
    const packed = Uint8Array.from(atob(node.textContent.trim()), (letter) => letter.charCodeAt(0));
    const unpacked = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(unpacked).json();
  }

  watch() {}
}

class Live extends Source {
  live = true;
  pages = new Map();
  // Nothing is read before changes are told: what changed in between would never be heard of.
  listening = new Promise((done) => (this.listens = done));

  async read([kind, id, portion]) {
    await this.listening;
    return kind === "run" ? this.readRun(id) : this.fetch(kind, { id, portion });
  }

  // Of a run that is here already only what is new, unless the server remembers that state no more.
  async readRun(id) {
    const before = this.pages.get(id);
    const answer = await this.fetch("run", { id, after: before?.sequence });
    const page = answer.base === undefined ? answer : updated(before, answer);
    this.pages.set(id, page);
    return page;
  }

  async fetch(kind, options) {
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(options)) if (value !== undefined) query.set(name, value);
    const answer = await fetch(`data/${kind}?${query}`);
    if (!answer.ok) throw new Error((await answer.json().catch(() => ({}))).error ?? `The server answered ${answer.status}.`);
    return answer.json();
  }

  // Calls back when runs have changed, and with the state of the connection.
  watch(changed, connected) {
    const events = new EventSource("data/changes");
    let lost = false;
    events.addEventListener("open", () => {
      this.listens();
      connected(true);
      if (!lost) return;
      lost = false;
      this.known.clear(); // whatever changed meanwhile
      changed();
    });
    events.addEventListener("error", () => {
      lost = true;
      this.listens();
      connected(false);
    });
    events.addEventListener("runs", (event) => {
      const ids = JSON.parse(event.data);
      for (const name of [...this.known.keys()]) {
        if (name === "contents" || ids.some((id) => name === `run/${id}` || name.startsWith(`steps/${id}/`))) this.known.delete(name);
      }
      changed();
    });
  }
}

// The page that follows from another by what has changed (viewer/increments.py).
function updated(before, change) {
  const page = { ...before, ...change.values, sequence: change.sequence, steps: { ...before.steps } };
  const apply = (owner, arrays) => {
    for (const [name, { size, changed, added }] of Object.entries(arrays)) {
      const array = owner[name].slice(0, size).concat(added);
      for (const [position, value] of Object.entries(changed)) array[position] = value;
      owner[name] = array;
    }
  };
  apply(page, change.arrays);
  apply(page.steps, change.columns);
  return page;
}
