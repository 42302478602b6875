"""Black boxes with random incoming tuples and an exact way to their beliefs, for the tests and the benchmark of oracles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.special import digamma, ndtr, polygamma

from heliograph.families import Bernoulli, Beta, Family, Gamma, Gaussian, MultivariateGaussian
from heliograph.oracles import QuadratureOracle, Sampler, sampler_of

GRAVITY = 9.81


class BlackBox(NamedTuple):
    """A factor, a way to draw incoming tuples, and the reference beliefs (port -> Family)."""

    sampler: Sampler
    incoming: Callable[[np.random.Generator, int], dict[str, Any]]
    reference: Callable[[dict[str, Any]], dict[str, Family]]


def log_uniform(rng: np.random.Generator, low: float, high: float, n: int) -> np.ndarray:
    return np.exp(rng.uniform(np.log(low), np.log(high), n))


def by_quadrature(sampler: Sampler) -> Callable[[dict[str, Any]], dict[str, Family]]:
    """Adaptive quadrature, itself tested against cases of other hands."""

    def reference(incoming: dict[str, Any]) -> dict[str, Family]:
        answer = QuadratureOracle().ask(np.random.default_rng(0), sampler, incoming)
        assert not answer.failed.any(), "the reference itself must not fail"
        return answer.beliefs

    return reference


def on_grid(message: Gaussian, n_nodes: int = 6001) -> tuple[np.ndarray, np.ndarray]:
    """Nodes (n, g) over ten standard deviations of a Gaussian message, and its log density there up to a constant."""
    t = np.linspace(-10, 10, n_nodes)
    return message.mean[:, None] + np.sqrt(message.variance)[:, None] * t, np.broadcast_to(
        -0.5 * t**2, (len(message), n_nodes)
    )


def normalised(log_w: np.ndarray) -> np.ndarray:
    w = np.exp(log_w - log_w.max(axis=1, keepdims=True))
    return w / w.sum(axis=1, keepdims=True)


def mixed(w: np.ndarray, mean: np.ndarray, variance: Any = 0.0) -> Gaussian:
    """The projection of a mixture with weights (n, g) of Gaussians."""
    m = (w * mean).sum(axis=1)
    return Gaussian(m, (w * (variance + (mean - m[:, None]) ** 2)).sum(axis=1))


def scaled_reference(
    x: Gaussian, c: Callable[[np.ndarray], np.ndarray], y: Gaussian, out: Gaussian
) -> tuple[Gaussian, ...]:
    """Beliefs of x, y and out for ``out = c(x) y``: conjugate given x, a trapezoid rule over x."""
    nodes, log_w = on_grid(x)
    k, my, vy, mo, vo = c(nodes), y.mean[:, None], y.variance[:, None], out.mean[:, None], out.variance[:, None]
    total = k**2 * vy + vo
    w = normalised(log_w - 0.5 * np.log(total) - 0.5 * (mo - k * my) ** 2 / total)
    mean_y, variance_y = my + vy * k * (mo - k * my) / total, vy * vo / total
    return mixed(w, nodes), mixed(w, mean_y, variance_y), mixed(w, k * mean_y, k**2 * variance_y)


# ---- one unknown: logistic ------------------------------------------------------------------------------------------
def logistic(z):
    return 1 / (1 + np.exp(-z))


def logistic_incoming(rng, n):
    a, b = rng.uniform(1, 3, (2, n))
    return {"z": Gaussian(2 * rng.standard_normal(n), log_uniform(rng, 0.3, 30, n)), "out": Beta(a, b)}


# ---- no unknown input, all noise: compound gamma --------------------------------------------------------------------
def compound_gamma(rng, size):
    return rng.gamma(1.0, size=size) / rng.gamma(1.0, size=size)


def compound_gamma_incoming(rng, n):
    tau = np.minimum(rng.gamma(1.0, size=n) / rng.gamma(1.0, size=n), 30.0)  # the far tail is met by no sampler
    count = rng.integers(10, 60, n)
    squares = rng.chisquare(count) / tau
    return {"out": Gamma(count / 2 + 1.0, squares / 2)}


def compound_gamma_reference(incoming):
    """The factor collapses to (1 + tau)^-2: a trapezoid rule over log tau."""
    m = incoming["out"]
    centre = (digamma(m.shape_parameter) - np.log(m.rate))[:, None]
    u = centre + np.linspace(-30, 30, 20_001) * np.sqrt(polygamma(1, m.shape_parameter))[:, None]
    tau = np.exp(u)
    w = normalised(m.shape_parameter[:, None] * u - m.rate[:, None] * tau - 2 * np.log1p(tau))
    return {"out": Gamma.from_statistics((w * tau).sum(axis=1), (w * u).sum(axis=1))}


# ---- two unknowns: product ------------------------------------------------------------------------------------------
def product(a, b):
    return a * b


def product_incoming(rng, n):
    mean = 2 * rng.standard_normal((2, n))
    v = np.stack([log_uniform(rng, 0.05, 4, n) for _ in range(2)])
    draw = (mean + np.sqrt(v) * rng.standard_normal((2, n))).prod(axis=0)
    v_out = log_uniform(rng, 0.05, 5, n)
    out = Gaussian(draw + np.sqrt(v_out) * rng.standard_normal(n), v_out)
    return {"a": Gaussian(mean[0], v[0]), "b": Gaussian(mean[1], v[1]), "out": out}


def product_reference(incoming):
    a, b, out = scaled_reference(incoming["a"], lambda a: a, incoming["b"], incoming["out"])
    return {"a": a, "b": b, "out": out}


# ---- three unknowns: throwing a ball --------------------------------------------------------------------------------
def ball(log_speed, s, height):
    theta = np.arctan(np.exp(s))
    speed = np.exp(log_speed)
    up, along = speed * np.sin(theta), speed * np.cos(theta)
    return along * (up + np.sqrt(up**2 + 2 * GRAVITY * np.maximum(height, 0.0))) / GRAVITY


def ball_incoming(rng, n):
    means = np.stack(
        [np.log(10) + 0.3 * rng.standard_normal(n), 0.5 * rng.standard_normal(n), rng.uniform(1.5, 2.5, n)]
    )
    v = np.stack([log_uniform(rng, 0.005, 0.1, n), log_uniform(rng, 0.01, 0.3, n), log_uniform(rng, 0.01, 0.05, n)])
    d = ball(*(means + np.sqrt(v) * rng.standard_normal((3, n))))
    v_out = log_uniform(rng, 0.3, 5, n)
    out = Gaussian(d + np.sqrt(v_out) * rng.standard_normal(n), v_out)
    ports = ("log_speed", "s", "height")
    return {**{k: Gaussian(means[j], v[j]) for j, k in enumerate(ports)}, "out": out}


def ball_reference(incoming):
    """A plain trapezoid grid over eight standard deviations of every input, row by row."""
    t = [np.linspace(-8, 8, k) for k in (241, 61, 25)]
    grid = [g.ravel() for g in np.meshgrid(*t, indexing="ij")]
    beliefs: dict[str, list] = {"log_speed": [], "s": [], "height": [], "out": []}
    for i in range(len(incoming["out"])):
        x = [incoming[k][i].mean + np.sqrt(incoming[k][i].variance) * g for k, g in zip(beliefs, grid, strict=False)]
        d = ball(*x)
        log_w = -0.5 * sum(g**2 for g in grid) + incoming["out"][i].log_density(d)
        w = np.exp(log_w - log_w.max())
        w /= w.sum()
        for k, value in zip(beliefs, (*x, d), strict=True):
            mean = w @ value
            beliefs[k].append((mean, w @ (value - mean) ** 2))
    return {k: Gaussian(*np.array(v).T) for k, v in beliefs.items()}


# ---- data and two unknowns: corn yield ------------------------------------------------------------------------------
def corn(t, t_opt, y_max):
    p = np.where(t < t_opt, 1e-3, 1e-2)
    return y_max * np.exp(-p * (t - t_opt) ** 2)


def corn_incoming(rng, n):
    t, opt, top = rng.uniform(10, 35, n), rng.uniform(18, 26, n), rng.uniform(50, 150, n)
    v_opt, v_top = log_uniform(rng, 1, 16, n), log_uniform(rng, 4, 400, n)
    y = corn(t, opt + np.sqrt(v_opt) * rng.standard_normal(n), top + np.sqrt(v_top) * rng.standard_normal(n))
    v_out = log_uniform(rng, 4, 100, n)
    out = Gaussian(y + np.sqrt(v_out) * rng.standard_normal(n), v_out)
    return {"t": t, "t_opt": Gaussian(opt, v_opt), "y_max": Gaussian(top, v_top), "out": out}


def corn_reference(incoming):
    t = incoming["t"][:, None]
    opt, top, out = scaled_reference(incoming["t_opt"], lambda x: corn(t, x, 1.0), incoming["y_max"], incoming["out"])
    return {"t_opt": opt, "y_max": top, "out": out}


# ---- a vector: range in the plane -----------------------------------------------------------------------------------
def distance(position, anchor):
    return np.sqrt(((position - anchor) ** 2).sum(axis=-1))


def distance_incoming(rng, n):
    anchor = np.array([[5.0, 5.0], [-5.0, 5.0], [-5.0, -5.0], [5.0, -5.0]])[rng.integers(0, 4, n)]
    mean = 3 * rng.standard_normal((n, 2))
    root = rng.standard_normal((n, 2, 2)) * np.sqrt(log_uniform(rng, 0.05, 4, n))[:, None, None]
    covariance = root @ np.swapaxes(root, 1, 2) + 0.02 * np.eye(2)
    where = mean + (np.linalg.cholesky(covariance) @ rng.standard_normal((n, 2, 1)))[..., 0]
    v_out = log_uniform(rng, 0.01, 1, n)
    out = Gaussian(distance(where, anchor) + np.sqrt(v_out) * rng.standard_normal(n), v_out)
    return {"position": MultivariateGaussian(mean, covariance), "anchor": anchor, "out": out}


def distance_reference(incoming):
    """A trapezoid rule in polar coordinates around the anchor, row by row."""
    angle = np.linspace(0, 2 * np.pi, 1200, endpoint=False)
    direction = np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    means, covariances, ranges = [], [], []
    for i in range(len(incoming["out"])):
        out = incoming["out"][i]
        sd = np.sqrt(out.variance)
        r = np.linspace(max(1e-9, out.mean - 9 * sd), out.mean + 9 * sd, 181)[:, None]
        x = (incoming["anchor"][i] + r[..., None] * direction).reshape(-1, 2)
        log_w = incoming["position"][i].log_density(x) + (out.log_density(r) + np.log(r) + 0 * angle).ravel()
        w = normalised(log_w[None])[0]
        means.append(w @ x)
        covariances.append((w[:, None] * (x - means[-1])).T @ (x - means[-1]))
        ranges.append(mixed(w[None], (r + 0 * angle).reshape(1, -1)))
    out = Gaussian([float(g.mean[0]) for g in ranges], [float(g.variance[0]) for g in ranges])
    return {"position": MultivariateGaussian(np.array(means), np.array(covariances)), "out": out}


# ---- stochastic: a noisy threshold, with a label or a number --------------------------------------------------------
def noisy_sign(x, rng):
    return x + rng.standard_normal(x.shape) > 0


def noisy_sign_incoming(rng, n):
    return {
        "x": Gaussian(rng.standard_normal(n), log_uniform(rng, 0.3, 10, n)),
        "out": Bernoulli(rng.uniform(0.02, 0.98, n)),
    }


def noisy_sign_reference(incoming):
    """A trapezoid rule over x: the noise integrates to a normal distribution function."""
    x, log_w = on_grid(incoming["x"])
    p = incoming["out"].p[:, None]
    one, zero = p * ndtr(x), (1 - p) * ndtr(-x)
    w = normalised(log_w + np.log(one + zero))
    return {"x": mixed(w, x), "out": Bernoulli((w * one / (one + zero)).sum(axis=1))}


def noisy_ramp(x, rng):
    return np.maximum(x, 0.0) + rng.standard_normal(x.shape)


def noisy_ramp_incoming(rng, n):
    x = Gaussian(rng.standard_normal(n), log_uniform(rng, 0.3, 10, n))
    return {"x": x, "out": Gaussian(2 * rng.standard_normal(n), log_uniform(rng, 0.1, 4, n))}


def noisy_ramp_reference(incoming):
    """A trapezoid rule over x; the output is conjugate given x."""
    x, log_w = on_grid(incoming["x"])
    ramp, mo, vo = np.maximum(x, 0.0), incoming["out"].mean[:, None], incoming["out"].variance[:, None]
    w = normalised(log_w - 0.5 * (mo - ramp) ** 2 / (1 + vo))
    return {"x": mixed(w, x), "out": mixed(w, (ramp * vo + mo) / (1 + vo), vo / (1 + vo))}


_LOGISTIC = sampler_of(logistic, Beta)

BLACK_BOXES: dict[str, BlackBox] = {
    "logistic": BlackBox(_LOGISTIC, logistic_incoming, by_quadrature(_LOGISTIC)),
    "compound gamma": BlackBox(sampler_of(compound_gamma, Gamma), compound_gamma_incoming, compound_gamma_reference),
    "product": BlackBox(sampler_of(product, Gaussian), product_incoming, product_reference),
    "ball": BlackBox(sampler_of(ball, Gaussian), ball_incoming, ball_reference),
    "corn yield": BlackBox(sampler_of(corn, Gaussian), corn_incoming, corn_reference),
    "range": BlackBox(sampler_of(distance, Gaussian), distance_incoming, distance_reference),
    "noisy sign": BlackBox(sampler_of(noisy_sign, Bernoulli), noisy_sign_incoming, noisy_sign_reference),
    "noisy ramp": BlackBox(sampler_of(noisy_ramp, Gaussian), noisy_ramp_incoming, noisy_ramp_reference),
}
