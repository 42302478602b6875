"""What people who know other libraries write first: it works, or the sentence says what it is called here."""

import numpy as np
import pytest
from scipy import stats

import heliograph as hg


@pytest.mark.parametrize(
    ("word", "here"),
    [
        ("normal", "gaussian"),
        ("Normal", "gaussian"),
        ("halfnormal", "half_normal"),
        ("HalfCauchy", "half_cauchy"),
        ("fit", "infer"),
        ("MultivariateNormal", "covariance="),
        ("TruncatedNormal", "truncated_gaussian"),
        ("BetaBinomial", "concentration="),
        ("OrderedLogistic", "link='logit'"),
        ("ZeroInflatedBinomial", "mixture"),
    ],
)
def test_words_of_other_libraries_are_translated(word, here):
    with pytest.raises(AttributeError, match=here):
        getattr(hg.Model(), word)
    assert not hasattr(hg.Model(), "no_such_word")


@pytest.mark.parametrize(
    ("write", "words"),
    [
        (lambda m, z, g, p: g + 1.0, "model.log_normal"),
        (lambda m, z, g, p: g * m.gamma("h", 1.0, 1.0), "log_rate=log_a"),
        (lambda m, z, g, p: 1.0 - p, "posterior.sample"),
        (lambda m, z, g, p: p > m.beta("q", 1.0, 1.0), "posterior.sample"),
        (lambda m, z, g, p: m.poisson("y", z, observed=[1.0]), "log_rate="),
        (lambda m, z, g, p: m.binomial("y", 3, z, observed=[1.0]), "logit="),
        (lambda m, z, g, p: m.student_t("y", 0.0, z, observed=[1.0]), "'z' is random"),
        (lambda m, z, g, p: m.uniform("y", z, 3.0), "'z' is random"),
    ],
)
def test_what_is_not_there_says_what_to_write(write, words):
    model = hg.Model()
    z, g, p = model.gaussian("z", 0.0, sd=1.0), model.gamma("g", 2.0, 1.0), model.beta("p", 1.0, 1.0)
    with pytest.raises(hg.HeliographError, match=words):
        write(model, z, g, p)


def test_gamma_variables_stand_for_scales_and_degrees_of_freedom():
    y = np.array([0.3, -0.6, 1.1, 0.2, 4.0, -0.1, 0.5])
    model = hg.Model()
    s, nu = model.gamma("s", 2.0, 2.0), model.gamma("nu", 2.0, 0.2)
    model.student_t("y", 0.0, s, nu, observed=y)
    posterior = model.infer()
    a, b = np.meshgrid(np.exp(np.linspace(-4, 2.5, 261)), np.exp(np.linspace(-4, 5.5, 261)), indexing="ij")
    log_p = stats.gamma.logpdf(a, 2.0, scale=0.5) + stats.gamma.logpdf(b, 2.0, scale=5.0) + np.log(a * b)
    log_p = log_p + stats.t.logpdf(y[:, None, None] / a, b).sum(0) - len(y) * np.log(a)
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    for name, grid in (("s", a), ("nu", b)):
        mean = (p * grid).sum()
        sd = np.sqrt((p * grid**2).sum() - mean**2)
        assert posterior[name].mean == pytest.approx(mean, abs=0.05 * sd)
        assert posterior[name].sd == pytest.approx(sd, rel=0.05)
