/** The law of the page: logits b (V,) on independent tokens, as in kernel.py. */

/** Probabilities of the tokens, as `Unigram.ramp` makes them. */
function ramp({ top, vocab }) {
  const weights = Array.from({ length: vocab - 1 }, (_, i) => vocab - i);
  const total = weights.reduce((sum, x) => sum + x, 0);
  return [top, ...weights.map((x) => ((1 - top) * x) / total)];
}

export function prepare(options, draws, constants, { firstCrossing }) {
  const pi = ramp(options);
  const floor = -pi.reduce((sum, p) => sum + p * Math.log(p), 0);
  const softmax = (b) => {
    const top = Math.max(...b);
    const powers = Array.from(b, (x) => Math.exp(x - top));
    const total = powers.reduce((sum, x) => sum + x, 0);
    return { shares: powers.map((x) => x / total), log: top + Math.log(total) };
  };
  return {
    start: new Float64Array(pi.length),
    until: options.until,
    velocity(b, out) {
      const { shares, log } = softmax(b);
      shares.forEach((share, i) => (out[i] = pi[i] - share));
      return pi.reduce((loss, p, i) => loss - p * b[i], log);
    },
    observe: (b) => softmax(b).shares,
    moving: [0],
    panels: [
      { slot: "loss", title: "Loss", axis: "nats", log: false, curves: ["loss"], levels: [{ name: "floor", value: floor }] },
      { slot: "shares", title: "Probabilities", axis: "probability", log: false, curves: pi.map((_, i) => `token ${i}`), levels: [] },
    ],
    events: (time, curves, loss) => [
      { name: "half", time: firstCrossing(time, loss, (loss[0] + floor) / 2, false), slot: "loss", says: "half of the excess loss is gone" },
    ],
    forms: [{ name: "floor", symbol: "H", value: floor, says: "the entropy of the tokens" }],
  };
}

export function settle(options) {
  return { options, notes: [] };
}
