"""An epidemic: a simulator of susceptible, infected and recovered people as a black box, and daily counts of the infected."""

import numpy as np

import heliograph as hg

DAYS = np.array([4.0, 8.0, 12.0, 16.0, 20.0, 24.0, 28.0, 32.0])


@hg.factor(output=hg.Gaussian)
def log_infected(log_beta, log_gamma, day):
    """The log of the number of infected people of 1,000 on a day, four steps a day."""
    beta, gamma = np.exp(log_beta), np.exp(log_gamma)
    s, i, found = np.full(beta.shape, 995.0), np.full(beta.shape, 5.0), np.zeros(beta.shape)
    for step in range(1, int(4 * DAYS[-1]) + 1):
        new, gone = i * -np.expm1(-gamma / 4), s * -np.expm1(-beta * i / 4000)
        s, i = s - gone, i + gone - new
        found = np.where(np.isclose(day * 4, step), np.log(np.maximum(i, 1e-12)), found)
    return found


def data():
    rate = np.exp(log_infected(np.full(8, np.log(0.5)), np.full(8, np.log(0.15)), DAYS))
    return np.random.default_rng(3).poisson(0.1 * rate).astype(float)  # one in ten is tested


def model(y):
    m = hg.Model()
    log_beta = m.gaussian("log_beta", np.log(0.4), sd=0.3)
    log_gamma = m.gaussian("log_gamma", np.log(0.2), sd=0.3)
    m.poisson("y", log_rate=log_infected(log_beta, log_gamma, DAYS) + np.log(0.1), observed=y)
    return m


if __name__ == "__main__":
    print(model(data()).infer(seed=0).summary())
