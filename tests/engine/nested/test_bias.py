"""The error of EP's own evidence: corrected where it moves the hyper-parameters, and left alone where it does not."""

import numpy as np
import pytest
from scipy import stats

import heliograph as hg
from heliograph.engine.nested.bias import Bias
from heliograph.engine.nested.remarks import of_bias


def process_with_labels(n=100):
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, (n, 2))
    labels = rng.random(n) < 1 / (1 + np.exp(-3 * np.sin(2 * x[:, 0]) - x[:, 1]))
    model = hg.Model()
    f = model.gp("f", x, length_scale=model.log_normal("length", 0.0, 0.7), amplitude=model.half_normal("a", 3.0))
    model.bernoulli("y", logit=f, observed=labels.astype(float))
    return model


def all_successes():
    """One effect with a wide scale that all labels share: what EP is known to be bad at."""
    model = hg.Model()
    s = model.half_normal("s", 3.0)
    mu = model.gaussian("mu", 0.0, sd=s)
    model.bernoulli("y", logit=mu + model.gaussian("e", 0.0, sd=0.5, size=8), observed=np.ones(8))
    return model


def counts():
    rng = np.random.default_rng(1)
    model = hg.Model()
    z = model.gaussian("z", model.gaussian("mu", 0.0, sd=5.0), sd=model.half_normal("tau", 1.0), size=30)
    model.poisson("y", log_rate=z, observed=rng.poisson(np.exp(0.5 + 0.7 * rng.normal(size=30))))
    return model


def test_labels_of_a_process_are_corrected_and_it_is_said():
    model = process_with_labels()
    plain, auto, always = (model.infer(correct=c) for c in (False, "auto", True))
    assert "corrected by importance sampling" in auto.status
    assert "corrected" not in plain.status
    assert auto.converged
    assert auto.log_evidence == always.log_evidence
    assert auto["a"].mean > plain["a"].mean  # EP misses more at large amplitudes


def test_counts_are_left_alone_to_the_bit():
    model = counts()
    plain, auto = model.infer(correct=False), model.infer()
    assert auto.log_evidence == plain.log_evidence
    assert "importance sampling" not in auto.status


def test_where_it_corrects_it_is_nearer_to_quadrature():
    model = all_successes()
    plain, auto = model.infer(correct=False), model.infer()
    x, w = np.polynomial.hermite_e.hermegauss(60)
    w = w / w.sum()
    u = np.linspace(-7, 3.5, 401)
    log_p = []
    for v in u:
        inner = (1 / (1 + np.exp(-(np.exp(v) * x[:, None] + 0.5 * x[None])))) @ w  # of one label, given mu
        log_p.append(np.log(w @ inner**8) + stats.halfnorm(scale=3).logpdf(np.exp(v)) + v)
    weight = np.exp(np.array(log_p) - max(log_p))
    weight /= weight.sum()
    mean = weight @ np.exp(u)
    sd = np.sqrt(weight @ np.exp(2 * u) - mean**2)
    error = {name: abs(float(p["s"].mean) - mean) / sd for name, p in (("plain", plain), ("auto", auto))}
    assert error["auto"] < 0.05
    assert error["auto"] <= error["plain"] + 0.005


@pytest.mark.parametrize(
    ("bias", "mended", "words"),
    [
        (None, False, ""),
        (Bias(0.02, 0.02, True), False, ""),
        (Bias(0.2, 0.1, True), True, "was corrected"),
        (Bias(0.2, 0.1, False), False, "too few draws count"),
    ],
)
def test_what_is_said_of_it(bias, mended, words):
    said = "; ".join(of_bias(bias, mended))
    assert words in said
    assert bool(said) == bool(words)
