"""Numbers read off the plots of arXiv 2602.19143, to +-.01 in loss and +-5 steps; all on the authors' features of seed 0.

Divergences are triples: from the truncated teachers T_1, T_2, T_3, in figure 13 from the best members of the classes F_j.
"""

BAYES = 0.511
LEVELS = (3.912, 1.472, 0.812, 0.504)
"""Of spans 2 2 2 and ratio 1.7."""

Values = dict[int, float]
Triples = dict[int, tuple[float, float, float]]

MINIMAL: Values = {50: 1.721, 100: 1.463, 200: 1.395, 300: 1.375, 400: 0.909, 500: 0.850, 600: 0.801, 700: 0.664}
MINIMAL |= {800: 0.613, 1000: 0.596}
MINIMAL_KL: Triples = {300: (1.08, 0.847, 0.871), 500: (1.747, 0.319, 0.346)}
"""Figure 1. Noise of 1e-9 leaves the step of the second transition to rounding: steps count as an order only."""

ONE_LAYER_KL: Triples = {60: (1.466, 1.011, 0.968), 200: (1.98, 0.429, 0.457), 990: (3.06, 0.786, 0.201)}
ONE_LAYER_TOPS = {60: (0, 0, 0), 300: (0, 0, 1), 1000: (0, 1, 2)}
"""Figures 2 and 3; the group that each head attends to most, 0 the most important."""

INITS = ("Xavier", "1e-3", "1e-6", "1e-9", "0")
XAVIER: Values = {100: 0.904, 200: 0.508, 400: 0.264, 500: 0.139, 600: 0.099}
FIRST_FALL = {"Xavier": 172.0, "1e-3": 248.0, "1e-6": 354.0, "1e-9": 358.0, "0": None}
SECOND_FALL = {"Xavier": 501.0, "1e-3": 556.0, "1e-6": 640.0, "1e-9": 722.0, "0": None}
FALLS = (1.142 - BAYES, 0.658 - BAYES)
"""Figure 4 left: excess loss, and the steps at which it crosses the middles between levels."""
RATIOS: dict[str, Values] = {
    "1": {50: 1.44, 100: 1.01, 150: 0.233, 200: 0.089},
    "1.3": {100: 1.08, 150: 0.667, 200: 0.514, 250: 0.192},
    "1.5": {150: 0.708, 200: 0.502, 250: 0.452, 300: 0.300},
}
"""Figure 4 right: excess loss by the ratio of importances."""

SIZES = {"600": (70, 1.33, 1), "2000": (265, 0.81, 2), "9000": (760, 0.09, 3), "online": (None, 0.02, None)}
"""Figure 5: step, excess and nearest class of the best moment."""

ONLINE: Values = {300: 1.38, 400: 0.941, 500: 0.833, 650: 0.643, 1000: 0.532, 1990: 0.527}
ONLINE_KL: Triples = {1990: (2.62, 0.612, 0.018)}
"""Figures 6 and 7."""

REVERSED: Values = {50: 2.21, 80: 1.80, 150: 1.035, 300: 0.922, 500: 0.593, 990: 0.474}
"""Figures 8 and 9."""

FLOW_DROPS = ((4.5, 5.0), (51.0, 65.0), (160.0, 236.0))
FLOW_LEVELS = (1.945, 0.5, 0.0)
"""Figure 10, over draws of the noise."""

TWO_LAYERS: Values = {50: 1.80, 100: 1.39, 150: 1.22, 250: 0.765, 370: 0.601, 600: 0.335}
"""Figures 11 and 12; of the minimal student with two layers."""

WEIGHTED_KL: Triples = {110: (0.541, 0.606, 0.773), 230: (0.868, 0.131, 0.296), 990: (1.40, 0.375, 0.093)}
"""Figures 13 and 14."""

OVERLAPPING: Values = {100: 1.013, 300: 0.642, 500: 0.588, 1000: 0.454}
"""Figures 15 to 17; which number of heads they are of is not said."""

SGD_KL: Triples = {600: (0.43, 0.54, 0.76), 2000: (0.75, 0.17, 0.35), 6900: (1.55, 0.39, 0.18)}
"""Figures 18 and 19."""
