"""Six more black boxes for `bench_unseen.py`, chosen and written before any of them was run."""

import numpy as np

import heliograph as hg
from benchmarks.unseen_factors import EXACT, PLANE, SHARP, rows, two


# ---- one unknown number ----------------------------------------------------------------------------------------------
def electrode(z, interfering):
    """Nikolsky and Eisenman: the voltage of an electrode, in tens of mV, from the log activity of an ion beside another ion."""
    return 5.916 * np.log10(np.exp(np.clip(z, -40.0, 20.0)) + interfering)


def turbine(z):
    """Power of a wind turbine, in hundreds of kW: nothing below 3 m/s, cubic to 12, rated to 25, and switched off in storms."""
    power = 20.0 * (np.clip(z, 3.0, 12.0) ** 3 - 27.0) / (12.0**3 - 27.0)
    return np.where(z > 25.0, 0.0, power)


def heterozygotes():
    """Carriers of two unlike alleles by Hardy and Weinberg, miscalled now and then: a link that goes up and down again."""

    @hg.factor(output=hg.Beta)
    def unlike(z):
        p = 1 / (1 + np.exp(-np.clip(z, -500, 500)))
        return 0.02 + 0.96 * 2 * p * (1 - p)

    def build(rng):
        x = np.column_stack([np.ones(60), rng.standard_normal((60, 2))])
        w = np.array([-0.5, 0.0, 0.0]) + 0.7 * rng.standard_normal(3)
        model = hg.Model()
        weights = model.gaussian("w", np.array([-0.5, 0.0, 0.0]), covariance=np.eye(3))
        model.bernoulli("y", unlike(x @ weights), observed=(rng.random(60) < unlike(x @ w)).astype(float))
        return model

    return unlike, build, EXACT


# ---- two -------------------------------------------------------------------------------------------------------------
def kepler(phase, log_odds, t):
    """Radial velocity of a star, in units of its amplitude times 3, from phase and eccentricity (Newton on Kepler's equation)."""
    e = 0.95 / (1 + np.exp(-np.clip(log_odds, -500, 500)))
    mean = np.mod(t + phase, 2 * np.pi)
    angle = mean + e * np.sin(mean)
    for _ in range(12):
        angle = angle - (angle - e * np.sin(angle) - mean) / (1 - e * np.cos(angle))
    true = 2 * np.arctan2(np.sqrt(1 + e) * np.sin(angle / 2), np.sqrt(1 - e) * np.cos(angle / 2))
    return 3 * (np.cos(true + 0.6) + e * np.cos(0.6))


def arrhenius():
    """Failures in a thousand hours from a log rate at 350 K, shared, and an activation energy for each batch (eV)."""

    @hg.factor(output=hg.Gamma)
    def rate(log_rate, energy, kelvin):
        return np.exp(np.clip(log_rate - energy / 8.617e-5 * (1 / kelvin - 1 / 350.0), -300.0, 300.0))

    def build(rng):
        n = 10
        log_rate, energy, kelvin = rng.normal(1.0, 0.5), rng.normal(0.5, 0.1, n), rng.uniform(320, 400, n)
        model = hg.Model()
        a = model.gaussian("log rate", 1.0, variance=0.25)
        b = model.gaussian("energy", 0.5, variance=0.01, size=n)
        failures = rng.poisson(rate(np.full(n, log_rate), energy, kelvin))
        model.poisson("failures", rate(a, b, kelvin), observed=failures)
        return model

    return rate, build, PLANE


# ---- noise -----------------------------------------------------------------------------------------------------------
def claims():
    """What an insurer pays: a log-normal loss less a deductible, up to a cap; the log of the typical loss is unknown."""

    @hg.factor(output=hg.Gaussian)
    def paid(z, rng):
        loss = np.exp(np.clip(z + 0.8 * rng.standard_normal(z.shape), -20.0, 20.0))
        return np.clip(loss - 1.0, 0.0, 6.0)

    def build(rng):
        n = 10
        mu = rng.normal(0.8, 0.5, n)
        loss = np.exp(mu + 0.6 * rng.standard_normal(n) + 0.8 * rng.standard_normal(n))
        model = hg.Model()
        z = model.gaussian("z", mu, variance=0.36, size=n)
        seen = np.clip(loss - 1.0, 0.0, 6.0) + 0.2 * rng.standard_normal(n)
        model.gaussian("y", paid(z), variance=0.04, observed=seen)
        return model

    return paid, build, SHARP


def others(rng, n):
    return np.exp(rng.normal(-1.0, 1.0, n))


def moments(rng, n):
    return rng.uniform(0.0, 2 * np.pi, n)


FACTORS = {
    "electrode": rows(electrode, data=others, noise=0.2),
    "turbine": rows(turbine, scale=4.0, centre=10.0, spread=5.0, noise=0.5),
    "heterozygotes": heterozygotes,
    "kepler": two(kepler, (1.0, 0.5), (-1.0, 0.7), data=moments),
    "arrhenius": arrhenius,
    "claims": claims,
}
