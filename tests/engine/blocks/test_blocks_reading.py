"""What a posterior of blocks tells: expressions, covariances, structure, snapshots between sweeps."""

import numpy as np
import pytest
from dense_world import World

import heliograph as hg


def regression(m, rng, n=15):
    m.a, m.b = m.gaussian("a", 0.0, variance=4.0), m.gaussian("b", 0.0, variance=2.0)
    m.w = m.gaussian("w", np.zeros(3), covariance=np.eye(3) + 0.2)
    m.design = rng.normal(size=(n, 3))
    m.z = m.a + m.b * rng.normal(5, 1, n) + m.design @ m.w
    m.gaussian("y", m.z, variance=0.3, observed=rng.normal(size=n))
    return m


def pair(seed=0):
    model, world = (regression(m, np.random.default_rng(seed)) for m in (hg.Model(), World()))
    return model, model.infer(), world, world.infer()


def test_covariances_of_variables_vectors_and_expressions_are_those_of_dense_algebra():
    model, posterior, world, truth = pair()
    x = np.random.default_rng(9).normal(size=(4, 3))

    def expressions(m):
        return [m.w, m.z[:5], m.z.reshape(3, 5), m.a + 3.0 * m.b - np.zeros(2), x @ m.w - m.b, 2.0 * m.w + 1.0]

    ours, theirs = expressions(model), expressions(world)
    for u, v in zip(ours, theirs, strict=True):
        for s, t in zip(ours, theirs, strict=True):
            got, want = posterior.covariance(u, s), truth.covariance(v, t)
            assert got.shape == want.shape
            np.testing.assert_allclose(got, want, rtol=1e-8, atol=1e-10)


def test_the_covariance_of_an_expression_with_itself_is_its_variance():
    model, posterior, _, _ = pair(1)
    z = model.a + model.b * np.arange(3.0)
    np.testing.assert_allclose(np.diag(posterior.covariance(z, z)), posterior[z].variance, rtol=1e-10)


def test_a_covariance_of_what_is_not_gaussian_or_of_another_model_is_refused():
    model, posterior, _, _ = pair()
    rate = model.gamma("rate", 1.0, 1.0)
    with pytest.raises(hg.ModelError, match="two Gaussian variables"):
        posterior.covariance(model.a, rate)
    with pytest.raises(hg.ModelError, match="another model"):
        posterior.covariance(pair(3)[0].a, model.a)


def test_a_covariance_asked_of_a_factorised_run_is_refused():
    model, *_ = pair()
    with pytest.warns(hg.AccuracyWarning, match="factorised in a loop"):
        posterior = model.infer(structure="factorised")
    with pytest.raises(hg.ModelError, match="not in one block"):
        posterior.covariance(model.a, model.b)


def test_the_structure_is_told_for_each_of_the_users_variables():
    model, posterior, _, _ = pair()
    assert posterior.structure == {"a": "joint", "b": "joint", "w": "joint"}
    with pytest.warns(hg.AccuracyWarning, match="factorised in a loop"):
        posterior = model.infer(structure="factorised")
    assert posterior.structure == {"a": "factorised", "b": "factorised", "w": "factorised"}
    with pytest.raises(hg.ModelError, match="structure"):
        model.infer(structure="exact")


def test_factorised_messages_lose_the_correlation_that_a_block_keeps():
    model, posterior, world, truth = pair(2)
    with pytest.warns(hg.AccuracyWarning, match="factorised in a loop"):
        factorised = model.infer(structure="factorised")
    sd = float(truth.moments(world.a)[1])
    assert float(posterior[model.a].variance) ** 0.5 == pytest.approx(sd, rel=1e-8)
    assert float(factorised[model.a].variance) ** 0.5 < 0.7 * sd


def labelled():
    """A model with sites, which takes several sweeps."""
    rng = np.random.default_rng(5)
    model = regression(hg.Model(), rng)
    model.bernoulli("label", logit=model.z - 1.0, observed=(rng.random(15) < 0.5).astype(float))
    return model


def test_posteriors_between_sweeps_keep_their_numbers_and_end_where_infer_does():
    model = labelled()
    kept = [(p, p[model.a].mean, p.covariance(model.a.reshape(1), model.w)) for p, _ in hg.steps(model)]
    assert len(kept) >= 2
    for p, mean, covariance in kept:  # read again when the run is over
        np.testing.assert_array_equal(p[model.a].mean, mean)
        np.testing.assert_array_equal(p.covariance(model.a.reshape(1), model.w), covariance)
    assert abs(kept[0][1] - kept[-1][1]) > 0
    last = model.infer()
    np.testing.assert_array_equal(last[model.a].mean, kept[-1][1])
    assert last.log_evidence == kept[-1][0].log_evidence


def test_expressions_that_sites_made_no_use_of_agree_with_their_parts():
    model = labelled()
    posterior = model.infer()
    x = np.random.default_rng(2).normal(size=(4, 3))
    found = posterior[x @ model.w + 2.0 * model.a]
    covariance = posterior.covariance(model.w, model.w)
    cross = posterior.covariance(model.w, model.a)
    variance = np.diag(x @ covariance @ x.T) + 4 * posterior[model.a].variance + 4 * x @ cross
    np.testing.assert_allclose(found.mean, x @ posterior[model.w].mean + 2 * posterior[model.a].mean, rtol=1e-9)
    np.testing.assert_allclose(found.variance, variance, rtol=1e-9)


def test_a_posterior_of_one_batch_is_the_prior_of_the_next_for_a_vector():
    rng = np.random.default_rng(8)
    x, y = rng.normal(size=(20, 3)), rng.normal(size=20)

    def run(prior, rows):
        model = hg.Model()
        w = model.gaussian("w", prior) if prior is not None else model.gaussian("w", np.zeros(3), covariance=np.eye(3))
        model.gaussian("y", x[rows] @ w, variance=0.5, observed=y[rows])
        return model.infer(), w

    whole, w = run(None, slice(None))
    first, _ = run(None, slice(0, 8))
    second, v = run(first.as_prior()["w"], slice(8, None))
    np.testing.assert_allclose(second[v].mean, whole[w].mean, rtol=1e-9)
    np.testing.assert_allclose(second[v].covariance, whole[w].covariance, rtol=1e-8, atol=1e-12)
