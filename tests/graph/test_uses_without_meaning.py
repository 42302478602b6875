"""Wrong uses that were accepted in silence, or ended in exceptions that were not the library's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import heliograph as hg


class _World:
    """A small model with one variable of each kind, and a posterior of another model."""

    def __init__(self) -> None:
        self.model = hg.Model()
        self.x = self.model.gaussian("x", 0.0, sd=1.0)
        self.u = self.model.gaussian("u", 0.0, sd=1.0, size=3)
        self.g = self.model.gamma("g", 2.0, 1.0)
        self.v = self.model.gaussian("v", np.zeros(2), covariance=np.eye(2))
        self.box = hg.factor(output=hg.Gaussian)(lambda z: 2 * z)
        other = hg.Model()
        a = other.gaussian("a", 0.0, sd=1.0)
        other.gaussian("y", a, sd=1.0, observed=[1.0, 2.0])
        self.posterior = other.infer()


_USES: dict[str, tuple[Callable[[Any], Any], str]] = {
    # what is said of observed values where there are none
    "a mask of nothing": (lambda w: w.model.gaussian("y", w.x, sd=1.0, missing=[True]), "missing= .*not given"),
    "a mask of no prior": (lambda w: w.model.gaussian("y", 0.0, sd=1.0, missing=[True]), "missing= .*not given"),
    "a mask of no counts": (lambda w: w.model.poisson("y", w.g, missing=[True]), "missing= .*not given"),
    "a mask of no lifetimes": (
        lambda w: w.model.weibull("y", 1.0, log_scale=w.x, missing=[True]),
        "missing= .*not given",
    ),
    "censoring of nothing": (
        lambda w: w.model.weibull("y", 1.0, log_scale=w.x, censored="right"),
        "censored= .*not given",
    ),
    "an end of nothing": (lambda w: w.model.exponential("y", log_rate=w.x, until=[1.0]), "until= .*not given"),
    "a mask of no values": (
        lambda w: w.model.truncated_gaussian("y", w.x, sd=1.0, lower=0.0, missing=[True]),
        "missing= .*not given",
    ),
    "a size beside data": (lambda w: w.model.exponential("y", log_rate=w.x, observed=[1.0], size=3), "size="),
    # settings of a factor
    "an oracle of no name": (lambda w: hg.factor(output=hg.Gaussian, oracle="mc")(np.exp), "oracle"),
    "an oracle that is a number": (lambda w: hg.factor(output=hg.Gaussian, oracle=3)(np.exp), "oracle"),
    "a derivative that is a number": (lambda w: hg.factor(output=hg.Gaussian, derivative=3)(np.exp), "derivative"),
    "a density that is a number": (lambda w: hg.factor(output=hg.Gaussian, log_density=3)(np.exp), "log_density"),
    "a vector of no numbers": (lambda w: hg.factor(output=hg.MultivariateGaussian, dimension=0)(np.exp), "dimension"),
    "half a dimension": (lambda w: hg.factor(output=hg.MultivariateGaussian, dimension=1.5)(np.exp), "dimension"),
    "a word for yes": (lambda w: hg.factor(output=hg.Gaussian, expensive="yes")(np.exp), "expensive"),
    "a number for yes": (lambda w: hg.factor(output=hg.Gaussian, vectorized=3)(np.exp), "vectorized"),
    # posteriors
    "a seed that is a word": (lambda w: w.posterior.sample(10, seed="a"), "seed must be"),
    "a seed of half": (lambda w: w.posterior.predict("y", seed=0.5), "seed must be"),
    "a start in another model": (lambda w: w.model.infer(start=w.posterior), "none of its variables"),
    "a comparison with a number": (lambda w: w.posterior.compare(3), "compare takes posteriors"),
    "a comparison with no data": (lambda w: w.posterior.compare(w.model.infer()), "no data"),
    "one variable's likelihood": (lambda w: w.posterior.log_likelihood(pointwise="y"), "pointwise"),
    # small parts
    "half a sweep": (lambda w: hg.after(2.5), "whole number"),
    "a rule or a number": (lambda w: hg.after(2) | 3, "stopping rule"),
    "a rule and a number": (lambda w: hg.changed_less_than(1e-3) & 3, "stopping rule"),
    "a mixture of a number": (lambda w: hg.Mixture(np.array([0.5, 0.5]), 3), "components of a mixture"),
    "a list of a number": (lambda w: hg.concatenate(3), "takes a list"),
    "a part of a number": (lambda w: hg.Part(w.model, 3), "vector that it shares"),
    "a factor of no name": (lambda w: hg.supported().of("zz"), "no factor is called"),
}


@pytest.mark.parametrize("name", _USES)
def test_it_is_refused_with_a_sentence(name: str) -> None:
    use, sentence = _USES[name]
    with pytest.raises(hg.ModelError, match=sentence):
        use(_World())
