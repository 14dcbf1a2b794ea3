/**
 * Linear attention in the page: the population loss and the flow of half of it, as in kernel.py [LIN:flow].
 *
 * Blocks lie one after the other: v (H), then K and Q (H, R, D) of separate heads, or U (H, D, D) of merged ones.
 */

/** @typedef {import("../../show/viewer/play_types.js").Tools} Tools */
/** @typedef {import("../../show/viewer/play_types.js").Given} Given */
/** @typedef {import("../../show/viewer/play_types.js").Law} Law */
/** @typedef {{spectrum: number[], amplification: number[], second: number[]}} Task */

/**
 * What the page shows of these options.
 * @param {Given} options
 * @param {Object<string, Float64Array>} draws standard normal numbers, by block
 * @param {Object<string, number>} _constants
 * @param {Tools} tools
 * @returns {Law}
 */
export function prepare(options, draws, _constants, tools) {
  const task = taskOf(options);
  const dim = task.spectrum.length;
  const { heads, merged } = options;
  const flow = new Flow(heads, merged ? 0 : options.rank, task);
  const finals = task.spectrum.map((x, i) => 1 / (x * task.amplification[i]));
  const reach = merged ? dim : Math.min(dim, heads * options.rank);
  const all = levelsOf(task);
  const levels = merged ? [all[0], all[dim]] : all.slice(0, reach + 1);
  /** @param {Float64Array} theta */
  const observe = (theta) => {
    const map = flow.map(theta);
    const learned = finals.map((last, i) => map[i * dim + i] / last);
    return [...learned, ...Array.from({ length: heads }, (_, h) => Math.abs(theta[h]))];
  };
  return {
    start: startOf(options, draws, dim),
    until: options.until,
    velocity: (theta, out) => flow.velocity(theta, out),
    observe,
    moving: finals.map((_, i) => i),
    panels: panelsOf(task, heads, levels, merged),
    events: (time, _curves, loss) =>
      levels.slice(1).map((level, i) => ({
        name: `d${i + 1}`,
        time: tools.firstCrossing(time, loss, (levels[i] + level) / 2, false),
        slot: "loss",
        says: merged ? "the drop: half of the way from l_0 to l_D" : `drop ${i + 1}: the loss is halfway between l_${i} and l_${i + 1}`,
      })),
    forms: formsOf(task, merged, reach, tools),
    matrix: {
      title: "Map M",
      about: "The answer is beta M x: least squares on m components has 1/(lambda_i a_i) in the first m places.",
      rows: finals.map((_, i) => `direction ${i + 1}`),
      columns: finals.map((_, i) => `query ${i + 1}`),
      values: (theta) => flow.map(theta).slice(),
    },
  };
}

/**
 * Options after one of them was moved: eigenvalues stay sorted, largest first.
 * @param {Given} options
 * @param {string|null} moved such as "eigenvalues.2"
 * @param {Tools} tools
 */
export function settle(options, moved, { within }) {
  const values = [...options.eigenvalues];
  const at = moved?.startsWith("eigenvalues.") ? Number(moved.slice(12)) : -1;
  if (at >= 0) values[at] = within(values[at], values[at + 1] ?? 0, values[at - 1] ?? Infinity);
  const sorted = [...values].sort((a, b) => b - a);
  const notes = sorted.every((x, i) => x === values[i]) ? [] : ["eigenvalues are listed largest first; they were sorted."];
  return { options: { ...options, eigenvalues: sorted }, notes };
}

/** lambda_i, a_i and the diagonal of E[hatLambda^2] [LIN:loss]. @param {Given} options @returns {Task} */
function taskOf({ eigenvalues, context, contexts }) {
  const lengths = contexts.length ? contexts : [context];
  const perLength = lengths.reduce((/** @type {number} */ sum, /** @type {number} */ n) => sum + 1 / n, 0) / lengths.length;
  const total = eigenvalues.reduce((/** @type {number} */ sum, /** @type {number} */ x) => sum + x, 0);
  const amplification = eigenvalues.map((/** @type {number} */ x) => 1 + (1 + total / x) * perLength);
  return { spectrum: eigenvalues, amplification, second: amplification.map((/** @type {number} */ a, /** @type {number} */ i) => a * eigenvalues[i] ** 2) };
}

/** @param {Given} options @param {Object<string, Float64Array>} draws @param {number} dim */
function startOf({ heads, rank, merged, init_scale: scale }, draws, dim) {
  const blocks = merged ? { v: heads, U: heads * dim * dim } : { v: heads, K: heads * rank * dim, Q: heads * rank * dim };
  return Float64Array.from(
    Object.entries(blocks).flatMap(([name, length]) => Array.from(draws[name].subarray(0, length), (x) => scale * x)),
  );
}

/** The loss, and the velocity of the flow of half of it; work space is made once. */
class Flow {
  /** @param {number} heads @param {number} rows of the keys of a head, 0 for merged heads @param {Task} task */
  constructor(heads, rows, { spectrum, second }) {
    this.heads = heads;
    this.rows = rows;
    this.spectrum = Float64Array.from(spectrum);
    this.second = Float64Array.from(second);
    this.dim = spectrum.length;
    this.whole = new Float64Array(this.dim ** 2);
    this.push = new Float64Array(this.dim ** 2);
  }

  /** M = sum_h v_h U_h, U_h = K_h^T Q_h for separate heads [LIN:model]. @param {Float64Array} theta */
  map(theta) {
    const { heads, rows, dim, whole } = this;
    whole.fill(0);
    for (let h = 0; h < heads; h++) {
      if (!rows) {
        for (let i = 0; i < dim * dim; i++) whole[i] += theta[h] * theta[heads + h * dim * dim + i];
        continue;
      }
      for (let r = 0; r < rows; r++) {
        const k = heads + (h * rows + r) * dim;
        const q = k + heads * rows * dim;
        for (let i = 0; i < dim; i++) {
          const x = theta[h] * theta[k + i];
          for (let j = 0; j < dim; j++) whole[i * dim + j] += x * theta[q + j];
        }
      }
    }
    return whole;
  }

  /** v_h' = sum_r k.G q, k' = v_h G q, q' = v_h G^T k; merged: v_h' = <U_h, G>, U_h' = v_h G. Returns the loss.
   * @param {Float64Array} theta @param {Float64Array} out */
  velocity(theta, out) {
    const { heads, rows, dim, push } = this;
    this.map(theta);
    const loss = this.lossAndPush();
    out.fill(0);
    for (let h = 0; h < heads; h++) {
      if (!rows) {
        const u = heads + h * dim * dim;
        for (let i = 0; i < dim * dim; i++) {
          out[h] += theta[u + i] * push[i];
          out[u + i] = theta[h] * push[i];
        }
        continue;
      }
      for (let r = 0; r < rows; r++) {
        const k = heads + (h * rows + r) * dim;
        const q = k + heads * rows * dim;
        for (let i = 0; i < dim; i++) {
          let moved = 0;
          for (let j = 0; j < dim; j++) {
            moved += push[i * dim + j] * theta[q + j];
            out[q + j] += theta[h] * push[i * dim + j] * theta[k + i];
          }
          out[h] += theta[k + i] * moved;
          out[k + i] = theta[h] * moved;
        }
      }
    }
    return loss;
  }

  /** The loss of M, and G = Lambda^2 - E[hatLambda^2] M Lambda. */
  lossAndPush() {
    const { dim, spectrum, second, whole, push } = this;
    let loss = 0;
    for (let i = 0; i < dim; i++) {
      loss += spectrum[i] - 2 * spectrum[i] ** 2 * whole[i * dim + i];
      for (let j = 0; j < dim; j++) {
        const y = second[i] * whole[i * dim + j] * spectrum[j];
        loss += whole[i * dim + j] * y;
        push[i * dim + j] = (i === j ? spectrum[i] ** 2 : 0) - y;
      }
    }
    return loss;
  }
}

/** l_m = tr Lambda - sum_{i <= m} lambda_i / a_i [LIN:levels]. @param {Task} task */
function levelsOf({ spectrum, amplification }) {
  const found = [spectrum.reduce((sum, x) => sum + x, 0)];
  spectrum.forEach((x, i) => found.push(found[i] - x / amplification[i]));
  return found;
}

/** @param {Task} task @param {number} heads @param {number[]} levels @param {boolean} merged */
function panelsOf({ spectrum }, heads, levels, merged) {
  const last = levels.length - 1;
  return [
    {
      slot: "loss",
      title: "Loss",
      axis: "squared error",
      log: false,
      curves: ["loss"],
      levels: levels.map((value, m) => ({ name: merged && m === last ? "l_D" : `l_${m}`, value })),
    },
    {
      slot: "directions",
      title: "Learned directions",
      axis: "share of the final M_ii",
      log: false,
      curves: spectrum.map((_, i) => `direction ${i + 1}`),
      levels: [{ name: "learned", value: 1 }],
    },
    { slot: "heads", title: "Values of the heads", axis: "|v|", log: true, curves: Array.from({ length: heads }, (_, h) => `head ${h + 1}`), levels: [] },
  ];
}

/** Rates of the drops [LIN:scalar], or of the one drop of merged heads [LIN:merged].
 * @param {Task} task @param {boolean} merged @param {number} reach @param {Tools} tools */
function formsOf({ spectrum, amplification }, merged, reach, { norm }) {
  if (merged) {
    const value = norm(spectrum.map((x) => x * x));
    return [{ name: "growth_rate", symbol: "r", value, says: "rate at which a small merged start grows: |Lambda^2|" }];
  }
  return spectrum.slice(0, reach).map((x, i) => ({
    name: `pace ${i + 1}`,
    symbol: `lambda_${i + 1}^2 v_${i + 1}`,
    value: x ** 2 * Math.cbrt(1 / (x * amplification[i])),
    says: `rate of the drop of direction ${i + 1}; it lasts about 3 over this rate`,
  }));
}
