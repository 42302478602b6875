"""Loops of many entries with a slow mode that is local: after a run that converged, nothing worth mentioning is still to come.

The slow mode of two groups that hardly meet, or of a stiff grid, is neither the largest move of the last sweeps nor their mean.
"""

import warnings

import numpy as np
import pytest

import heliograph as hg


def two_communities(seed):
    """Players of two groups of a hundred, between which there were three games."""
    rng = np.random.default_rng(seed)
    first = rng.integers(0, 200, 3000)
    second = first // 100 * 100 + rng.integers(0, 100, 3000)
    first, second = first[first != second], second[first != second]
    first, second = np.append(first, [0, 3, 150]), np.append(second, [150, 120, 7])
    model = hg.Model()
    skill = model.gaussian("skill", 0.0, variance=100.0, size=200)
    winner = model.gaussian("of winner", skill[first], variance=4.0)
    loser = model.gaussian("of loser", skill[second], variance=4.0)
    model.constrain(winner > loser)
    return model, ("skill", "of winner", "of loser")


def stiff_grid(seed):
    """A square of 15 x 15 whose neighbours hardly differ, with a label each."""
    rng = np.random.default_rng(seed)
    at = np.arange(225).reshape(15, 15)
    first = np.concatenate([at[:, 1:].ravel(), at[1:].ravel()])
    second = np.concatenate([at[:, :-1].ravel(), at[:-1].ravel()])
    model = hg.Model()
    height = model.gaussian("height", 0.0, variance=9.0, size=225)
    model.gaussian("step", height[first] - height[second], variance=0.02, observed=np.zeros(len(first)))
    model.bernoulli("label", probit=height, observed=rng.random(225) < 0.5)
    return model, ("height",)


@pytest.mark.parametrize(("build", "seed"), [(two_communities, 1), (two_communities, 3), (stiff_grid, 2)])
def test_a_local_slow_mode_is_not_overlooked(build, seed):
    model, names = build(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = model.infer(structure="factorised", max_sweeps=400)
        rest = model.infer(structure="factorised", max_sweeps=1000, tolerance=1e-12)
    assert found.converged and rest.converged
    for name in names:
        assert rest[name].kl(found[name]).max() < 1e-5
