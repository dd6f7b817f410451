// Scales: from figures to places, with ticks at round figures.

export function linear([from, to], [begin, end], leastStep = 0) {
  const span = to - from || 1;
  const scale = (value) => begin + ((value - from) / span) * (end - begin);
  scale.ticks = (wanted = 6) => {
    const step = Math.max(leastStep, niceStep(span / wanted));
    const [first, last] = [Math.ceil(from / step), Math.floor(to / step + 1e-6)];
    // Rounded: three steps of 0.2 are 0.6000000000000001.
    return Array.from({ length: Math.max(0, last - first + 1) }, (_, index) => Number(((first + index) * step).toPrecision(12)));
  };
  scale.domain = [from, to];
  return scale;
}

// For what is counted: there is no half evaluation.
export const counting = (domain, place) => linear(domain, place, 1);

export function log([from, to], [begin, end]) {
  const low = Math.log(from);
  const span = Math.log(to) - low || 1;
  const scale = (value) => begin + ((Math.log(Math.max(value, 1e-300)) - low) / span) * (end - begin);
  scale.ticks = (wanted = 6) => {
    const all = [];
    for (let decade = Math.floor(Math.log10(from)); decade <= Math.ceil(Math.log10(to)); decade++)
      for (const lead of [1, 1.5, 2, 3, 5, 7]) all.push(lead * 10 ** decade);
    const inside = all.filter((tick) => tick >= from * 0.999 && tick <= to * 1.001);
    for (const leads of [[1, 1.5, 2, 3, 5, 7], [1, 2, 5], [1, 3], [1]]) {
      const chosen = inside.filter((tick) => leads.some((lead) => Math.abs(tick / 10 ** Math.floor(Math.log10(tick) + 1e-9) - lead) < 1e-6));
      if (chosen.length && chosen.length <= wanted + 1) return chosen;
    }
    const decades = inside.filter((tick) => Math.abs(Math.log10(tick) % 1) < 1e-9);
    const every = Math.ceil(decades.length / wanted);
    return decades.filter((_, index) => index % every === 0);
  };
  scale.domain = [from, to];
  return scale;
}

// Linear while all is of one size, logarithmic where the smallest would vanish.
export function speedScale(values, place, least = 0) {
  const known = values.filter((value) => value > 0);
  const high = Math.max(1.1, ...known.slice(0, 1), known.reduce((most, value) => Math.max(most, value), 0));
  const low = known.reduce((few, value) => Math.min(few, value), Infinity);
  if (high / Math.min(low, 1) > 30) return log([Math.min(low, 1) / 1.25, high * 1.25], place);
  return linear([least, high * 1.08], place);
}

function niceStep(rough) {
  const size = 10 ** Math.floor(Math.log10(rough));
  const lead = rough / size;
  return size * (lead <= 1 ? 1 : lead <= 2 ? 2 : lead <= 5 ? 5 : 10);
}
