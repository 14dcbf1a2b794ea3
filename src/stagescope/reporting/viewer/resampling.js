/**
 * What the rows of a cell say together: the median of numbers, the share of names, and how sure that is.
 *
 * Intervals are percentiles over bootstrap samples of the seeds. The draws travel with the page, so they are those of
 * `Sweep.statistics` in Python, to the last digit.
 */

/** @param {number[]} numbers at least one */
export function medianOf(numbers) {
  const sorted = [...numbers].sort((a, b) => (a < b ? -1 : Number(a > b))); // infinite ones too
  const half = sorted.length >> 1;
  return sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

/** @param {number[]} numbers */
export function meanOf(numbers) {
  return numbers.reduce((sum, number) => sum + number, 0) / numbers.length;
}

/** @param {number[]} sorted @param {number} share 0..1, between two numbers as NumPy does it */
function percentile(sorted, share) {
  const at = share * (sorted.length - 1);
  const low = Math.floor(at);
  const high = Math.min(low + 1, sorted.length - 1);
  return sorted[low] + (at - low) * (sorted[high] - sorted[low]);
}

/** @param {number[]} sorted @param {number} share 0..1, the number at or above it: nothing lies half-way to infinity */
function above(sorted, share) {
  return sorted[Math.ceil(share * (sorted.length - 1) - 1e-9)];
}

/** The draws of a page by the number of rows. */
export class Resampling {
  /**
   * @param {Map<number, Int32Array>} draws
   * @param {number} confidence
   */
  constructor(draws, confidence) {
    this.draws = draws;
    this.confidence = confidence;
  }

  /**
   * The interval of a statistic; null where there is one number only, or all are infinite. Its upper end is null where it is.
   * @param {number[]} numbers
   * @param {(numbers: number[]) => number} statistic
   * @returns {[number, number|null]|null}
   */
  interval(numbers, statistic) {
    const n = numbers.length;
    if (n < 2 || !numbers.some(Number.isFinite)) return null;
    if (numbers.every((number) => number === numbers[0])) return [numbers[0], numbers[0]];
    const draws = this.draws.get(n);
    if (!draws) return null;
    const found = [];
    for (let from = 0; from < draws.length; from += n) {
      found.push(statistic(Array.from({ length: n }, (_, i) => numbers[draws[from + i]])));
    }
    found.sort((a, b) => (a < b ? -1 : Number(a > b)));
    const tail = (1 - this.confidence) / 2;
    const at = numbers.every(Number.isFinite) ? percentile : above;
    const [low, high] = [at(found, tail), at(found, 1 - tail)];
    return Number.isFinite(low) ? [low, Number.isFinite(high) ? high : null] : null;
  }
}
