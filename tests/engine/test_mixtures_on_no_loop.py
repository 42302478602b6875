"""A mixture of which one row is seen is on no loop: its messages are sent once, and are exact."""

import numpy as np
import pytest
from scipy import stats

import heliograph as hg


@pytest.mark.parametrize("of", ["functions", "numbers"])
def test_one_row_of_a_mixture_has_the_moments_of_both_components(of):
    """The first messages of a run, made as if labels were known, were left where no sweep follows."""
    model = hg.Model()
    a, b = model.gaussian("a", 0.0, sd=2.0), model.gaussian("b", -1.0, sd=1.0)
    parts = [a, b]
    s = model.bernoulli("s", 0.39)
    if of == "functions":
        model.mixture("y", s, lambda k: model.gaussian("y", parts[k], sd=0.3), observed=-2.9)
    else:
        model.mixture("y", s, hg.stack(parts), sd=0.3, observed=-2.9)
    posterior = model.infer()
    each = np.array([0.61, 0.39]) * stats.norm.pdf(-2.9, [0.0, -1.0], np.sqrt(np.array([4.0, 1.0]) + 0.09))
    p = each[1] / each.sum()
    for x, mean, variance, chosen in ((a, 0.0, 4.0, 1 - p), (b, -1.0, 1.0, p)):
        gain = variance / (variance + 0.09)
        moved, left = mean + gain * (-2.9 - mean), variance * (1 - gain)
        centre = chosen * moved + (1 - chosen) * mean
        spread = chosen * (left + moved**2) + (1 - chosen) * (variance + mean**2) - centre**2
        assert posterior[x].mean == pytest.approx(centre, abs=1e-6)
        assert posterior[x].variance == pytest.approx(spread, rel=1e-6)
    assert posterior[s].p == pytest.approx(p, abs=1e-9)
    assert posterior.log_evidence == pytest.approx(np.log(each.sum()), abs=1e-9)
