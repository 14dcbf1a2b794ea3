/** Levels of a plot of a playground: dashed lines, with their names where curves leave room. */

import { short } from "./dom.js";

const NAME_PLACES = [1, 0.875, 0.75, 0.625, 0.5, 0.375, 0.25, 0.125, 0]; // along the axis, the best first
const NAME_LOOKS = 24; // parts of a name in which curves are looked for
const NAME_HEIGHT = 14; // px
const ROOM_ENOUGH = 12; // px between the middle of a name and the next curve: more is no better

/**
 * @param {CanvasRenderingContext2D} pen
 * @param {{name: string, value: number}[]} levels
 * @param {{left: number, top: number, width: number, height: number}} box
 * @param {import("./traces.js").Axis} y
 * @param {import("./play_plot.js").Palette} palette
 * @param {(share: number) => number[]} heights of the curves at a share of the width
 */
export function drawPlayLevels(pen, levels, box, y, palette, heights) {
  const { left, top, width, height } = box;
  pen.textAlign = "left";
  pen.textBaseline = "middle";
  let free = Infinity;
  for (const { name, value } of [...levels].sort((a, b) => a.value - b.value)) {
    const at = Math.round(top + height * (1 - y.at(value))) + 0.5;
    pen.strokeStyle = palette.muted;
    pen.setLineDash([5, 4]);
    pen.beginPath();
    pen.moveTo(left, at);
    pen.lineTo(left + width, at);
    pen.stroke();
    pen.setLineDash([]);
    const text = `${name} = ${short(value, 3)}`;
    const length = Math.min(1, (pen.measureText(text).width + 6) / width);
    const sides = [at - NAME_HEIGHT / 2, at + NAME_HEIGHT / 2].filter((side) => side - NAME_HEIGHT / 2 >= top && side + NAME_HEIGHT / 2 <= Math.min(top + height, free));
    if (!sides.length) continue;
    const { place, middle } = bestPlace(length, sides, (share) => heights(share).map((each) => top + height * (1 - each)));
    pen.lineWidth = 3;
    pen.strokeStyle = palette.paper;
    pen.strokeText(text, left + place * width + 3, middle);
    pen.lineWidth = 1;
    pen.fillStyle = palette.muted;
    pen.fillText(text, left + place * width + 3, middle);
    free = Math.min(at, middle - NAME_HEIGHT / 2) - 1;
  }
}

/**
 * Where a name of some length stands so that curves are far from it: above its line if that is as good.
 * @param {number} length share of the width
 * @param {number[]} sides px of the middle of the name
 * @param {(share: number) => number[]} curves px of the curves
 */
function bestPlace(length, sides, curves) {
  const tried = sides.flatMap((middle) =>
    NAME_PLACES.map((along) => {
      const place = along * (1 - length);
      return { place, middle, room: roomOf(place, length, middle, curves) };
    }),
  );
  const most = Math.max(...tried.map(({ room }) => room));
  return /** @type {{place: number, middle: number}} */ (tried.find(({ room }) => room === most));
}

/** How far the nearest curve is from a name, at most enough; 0 where one crosses it. @param {number} from @param {number} length @param {number} middle @param {(share: number) => number[]} curves */
function roomOf(from, length, middle, curves) {
  let room = ROOM_ENOUGH;
  let before = curves(from);
  for (let look = 1; look <= NAME_LOOKS; look++) {
    const now = curves(from + (look / NAME_LOOKS) * length);
    now.forEach((at, i) => {
      const [one, other] = [before[i] - middle, at - middle];
      if (!Number.isNaN(one * other)) room = one * other <= 0 ? 0 : Math.min(room, Math.abs(one), Math.abs(other));
    });
    before = now;
  }
  return room;
}
