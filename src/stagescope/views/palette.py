"""Colours of the page, for figures on paper: the same hues, and ramps through the same anchors (`viewer/colours.js`)."""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.colors import ListedColormap

CATEGORIES = ("#0072b2", "#d55e00", "#009e73", "#b8578b", "#c98500", "#3a9bd9", "#8a7a00", "#3d3d3d")
"""Okabe and Ito's eight, ordered by how well they stand on white."""
PALE = 0.8
"""Share of white in a tint."""
TINTS = tuple(
    "#" + "".join(f"{round(255 * PALE + (1 - PALE) * level):02x}" for level in bytes.fromhex(each[1:])) for each in CATEGORIES
)
"""The same in pale, for strips with names on them: stages on paper have the colours of those on the page."""
SEQUENTIAL = (
    (0.975, 0.012, 110),
    (0.88, 0.105, 122),
    (0.74, 0.12, 155),
    (0.6, 0.098, 195),
    (0.46, 0.098, 250),
    (0.33, 0.12, 285),
    (0.21, 0.09, 305),
)
"""From the colour of the paper to the strongest: lightness, chroma and hue in degrees (OKLCH)."""
DIVERGING = (
    (0.3, 0.11, 262),
    (0.52, 0.125, 255),
    (0.76, 0.085, 245),
    (0.975, 0.004, 90),
    (0.8, 0.1, 65),
    (0.58, 0.13, 48),
    (0.34, 0.09, 40),
)
"""From the strongest negative over zero to the strongest positive."""
STEPS = 255
_TO_CONES = np.array([[1, 0.3963377774, 0.2158037573], [1, -0.1055613458, -0.0638541728], [1, -0.0894841775, -1.291485548]])
_TO_LIGHT = np.array(
    [
        [4.0767416621, -3.3077115913, 0.2309699292],
        [-1.2684380046, 2.6097574011, -0.3413193965],
        [-0.0041960863, -0.7034186147, 1.707614701],
    ]
)
"""Ottosson's matrices from OKLab to linear light."""


def ramp(signed: bool, foot: float = 0.0) -> np.ndarray:
    """STEPS colours (steps, 3) in 0..1, lowest value first; `foot` is the share at the pale end that is left out."""
    anchors = np.array(DIVERGING if signed else SEQUENTIAL)
    angle = np.radians(anchors[:, 2])
    lab = np.stack([anchors[:, 0], anchors[:, 1] * np.cos(angle), anchors[:, 1] * np.sin(angle)], axis=1)
    at = np.linspace(foot, 1.0, STEPS) * (len(anchors) - 1)
    points = np.stack([np.interp(at, np.arange(len(anchors)), lab[:, axis]) for axis in range(3)], axis=1)
    light = np.clip((points @ _TO_CONES.T) ** 3 @ _TO_LIGHT.T, 0.0, 1.0)
    return np.where(light <= 0.0031308, 12.92 * light, 1.055 * light ** (1 / 2.4) - 0.055)


def colour_map(signed: bool = False, foot: float = 0.0) -> "ListedColormap":
    """The ramp for Matplotlib."""
    from matplotlib.colors import ListedColormap

    return ListedColormap(ramp(signed, foot), "page")
