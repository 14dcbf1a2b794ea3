/**
 * What a reader chose: scene, frame, axes, theme, speed. It lives in the URL hash, so that a link opens at the same place.
 * The hash is text of a stranger: unknown names are kept out and unknown values fall back to the default.
 */

/** @typedef {"theme"|"axis"|"speed"} Choice */

/**
 * Each choice and its values; the first is the default and is not written into the hash. "auto" is what the reader's system
 * prefers, or what suits the scene.
 */
const CHOICES = {
  theme: ["auto", "light", "dark"],
  axis: ["auto", "time", "log", "change"],
  speed: ["1", "0.1", "0.25", "0.5", "2", "4", "8"],
};

/** Speeds from slow to fast. */
export const SPEEDS = CHOICES.speed.map(Number).sort((a, b) => a - b);

const SCALES = ["linear", "log"];
const HASH_PAUSE = 250; // ms between two writes: browsers refuse more than about 100 in 30 s

/** Choices shared by all scenes of the page. */
export class Settings {
  constructor() {
    /** @type {Record<Choice, string>} */
    this.chosen = { theme: CHOICES.theme[0], axis: CHOICES.axis[0], speed: CHOICES.speed[0] };
    /** Slots for which a logarithmic (true) or a linear axis was chosen. @type {Map<string, boolean>} */
    this.logs = new Map();
    /** @type {((name: string) => void)[]} */
    this.listeners = [];
  }

  /** @param {Choice} name */
  get(name) {
    return this.chosen[name];
  }

  /** @param {Choice} name @param {string} value */
  set(name, value) {
    if (this.chosen[name] === value || !CHOICES[name].includes(value)) return;
    this.chosen[name] = value;
    this.tell(name);
  }

  /** @param {string} slot -> what was chosen for it, undefined if nothing was */
  logOf(slot) {
    return this.logs.get(slot);
  }

  /**
   * Puts the values of a slot on a logarithmic or a linear axis.
   * @param {string} slot
   * @param {boolean} log
   */
  setLog(slot, log) {
    if (this.logs.get(slot) === log) return;
    this.logs.set(slot, log);
    this.tell(slot);
  }

  /** @param {string} name */
  tell(name) {
    for (const listener of this.listeners) listener(name);
  }

  /** @param {(name: string) => void} listener called with the name of what changed: a choice, or a slot */
  on(listener) {
    this.listeners.push(listener);
  }

  /** @param {URLSearchParams} hash takes over what the hash says; what it does not name gets its default */
  restore(hash) {
    for (const name of /** @type {Choice[]} */ (Object.keys(CHOICES))) {
      const value = hash.get(name) ?? "";
      this.set(name, CHOICES[name].includes(value) ? value : CHOICES[name][0]);
    }
    const before = this.logs;
    this.logs = new Map();
    for (const scale of SCALES) {
      for (const slot of hash.getAll(scale)) this.logs.set(slot, scale === "log");
      if (hash.get("loss") === scale) this.logs.set("loss", scale === "log");
    }
    for (const slot of new Set([...before.keys(), ...this.logs.keys()])) {
      if (before.get(slot) !== this.logs.get(slot)) this.tell(slot);
    }
  }

  /** @param {URLSearchParams} hash receives every choice that is not the default */
  write(hash) {
    for (const name of /** @type {Choice[]} */ (Object.keys(CHOICES))) {
      if (this.chosen[name] !== CHOICES[name][0]) hash.set(name, this.chosen[name]);
    }
    for (const [slot, log] of this.logs) {
      const scale = SCALES[Number(log)];
      if (slot === "loss") hash.set("loss", scale);
      else hash.append(scale, slot);
    }
  }
}

/** What the address says now. */
export function readHash() {
  return new URLSearchParams(location.hash.slice(1));
}

/**
 * A function that keeps the address up to date: it may be called at every frame and writes now and then.
 * @param {() => URLSearchParams} state
 * @returns {() => void}
 */
export function hashWriter(state) {
  let pending = 0;
  let known = location.hash;
  window.addEventListener("hashchange", () => (known = location.hash));
  const write = () => {
    pending = 0;
    if (location.hash !== known) return; // changed by a link a moment ago: `hashchange` is on its way, and comes first
    if (location.protocol === "about:") return; // inside a notebook the page has no address of its own
    history.replaceState(null, "", `#${state()}`);
    known = location.hash;
  };
  return () => {
    if (!pending) pending = window.setTimeout(write, HASH_PAUSE);
  };
}
