"""Factors for the audit of the oracles, with incoming tuples of five kinds and the exact beliefs of each tuple."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from audit_truth import Given, deterministic, log_message, one_unknown, two_unknown
from scipy.special import digamma, gammaln, ndtr

from heliograph.families import Bernoulli, Beta, Categorical, Family, Gamma, Gaussian
from heliograph.oracles import Sampler, sampler_of

KINDS = ("narrow", "broad", "conflicting", "two-moded", "uniform")


class Factor(NamedTuple):
    """A black box, the families of its inputs, and its noise integrated out (None: it has none)."""

    sampler: Sampler
    given: Callable[[Any, np.ndarray], Given] | None = None  # output's message, input -> what is known there
    input_family: type[Family] = Gaussian
    widest: float = 10.0  # deviation of a broad cavity
    narrowest: float = 1e-4  # deviation of a narrow output, in its own unit
    typical: Callable[[np.ndarray], np.ndarray] | None = None  # a noiseless value of the output, where there is noise
    no_moments: bool = False  # the output has no variance without a proper message on it
    least_mean: float = 0.0  # of the last input, where the function has a pole at 0
    linear: Callable[[np.ndarray], np.ndarray] | None = None  # given the second input the function is this times the first


def _value(f: Factor, inputs: list[np.ndarray]) -> np.ndarray:
    return np.asarray((f.typical or f.sampler.function)(*inputs), dtype=float)


def incoming(f: Factor, kind: str, rng: np.random.Generator, n: int) -> dict[str, Any]:
    """Tuples of one kind."""
    low, high = {"narrow": (0.3, 2.0), "broad": (2.0, f.widest)}.get(kind, (0.3, min(2.0, f.widest)))
    high = min(high, f.widest)
    messages, at = {}, []
    for port in f.sampler.inputs:
        sd = np.exp(rng.uniform(np.log(min(low, high)), np.log(high), n))
        mean = rng.normal(size=n) * (0.3 * sd if kind == "two-moded" else 1.5)
        if f.least_mean and port == f.sampler.inputs[-1]:
            mean = f.least_mean * sd * np.exp(rng.uniform(0, 1, n))
        away = rng.uniform(2.5, 5.0, n) * np.sign(rng.normal(size=n)) if kind == "conflicting" else rng.normal(size=n)
        if f.least_mean and port == f.sampler.inputs[-1]:
            away = np.clip(away, -0.6 * f.least_mean, None)
        if f.input_family is Gamma:
            shape = 1 + 8 / sd**2
            messages[port] = Gamma(shape, shape / np.exp(mean))
            at.append(np.exp(mean + away / np.sqrt(shape)))
        else:
            messages[port] = Gaussian(mean, sd**2)
            at.append(mean + sd * away)
    wanted = _value(f, at)
    least = f.narrowest if kind in ("narrow", "two-moded") else 0.03
    spread = {"narrow": (least, 0.03), "broad": (0.3, 3.0), "conflicting": (0.03, 0.5), "two-moded": (least, 0.3)}
    width = np.exp(rng.uniform(*np.log(spread.get(kind, (1.0, 2.0))), n))
    return messages | {"out": _message(f, kind, rng, wanted, width)}


def _message(f: Factor, kind: str, rng: np.random.Generator, wanted: np.ndarray, width: np.ndarray) -> Any:
    family: Any = f.sampler.output
    n = len(wanted)
    if family is Categorical:
        p = rng.dirichlet(np.full(8, 0.3 if kind != "broad" else 3.0), n) + 1e-6
        return Categorical(np.full((n, 8), 1 / 8) if kind == "uniform" else p / p.sum(axis=1, keepdims=True))
    if family is Bernoulli:
        p = {"narrow": 1 - 0.5 * width, "broad": rng.uniform(0.2, 0.8, n), "uniform": np.full(n, 0.5)}.get(kind, 1 - width**2)
        return Bernoulli(np.where(rng.random(n) < 0.5, p, 1 - p))
    if kind == "uniform":
        return Gaussian(np.zeros(n), np.full(n, 1e4)) if f.no_moments else family.uniform((n,))
    if family is Gaussian:
        return Gaussian(wanted + width * rng.normal(size=n) * (kind != "conflicting"), (width * (1 + np.abs(wanted))) ** 2)
    strength = np.minimum(1 / width**2, 1e6)
    if family is Gamma:
        return Gamma(1 + strength, strength / np.maximum(wanted, 1e-12))
    p = np.clip(wanted, 1e-4, 1 - 1e-4)
    return Beta(1 + strength * p, 1 + strength * (1 - p))


def truth(f: Factor, messages: dict[str, Any]) -> dict[str, Family]:
    """The exact beliefs of one row."""
    out = messages["out"]
    inputs = {k: m for k, m in messages.items() if k != "out"}
    family: Any = f.sampler.output
    if f.given is not None:
        port = f.sampler.inputs[0]
        return one_unknown(port, inputs[port], family, lambda x: f.given(out, x[port]), 500)  # type: ignore[misc]
    if family is Bernoulli:
        log_p = np.log([1 - out.p[0], out.p[0]])

        def look(x: dict[str, np.ndarray]) -> Given:
            v = np.asarray(f.sampler.function(**x), dtype=int)
            return Given(log_p[v], (v.astype(float),))
    else:
        look = deterministic(f.sampler.function, out)
    if f.linear is not None:
        return _given_the_second(f, inputs, out)
    if len(inputs) == 2:
        return two_unknown(inputs, family, look)
    port, message = next(iter(inputs.items()))
    return one_unknown(port, message, family, look)


def _given_the_second(f: Factor, inputs: dict[str, Any], out: Any) -> dict[str, Family]:
    """``out = c(b) a``: given b everything is Gaussian, and only b is left to integrate."""
    (first, a), (second, b) = inputs.items()
    m, v = float(a.mean[0]), float(a.variance[0])

    def look(x: dict[str, np.ndarray], to: str) -> Given:
        c = f.linear(x[second])  # type: ignore[misc]
        log_l, mean, variance = _gaussian_given(c * m, c**2 * v + 1e-300, out)
        if to == "out":
            return Given(log_l, (mean, variance))
        shift, precision = (float(p[0]) for p in out.naturals)
        total = 1 / v + c**2 * precision
        return Given(log_l, ((m / v + c * shift) / total, 1 / total))

    found = {to: one_unknown(second, b, Gaussian, lambda x, to=to: look(x, to)) for to in (first, "out")}
    return {first: found[first]["out"], second: found["out"][second], "out": found["out"]["out"]}


def _gaussian_given(mean: np.ndarray, variance: np.ndarray, out: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Log likelihood and posterior moments of an output that is N(mean, variance) before its message."""
    a, b = (float(p[0]) for p in out.naturals)
    total = 1 / variance + b
    log_l = -0.5 * np.log1p(b * variance)
    log_l += -0.5 * (mean - a / b) ** 2 / (variance + 1 / b) if b > 0 else 0.0
    return log_l, (mean / variance + a) / total, 1 / total


def _mixed(parts: list[tuple[float, np.ndarray, np.ndarray]], out: Any) -> Given:
    """The output given the input is a mixture of Gaussians."""
    each = [(np.log(w), *_gaussian_given(m, v, out)) for w, m, v in parts]
    log_l = np.array([w + l for w, l, _, _ in each])
    top = log_l.max(axis=0)
    p = np.exp(log_l - top)
    total = p.sum(axis=0)
    p /= total
    mean = sum(q * m for q, (_, _, m, _) in zip(p, each, strict=True))
    variance = sum(q * (v + (m - mean) ** 2) for q, (_, _, m, v) in zip(p, each, strict=True))
    return Given(top + np.log(total), (mean, variance))  # type: ignore[arg-type]


def _students(z: np.ndarray, out: Any, df: float = 4.0, scale: float = 0.5) -> Given:
    """Student-t noise as a mixture over 80 precisions: even nodes on their logarithm."""
    t = np.linspace(-7.0, 3.0, 80)
    log_p = 0.5 * df * t - 0.5 * df * np.exp(t)
    p = np.exp(log_p - log_p.max())
    return _mixed([(w, z, np.full_like(z, scale**2 * np.exp(-s))) for w, s in zip(p / p.sum(), t, strict=True)], out)


def _counts(z: np.ndarray, out: Any) -> Given:
    k = np.arange(7)
    log_p = k * z[:, None] - np.exp(z)[:, None] - gammaln(k + 1)
    p = np.exp(log_p)
    p = np.concatenate([p, np.maximum(1 - p.sum(axis=1, keepdims=True), 0.0)], axis=1)
    joint = p * out.p[0]
    total = joint.sum(axis=1)
    return Given(np.log(total), (joint / total[:, None],))


def _flips(z: np.ndarray, out: Any) -> Given:
    joint = np.stack([ndtr(-z) * (1 - out.p[0]), ndtr(z) * out.p[0]])
    return Given(np.log(joint.sum(axis=0)), (joint[1] / joint.sum(axis=0),))


def _scaled(z: np.ndarray, out: Any, shape: float = 3.0) -> Given:
    a, b = (float(p[0]) for p in out.naturals)
    rate = shape * np.exp(-z)
    s, r = shape + a, rate + b
    log_l = shape * np.log(rate) - s * np.log(r)
    return Given(log_l, (s / r, digamma(s) - np.log(r)))


def _plain(function: Callable[..., Any], output: Any, name: str, **rest: Any) -> Factor:
    return Factor(sampler_of(function, output, name=name), **rest)


def _noisy(function: Any, output: Any, name: str, given: Any, typical: Any, **rest: Any) -> Factor:
    return Factor(sampler_of(function, output, name=name), lambda out, z: given(z, out), typical=typical, **rest)


def _student_draw(z, rng):
    return z + 0.5 * rng.standard_t(4.0, z.shape)


def _switch_draw(z, rng):
    return np.where(rng.random(z.shape) < 0.3, -z + 2.0 * rng.standard_normal(z.shape), z + 0.2 * rng.standard_normal(z.shape))


DETERMINISTIC = {
    f.sampler.name: f
    for f in (
        _plain(lambda z: z**2, Gaussian, "square"),
        _plain(lambda z: np.abs(z), Gaussian, "absolute"),
        _plain(lambda z: np.sin(3 * z), Gaussian, "sine"),
        _plain(lambda z: np.tanh(z), Gaussian, "tanh"),
        _plain(lambda z: np.tan(1.4 * np.tanh(z)), Gaussian, "tangent"),
        _plain(lambda z: np.maximum(z, 0.0), Gaussian, "relu"),
        _plain(lambda z: np.sign(z), Gaussian, "sign"),
        _plain(lambda z: np.round(z), Gaussian, "round"),
        _plain(lambda z: np.exp(z), Gaussian, "exp", widest=2.0),
        _plain(lambda z: 1 / (1 + np.exp(-z)), Beta, "logistic"),
        _plain(lambda z: np.exp(z), Gamma, "exp to Gamma", widest=3.0),
        _plain(lambda z: np.arcsinh(3 * z), Gaussian, "asinh"),
        _plain(lambda z: z**3 - z, Gaussian, "cubic", widest=4.0),
        _plain(lambda z: np.sqrt(np.abs(z)), Gaussian, "root"),
        _plain(lambda z: np.zeros_like(z) + 0.7, Gaussian, "constant"),
        _plain(lambda z: (z > 0.3) & (z < 2.0), Bernoulli, "between"),
        _plain(lambda x: x**1.5, Gamma, "power of Gamma", input_family=Gamma),
        _plain(lambda a, b: a * b, Gaussian, "product", widest=4.0, narrowest=0.02, linear=lambda b: b),
        _plain(lambda a, b: a / b, Gaussian, "ratio", widest=4.0, narrowest=0.02, no_moments=True, least_mean=3.0, linear=lambda b: 1 / b),
        _plain(lambda a, b: np.sqrt(a**2 + b**2), Gaussian, "range", widest=4.0, narrowest=0.02),
        _plain(lambda a, b: np.maximum(a, b), Gaussian, "maximum", widest=4.0, narrowest=0.02),
    )
}
STOCHASTIC = {
    f.sampler.name: f
    for f in (
        _noisy(
            lambda z, rng: z + 0.3 * rng.standard_normal(z.shape), Gaussian, "added noise",
            lambda z, out: _mixed([(1.0, z, np.full_like(z, 0.09))], out), lambda z: z, narrowest=0.01, widest=4.0,
        ),
        _noisy(
            lambda z, rng: z * (1 + 0.3 * rng.standard_normal(z.shape)), Gaussian, "factor of noise",
            lambda z, out: _mixed([(1.0, z, 0.09 * z**2 + 1e-300)], out), lambda z: z, narrowest=0.01, widest=4.0,
        ),
        _noisy(_student_draw, Gaussian, "Student noise", _students, lambda z: z, narrowest=0.01, widest=4.0),
        _noisy(
            _switch_draw, Gaussian, "switch",
            lambda z, out: _mixed([(0.3, -z, np.full_like(z, 4.0)), (0.7, z, np.full_like(z, 0.04))], out),
            lambda z: z, narrowest=0.01, widest=4.0,
        ),
        _noisy(
            lambda z, rng: np.minimum(rng.poisson(np.exp(np.minimum(z, 9.0))), 7), Categorical, "counts", _counts,
            lambda z: z, widest=3.0,
        ),
        _noisy(lambda z, rng: z + rng.standard_normal(z.shape) > 0, Bernoulli, "noisy threshold", _flips, lambda z: z, widest=4.0),
        _noisy(
            lambda z, rng: np.exp(z) * rng.gamma(3.0, 1 / 3.0, z.shape), Gamma, "gamma noise", _scaled, np.exp,
            widest=2.0, narrowest=0.01,
        ),
    )
}  # fmt: skip
__all__ = ["DETERMINISTIC", "KINDS", "STOCHASTIC", "Factor", "incoming", "log_message", "truth"]
