"""The paper's operator on 4,012 real messages to the logistic factor: mean log KL of predicted beliefs."""

import os
from pathlib import Path

import numpy as np
import pytest

from heliograph.families import Beta, Gaussian
from heliograph.kernels import FeatureMap, joint_grid, median_heuristic
from heliograph.regression import bayesian_linear, ridge

SHARED = Path(os.environ.get("HELIOGRAPH_SHARED", Path(__file__).resolve().parents[2] / "../shared"))
FILE = SHARED / "data" / "logistic_messages.csv"

pytestmark = pytest.mark.skipif(not FILE.exists(), reason="the file of logistic messages is not beside the project")

SAMPLED, EXACT = 4, 6  # first of the two columns that hold a belief's mean and variance


@pytest.fixture(scope="module")
def split():
    table = np.loadtxt(FILE, delimiter=",", skiprows=1)
    table = table[np.random.default_rng(0).permutation(len(table))]
    return table[:3000], table[3000:]


def incoming(table):
    return [Beta(table[:, 0], table[:, 1]), Gaussian(table[:, 2], table[:, 3])]


def targets(table, column):
    return np.stack([table[:, column], np.log(table[:, column + 1])], axis=1)


def mean_log_kl(table, column, predicted):
    belief = Gaussian(table[:, column], table[:, column + 1])
    return float(np.log(belief.kl(Gaussian(predicted[:, 0], np.exp(predicted[:, 1]))) + 1e-300).mean())


def learned(train, test, column, kernel, seed, sizes=(300, 500), noise=1e-4, dtype=np.float64):
    feature_map = FeatureMap(kernel, seed, sizes)
    posterior = bayesian_linear.fit(feature_map.features(incoming(train)), targets(train, column), 1.0, noise)
    return bayesian_linear.predict(posterior, feature_map.chunks(incoming(test), dtype), dtype)[0]


def test_the_papers_operator_with_the_median_heuristic_reaches_minus_eleven(split):
    kernel = median_heuristic(incoming(split[0]))
    # maps of different seeds scatter by 0.1 around -11.1
    scores = [mean_log_kl(split[1], EXACT, learned(*split, EXACT, kernel, seed)) for seed in range(4)]
    assert np.mean(scores) <= -11


def test_the_authors_half_median_does_at_least_as_well(split):
    kernel = median_heuristic(incoming(split[0]), factor=0.5)
    assert mean_log_kl(split[1], EXACT, learned(*split, EXACT, kernel, 1)) <= -11


def test_float32_prediction_changes_no_log_kl_that_matters(split):
    kernel = median_heuristic(incoming(split[0]))
    double, single = (
        mean_log_kl(split[1], EXACT, learned(*split, EXACT, kernel, 1, dtype=dtype))
        for dtype in (np.float64, np.float32)
    )
    assert abs(double - single) < 0.05


def test_on_sampled_labels_it_repeats_the_papers_figure(split):
    kernel = median_heuristic(incoming(split[0]))
    score = mean_log_kl(split[1], SAMPLED, learned(*split, SAMPLED, kernel, 1))
    assert score == pytest.approx(-8.9, abs=0.2)  # the paper has -8.97 on its own split; the labels' noise is -9.2


RIDGES = tuple(10.0**k for k in range(-10, 0))


def loo_scores(x, y):
    """The log mean squared leave-one-out errors, summed over the outputs, of every ridge."""
    s = ridge.spectrum(x, y)
    return [np.log((ridge.leave_one_out(s, r) ** 2).mean(0)).sum() for r in RIDGES]


def test_leave_one_out_selection_reaches_minus_fifteen(split):
    train, test = split
    # the selection sees a third of the rows through smaller maps of the same kernels
    kernels = joint_grid(incoming(train), inner=(0.1, 0.3, 1.0), outer=(1.0, 4.0))
    third = train[::3]
    maps = [FeatureMap(kernel, 1, (200, 300)).features for kernel in kernels]
    scores = np.array([loo_scores(features(incoming(third)), targets(third, EXACT)) for features in maps])
    feature_map = FeatureMap(kernels[int(scores.min(axis=1).argmin())], 1, (500, 1000))
    x, y = feature_map.features(incoming(train)), targets(train, EXACT)
    best = RIDGES[int(np.argmin(loo_scores(x, y)))]
    predicted = feature_map.features(incoming(test)) @ ridge.fit(x, y, best)
    assert mean_log_kl(test, EXACT, predicted) <= -15
