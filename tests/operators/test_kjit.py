"""The paper's operator against its equations, recomputed the plain way."""

from __future__ import annotations

import numpy as np
import pytest
from logistic_world import GridOracle, logistic_factor, plate

from heliograph.engine import Model, after
from heliograph.errors import AccuracyWarning
from heliograph.families import Gaussian
from heliograph.kernels import median_heuristic
from heliograph.operators import KernelLearner, Kjit
from heliograph.operators.kjit.targets import target_named


def labels(rows):
    return target_named("log").forward(GridOracle().ask(None, None, rows).beliefs["z"], rows["z"])[0]


@pytest.mark.parametrize("features", ["one", "per output"])
@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_means_and_variances_are_those_of_the_dense_posterior(features, precision):
    learner = KernelLearner(80, 120, noise=1e-3, prior_variance=2.0, features=features, precision=precision)
    first, more, new = plate(0, 60), plate(1, 50), plate(2, 70)
    learner.fit(np.random.default_rng(0), "z", first, labels(first))
    learner.update(more, labels(more))
    mean, variance = learner.predict(new)
    y = np.concatenate([labels(first), labels(more)])
    for k, feature_map in enumerate(learner.maps_):
        x = np.concatenate([feature_map.features(first), feature_map.features(more)])
        # eqs. (12), (13) and (15) as they stand on paper
        covariance = np.linalg.inv(x.T @ x / 1e-3 + np.eye(120) / 2.0)
        weights = covariance @ x.T @ y / 1e-3
        at = feature_map.features(new)
        columns = slice(None) if features == "one" else slice(k, k + 1)
        tolerance = 1e-8 if precision == "float64" else 2e-3  # float32 features are good to 1e-6, weights reach 1e2
        np.testing.assert_allclose(mean[:, columns], (at @ weights)[:, columns], atol=tolerance, rtol=tolerance)
        dense = np.einsum("nd,de,ne->n", at, covariance, at) + 1e-3
        np.testing.assert_allclose(variance[:, k], dense, rtol=tolerance)
    assert len(learner.maps_) == variance.shape[1] == (1 if features == "one" else 2)


def test_widths_are_those_of_the_median_heuristic_on_the_first_rows_and_stay():
    first, more = plate(0, 60), plate(1, 200)
    for factor in (1.0, 0.5):
        learner = KernelLearner(20, 30, gamma_factor=factor, features="per output")
        learner.fit(np.random.default_rng(0), "z", first, labels(first))
        learner.update(more, labels(more))
        expected = median_heuristic(first, factor)
        assert [m.kernel for m in learner.maps_] == [expected, expected]
        assert learner.maps_[0].seed != learner.maps_[1].seed


def test_each_column_of_settings_is_the_papers():
    def told(**given):
        operator = Kjit(**given)
        learner = operator.learner
        return operator.target.name, learner.embedding, learner.gamma_factor, learner.features, operator.improper

    assert told() == ("log", "moments", 1.0, "one", "engine")
    assert told(settings="text") == ("statistics", "exact", 1.0, "one", "engine")
    assert told(settings="program") == ("log", "moments", 0.5, "per output", "program")
    assert told(settings="program", features="one", target="message")[:4] == ("message", "moments", 0.5, "one")
    operator = Kjit()
    assert (operator.threshold, operator.minibatch) == (-8.5, 300)
    assert (operator.learner.n_inner, operator.learner.n_outer, operator.learner.noise) == (300, 500, 1e-4)


def test_predicting_one_by_one_for_long_changes_nothing_but_the_time():
    learner = KernelLearner(40, 60)
    rows = plate(0, 100)
    learner.fit(np.random.default_rng(0), "z", rows, labels(rows))
    one = {p: m[:1] for p, m in rows.items()}
    early = learner.predict(one)
    for _ in range(100):
        late = learner.predict(one)
    np.testing.assert_allclose(late[0], early[0], rtol=1e-9)
    np.testing.assert_allclose(late[1], early[1], rtol=1e-9)


def test_far_from_all_it_saw_it_is_as_uncertain_as_before_it_learned():
    learner = KernelLearner(200, 400)
    rows = plate(0, 300)
    learner.fit(np.random.default_rng(0), "z", rows, labels(rows))
    far = {"z": Gaussian([500.0, -500.0], 0.5), "out": rows["out"][:2]}
    near = {p: m[:2] for p, m in rows.items()}
    # the prior variance of an output is the squared length of a feature vector, about 1
    assert (learner.predict(far)[1] > 0.1).all() and (learner.predict(near)[1] < 2e-4).all()


@pytest.mark.filterwarnings("ignore::heliograph.errors.ConvergenceWarning")
def test_a_run_that_predicts_says_that_nothing_is_known_of_its_error():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((60, 2))
    model = Model()
    w = model.gaussian("w", np.zeros(2), covariance=np.eye(2))
    model.bernoulli("y", logistic_factor()(x @ w), observed=x[:, 0] > 0)
    with pytest.warns(AccuracyWarning, match="without saying how wrong they may be"):
        posterior = model.infer(operator=Kjit(40, 50, minibatch=40, threshold=-5.0), stop=after(4), progress=False)
    assert posterior.trace.n_asked < 240 and np.isnan(posterior.error_estimate)
