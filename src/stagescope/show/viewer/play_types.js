/**
 * The law of a paper in the page, and the data a playground carries. Only types: nothing of this runs.
 *
 * @typedef {Object<string, any>} Given options of a study by their names in Python, such as {persistence: 0.6, pi: [0.5, 0.5]}
 *
 * @typedef {typeof import("./play_tools.js")} Tools
 *
 * @typedef {{slot: string, title: string, axis: string, log: boolean, curves: string[],
 *   levels: {name: string, value: number}[]}} PlayPanel
 * @typedef {{name: string, time: number|null, slot: string, says: string}} PlayEvent `time`: null where it did not come
 * @typedef {{name: string, symbol: string, value: number, says: string,
 *   guide?: {slot: string, curve: number, rate: number}}} Form
 *   A number that theory gives. `guide`: a curve of a logarithmic panel that should rise at this rate.
 * @typedef {{title: string, about: string, rows: string[], columns: string[],
 *   values: (theta: Float64Array) => Float64Array}} PlayMatrix
 *
 * @typedef {{start: Float64Array, until: number, velocity: import("./play_rkc.js").Velocity,
 *   observe: (theta: Float64Array) => number[], moving: number[], panels: PlayPanel[],
 *   events: (time: Float64Array, curves: Float64Array[], loss: Float64Array) => PlayEvent[],
 *   forms: Form[], matrix?: PlayMatrix}} Law
 *   What a paper's `prepare(options, draws, constants, tools)` gives. The first panel is the loss, which `velocity` returns;
 *   `observe` gives the values of the curves of all other panels, in their order. `moving`: those curves, by number, of
 *   which two frames may differ by little only.
 * @typedef {{prepare: (options: Given, draws: Object<string, Float64Array>, constants: Object<string, number>, tools: Tools) => Law,
 *   settle: (options: Given, moved: string|null, tools: Tools) => {options: Given, notes: string[], least?: Object<string, number>}}} PaperLaw
 *   `settle` sets right what is not possible; `least`: the lowest values that these options allow.
 *
 * @typedef {{option: string, low: number, high: number, step: number, log: boolean, whole: boolean,
 *   where: Object<string, boolean>, like: string, more: boolean}} SliderData
 * @typedef {{name: string, title: string, about: Object<string, string>, presets: Object<string, {options: Given, until: number}>,
 *   sliders: SliderData[], draws: Object<string, string>[], constants: Object<string, number>,
 *   start: {preset: string, options: Given}}} PlayStudy
 *   `presets`: options as the preset states them, and the end of the flow where they leave it open. `draws`: for each seed the
 *   random numbers of the blocks, float64 in base64. `start`: what is shown at first.
 * @typedef {{title: string, version: string, studies: PlayStudy[]}} PlayData
 */

export {};
