/**
 * The arrays of a page. A block is base64 of a zlib stream in its own <script>; it is decoded when first asked for, once.
 *
 * What is done to the bytes is said in `show/bundle.py`; this undoes it. In short: f64, f32 and i32 are little endian with
 * their bytes shuffled (first bytes of all items, then all second bytes, ...); f32 may hold `order` differences over frames;
 * `companded` is 8 bits a cell on a quadratic scale, kept as differences over frames, cell by cell, with 255 for what is not a
 * number.
 */

/** @typedef {import("./types.js").Block} Block */
/** @typedef {Float64Array|Float32Array|Int32Array|Uint8Array} Numbers */

export const NOT_A_NUMBER = 255;
const OLD_BROWSER =
  "this browser cannot unpack the data. Open the file with Chrome or Edge 80, Firefox 113, Safari 16.4, or a later one";
const ANEW = "the file was cut or edited. Make the report anew, or copy it again";

/** Bytes of an item. */
const WIDTHS = { f64: 8, f32: 4, i32: 4, u8: 1, companded: 1 };

/** @param {Block} block Number of items. */
export function sizeOf(block) {
  return block.shape.reduce((product, side) => product * side, 1);
}

/** @param {Uint8Array} bytes @returns {Promise<Uint8Array>} */
async function inflate(bytes) {
  if (typeof DecompressionStream === "undefined") throw new Error(OLD_BROWSER);
  const stream = new Blob([/** @type {BlobPart} */ (bytes)]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** @param {string} text base64 */
function fromBase64(text) {
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  return bytes;
}

/**
 * Items of `width` bytes from planes of bytes.
 * @param {Uint8Array} planes
 * @param {number} width
 */
function unshuffle(planes, width) {
  const items = planes.length / width;
  const bytes = new Uint8Array(planes.length);
  for (let plane = 0; plane < width; plane++) {
    for (let i = 0, from = plane * items, to = plane; i < items; i++, from++, to += width) bytes[to] = planes[from];
  }
  return bytes.buffer;
}

/**
 * Frames from the first frame and the differences after it, in place.
 * @param {Int32Array} items
 * @param {number} cells items a frame
 */
function integrate(items, cells) {
  for (let i = cells; i < items.length; i++) items[i] += items[i - cells];
}

/** Cells turned around together: as many bytes as one line of the processor's cache holds. */
const CACHE_LINE = 64;

/**
 * Frame by frame, what was written cell by cell as differences over frames modulo 256.
 * @param {Uint8Array} differences
 * @param {number} frames
 * @param {number} cells
 */
function turned(differences, frames, cells) {
  const codes = new Uint8Array(differences.length);
  for (let first = 0; first < cells; first += CACHE_LINE) {
    const end = Math.min(cells, first + CACHE_LINE);
    for (let cell = first; cell < end; cell++) {
      let code = 0;
      for (let frame = 0, from = cell * frames, to = cell; frame < frames; frame++, from++, to += cells) {
        code = (code + differences[from]) & 255;
        codes[to] = code;
      }
    }
  }
  return codes;
}

/**
 * Single precision from differences of its bits, whose sign sits in the last bit.
 * @param {ArrayBuffer} buffer
 * @param {number} order how many differences were taken
 * @param {number} cells items a frame
 */
function undifference(buffer, order, cells) {
  const items = new Int32Array(buffer);
  for (let i = 0; order && i < items.length; i++) items[i] = (items[i] >>> 1) ^ -(items[i] & 1);
  for (let times = 0; times < order; times++) integrate(items, cells);
  return new Float32Array(buffer);
}

/** @param {Block} block @param {Uint8Array} bytes @returns {Numbers} */
function decode(block, bytes) {
  const cells = sizeOf(block) / (block.shape[0] || 1);
  switch (block.encoding) {
    case "f64":
      return new Float64Array(unshuffle(bytes, 8));
    case "f32":
      return undifference(unshuffle(bytes, 4), block.order ?? 0, cells);
    case "i32":
      return new Int32Array(unshuffle(bytes, 4));
    case "u8":
      return bytes;
    case "companded":
      return turned(bytes, block.shape[0], cells);
  }
}

/**
 * The value each code of a companded block stands for; NaN for code 255.
 * @param {Block} block
 * @returns {Float64Array}
 */
export function levels(block) {
  const { low = 0, high = 1 } = block;
  const values = new Float64Array(256).fill(NaN);
  for (let code = 0; code < NOT_A_NUMBER; code++) {
    const side = (code - 127) / 127;
    values[code] = low === -high ? high * side * Math.abs(side) : low + (high - low) * (code / 254) ** 2;
  }
  return values;
}

/**
 * How far the recorded value can be from the one shown: half the distance to the farther neighbouring code's value.
 * @param {Block} block
 * @param {number} code
 */
export function precision(block, code) {
  if (code === NOT_A_NUMBER) return NaN;
  const values = levels(block);
  const below = code > 0 ? values[code] - values[code - 1] : 0;
  const above = code < NOT_A_NUMBER - 1 ? values[code + 1] - values[code] : 0;
  return Math.max(below, above) / 2;
}

/** Blocks of the page, decoded on demand and kept. */
export class Store {
  constructor() {
    /** @type {Map<number, Promise<Numbers>>} */
    this.decoded = new Map();
  }

  /** @param {Block} block @returns {Promise<Numbers>} */
  get(block) {
    let numbers = this.decoded.get(block.id);
    if (!numbers) {
      numbers = this.read(block);
      this.decoded.set(block.id, numbers);
    }
    return numbers;
  }

  /** @param {Block} block @returns {Promise<Numbers>} */
  async read(block) {
    const holder = document.getElementById(`block-${block.id}`);
    if (!holder) throw new Error(`block ${block.id} of the data is missing: ${ANEW}`);
    const bytes = await this.unpack(block, (holder.textContent ?? "").trim());
    if (bytes.length !== sizeOf(block) * WIDTHS[block.encoding]) {
      throw new Error(`block ${block.id} of the data has another size than it should: ${ANEW}`);
    }
    return decode(block, bytes);
  }

  /** @param {Block} block @param {string} text base64 */
  async unpack(block, text) {
    try {
      return await inflate(fromBase64(text));
    } catch (error) {
      if (error instanceof Error && error.message === OLD_BROWSER) throw error;
      throw new Error(`block ${block.id} of the data cannot be unpacked: ${ANEW}`, { cause: error });
    }
  }
}
