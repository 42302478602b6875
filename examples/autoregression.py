"""An autoregression of order two, seen with noise and with gaps."""

import numpy as np

import heliograph as hg

rng = np.random.default_rng(1)
n = 120
truth = np.zeros(n)
for t in range(2, n):
    truth[t] = 1.6 * truth[t - 1] - 0.8 * truth[t - 2] + rng.standard_normal()
seen = np.where(rng.random(n) < 0.3, np.nan, truth + rng.standard_normal(n))

model = hg.Model()
x = model.chain(
    "x",
    n,
    hg.Gaussian(np.zeros(2), np.ones(2)),
    lambda one, two: model.gaussian("x", 1.6 * one - 0.8 * two, variance=1.0),
)
model.gaussian("seen", x, variance=1.0, observed=seen)
posterior = model.infer()

if __name__ == "__main__":
    print(posterior.summary())
