/**
 * Runge-Kutta-Chebyshev: an explicit method of second order whose stability grows with the square of its stages.
 *
 * Sommeijer, Shampine, Verwer, "RKC: an explicit solver for parabolic PDEs", J. Comput. Appl. Math. 88 (1998). It is made for
 * stiff problems with a real spectrum, and the spectrum of a gradient flow is real. Nothing of the page is known here.
 */

/** @typedef {(theta: Float64Array, out: Float64Array) => number} Velocity writes d theta / dt; returns the loss */
/** @typedef {{from: number, to: number, theta: Float64Array, slope: Float64Array, theta1: Float64Array, slope1: Float64Array,
 *   loss: number, loss1: number}} Step an accepted step with the state and the velocity at both ends; valid until the next one */

const DAMPING = 2 / 13; // epsilon of the paper
const MOST_STAGES = 250;
const EVERY = 25; // steps between two estimates of the spectral radius
const SAFE = 1.2; // of the estimate: the power iteration approaches the radius from below
const ITERATIONS = 30; // of the power iteration, at most
const MOST_WORK = 400_000; // evaluations after which a flow is given up

/** @type {Map<number, Float64Array>} */
const tables = new Map();

/**
 * mu, nu, mu~ and gamma~ of stages 1 .. s, four numbers a stage.
 * @param {number} s
 */
function coefficients(s) {
  const known = tables.get(s);
  if (known) return known;
  const w0 = 1 + DAMPING / (s * s);
  const t = [1, w0];
  const d1 = [0, 1];
  const d2 = [0, 0];
  for (let j = 2; j <= s; j++) {
    t[j] = 2 * w0 * t[j - 1] - t[j - 2];
    d1[j] = 2 * t[j - 1] + 2 * w0 * d1[j - 1] - d1[j - 2];
    d2[j] = 4 * d1[j - 1] + 2 * w0 * d2[j - 1] - d2[j - 2];
  }
  const w1 = d1[s] / d2[s];
  const b = t.map((_, j) => (j < 2 ? 0 : d2[j] / (d1[j] * d1[j])));
  b[0] = b[2];
  b[1] = 1 / w0;
  const table = new Float64Array(4 * (s + 1));
  table[6] = b[1] * w1;
  for (let j = 2; j <= s; j++) {
    const ahead = (2 * b[j] * w1) / b[j - 1];
    table.set([(2 * b[j] * w0) / b[j - 1], -b[j] / b[j - 2], ahead, -(1 - b[j - 1] * t[j - 1]) * ahead], 4 * j);
  }
  tables.set(s, table);
  return table;
}

/** One flow under way. */
export class Rkc {
  /**
   * @param {Velocity} velocity
   * @param {Float64Array} start
   * @param {number} until
   * @param {number} tolerance relative; the absolute one is the same share of the rms of the start
   */
  constructor(velocity, start, until, tolerance) {
    const room = () => new Float64Array(start.length);
    this.velocity = velocity;
    this.until = until;
    this.tolerance = tolerance;
    this.floor = tolerance * (Math.sqrt(start.reduce((sum, x) => sum + x * x, 0) / start.length) || 1e-3);
    this.evaluations = 0;
    this.radius = 0;
    this.theta = Float64Array.from(start);
    this.slope = room();
    this.theta1 = room();
    this.slope1 = room();
    this.before = room();
    this.last = room();
    this.spare = room();
    this.mode = Float64Array.from(start, (_, i) => Math.sin(1.7 * i + 1)); // any vector that is in no special direction
    this.loss = this.evaluate(this.theta, this.slope);
  }

  /** @param {Float64Array} theta @param {Float64Array} out */
  evaluate(theta, out) {
    this.evaluations++;
    return this.velocity(theta, out);
  }

  /**
   * Calls `seen` with every accepted step. Ends at `until`; throws where the flow leaves all bounds or takes too long.
   * @param {(step: Step) => void} seen
   */
  run(seen) {
    let now = 0;
    let taken = 0;
    let size = 0;
    let wrong0 = 0;
    let size0 = 0;
    while (now < this.until) {
      if (taken % EVERY === 0) this.measure();
      if (!size) size = this.first();
      size = Math.min(size, this.longest(), this.until - now);
      const loss1 = this.step(size);
      const wrong = this.error(size);
      if (this.evaluations > MOST_WORK) throw new Error(`this flow takes too long to preview: it was given up at t = ${now.toPrecision(3)}`);
      if (!(wrong <= 1)) {
        if (size < 1e-13 * Math.max(now, 1)) throw new Error(`the flow cannot be followed beyond t = ${now.toPrecision(3)}`);
        size *= Number.isFinite(wrong) ? Math.max(0.1, 0.8 / Math.cbrt(wrong)) : 0.1;
        this.measure();
        continue;
      }
      const end = this.until - now - size < 1e-12 * this.until ? this.until : now + size;
      seen({ from: now, to: end, theta: this.theta, slope: this.slope, theta1: this.theta1, slope1: this.slope1, loss: this.loss, loss1 });
      const plain = 0.8 / Math.cbrt(wrong || 1e-12);
      const led = wrong0 && wrong ? plain * (size / size0) * Math.cbrt(wrong0 / wrong) : plain; // a predictive controller
      [wrong0, size0] = [wrong, size];
      size *= Math.min(10, Math.max(0.1, Math.min(plain, led)));
      now = end;
      taken++;
      [this.theta, this.theta1] = [this.theta1, this.theta];
      [this.slope, this.slope1] = [this.slope1, this.slope];
      this.loss = loss1;
    }
    return this;
  }

  /** One step of s stages, s as small as stability allows, from theta into theta1. @param {number} size */
  step(size) {
    const { theta, slope, spare } = this;
    const n = theta.length;
    const stages = Math.max(2, 1 + Math.floor(Math.sqrt(1.54 * size * this.radius + 1)));
    const table = coefficients(stages);
    let before = this.before;
    let last = this.last;
    let next = this.theta1;
    before.set(theta);
    for (let i = 0; i < n; i++) last[i] = theta[i] + table[6] * size * slope[i];
    for (let j = 2; j <= stages; j++) {
      this.evaluate(last, spare);
      const mu = table[4 * j];
      const nu = table[4 * j + 1];
      const ahead = table[4 * j + 2] * size;
      const back = table[4 * j + 3] * size;
      const rest = 1 - mu - nu;
      for (let i = 0; i < n; i++) next[i] = rest * theta[i] + mu * last[i] + nu * before[i] + ahead * spare[i] + back * slope[i];
      [before, last, next] = [last, next, before];
    }
    [this.before, this.last, this.theta1] = [before, next, last];
    return this.evaluate(last, this.slope1);
  }

  /** The error of the last step over what is allowed. @param {number} size */
  error(size) {
    const { theta, slope, theta1, slope1, floor, tolerance } = this;
    let sum = 0;
    for (let i = 0; i < theta.length; i++) {
      const found = 0.8 * (theta[i] - theta1[i]) + 0.4 * size * (slope[i] + slope1[i]);
      const allowed = floor + tolerance * Math.max(Math.abs(theta[i]), Math.abs(theta1[i]));
      sum += (found / allowed) ** 2;
    }
    return Math.sqrt(sum / theta.length);
  }

  /** The longest step that MOST_STAGES stages make stable. */
  longest() {
    return this.radius > 0 ? (MOST_STAGES ** 2 - 1) / (1.54 * this.radius) : Infinity;
  }

  /** A first step that is surely accepted: Euler's error over it is about the tolerance. */
  first() {
    const { theta, slope, spare, last } = this;
    const size = Math.min(this.until, 1 / (this.radius || 1 / this.until));
    for (let i = 0; i < theta.length; i++) last[i] = theta[i] + size * slope[i];
    this.evaluate(last, spare);
    let sum = 0;
    for (let i = 0; i < theta.length; i++) sum += ((spare[i] - slope[i]) / (this.floor + this.tolerance * Math.abs(theta[i]))) ** 2;
    const wrong = 0.5 * size * Math.sqrt(sum / theta.length);
    return 0.1 * wrong < 1 ? size : (0.1 * size) / Math.sqrt(wrong);
  }

  /** The spectral radius here, by power iteration on differences of the velocity; it goes on from the last mode found. */
  measure() {
    const { theta, slope, mode, spare, last } = this;
    const n = theta.length;
    const far = 1e-7 * Math.max(Math.hypot(...theta), 1e-7);
    let radius = 0;
    for (let round = 0; round < ITERATIONS; round++) {
      const length = Math.hypot(...mode) || 1;
      for (let i = 0; i < n; i++) last[i] = theta[i] + (far / length) * mode[i];
      this.evaluate(last, spare);
      for (let i = 0; i < n; i++) mode[i] = spare[i] - slope[i];
      const found = Math.hypot(...mode) / far;
      const settled = Math.abs(found - radius) < 0.02 * found;
      radius = found;
      if (round > 2 && settled) break;
      if (!(found > 0)) mode.forEach((_, i) => (mode[i] = Math.cos(2.3 * i + round)));
    }
    this.radius = SAFE * radius;
  }
}
