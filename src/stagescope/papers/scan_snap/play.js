/**
 * Scan and snap in the page: the population loss in the long-sequence limit and its gradient, as in kernel.py [SnS:lemma-1].
 *
 * Blocks lie one after the other: Y (keys, outputs), then Z (queries, keys). They start at zero.
 */

/** @typedef {import("../../show/viewer/play_types.js").Tools} Tools */
/** @typedef {import("../../show/viewer/play_types.js").Given} Given */
/** @typedef {import("../../show/viewer/play_types.js").Law} Law */
/** @typedef {{keys: number, outputs: number, queries: number, classes: number, vocab: number, multiplicity: Float64Array,
 *   tokens: number[][], logs: Float64Array, shared: number}} Classes
 *   `tokens`: keys of each class, `shared` common ones first; `logs`: log P(l|n), the same for all classes. */

/**
 * What the page shows of these options.
 * @param {Given} options
 * @param {Object<string, Float64Array>} _draws
 * @param {Object<string, number>} constants
 * @param {Tools} tools
 * @returns {Law}
 */
export function prepare(options, _draws, constants, tools) {
  const made = classesOf(options);
  const flow = new Flow(made, options);
  const { shared, classes, vocab } = made;
  const distinct = made.logs.length - shared;
  /** Of the first class, because all have the same curves; the most frequent distinct token first. @param {Float64Array} theta */
  const observe = (theta) => {
    const c = flow.attention(theta, 0);
    const common = c.subarray(0, shared).reduce((sum, x) => sum + x, 0);
    return [common, ...(shared ? [Math.max(...c.subarray(0, shared))] : []), ...c.subarray(shared).reverse()];
  };
  const curves = shared ? ["strongest common token"] : [];
  return {
    start: new Float64Array(made.keys * made.outputs + made.queries * made.keys),
    until: options.until,
    velocity: (theta, out) => flow.velocity(theta, out),
    observe,
    moving: Array.from({ length: 1 + curves.length + distinct }, (_, i) => i),
    panels: [
      {
        slot: "loss",
        title: "Loss",
        axis: "nats",
        log: true,
        curves: ["loss"],
        levels: [{ name: "ln M, uniform", value: Math.log(vocab) }],
      },
      { slot: "common", title: "Attention on all common tokens", axis: "attention", log: false, curves: ["common tokens"], levels: [] },
      {
        slot: "tokens",
        title: "Attention token by token",
        axis: "attention",
        log: false,
        curves: [...curves, ...Array.from({ length: distinct }, (_, i) => `distinct token ${distinct - i}`)],
        levels: [],
      },
    ],
    events: (time, found) => eventsOf(time, found, shared > 0, constants, tools),
    forms: [
      {
        name: "t0_prime",
        symbol: "t0'",
        value: options.rate_y > 0 ? (classes * Math.log(vocab)) / options.rate_y : Infinity,
        says: "K ln M / eta_Y: where attention moves fastest under the theorems' modified decoder; this flow has the gradient decoder",
      },
    ],
  };
}

/**
 * Options after one of them was moved: the vocabulary holds all tokens in use.
 * @param {Given} options
 */
export function settle(options) {
  const needed = sizesOf(options).needed;
  if (options.vocab === null || options.vocab >= needed) return { options, notes: [] };
  return { options: { ...options, vocab: needed }, notes: [`vocab ${options.vocab} is smaller than the ${needed} tokens in use; ${needed} is used.`] };
}

/** Counts of the authors' generator [SnS:synthetic]. @param {Given} options */
function sizesOf({ num_last: last, num_next_per_last: next, num_common: common, num_common_per_last: per, num_unique: unique }) {
  const classes = last * next;
  const keys = common + last * per + classes * unique;
  return { classes, keys, needed: keys + last + classes };
}

/** @param {Given} options @returns {Classes} */
function classesOf(options) {
  const { num_last: last, num_next_per_last: next, num_common: common, num_common_per_last: per, num_unique: unique } = options;
  const { classes, keys, needed } = sizesOf(options);
  const vocab = options.vocab ?? needed;
  const range = (/** @type {number} */ from, /** @type {number} */ count) => Array.from({ length: count }, (_, i) => from + i);
  const tokens = range(0, classes).map((n) => [
    ...range(0, common),
    ...range(common + Math.floor(n / next) * per, per),
    ...range(common + last * per + n * unique, unique),
  ]);
  const { common_p: weight, umin, umax } = options;
  const weights = [...Array(common + per).fill(weight), ...range(0, unique).map((i) => (unique > 1 ? umin + (i * (umax - umin)) / (unique - 1) : umin))];
  const total = weights.reduce((sum, x) => sum + x, 0);
  const rest = vocab - classes;
  const multiplicity = Float64Array.from([...Array(classes).fill(1), ...(rest ? [rest] : [])]);
  const shared = common * Number(classes > 1) + per * Number(next > 1); // tokens of one class alone are distinct
  const logs = Float64Array.from(weights, (x) => Math.log(x / total));
  return { keys, outputs: multiplicity.length, queries: last, classes, vocab, multiplicity, tokens, logs, shared };
}

/** The loss and minus its gradient times the rates; work space is made once. */
class Flow {
  /** @param {Classes} made @param {Given} options */
  constructor(made, { rate_y, rate_z, num_next_per_last }) {
    this.made = made;
    this.rateY = rate_y;
    this.rateZ = rate_z;
    this.query = made.tokens.map((_, n) => Math.floor(n / num_next_per_last));
    this.f = new Float64Array(made.logs.length);
    this.g = new Float64Array(made.logs.length);
    this.r = new Float64Array(made.outputs);
  }

  /** exp(log P(l|n) + z_l), not normalised, into f. @param {Float64Array} theta @param {number} n */
  weigh(theta, n) {
    const { made, f } = this;
    const row = made.keys * made.outputs + this.query[n] * made.keys;
    let top = -Infinity;
    for (let i = 0; i < f.length; i++) top = Math.max(top, (f[i] = made.logs[i] + theta[row + made.tokens[n][i]]));
    for (let i = 0; i < f.length; i++) f[i] = Math.exp(f[i] - top);
    return f;
  }

  /** c_{l|n} of one class. @param {Float64Array} theta @param {number} n */
  attention(theta, n) {
    const f = this.weigh(theta, n);
    const sum = f.reduce((total, x) => total + x, 0);
    return f.map((x) => x / sum);
  }

  /** -dL/dY = sum_n p_n f_n (e_n - alpha_n)^T, -dL/dz = sum_n p_n diag(f_n)(I - f_n f_n^T) Y (e_n - alpha_n); returns the loss.
   * @param {Float64Array} theta @param {Float64Array} out */
  velocity(theta, out) {
    const { made, f, g, r } = this;
    const { keys, outputs, classes, multiplicity, tokens } = made;
    out.fill(0);
    let loss = 0;
    for (let n = 0; n < classes; n++) {
      this.weigh(theta, n);
      const length = Math.sqrt(f.reduce((sum, x) => sum + x * x, 0));
      for (let i = 0; i < f.length; i++) f[i] /= length;
      loss += this.residual(theta, n) / classes;
      let mean = 0;
      for (let i = 0; i < f.length; i++) {
        const y = tokens[n][i] * outputs;
        const step = (this.rateY / classes) * f[i];
        g[i] = 0;
        for (let j = 0; j < outputs; j++) {
          out[y + j] += step * r[j];
          g[i] += theta[y + j] * multiplicity[j] * r[j];
        }
        mean += f[i] * g[i];
      }
      const row = keys * outputs + this.query[n] * keys;
      for (let i = 0; i < f.length; i++) out[row + tokens[n][i]] += (this.rateZ / classes) * f[i] * (g[i] - f[i] * mean);
    }
    return loss;
  }

  /** r = e_target - softmax(Y^T f), per output; returns the cross-entropy of the class. @param {Float64Array} theta @param {number} n */
  residual(theta, n) {
    const { made, f, r } = this;
    const { outputs, multiplicity, tokens } = made;
    r.fill(0);
    for (let i = 0; i < f.length; i++) {
      const y = tokens[n][i] * outputs;
      for (let j = 0; j < outputs; j++) r[j] += f[i] * theta[y + j];
    }
    const top = r.reduce((most, x) => Math.max(most, x), -Infinity);
    const own = r[n];
    let total = 0;
    for (let j = 0; j < outputs; j++) total += multiplicity[j] * (r[j] = Math.exp(r[j] - top));
    for (let j = 0; j < outputs; j++) r[j] /= -total;
    r[n] += 1;
    return Math.log(total) + top - own;
  }
}

/** onset and winner [SnS:stages]; both need common tokens. @param {ArrayLike<number>} time @param {Float64Array[]} curves
 * @param {boolean} shared @param {Object<string, number>} constants @param {Tools} tools */
function eventsOf(time, curves, shared, { onset_loss, winner_ratio }, { firstCrossing }) {
  if (!shared) return [];
  const [mass, top, ...distinct] = curves;
  const lead = mass.map((_, i) => Math.max(...distinct.map((curve) => curve[i])) - winner_ratio * top[i]);
  const later = (/** @type {number|null} */ when) => (when === time[0] ? null : when);
  return [
    { name: "onset", time: later(firstCrossing(time, mass, (1 - onset_loss) * mass[0], false)), slot: "common", says: `common tokens have lost ${100 * onset_loss} % of their attention` },
    { name: "winner", time: later(firstCrossing(time, lead, 0, true)), slot: "tokens", says: `the strongest distinct token has ${winner_ratio} times the attention of a common one` },
  ];
}
