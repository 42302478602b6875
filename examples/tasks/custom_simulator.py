"""Use your own function in a model."""

import numpy as np

import heliograph as hg


@hg.factor(output=hg.Gaussian)
def decay(log_rate):
    return np.exp(-np.exp(log_rate) * 2.0)


model = hg.Model()
log_rate = model.gaussian("log rate", -1.0, sd=1.0, size=3)
model.gaussian("left", decay(log_rate), sd=0.05, observed=[0.5, 0.3, 0.8])
posterior = model.infer()
print(posterior[log_rate].mean, posterior.error_estimate)
