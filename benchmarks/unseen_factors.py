"""Black boxes of many trades for `bench_unseen.py`: each gives a factor, a builder of problems, and an oracle for the truth."""

import math

import numpy as np
from scipy.special import ndtr, stdtrit

import heliograph as hg
from heliograph.oracles import ImportanceOracle, QuadratureOracle

EXACT = QuadratureOracle()
PLANE = QuadratureOracle(1e-6)
SHARP = ImportanceOracle(2**16)
LIMIT = "limit"  # a hand-made factor: the limit of infinitely many draws


def rows(f, *, scale=1.0, noise=0.3, centre=0.0, spread=1.0, n=30, data=None):
    """One unknown per row around a shared shift, seen through `f` with Gaussian noise."""

    def make():
        box = hg.factor(f, output=hg.Gaussian)

        def build(rng):
            mu = centre + spread * rng.standard_normal(n)
            extra = () if data is None else (data(rng, n),)
            z = mu + 0.3 * scale * rng.standard_normal() + 0.5 * scale * rng.standard_normal(n)
            y = f(z, *extra) + noise * rng.standard_normal(n)
            model = hg.Model()
            shift = model.gaussian("shift", 0.0, variance=(0.3 * scale) ** 2)
            latent = model.gaussian("z", mu + shift, variance=(0.5 * scale) ** 2, size=n)
            model.gaussian("y", box(latent, *extra), variance=noise**2, observed=y)
            return model

        return box, build, EXACT

    return make


def regression(f, output, n=60, d=4, scale=1.0, intercept=0.0):
    """Rows of X @ w through `f`, seen as labels (Beta) or counts (Gamma)."""

    def make():
        box = hg.factor(f, output=output)

        def build(rng):
            x = scale * rng.standard_normal((n, d))
            x[:, 0] = 1.0
            w = 0.7 * rng.standard_normal(d)
            w[0] += intercept
            value = f(x @ w)
            model = hg.Model()
            prior = np.zeros(d)
            prior[0] = intercept
            weights = model.gaussian("w", prior, covariance=np.eye(d))
            if output is hg.Beta:
                model.bernoulli("y", box(x @ weights), observed=(rng.random(n) < value).astype(float))
            else:
                model.poisson("y", box(x @ weights), observed=rng.poisson(value))
            return model

        return box, build, EXACT

    return make


def two(f, first, second, *, noise=0.3, n=8, data=None, shared=True):
    """Two unknown numbers, the first shared by all rows or one for each, seen with Gaussian noise."""

    def make():
        box = hg.factor(f, output=hg.Gaussian)

        def build(rng):
            (m1, s1), (m2, s2) = first, second
            a = rng.normal(m1, s1) * np.ones(n) if shared else rng.normal(m1, s1, n)
            b = rng.normal(m2, s2, n)
            extra = () if data is None else (data(rng, n),)
            y = f(a, b, *extra) + noise * rng.standard_normal(n)
            model = hg.Model()
            one = model.gaussian("a", m1, variance=s1**2, **({} if shared else {"size": n}))
            other = model.gaussian("b", m2, variance=s2**2, size=n)
            model.gaussian("y", box(one, other, *extra), variance=noise**2, observed=y)
            return model

        return box, build, PLANE

    return make


# ---- one unknown number, Gaussian data -------------------------------------------------------------------------------
def pendulum(z):  # the period of a large swing, by its series
    k2 = np.sin(np.clip(z, -3.0, 3.0) / 2) ** 2
    return 2.006 * (1 + k2 / 4 + 9 / 64 * k2**2 + 25 / 256 * k2**3)


def michaelis_menten(z, dose):
    return 4 * dose / (np.exp(z) + dose)


def hill(z, dose):
    c = np.exp(3 * (np.log(dose) - z))
    return 2 * c / (1 + c)


def square(z):
    return z * z


def absolute(z):
    return np.abs(z)


def tanh(z):
    return np.tanh(z)


def tangent(z):
    return np.tan(z)


def steep(z):
    return np.exp(3 * z)


def sinc(z):
    return np.sinc(z)


def relu(z):
    return np.maximum(z, 0.0)


def softplus(z):
    return np.logaddexp(0.0, z)


def radiocarbon(z):  # a calibration curve with a plateau
    return np.where(z < -0.5, z + 0.5, np.where(z < 0.7, 0.05 * (z + 0.5), 0.06 + 1.3 * (z - 0.7)))


def thermistor(z):  # kelvin, from the logarithm of a resistance
    return 1 / (1 / 298.15 + z / 3950) - 298.15


def student_quantile(z):
    return stdtrit(3.0, np.clip(ndtr(z), 1e-12, 1 - 1e-12))


def logistic_growth(z, t):
    return 5 / (1 + 9 * np.exp(-np.exp(np.clip(z, -20, 20)) * t))


def gompertz(z, t):
    return 5 * np.exp(-3 * np.exp(-np.exp(np.clip(z, -20, 20)) * t))


def option_price(z, strike):  # Black and Scholes, spot 1, a year, no interest; z is the log volatility
    s = np.exp(np.clip(z, -8, 3))
    d = -np.log(strike) / s + s / 2
    return 10 * (ndtr(d) - strike * ndtr(d - s))


def saw(z):  # a phase that wraps
    return np.mod(z, 2.0) - 1.0


# ---- links -----------------------------------------------------------------------------------------------------------
def logistic(z):
    return 1 / (1 + np.exp(-z))


def dose_response(z):  # with a floor and a ceiling
    return 0.05 + 0.9 / (1 + np.exp(-2 * z))


def cauchit(z):
    return 0.5 + np.arctan(z) / np.pi


def saturating(z):
    return 0.05 + 40.0 * -np.expm1(-np.exp(np.minimum(z, 12.0)) / 40.0)


def ricker(z):  # offspring of exp(z) parents
    x = np.exp(np.clip(z, -30, 10))
    return 1e-3 + 3 * x * np.exp(-x / 4)


def queue(z):  # the mean length of a queue at a load of logistic(z)
    return np.exp(np.minimum(z, 8.0)) + 1e-3


# ---- several unknown numbers -----------------------------------------------------------------------------------------
def product(a, b):
    return a * b


def ratio(a, b):
    return a / b


def corn(a, b, t):
    return b * np.exp(-np.where(t < a, 1e-3, 1e-2) * (t - a) ** 2)


def sir(a, b, t):  # the share that has been infected by day t; log rates of infection and recovery
    infect, recover = np.exp(np.clip(a, -4, 1)), np.exp(np.clip(b, -4, 1))
    s, i = np.full(np.shape(a), 0.99), np.full(np.shape(a), 0.01)
    out = np.zeros(np.shape(a))
    for day in range(12):
        out = np.where(day < t, 1 - s, out)
        new = s * -np.expm1(-infect * i)
        s, i = s - new, i + new - i * -np.expm1(-recover)
    return 4 * out


def softmax_pair():
    @hg.factor(output=hg.Beta)
    def softmax(a, b):
        return 1 / (1 + np.exp(a - b) + np.exp(a))

    def build(rng):
        n = 12
        model = hg.Model()
        a = model.gaussian("a", rng.normal(0, 1, n), variance=0.5)
        b = model.gaussian("b", rng.normal(0, 1, n), variance=0.5)
        model.bernoulli("y", softmax(a, b), observed=rng.integers(0, 2, n))
        return model

    return softmax, build, PLANE


def ball():
    @hg.factor(output=hg.Gaussian)
    def throw(log_speed, s, height):
        angle = np.arctan(np.exp(s))
        up, along = np.exp(log_speed) * np.sin(angle), np.exp(log_speed) * np.cos(angle)
        return along * (up + np.sqrt(up**2 + 2 * 9.81 * np.maximum(height, 0.0))) / 9.81

    def build(rng):
        model = hg.Model()
        v = model.gaussian("log speed", 1.5, variance=0.1)
        s = model.gaussian("s", 0.0, variance=0.1, size=5)
        h = model.gaussian("height", 1.5, variance=0.04, size=5)
        far = throw(rng.normal(1.5, 0.3, 5), rng.normal(0, 0.3, 5), np.full(5, 1.5))
        model.gaussian("distance", throw(v, s, h), variance=0.2, observed=far + 0.4 * rng.standard_normal(5))
        return model

    return throw, build, SHARP


def place(f, name):
    """A position in the plane, seen from anchors."""

    def make():
        box = hg.factor(f, output=hg.Gaussian, data_ranks={"anchor": 1}, name=name)

        def build(rng):
            where = rng.normal(0, 1, 2)
            anchors = np.array([[4.0, 0.0], [0.0, 4.0], [-4.0, -4.0], [4.0, 4.0]])
            model = hg.Model()
            position = model.gaussian("position", np.zeros(2), covariance=np.eye(2))
            seen = f(np.tile(where, (4, 1)), anchors) + 0.3 * rng.standard_normal(4)
            model.gaussian("seen", box(position, anchors), variance=0.09, observed=seen)
            return model

        return box, build, PLANE

    return make


def distance(position, anchor):
    return np.sqrt(((position - anchor) ** 2).sum(axis=-1) + 1e-12)


def bearing(position, anchor):
    gap = position - anchor
    return np.arctan2(gap[..., 1], gap[..., 0])


# ---- noise, and categories -------------------------------------------------------------------------------------------
def compound_gamma():
    @hg.factor(output=hg.Gamma)
    def box(rate, rng):
        return rng.gamma(1.0, 1.0 / rate) + 1e-300

    def build(rng, limit=False):
        n = int(rng.integers(10, 100))
        x = rng.normal(0, 1 / np.sqrt(rng.gamma(1.0, 1.0 / rng.gamma(1.0, 1.0))), n)
        model = hg.Model()
        rate = model.gamma("rate", 1.0, 1.0)
        tau = model.gamma("tau", 1.0, rate) if limit else box(rate)
        model.attach(tau, hg.Gamma(n / 2 + 1, np.sum(x**2) / 2 + 1e-12))
        return model

    return box, build, LIMIT


def noisy_threshold():
    @hg.factor(output=hg.Bernoulli)
    def box(z, rng):
        return (z + rng.logistic(size=z.shape) > 0).astype(float)

    def build(rng, limit=False):
        x = rng.standard_normal((30, 3))
        y = (x @ rng.standard_normal(3) + rng.logistic(size=30) > 0).astype(float)
        model = hg.Model()
        w = model.gaussian("w", np.zeros(3), covariance=np.eye(3))
        if limit:
            model.bernoulli("y", model.sigmoid(x @ w), observed=y)
        else:
            model.observe(box(x @ w), y)
        return model

    return box, build, LIMIT


def random_walk():
    """A step with noise of its own: the hand-made limit is a Gaussian."""

    @hg.factor(output=hg.Gaussian)
    def box(z, rng):
        return 0.5 * z + 0.4 * rng.standard_normal(z.shape)

    def build(rng, limit=False):
        n = 12
        mu = rng.normal(0, 1, n)
        y = 0.5 * mu + 0.7 * rng.standard_normal(n)
        model = hg.Model()
        shift = model.gaussian("shift", 0.0, variance=0.5)
        z = model.gaussian("z", mu + shift, variance=0.5, size=n)
        if limit:
            model.gaussian("y", 0.5 * z, variance=0.16 + 0.25, observed=y)
        else:
            model.gaussian("y", box(z), variance=0.25, observed=y)
        return model

    return box, build, LIMIT


def switch():
    """A sign that is a coin: two modes."""

    @hg.factor(output=hg.Gaussian)
    def box(z, side):
        return np.where(side > 0.5, z, -z)

    def build(rng):
        n = 20
        mu = rng.normal(1.0, 0.5, n)
        model = hg.Model()
        z = model.gaussian("z", mu, variance=0.3, size=n)
        side = model.bernoulli("side", 0.5, size=n)
        model.gaussian("y", box(z, side), variance=0.2, observed=mu * rng.choice([-1.0, 1.0], n))
        return model

    return box, build, EXACT


def count_class():
    """A count as a category of five: 0, 1, 2, 3, more."""

    @hg.factor(output=hg.Categorical, dimension=5)
    def box(z, u):
        rate = np.exp(np.clip(z, -8, 5))
        steps = np.cumsum([np.exp(-rate) * rate**k / math.factorial(k) for k in range(4)], axis=0)
        return (u[None] > steps).sum(axis=0)

    def build(rng):
        n = 12
        mu = rng.normal(0.3, 0.6, n)
        model = hg.Model()
        z = model.gaussian("z", mu, variance=0.4, size=n)
        u = model.beta("u", 1.0, 1.0, size=n)
        model.observe(box(z, u), np.minimum(rng.poisson(np.exp(mu)), 4))
        return model

    return box, build, SHARP


def days(rng, n):
    return rng.integers(2, 12, n).astype(float)


def doses(rng, n):
    return np.exp(rng.normal(0.0, 0.7, n))


def times(rng, n):
    return rng.uniform(0.3, 4.0, n)


FACTORS = {
    "logistic": regression(logistic, hg.Beta),
    "dose response": regression(dose_response, hg.Beta),
    "cauchit": regression(cauchit, hg.Beta),
    "saturating": regression(saturating, hg.Gamma, scale=0.6, intercept=2.0),
    "ricker": regression(ricker, hg.Gamma, scale=0.5, d=3, intercept=0.5),
    "queue": regression(queue, hg.Gamma, scale=0.5, intercept=0.5),
    "pendulum": rows(pendulum, noise=0.1),
    "michaelis": rows(michaelis_menten, data=doses),
    "hill": rows(hill, data=doses, noise=0.15),
    "square": rows(square),
    "absolute": rows(absolute),
    "tanh": rows(tanh),
    "tangent": rows(tangent, scale=0.4, spread=0.3),
    "steep": rows(steep, scale=0.5, spread=0.4),
    "sinc": rows(sinc, noise=0.1),
    "relu": rows(relu),
    "softplus": rows(softplus),
    "radiocarbon": rows(radiocarbon, noise=0.1),
    "thermistor": rows(thermistor, noise=1.0),
    "t quantile": rows(student_quantile),
    "growth": rows(logistic_growth, data=times),
    "gompertz": rows(gompertz, data=times),
    "option": rows(option_price, centre=-1.5, spread=0.4, data=lambda rng, n: rng.uniform(0.7, 1.4, n)),
    "saw": rows(saw, noise=0.2),
    "narrow": rows(np.sinh, noise=1e-4),
    "product": two(product, (2.0, 0.7), (1.0, 0.5)),
    "ratio": two(ratio, (2.0, 0.7), (3.0, 0.4)),
    "corn": two(corn, (25.0, 3.0), (10.0, 2.0), noise=1.0, data=lambda rng, n: rng.uniform(10, 35, n)),
    "sir": two(sir, (-0.3, 0.4), (-1.0, 0.4), noise=0.3, data=days, n=5),
    "softmax": softmax_pair,
    "ball": ball,
    "range": place(distance, "range"),
    "bearing": place(bearing, "bearing"),
    "compound gamma": compound_gamma,
    "noisy threshold": noisy_threshold,
    "random walk": random_walk,
    "switch": switch,
    "count class": count_class,
}
