"""Make the moving picture of the README from real runs: `python docs/moving_picture.py`.

Above the published experiment, then below the gradient flow of the same chain from the same start. Both move by change: between
two frames attention changes by about the same amount.
"""

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.animation import FuncAnimation, PillowWriter
from PIL import Image, ImageSequence

from stagescope.papers.focus_dilution import TokenCurves
from stagescope.readings.study import reproduction

MOVING, HELD, PER_SECOND = (56, 24), 12, 10
"""Frames that move above and below, frames for which the last one is held, frames a second."""
PALETTE = 64
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#b8578b")
SPANS = ((30.0, 3000.0), (3.0, 200.0))
TICKS = ((50, 100, 200, 500, 1000, 3000), (5, 10, 20, 50, 100, 200))
NAMES = ("Experiment (Adam)", "Theorem (gradient flow)")
CLOCKS = ("step", "t =")


def scenes() -> tuple[TokenCurves, TokenCurves]:
    runs = reproduction("focus_dilution").figures.runs
    return runs.published(), runs.flow()


def by_change(curves: TokenCurves, frames: int) -> np.ndarray:
    """Frames between which attention and the logarithm of time change by about the same amount: a plateau is not one frame."""
    moved = np.concatenate([[0.0], np.sqrt((np.diff(curves.attention, axis=0) ** 2).sum((1, 2))).cumsum()])
    spread = np.log(np.maximum(curves.time, curves.time[-1] / 100))
    path = moved / moved[-1] + 0.7 * (spread - spread[0]) / np.ptp(spread)
    return np.searchsorted(path, np.linspace(0.0, path[-1], frames)).clip(0, len(path) - 1)


def words_of(curves: TokenCurves, frame: int, flow: bool) -> str:
    """What attention does in a frame, read off its rows."""
    matrix, base = curves.attention[frame], curves.pi[0]
    if frame <= int(np.argmax(curves.on_frequent[:, 1])):
        if matrix[1, 0] < base + 0.01:
            return "embeddings condense, attention stands still"
        return "queries 1 to 3 hardly focus on token 0" if flow else "all queries focus on token 0"
    if flow or matrix[3, 0] > 0.5:
        return "queries 1 to 3 turn away from token 0"
    if np.all(np.diag(matrix) > 0.5):
        return "every query finds its own token"
    return f"the cycle repeats on token {int(np.argmax(matrix[3]))}"


def panel(axes: Any, curves: TokenCurves, number: int) -> tuple[Any, list[list[Any]], Any]:
    """One row of the picture: the map, its cells, and the line of the present."""
    left, right = axes
    image = left.imshow(curves.attention[0], vmin=0, vmax=1, cmap="Blues")
    left.set(xlabel="attends to token", ylabel="query", xticks=range(4), yticks=range(4))
    cells = [[left.text(j, i, "", ha="center", va="center", fontsize=7.5) for j in range(4)] for i in range(4)]
    for row, colour in enumerate(COLOURS):
        right.plot(curves.time, curves.on_frequent[:, row], color=colour, lw=1.7, label=f"query {row}")
    right.axhline(curves.pi[0], color="0.75", lw=0.8, ls="--", zorder=0)
    right.set(xscale="log", xlim=SPANS[number], ylim=(-0.03, 1.05), xlabel="step" if number == 0 else "time $t$")
    right.set_xticks(TICKS[number], labels=[f"{tick:,}" for tick in TICKS[number]])
    right.minorticks_off()
    right.set_ylabel("attention on token 0", fontsize=8)
    for spine in ("top", "right"):
        right.spines[spine].set_visible(False)
    return image, cells, right.axvline(SPANS[number][0], color="0.2", lw=1.2)


def moving_picture() -> FuncAnimation:
    curves = scenes()
    frames = [by_change(each, count) for each, count in zip(curves, MOVING, strict=True)]
    figure, axes = plt.subplots(2, 2, figsize=(7.2, 4.9), width_ratios=(1, 2.1), dpi=100)
    figure.subplots_adjust(left=0.06, right=0.975, top=0.94, bottom=0.1, wspace=0.22, hspace=0.5)
    titles = [figure.text(0.02, height, "", fontsize=10.5, va="center") for height in (0.972, 0.487)]
    panels = [panel(row, each, number) for number, (row, each) in enumerate(zip(axes, curves, strict=True))]
    axes[1, 1].legend(frameon=False, fontsize=8, loc="lower left", ncols=2, handlelength=1.0, columnspacing=1.0)

    def draw(number: int) -> None:
        for place, (image, cells, now) in enumerate(panels):
            first = sum(MOVING[:place])
            frame = frames[place][int(np.clip(number - first, 0, MOVING[place] - 1))]
            when, matrix = curves[place].time[frame], curves[place].attention[frame]
            image.set_data(matrix)
            for i, j in np.ndindex(4, 4):
                cells[i][j].set(text=f"{matrix[i, j]:.2f}".lstrip("0"), color="white" if matrix[i, j] > 0.55 else "0.2")
            now.set_xdata([max(when, SPANS[place][0])] * 2)
            clock = f"{CLOCKS[place]} {when:,.0f}"
            titles[place].set_text(f"{NAMES[place]}, {clock}: {words_of(curves[place], frame, place == 1)}")

    return FuncAnimation(figure, draw, frames=sum(MOVING) + HELD)


def shrink(place: Path) -> None:
    """Write a GIF again with one palette for all frames: it is a third of the size."""
    with Image.open(place) as made:
        frames = [frame.convert("RGB") for frame in ImageSequence.Iterator(made)]
        times = [frame.info["duration"] for frame in ImageSequence.Iterator(made)]
    sheet = Image.new("RGB", (frames[0].width, frames[0].height * len(frames[::8])))
    for number, frame in enumerate(frames[::8]):
        sheet.paste(frame, (0, number * frame.height))
    palette = sheet.quantize(PALETTE)
    small = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]
    small[0].save(place, save_all=True, append_images=small[1:], duration=times, loop=0, optimize=True)


if __name__ == "__main__":
    place = Path(__file__).parent / "focus-and-dilution.gif"
    moving_picture().save(place, writer=PillowWriter(fps=PER_SECOND))
    shrink(place)
    print(f"{place.name}: {place.stat().st_size / 1e6:.2f} MB")
