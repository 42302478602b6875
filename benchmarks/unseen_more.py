"""Twelve more black boxes for `bench_unseen.py`: written, and run once, before anything was changed for them."""

import numpy as np

import heliograph as hg
from benchmarks.unseen_factors import EXACT, PLANE, SHARP, rows, times, two


# ---- one unknown number ----------------------------------------------------------------------------------------------
def converter(z):
    """A digital meter: saturated, and rounded to tenths."""
    return np.round(np.clip(2.0 * z, -1.5, 2.5), 1)


def phase(z, carrier):
    """An angle, in right angles: it wraps."""
    return np.angle(np.exp(1j * (1.5 * z + carrier))) / (np.pi / 2)


def regime(z):
    """Laminar below a threshold, turbulent above, with a jump between."""
    return np.where(z < 0.4, 0.6 * z, 1.5 + 0.2 * z)


def friction(z, reynolds):
    """Colebrook's friction factor in percent, by fixed-point steps; z is the log roughness."""
    rough, x = np.exp(np.clip(z, -14.0, -1.0)) / 3.7, np.full(np.shape(z), 7.0)
    for _ in range(12):
        x = -2.0 * np.log10(rough + 2.51 * x / reynolds)
    return 100.0 / x**2


def photometer():
    """Transmitted light below nothing is not a logarithm: NaN in a part of the domain."""

    @hg.factor(output=hg.Gaussian, partial=True)
    def absorbance(z):
        return np.log(1.5 + z)

    def build(rng):
        mu = rng.normal(0.0, 0.6, 25)
        true = np.maximum(mu + 0.3 * rng.standard_normal() + 0.5 * rng.standard_normal(25), -1.4)
        model = hg.Model()
        shift = model.gaussian("shift", 0.0, variance=0.09)
        z = model.gaussian("z", mu + shift, variance=0.25, size=25)
        model.gaussian("y", absorbance(z), variance=0.04, observed=np.log(1.5 + true) + 0.2 * rng.standard_normal(25))
        return model

    return absorbance, build, EXACT


# ---- several unknown numbers -----------------------------------------------------------------------------------------
def haldane(a, b, dose):
    """Growth on a substrate that poisons in excess; log affinity and log inhibition."""
    return 6.0 * dose / (np.exp(a) + dose + dose**2 / np.exp(b))


def one_compartment(a, b, t):
    """A drug swallowed: log rates of absorption and elimination, which may change places."""
    into, out = np.exp(np.clip(a, -6, 4)), np.exp(np.clip(b, -6, 4))
    gap = np.where(np.abs(into - out) < 1e-9, 1e-9, into - out)
    return 5.0 * into / gap * (np.exp(-out * t) - np.exp(-into * t))


def psychometric():
    """A detection task: threshold shared, slope of each session, guesses and lapses; data is the stimulus."""

    @hg.factor(output=hg.Beta)
    def detect(threshold, log_slope, stimulus):
        slope = np.exp(np.clip(log_slope, -5.0, 4.0))
        return 0.5 + 0.47 / (1.0 + np.exp(-np.clip(slope * (stimulus - threshold), -500, 500)))

    def build(rng):
        n = 12
        threshold, slope, x = rng.normal(0, 1), rng.normal(0.5, 0.4, n), rng.uniform(-3, 3, n)
        model = hg.Model()
        t = model.gaussian("threshold", 0.0, variance=1.0)
        s = model.gaussian("log slope", 0.5, variance=0.16, size=n)
        chance = detect(np.full(n, threshold), slope, x)
        model.bernoulli("y", detect(t, s, x), observed=(rng.random(n) < chance).astype(float))
        return model

    return detect, build, PLANE


def utility():
    """The worth of a choice among three: log-sum-exp of a table (data of rank two) times a taste of two numbers."""

    @hg.factor(output=hg.Gaussian, data_ranks={"table": 2})
    def worth(taste, table):
        score = np.einsum("nij,nj->ni", table, taste)
        top = score.max(axis=1)
        return top + np.log(np.exp(score - top[:, None]).sum(axis=1))

    def build(rng):
        table, taste = rng.normal(0, 1.5, (6, 3, 2)), rng.normal(0, 1, 2)
        seen = worth(np.tile(taste, (6, 1)), table) + 0.3 * rng.standard_normal(6)
        model = hg.Model()
        w = model.gaussian("taste", np.zeros(2), covariance=np.eye(2))
        model.gaussian("seen", worth(w, table), variance=0.09, observed=seen)
        return model

    return worth, build, PLANE


# ---- noise -----------------------------------------------------------------------------------------------------------
def heavy_tails():
    """A return with a log volatility and noise of three degrees of freedom; seen with a little more noise."""

    @hg.factor(output=hg.Gaussian)
    def earned(z, rng):
        return np.exp(np.clip(0.5 * z, -20.0, 20.0)) * rng.standard_t(3, size=z.shape)

    def build(rng):
        n = 10
        mu = rng.normal(0.0, 0.5, n)
        true = mu + 0.7 * rng.standard_normal(n)
        seen = np.exp(0.5 * true) * rng.standard_t(3, n) + 0.3 * rng.standard_normal(n)
        model = hg.Model()
        z = model.gaussian("z", mu, variance=0.49, size=n)
        model.gaussian("y", earned(z), variance=0.09, observed=seen)
        return model

    return earned, build, SHARP


def counter():
    """A detector with a dead time that misses some and counts none of the weak: a zero-inflated count, observed."""

    @hg.factor(output=int)
    def clicks(z, rng):
        rate = np.exp(np.clip(z, -20.0, 8.0))
        return np.where(rng.random(z.shape) < 0.2, 0, rng.poisson(rate / (1.0 + 0.05 * rate)))

    def build(rng):
        n = 10
        mu = rng.normal(1.0, 0.5, n)
        rate = np.exp(mu + 0.5 * rng.standard_normal(n))
        seen = np.where(rng.random(n) < 0.2, 0, rng.poisson(rate / (1.0 + 0.05 * rate)))
        model = hg.Model()
        z = model.gaussian("z", mu, variance=0.25, size=n)
        clicks(z, observed=seen)
        return model

    return clicks, build, SHARP


def polar():
    """A vector of two seen whole: the Cartesian place of a log radius and an angle."""

    @hg.factor(output=hg.MultivariateGaussian, dimension=2)
    def place(log_radius, angle):
        r = np.exp(np.clip(log_radius, -20.0, 20.0))
        return np.stack([r * np.cos(angle), r * np.sin(angle)], axis=-1)

    def build(rng):
        n = 6
        a, b = rng.normal(0.3, 0.4, n), rng.normal(0.0, 0.8, n)
        model = hg.Model()
        radius = model.gaussian("log radius", 0.3, variance=0.16, size=n)
        angle = model.gaussian("angle", 0.0, variance=0.64, size=n)
        seen = place(a, b) + 0.3 * rng.standard_normal((n, 2))
        model.gaussian("seen", place(radius, angle), covariance=0.09 * np.eye(2), observed=seen)
        return model

    return place, build, SHARP


def substrates(rng, n):
    return np.exp(rng.normal(0.0, 1.0, n))


def carriers(rng, n):
    return rng.uniform(-np.pi, np.pi, n)


def flows(rng, n):
    return np.exp(rng.uniform(9.0, 14.0, n))


FACTORS = {
    "converter": rows(converter, noise=0.05),
    "phase": rows(phase, data=carriers, noise=0.2),
    "regime": rows(regime, noise=0.3),
    "friction": rows(friction, centre=-7.0, noise=0.1, data=flows),
    "photometer": photometer,
    "haldane": two(haldane, (0.0, 0.5), (1.0, 0.5), noise=0.3, data=substrates),
    "drug": two(one_compartment, (0.3, 0.5), (-0.7, 0.5), noise=0.3, data=times),
    "psychometric": psychometric,
    "utility": utility,
    "heavy tails": heavy_tails,
    "counter": counter,
    "polar": polar,
}
