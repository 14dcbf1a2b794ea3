"""Closed forms of scan and snap under the modified decoder, with the corrections that make them agree with the exact flow.

M outputs, K classes with prior 1/K, rates eta_Y and eta_Z. x = M h is a class's own-minus-other logit.
"""

import math

import numpy as np
from scipy.special import lambertw, wrightomega


def logit_gap(t: np.ndarray | float, outputs: int, classes: int, rate_y: float) -> np.ndarray:
    """x(t) from e^x + (M-1) x = R, R = M eta_Y t / K + 1 [SnS:lemma-6].

    With w = e^x/(M-1) it is w + ln w = R/(M-1) - ln(M-1), which Wright's omega solves. Then x is R/(M-1) - w, and ln((M-1) w):
    of these the one that is exact to rounding.
    """
    share = (outputs * rate_y * np.asarray(t, dtype=float) / classes + 1.0) / (outputs - 1)
    w = wrightomega(share - math.log(outputs - 1))
    return np.where((outputs - 1) * w > math.e, np.log((outputs - 1) * w), share - w)


def gamma(t: np.ndarray | float, outputs: int, classes: int, rate_y: float) -> np.ndarray:
    """f_n . Y (e_n - alpha_n) = M (M-1) h / (M - 1 + e^x) [SnS:gamma].

    The paper prints (M-1)^2 h in the numerator; the exact flow decides for M (M-1) h. It rises like eta_Y t / K until
    t0' = K ln M / eta_Y and from t0 on falls like K ln(M eta_Y t / K) / (eta_Y t).
    """
    x = logit_gap(t, outputs, classes, rate_y)
    return (outputs - 1) * x / (outputs - 1 + np.exp(x))


def driving(t: np.ndarray | float, outputs: int, classes: int, rate_y: float, rate_z: float) -> np.ndarray:
    """Gamma(t) = eta_Z int gamma dt = eta_Z K M (M-1) h^2 / (2 eta_Y) for classes that share one query [SnS:theorem-4].

    With one query per class the prior 1/K stays: divide by K.
    """
    x = logit_gap(t, outputs, classes, rate_y)
    return rate_z * classes * (outputs - 1) / outputs * x**2 / (2 * rate_y)


def growth(drive: np.ndarray, start: float) -> np.ndarray:
    """B = 1/4 ln(1 + 4 Gamma / C0): the constant inside the logarithm is missing in the paper [SnS:theorem-4].

    The common token's score is z_ct = -B.
    """
    return 0.25 * np.log1p(4 * drive / start)


def start_constant(p_common: float, squares: float, classes: int) -> float:
    """C0 = rho0^4 (1 + (K-1) f_c^2) / ((K-1) p_c^4), f_c = p_c / rho0, rho0^2 = sum_l P(l|n)^2 [SnS:theorem-4]."""
    share = p_common**2 / squares
    return squares**2 * (1 + (classes - 1) * share) / ((classes - 1) * p_common**4)


def small_vocabulary(share: float, outputs: int) -> float:
    """1 + 1/((M-1) f_c^2), the factor of Gamma that the large-M form of theorem 4 drops [SnS:theorem-4].

    Exactly, dz_ct/dt = -(eta_Z/K) gamma (K-1) f_c^2 [f_c^2 + 1/(M-1)] / (1 + (K-1) f_c^2); the paper keeps f_c^4.
    """
    return 1 + 1 / ((outputs - 1) * share)


def t0_prime(outputs: int, classes: int, rate_y: float) -> float:
    """t0' = K ln M / eta_Y: until then the logit grows in proportion to time [SnS:theorem-4]."""
    return classes * math.log(outputs) / rate_y if rate_y > 0 else math.inf


def t0(outputs: int, classes: int, rate_y: float) -> float:
    """t0 = 2 (1 + omega_1) K ln M / eta_Y: from then on the logit grows like its logarithm [SnS:theorem-4]."""
    return 2 * (1 + omega_1(outputs)) * t0_prime(outputs, classes, rate_y)


def omega_1(outputs: int) -> float:
    """omega_1 of lemma 8: (1 + omega_1) ln M is the larger root of e^x = (M-1) x [SnS:theorem-4].

    x - ln x = ln(M-1) is x = -W(-1/(M-1)) on the lower branch of Lambert's W; below M = 4 there is no root, and x = 1 is nearest.
    """
    root = -float(lambertw(max(-1 / (outputs - 1), -math.exp(-1)), -1).real)
    return root / math.log(outputs) - 1


def discrete_gap(steps: int, outputs: int, rate_y: float) -> np.ndarray:
    """h* after 0..steps steps of h <- h + eta_Y / (M - 1 + e^{M h}), one class [SnS:lemma-7]."""
    h = np.zeros(steps + 1)
    for k in range(steps):
        h[k + 1] = h[k] + rate_y / (outputs - 1 + math.exp(outputs * h[k]))
    return h


def decoder_pull(f: np.ndarray, strength: float, outputs: int, learned: np.ndarray | None = None) -> np.ndarray:
    """g_n = Y (e_n - alpha_n) as columns (keys, K), with the decoder of theorem 1 [SnS:theorem-1].

    Its logits are F^T Y = h (M E - 1), so Y = F (F^T F)^-1 h (M E - 1), and g_n = gamma F (F^T F)^-1 u_n with
    u_n = e_n - sum_{m != n} e_m / (M-1). This is eq. 9, gamma (iota_n f_n - sum beta_nm f_m), with exact iota and beta.

    Args:
        f: the features f_n (K, keys).
        strength: gamma(t).
        outputs: M.
        learned: features at which the decoder was learned; by default f. A decoder learned earlier shows how far theorem 1,
            which neglects the motion of attention, can be trusted.
    """
    learned = f if learned is None else learned
    pull = np.eye(len(f)) * (1 + 1 / (outputs - 1)) - 1 / (outputs - 1)  # column n is u_n
    return strength * np.linalg.solve(learned @ learned.T, learned).T @ pull


def attention_velocity(f: np.ndarray, g: np.ndarray, query: np.ndarray, rate_z: float) -> np.ndarray:
    """dz/dt (queries, keys) = (eta_Z/K) sum_{n: psi(n)=m} diag(f_n)(I - f_n f_n^T) g_n: lemma 1 with any g [SnS:lemma-4]."""
    out = np.zeros((int(query.max()) + 1, f.shape[1]))
    for n, row in enumerate(query):
        out[row] += rate_z / len(f) * f[n] * (g[:, n] - f[n] * (f[n] @ g[:, n]))
    return out


def steepest_time(outputs: int, classes: int, rate_y: float) -> float:
    """When gamma(t) is largest, on a grid of .15 % of the time [SnS:gamma]."""
    t = t0_prime(outputs, classes, rate_y) * np.geomspace(0.05, 20, 4001)
    return float(t[np.argmax(gamma(t, outputs, classes, rate_y))])
