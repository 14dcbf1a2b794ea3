/** Small mathematics that the law of a paper may use in the page; a law is given these as `tools`. */

/**
 * Singular values of a small matrix, largest first, by one-sided Jacobi rotations of its rows.
 * @param {Float64Array} matrix rows x columns, row after row; it is used up
 * @param {number} rows
 * @param {number} columns
 */
export function singularValues(matrix, rows, columns) {
  for (let sweep = 0; sweep < 30; sweep++) {
    let turned = false;
    for (let p = 0; p < rows - 1; p++) {
      for (let q = p + 1; q < rows; q++) turned = rotateRows(matrix, p * columns, q * columns, columns) || turned;
    }
    if (!turned) break;
  }
  const found = new Float64Array(rows);
  for (let i = 0; i < rows; i++) {
    let sum = 0;
    for (let j = 0; j < columns; j++) sum += matrix[i * columns + j] ** 2;
    found[i] = Math.sqrt(sum);
  }
  return found.sort().reverse().subarray(0, Math.min(rows, columns));
}

/** Makes two rows orthogonal; false where they are. @param {Float64Array} a @param {number} p @param {number} q @param {number} n */
function rotateRows(a, p, q, n) {
  let pp = 0;
  let qq = 0;
  let pq = 0;
  for (let j = 0; j < n; j++) {
    const x = a[p + j];
    const y = a[q + j];
    pp += x * x;
    qq += y * y;
    pq += x * y;
  }
  if (Math.abs(pq) <= 1e-12 * Math.sqrt(pp * qq) || pq === 0) return false;
  const ratio = (qq - pp) / (2 * pq);
  const tangent = Math.sign(ratio || 1) / (Math.abs(ratio) + Math.sqrt(1 + ratio * ratio));
  const cosine = 1 / Math.sqrt(1 + tangent * tangent);
  const sine = cosine * tangent;
  for (let j = 0; j < n; j++) {
    const x = a[p + j];
    const y = a[q + j];
    a[p + j] = cosine * x - sine * y;
    a[q + j] = sine * x + cosine * y;
  }
  return true;
}

/**
 * The first time at which a curve passes a level, by linear interpolation; null if it never does.
 * @param {ArrayLike<number>} time
 * @param {ArrayLike<number>} curve
 * @param {number} level
 * @param {boolean} rising
 * @param {boolean} [logarithmic] interpolate the logarithm, for what grows exponentially
 * @returns {number|null}
 */
export function firstCrossing(time, curve, level, rising, logarithmic = false) {
  const beyond = (/** @type {number} */ value) => (rising ? value >= level : value <= level);
  const height = (/** @type {number} */ value) => (logarithmic ? Math.log(Math.max(value, 1e-300) / level) : value - level);
  for (let i = 0; i < time.length; i++) {
    if (!beyond(curve[i])) continue;
    if (i === 0) return time[0];
    const [before, after] = [height(curve[i - 1]), height(curve[i])];
    return time[i - 1] + (before / (before - after)) * (time[i] - time[i - 1]);
  }
  return null;
}

/** @param {ArrayLike<number>} values */
export function norm(values) {
  let sum = 0;
  for (let i = 0; i < values.length; i++) sum += values[i] ** 2;
  return Math.sqrt(sum);
}

/**
 * A number cut to an interval.
 * @param {number} value
 * @param {number} low
 * @param {number} high
 */
export function within(value, low, high) {
  return Math.min(high, Math.max(low, value));
}

/** softmax in place; returns log sum exp. @param {Float64Array} a @param {number} at @param {number} n */
export function softmax(a, at, n) {
  let top = -Infinity;
  for (let j = 0; j < n; j++) if (a[at + j] > top) top = a[at + j];
  let sum = 0;
  for (let j = 0; j < n; j++) sum += a[at + j] = Math.exp(a[at + j] - top);
  for (let j = 0; j < n; j++) a[at + j] /= sum;
  return top + Math.log(sum);
}

/**
 * out = a b; matrices lie in flat arrays from a place on. The two below give weight a^T b and weight a b^T.
 * @param {number} rows @param {number} inner @param {number} columns
 * @param {Float64Array} a @param {number} p @param {Float64Array} b @param {number} q @param {Float64Array} out @param {number} r
 */
export function multiply(rows, inner, columns, a, p, b, q, out, r) {
  for (let i = 0; i < rows; i++) {
    const goal = r + i * columns;
    for (let j = 0; j < columns; j++) out[goal + j] = 0;
    for (let x = 0; x < inner; x++) {
      const value = a[p + i * inner + x];
      const row = q + x * columns;
      for (let j = 0; j < columns; j++) out[goal + j] += value * b[row + j];
    }
  }
}

/** @param {number} rows @param {number} inner @param {number} columns @param {number} weight
 * @param {Float64Array} a @param {number} p @param {Float64Array} b @param {number} q @param {Float64Array} out @param {number} r */
export function turnedTimes(rows, inner, columns, weight, a, p, b, q, out, r) {
  for (let j = 0; j < rows * columns; j++) out[r + j] = 0;
  for (let x = 0; x < inner; x++) {
    for (let i = 0; i < rows; i++) {
      const value = weight * a[p + x * rows + i];
      for (let j = 0; j < columns; j++) out[r + i * columns + j] += value * b[q + x * columns + j];
    }
  }
}

/** @param {number} rows @param {number} inner @param {number} columns @param {number} weight @param {Float64Array} a @param {number} p
 * @param {Float64Array} b @param {number} q @param {Float64Array} out @param {number} r @param {boolean} add to what is there */
export function timesTurned(rows, inner, columns, weight, a, p, b, q, out, r, add) {
  for (let i = 0; i < rows; i++) {
    for (let j = 0; j < columns; j++) {
      let sum = 0;
      for (let x = 0; x < inner; x++) sum += a[p + i * inner + x] * b[q + j * inner + x];
      const at = r + i * columns + j;
      out[at] = weight * sum + (add ? out[at] : 0);
    }
  }
}
