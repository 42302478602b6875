"""Black boxes of several inputs in one block: one site of several numbers, and what is learned of it is kept."""

import numpy as np
import pytest
from by_hand_vectors import expectation_propagation
from scipy.special import softmax

import heliograph as hg


def make_range():
    @hg.factor(output=hg.Gaussian)
    def distance(x, y):
        return np.hypot(x, y)

    return distance


def tracker(distance, ranges, shared=True):
    """A walk in the plane of which only distances from the origin are seen, and the rows of its places."""
    n = len(ranges)
    model = hg.Model()
    a = model.gaussian("a", 0.0, variance=1.0)
    xs = [model.gaussian("x0", 3.0 + a if shared else 3.0, variance=0.25)]
    ys = [model.gaussian("y0", 4.0 - 0.5 * a, variance=0.25)]
    for t in range(1, n):
        xs.append(model.gaussian(f"x{t}", xs[-1], variance=0.25))
        ys.append(model.gaussian(f"y{t}", ys[-1], variance=0.25))
    for t in range(n):
        model.gaussian(f"r{t}", distance(xs[t], ys[t]), variance=0.09, observed=ranges[t])
    rows = []
    for t in range(n):
        row = np.zeros((2, 1 + 2 * n))
        row[:, 0] = shared, -0.5
        row[0, 1 : 2 + t] = row[1, 1 + n : 2 + n + t] = 1.0
        rows.append(row)
    return model, (a, *xs, *ys), rows


def likelihood_of_range(value):
    def log_likelihood(z):
        gap = np.hypot(3.0 + z[:, 0], 4.0 + z[:, 1]) - value
        return -0.5 * gap**2 / 0.09 - 0.5 * np.log(2 * np.pi * 0.09)

    return log_likelihood


RANGES = np.array([5.6, 5.3, 6.1])


@pytest.mark.filterwarnings(
    "ignore:.*bend their posterior"
)  # a distance bends it: the fixed point is compared, and not the truth
@pytest.mark.parametrize("shared", [True, False])
def test_distances_of_a_walk_reach_the_fixed_point_of_joint_sites(shared):
    # without a shared start the two coordinates are independent chains, which the distances alone connect: a loop too
    model, variables, rows = tracker(make_range(), RANGES, shared)
    posterior = model.infer(seed=0)
    assert posterior.converged, posterior.status
    n = len(RANGES)
    prior = np.concatenate([[1.0], np.full(2 * n, 0.25)])
    mean, covariance, log_evidence = expectation_propagation(
        np.zeros(len(prior)), np.diag(prior), rows, [likelihood_of_range(r) for r in RANGES]
    )
    places = [np.eye(len(prior))[0], *(r[0] for r in rows), *(r[1] for r in rows)]
    offset = np.concatenate([[0.0], np.full(n, 3.0), np.full(n, 4.0)])
    for variable, row, extra in zip(variables, places, offset, strict=True):
        sd = np.sqrt(row @ covariance @ row)
        assert float(posterior[variable].mean) == pytest.approx(row @ mean + extra, abs=5e-3 * sd)
        assert float(posterior[variable].variance) ** 0.5 == pytest.approx(sd, rel=5e-3)
    assert posterior.log_evidence == pytest.approx(log_evidence, abs=5e-3)
    found = posterior.covariance(variables[1].reshape(1), variables[1 + n].reshape(1))[0, 0]
    assert found == pytest.approx(rows[0][0] @ covariance @ rows[0][1], abs=5e-3)


@pytest.mark.filterwarnings(
    "ignore:.*bend their posterior"
)  # a distance bends it: the fixed point is compared, and not the truth
def test_what_a_joint_form_learned_is_saved_and_serves_the_next_problem(tmp_path):
    distance = make_range()
    model, *_ = tracker(distance, RANGES)
    first = model.infer(seed=0)
    asked = distance.n_asked
    assert asked > 0 and distance.n_messages > asked
    distance.save(tmp_path / "distance.hg")
    again = make_range()
    again.load(tmp_path / "distance.hg")
    before = again.n_asked
    model, (a, *_), _ = tracker(again, RANGES)
    posterior = model.infer(seed=0)
    assert again.n_asked - before <= asked // 4
    assert float(posterior[a].mean) == pytest.approx(float(first["a"].mean), abs=5e-3)
    again.forget()
    assert not again.form_operators


def test_a_softmax_of_three_scores_as_a_black_box():
    @hg.factor(output=hg.Beta)
    def first_of_three(a, b, c):
        return softmax(np.stack([a, b, c], axis=-1), axis=-1)[..., 0]

    weights = np.array([[1.0, -0.4, 0.2], [0.3, 0.8, -0.6], [-0.7, 0.1, 0.9], [0.2, 0.2, -0.5]])
    labels = np.array([1, 0, 1, 1])
    model = hg.Model()
    common = model.gaussian("common", 0.0, variance=1.0)
    own = [model.gaussian(f"own{k}", 0.6 * common, variance=0.8) for k in range(3)]
    noise = [model.gaussian(f"noise{k}", weights[:, k] * 0.1 + own[k], variance=0.3, size=4) for k in range(3)]
    model.bernoulli("y", first_of_three(*noise), observed=labels)
    posterior = model.infer(seed=0)
    assert posterior.converged, posterior.status
    # scalars: common, own0..2, noise (3 x 4)
    prior = np.concatenate([[1.0], np.full(3, 0.8), np.full(12, 0.3)])
    rows, likelihoods = [], []
    for i in range(4):
        row = np.zeros((3, 16))
        row[:, 0] = 0.6
        for k in range(3):
            row[k, 1 + k] = row[k, 4 + 4 * k + i] = 1.0
        rows.append(row)

        def log_likelihood(z, i=i):
            p = softmax(z + 0.1 * weights[i], axis=-1)[:, 0]
            return np.log(p if labels[i] else 1 - p)

        likelihoods.append(log_likelihood)
    mean, covariance, _ = expectation_propagation(np.zeros(16), np.diag(prior), rows, likelihoods)
    sd = np.sqrt(covariance[0, 0])
    assert float(posterior[common].mean) == pytest.approx(mean[0], abs=0.01 * sd)
    assert float(posterior[common].variance) ** 0.5 == pytest.approx(sd, rel=0.01)
    spread = np.array([0.6, 1.0]) @ covariance[:2, :2] @ np.array([0.6, 1.0])
    assert float(posterior[own[0]].variance) == pytest.approx(spread, rel=0.02)
