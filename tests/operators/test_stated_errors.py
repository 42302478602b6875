"""What is stated of messages that hardly err at all: neither rounding that adds up nor what others are wrong by."""

import numpy as np
import pytest

import heliograph as hg
from heliograph.operators.learned.calibration import Calibration
from heliograph.operators.learned.learn import compare
from heliograph.operators.learned.records import Forecast, Statement


def regression(function, family, observe, seed=3, n=2000, d=5):
    rng = np.random.default_rng(seed)
    x, w0 = rng.standard_normal((n, d)), 0.5 * rng.standard_normal(d)
    model = hg.Model()
    w = model.gaussian("w", np.zeros(d), covariance=np.eye(d))
    observe(model, hg.factor(output=family)(function)(x @ w), rng, x @ w0)
    return model.infer(seed=0)


def test_exact_messages_are_stated_as_exact_however_many_there_are():
    def observe(model, out, rng, z):
        model.gaussian("y", out, variance=0.25, observed=np.arcsinh(z) + 0.5 * rng.standard_normal(len(z)))

    posterior = regression(lambda z: np.arcsinh(z), hg.Gaussian, observe)
    assert posterior.converged
    assert posterior.error_estimate < 1e-13  # 6e-10 where every row counted as 1e-15 nats


def test_interpolation_is_stated_as_it_was_measured(monkeypatch):
    def observe(model, out, rng, z):
        model.bernoulli("y", out, observed=(rng.random(len(z)) < 1 / (1 + np.exp(-z))).astype(float))

    estimates = []
    for caution in (4.0, 40.0):  # of predictions that nobody has compared: those of the process
        monkeypatch.setattr("heliograph.operators.learned.calibration._CAUTION", caution)
        estimates.append(regression(lambda z: 1 / (1 + np.exp(-z)), hg.Beta, observe).error_estimate)
    assert 1e-9 < estimates[0] < 1e-6
    assert estimates[1] == pytest.approx(estimates[0], rel=0.2)  # ten times as much before


def test_rounding_of_a_comparison_is_no_error_of_a_prediction():
    rng = np.random.default_rng(0)
    log_z = rng.standard_normal(50)

    class Chart:
        def belief(self, mean, base):
            return base[0] + mean[:, 0]

    class View:
        chart, base = Chart(), (log_z,)

    calibration, tiny = Calibration(), np.full(50, 1e-22)
    statement = Statement(log_z, tiny, tiny, np.zeros(50, dtype=bool), np.ones(50, dtype=bool))
    forecast = Forecast(1e-9 * rng.standard_normal((50, 1)), tiny)  # off by 1e-18 nats
    compare(calibration, View(), forecast, statement, False)
    assert calibration.factor == 1.0
