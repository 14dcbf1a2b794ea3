/**
 * Focus and dilution in the page: the population loss on a lazy chain and its gradient, as in kernel.py [FD:population].
 *
 * Blocks lie one after the other: W0 (d, m), W1 (m, d), WQ and WK (m, k), row after row.
 */

/** @typedef {import("../../show/viewer/play_types.js").Tools} Tools */
/** @typedef {import("../../show/viewer/play_types.js").Given} Given */
/** @typedef {import("../../show/viewer/play_types.js").Law} Law */
/** @typedef {{d: number, m: number, k: number}} Sizes tokens, width, key width */

/**
 * What the page shows of these options.
 * @param {Given} options
 * @param {Object<string, Float64Array>} draws standard normal numbers, by block
 * @param {Object<string, number>} constants
 * @param {Tools} tools
 * @returns {Law}
 */
export function prepare(options, draws, constants, tools) {
  const pi = stationary(options);
  const sizes = { d: pi.length, m: options.width, k: options.key_width ?? options.width };
  const { d, m, k } = sizes;
  const stay = options.persistence;
  const transition = Float64Array.from({ length: d * d }, (_, at) => (at % (d + 1) ? 0 : stay) + (1 - stay) * pi[at % d]);
  const frequent = pi.indexOf(Math.max(...pi));
  const flow = new Flow(sizes, pi, transition, options.scale, tools);
  const counts = [d, Math.min(d, m), Math.min(d, k)];
  /** @param {Float64Array} theta */
  const observe = (theta) => {
    flow.attend(theta);
    const rows = Array.from({ length: d }, (_, i) => flow.attention[i * d + frequent]);
    const embedding = tools.singularValues(theta.slice(0, d * m), d, m);
    const scores = tools.singularValues(flow.scores.slice(), d, d).subarray(0, counts[2]);
    return [...rows, ...embedding, ...scores];
  };
  return {
    start: startOf(options, draws, sizes),
    until: options.until,
    velocity: (theta, out) => flow.velocity(theta, out),
    observe,
    moving: Array.from({ length: d }, (_, i) => i),
    panels: panelsOf(pi, transition, frequent, counts, constants.level),
    events: (time, curves) => eventsOf(time, curves, counts, constants.level, tools),
    forms: formsOf(pi, transition, options.scale, tools),
    matrix: {
      title: "Attention between token types",
      about: `Row: query. Column: key. Token ${frequent} is the most frequent.`,
      rows: pi.map((_, i) => `query ${i}`),
      columns: pi.map((_, i) => `token ${i}`),
      values: (theta) => flow.attend(theta).slice(),
    },
  };
}

/**
 * Options after one of them was moved: probabilities sum to 1, and the chain exists.
 * @param {Given} options
 * @param {string|null} moved such as "pi.2"
 * @param {Tools} tools
 */
export function settle(options, moved, { within }) {
  const made = { ...options };
  const notes = [];
  if (made.pi0 === null) made.pi = summing(made.pi, moved?.startsWith("pi.") ? Number(moved.slice(3)) : -1);
  else {
    const most = made.tokens > 2 ? floored((0.99 * (1 - made.pi0)) / (made.tokens - 1)) : 0;
    if (Math.abs(made.delta) > most) notes.push(`delta ${made.delta} is too large for these tokens; ${most ? Math.sign(made.delta) * most : 0} is used.`);
    made.delta = within(made.delta, -most, most);
  }
  const rarest = Math.min(...stationary(made));
  const least = -floored((0.99 * rarest) / (1 - rarest));
  if (made.persistence < least) {
    notes.push(`persistence ${made.persistence} is below ${least}, the least for these frequencies; ${least} is used.`);
    made.persistence = least;
  }
  return { options: made, notes, least: { persistence: least } };
}

/** Four digits, rounded down. @param {number} value */
function floored(value) {
  return Math.floor(value * 1e4) / 1e4;
}

/** pi of the chain: given, or one frequent token and others that differ by delta [FD:asymmetry]. @param {Given} options @returns {number[]} */
function stationary({ pi, pi0, tokens, delta }) {
  if (pi0 === null) return pi;
  const base = (1 - pi0) / (tokens - 1);
  const rare = Array.from({ length: tokens - 1 }, (_, i) => (i === 0 ? 1 : 0) - (i === tokens - 2 ? 1 : 0));
  return [pi0, ...rare.map((c) => base + c * delta)];
}

/**
 * Probabilities with four digits and the sum 1: one keeps its value, the others their proportions.
 * @param {number[]} pi
 * @param {number} kept
 */
function summing(pi, kept) {
  const others = pi.reduce((sum, p, i) => (i === kept ? sum : sum + p), 0);
  const share = (1 - (pi[kept] ?? 0)) / others;
  if (Math.abs(share - 1) < 1e-9) return pi;
  const made = pi.map((p, i) => (i === kept ? p : Math.max(0.0005, Math.round(1e4 * p * share) / 1e4)));
  const largest = made.reduce((best, p, i) => (i !== kept && p > (made[best] ?? -1) ? i : best), -1);
  const rest = made.reduce((sum, p, i) => (i === largest ? sum : sum + p), 0);
  made[largest] = Number((1 - rest).toFixed(9));
  return made;
}

/** @param {Given} options @param {Object<string, Float64Array>} draws @param {Sizes} sizes */
function startOf(options, draws, { d, m, k }) {
  const lengths = { W0: d * m, W1: d * m, WQ: m * k, WK: m * k };
  return Float64Array.from(
    Object.entries(lengths).flatMap(([name, length]) => {
      const scale = options[`init_scale_${name.toLowerCase()}`] ?? options.init_scale;
      return Array.from(draws[name].subarray(0, length), (x) => scale * x);
    }),
  );
}

/** The loss and minus its gradient; work space is made once. */
class Flow {
  /** @param {Sizes} sizes @param {number[]} pi @param {Float64Array} transition @param {number} scale @param {Tools} tools */
  constructor({ d, m, k }, pi, transition, scale, tools) {
    this.tools = tools;
    const room = (/** @type {number} */ n) => new Float64Array(n);
    this.d = d;
    this.m = m;
    this.k = k;
    this.pi = Float64Array.from(pi);
    this.logs = this.pi.map(Math.log);
    this.transition = transition;
    this.scale = scale;
    this.query = room(d * k);
    this.key = room(d * k);
    this.dquery = room(d * k);
    this.dkey = room(d * k);
    this.scores = room(d * d);
    this.attention = room(d * d);
    this.logits = room(d * d);
    this.lift = room(d * d);
    this.hidden = room(d * m);
    this.dhidden = room(d * m);
  }

  /** A_i ~ pi exp(Phi_i), Phi = scale (W0 WQ)(W0 WK)^T [FD:model]. @param {Float64Array} theta */
  attend(theta) {
    const { d, m, k, query, key, scores, attention, logs } = this;
    const { multiply, softmax, timesTurned } = this.tools;
    multiply(d, m, k, theta, 0, theta, 2 * d * m, query, 0);
    multiply(d, m, k, theta, 0, theta, 2 * d * m + m * k, key, 0);
    timesTurned(d, k, d, this.scale, query, 0, key, 0, scores, 0, false);
    for (let i = 0; i < d; i++) {
      for (let j = 0; j < d; j++) attention[i * d + j] = scores[i * d + j] + logs[j];
      softmax(attention, i * d, d);
    }
    return attention;
  }

  /** Writes minus the gradient into `out`; returns the loss. @param {Float64Array} theta @param {Float64Array} out */
  velocity(theta, out) {
    const { d, m, k, query, key, dquery, dkey, attention, logits, lift, hidden, dhidden } = this;
    const { multiply, timesTurned, turnedTimes } = this.tools;
    const [w1, wq] = [d * m, 2 * d * m];
    const wk = wq + m * k;
    this.attend(theta);
    multiply(d, d, m, attention, 0, theta, 0, hidden, 0);
    multiply(d, m, d, hidden, 0, theta, w1, logits, 0);
    const loss = this.surprise();
    turnedTimes(m, d, d, -1, hidden, 0, logits, 0, out, w1);
    timesTurned(d, d, m, 1, logits, 0, theta, w1, dhidden, 0, false);
    turnedTimes(d, d, m, -1, attention, 0, dhidden, 0, out, 0);
    timesTurned(d, m, d, 1, dhidden, 0, theta, 0, lift, 0, false);
    this.unattend();
    multiply(d, d, k, lift, 0, key, 0, dquery, 0);
    turnedTimes(d, d, k, 1, lift, 0, query, 0, dkey, 0);
    turnedTimes(m, d, k, -1, theta, 0, dquery, 0, out, wq);
    turnedTimes(m, d, k, -1, theta, 0, dkey, 0, out, wk);
    timesTurned(d, k, m, -1, dquery, 0, theta, wq, out, 0, true);
    timesTurned(d, k, m, -1, dkey, 0, theta, wk, out, 0, true);
    return loss;
  }

  /** The loss; logits_i become dL/dlogits_i = pi_i (softmax(logits_i) - P_i). */
  surprise() {
    const { d, pi, transition, logits } = this;
    let loss = 0;
    for (let i = 0; i < d; i++) {
      let own = 0;
      for (let j = 0; j < d; j++) own += transition[i * d + j] * logits[i * d + j];
      loss += pi[i] * (this.tools.softmax(logits, i * d, d) - own);
      for (let j = 0; j < d; j++) logits[i * d + j] = pi[i] * (logits[i * d + j] - transition[i * d + j]);
    }
    return loss;
  }

  /** From dL/dA to scale dL/dPhi, in place. */
  unattend() {
    const { d, attention, lift, scale } = this;
    for (let i = 0; i < d; i++) {
      let mean = 0;
      for (let j = 0; j < d; j++) mean += attention[i * d + j] * lift[i * d + j];
      for (let j = 0; j < d; j++) lift[i * d + j] = scale * attention[i * d + j] * (lift[i * d + j] - mean);
    }
  }
}

/** @param {number[]} pi @param {Float64Array} transition @param {number} frequent @param {number[]} counts @param {number} level */
function panelsOf(pi, transition, frequent, counts, level) {
  const named = (/** @type {string} */ what, /** @type {number} */ count) => Array.from({ length: count }, (_, i) => `${what}${i}`);
  const opens = [{ name: "a direction opens", value: level }];
  const values = (/** @type {number} */ count) => Array.from({ length: count }, (_, i) => `value ${i + 1}`);
  return [
    {
      slot: "loss",
      title: "Loss",
      axis: "nats",
      log: false,
      curves: ["loss"],
      levels: [
        { name: "ln d, uniform", value: Math.log(pi.length) },
        { name: "H(pi), no context", value: entropyOf(pi) },
        { name: "entropy rate", value: entropyRate(pi, transition) },
      ],
    },
    {
      slot: "attention",
      title: `Attention on token ${frequent}, by query`,
      axis: "attention",
      log: false,
      curves: named("query ", counts[0]),
      levels: [{ name: `frequency of token ${frequent}`, value: pi[frequent] }],
    },
    { slot: "embedding", title: "Singular values of the embedding W0", axis: "singular value", log: true, curves: values(counts[1]), levels: opens },
    { slot: "scores", title: "Singular values of the attention scores", axis: "singular value", log: true, curves: values(counts[2]), levels: opens },
  ];
}

/** @param {ArrayLike<number>} law */
function entropyOf(law) {
  return -Array.from(law).reduce((sum, p) => (p > 0 ? sum + p * Math.log(p) : sum), 0);
}

/** @param {number[]} pi @param {Float64Array} transition */
function entropyRate(pi, transition) {
  const d = pi.length;
  return pi.reduce((sum, p, i) => sum + p * entropyOf(transition.subarray(i * d, i * d + d)), 0);
}

/** E_k and Q_k: the k-th singular value of W0 and of Phi passes the level. @param {ArrayLike<number>} time
 * @param {Float64Array[]} curves @param {number[]} counts @param {number} level @param {Tools} tools */
function eventsOf(time, curves, [d, embedding, scores], level, { firstCrossing }) {
  const kinds = [
    { letter: "E", first: d, count: embedding, slot: "embedding", what: "embedding direction" },
    { letter: "Q", first: d + embedding, count: scores, slot: "scores", what: "attention direction" },
  ];
  return kinds.flatMap(({ letter, first, count, slot, what }) =>
    Array.from({ length: count }, (_, i) => ({
      name: `${letter}${i + 1}`,
      time: firstCrossing(time, curves[first + i], level, true, true),
      slot,
      says: `${what} ${i + 1} opens: its singular value passes ${level}${letter === "E" && i ? `; ${i === 1 ? "the second cycle" : `cycle ${i + 1}`} begins` : ""}`,
    })),
  );
}

/** Closed forms at the first saddles, as in forms.py [FD:origin], [FD:condensed], [FD:attention-rate].
 * @param {number[]} pi @param {Float64Array} transition @param {number} scale @param {Tools} tools */
function formsOf(pi, transition, scale, { norm }) {
  const d = pi.length;
  const logs = pi.map(Math.log);
  const mean = logs.reduce((sum, x) => sum + x, 0) / d;
  const opening = norm(pi) * norm(pi.map((p) => p - 1 / d));
  const amplitude = Math.sqrt(norm(logs.map((x) => x - mean)) / norm(pi));
  const square = norm(pi) ** 2;
  const excess = pi.map((_, i) => logs.reduce((sum, x, j) => sum + (transition[i * d + j] - pi[j]) * x, 0));
  const drive = pi.reduce((sum, p, i) => sum + p * p * excess[i], 0);
  const spread = pi.reduce((sum, p) => sum + p * (p - square) ** 2, 0);
  const attention = ((scale * amplitude ** 2) / square ** 2) * drive * spread;
  const way = attention > 0 ? "attention first focuses on the frequent token" : "attention first moves away from the frequent token";
  return [
    { name: "condensation_rate", symbol: "mu0", value: opening, says: "rate at which the embedding grows at the origin", guide: { slot: "embedding", curve: 0, rate: opening } },
    { name: "plateau_amplitude", symbol: "a", value: amplitude, says: "size of W0 and of W1 on the first plateau (1,0)" },
    { name: "attention_rate", symbol: "c", value: attention, says: `rate of WQ and WK on that plateau; scores grow at 2|c|; ${way}`, guide: { slot: "scores", curve: 0, rate: 2 * Math.abs(attention) } },
  ];
}
