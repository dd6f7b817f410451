// Figures and words as people read them.

export const digits = (value) => {
  const short = Math.abs(value) >= 100 ? value.toFixed(0) : value.toPrecision(3);
  return short.includes("e") ? value.toFixed(4) : short;
};
export const times = (value) => (value === null || value === undefined ? "–" : `${digits(value)}×`);
export const range = (low, high) => `${digits(low)} to ${digits(high)}`;
export const withRange = (interval) => (interval ? `${times(interval.value)} (95%: ${range(interval.low, interval.high)})` : "–");
export const percent = (share) => `${(100 * share).toFixed(share > 0 && share < 0.1 ? 1 : 0)}%`;
export const gain = (now, before) => {
  const change = now / before - 1;
  return `${change >= 0 ? "+" : "−"}${Math.abs(100 * change).toFixed(Math.abs(change) < 0.1 ? 1 : 0)}%`;
};
// How much faster than another, of the two timed side by side.
export const gainRange = ({ value, low, high }) => `${gain(value, 1)} (95%: ${gain(low, 1)} to ${gain(high, 1)})`;
export const count = (number, word, many = `${word}s`) => `${number.toLocaleString("en-US")} ${number === 1 ? word : many}`;

export function seconds(value) {
  if (value === null || value === undefined) return "–";
  if (value === 0) return "0";
  for (const [unit, size] of [["s", 1], ["ms", 1e-3], ["µs", 1e-6]]) if (value >= size) return `${digits(value / size)} ${unit}`;
  return `${digits(value / 1e-9)} ns`;
}

export function duration(value) {
  if (value < 59.5) return `${value.toFixed(value < 9.95 ? 1 : 0)} s`;
  const [whole, minutes] = [Math.round(value), Math.round(value / 60)];
  const two = (number) => String(number).padStart(2, "0");
  return whole < 3600 ? `${Math.floor(whole / 60)} min ${two(whole % 60)} s` : `${Math.floor(minutes / 60)} h ${two(minutes % 60)} min`;
}

export const clock = (value) => {
  const at = new Date(value);
  const two = (number) => String(number).padStart(2, "0");
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${two(at.getHours())}:${two(at.getMinutes())}`;
};

const PREFIXES = [["P", 1e15], ["T", 1e12], ["G", 1e9], ["M", 1e6], ["k", 1e3]];
export function rate(value, unit) {
  for (const [prefix, size] of PREFIXES) if (value >= size) return `${digits(value / size)} ${prefix}${unit}`;
  return `${digits(value)} ${unit}`;
}

export const tokens = (usage) => usage.prompt_tokens + usage.completion_tokens;
export function cost(usage) {
  if (!usage.requests) return "no model asked";
  const dollars = usage.dollars ? `$${usage.dollars.toFixed(2)}, ` : "";
  return `${dollars}${rate(tokens(usage), "tokens").replace(/ (.)tokens/, "$1 tokens")}`;
}

export const plain = (value) => digits(value).replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "");
export const axisSeconds = (value) => seconds(value).replace(/(\.\d*?)0+ /, "$1 ").replace(". ", " ");
export const axisTimes = (value) => `${plain(value)}×`;
export const bin = (name) => name.replace("<=", "≤ ").replace(">=", "≥ ").replace(/^>(?! )/, "> ");
export const firstLine = (text) => text.split("\n", 1)[0];

// What became of a step, in the words of the judge.
const ENDS = {
  ok: "correct",
  unstable: "correct, too noisy to compare",
  incorrect: "wrong result",
  "compile-error": "does not compile",
  "screened-out": "refused before running",
  "load-error": "does not load",
  "runtime-error": "fails when called",
  timeout: "takes too long",
  cheating: "caught cheating",
};
export const stageWords = (stage) => (stage === null ? "being evaluated" : (ENDS[stage] ?? stage));
