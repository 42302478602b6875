"""Predictions against draws by hand and against closed forms; draws that are joint; pointwise likelihoods."""

import pickle

import numpy as np
import pytest
from scipy import special, stats

import heliograph as hg
from heliograph.errors import ModelError

N = 20_000
T = np.array([-1.0, 0.0, 0.5, 2.0])


# Every likelihood with a parent that has a known distribution: how the model writes it, and how NumPy draws it.
def _normal(rng, n=N):
    return 0.3 + 0.8 * rng.standard_normal(n)


def _line(m, t):
    return m.gaussian("a", 0.3, variance=0.64) + t * 0.5


WAYS = {
    "gaussian": (
        lambda m, t: m.gaussian("y", _line(m, t), variance=2.0),
        lambda rng, t: _normal(rng)[:, None] + 0.5 * t + np.sqrt(2.0) * rng.standard_normal((N, len(t))),
    ),
    "gaussian with a random precision": (
        lambda m, t: m.gaussian("y", _line(m, t), precision=m.gamma("tau", 5.0, 5.0)),
        lambda rng, t: (
            _normal(rng)[:, None]
            + 0.5 * t
            + rng.standard_normal((N, len(t))) / np.sqrt(rng.gamma(5.0, 0.2, N))[:, None]
        ),
    ),
    "logit": (
        lambda m, t: m.bernoulli("y", logit=_line(m, t)),
        lambda rng, t: rng.random((N, len(t))) < special.expit(_normal(rng)[:, None] + 0.5 * t),
    ),
    "probit": (
        lambda m, t: m.bernoulli("y", probit=_line(m, t)),
        lambda rng, t: rng.random((N, len(t))) < special.ndtr(_normal(rng)[:, None] + 0.5 * t),
    ),
    "beta bernoulli": (
        lambda m, t: m.bernoulli("y", m.beta("p", 2.0, 5.0), size=t.rows),
        lambda rng, t: rng.random((N, len(t))) < rng.beta(2.0, 5.0, N)[:, None],
    ),
    "poisson": (
        lambda m, t: m.poisson("y", m.gamma("rate", 3.0, 2.0, size=t.rows)),
        lambda rng, t: rng.poisson(rng.gamma(3.0, 0.5, (N, len(t)))),
    ),
    "poisson of a log rate": (
        lambda m, t: m.poisson("y", log_rate=_line(m, t)),
        lambda rng, t: rng.poisson(np.exp(_normal(rng)[:, None] + 0.5 * t)),
    ),
    "binomial": (
        lambda m, t: m.binomial("y", 7, m.beta("p", 2.0, 5.0, size=t.rows)),
        lambda rng, t: rng.binomial(7, rng.beta(2.0, 5.0, (N, len(t)))),
    ),
    "gamma": (
        lambda m, t: m.gamma("y", 6.0, m.gamma("rate", 8.0, 2.0), size=t.rows),
        lambda rng, t: rng.gamma(6.0, 1.0 / rng.gamma(8.0, 0.5, N)[:, None], (N, len(t))),
    ),
    "mixture": (
        lambda m, t: m.mixture(
            "y", m.bernoulli("s", 0.3, size=t.rows), m.gaussian("c", [-2.0, 2.0], variance=0.5), variance=1.0
        ),
        lambda rng, t: (lambda s, c: np.where(s, c[:, 1:], c[:, :1]) + rng.standard_normal((N, len(t))))(
            rng.random((N, len(t))) < 0.3, np.array([-2.0, 2.0]) + np.sqrt(0.5) * rng.standard_normal((N, 2))
        ),
    ),
    "student": (
        lambda m, t: m.student_t("y", _line(m, t), 0.7, 6.0),
        lambda rng, t: _normal(rng)[:, None] + 0.5 * t + 0.7 * rng.standard_t(6.0, (N, len(t))),
    ),
    "laplace": (
        lambda m, t: m.laplace("y", _line(m, t), 0.7),
        lambda rng, t: _normal(rng)[:, None] + 0.5 * t + rng.laplace(0.0, 0.7, (N, len(t))),
    ),
    "negative binomial": (
        lambda m, t: m.negative_binomial("y", log_mean=_line(m, t), dispersion=4.0),
        lambda rng, t: rng.poisson(np.exp(_normal(rng)[:, None] + 0.5 * t) * rng.gamma(4.0, 0.25, (N, len(t)))),
    ),
    "binomial of a logit": (
        lambda m, t: m.binomial("y", 9, logit=_line(m, t)),
        lambda rng, t: rng.binomial(9, special.expit(_normal(rng)[:, None] + 0.5 * t)),
    ),
    "weibull": (
        lambda m, t: m.weibull("y", 2.0, log_scale=_line(m, t)),
        lambda rng, t: np.exp(_normal(rng)[:, None] + 0.5 * t) * rng.weibull(2.0, (N, len(t))),
    ),
    "exponential of a log rate": (
        lambda m, t: m.exponential("y", log_rate=_line(m, t)),
        lambda rng, t: np.exp(-_normal(rng)[:, None] - 0.5 * t) * rng.exponential(1.0, (N, len(t))),
    ),
    "exponential": (
        lambda m, t: m.exponential("y", m.gamma("rate", 6.0, 2.0), size=t.rows),
        lambda rng, t: rng.exponential(1.0, (N, len(t))) / rng.gamma(6.0, 0.5, N)[:, None],
    ),
    "an event": (
        lambda m, t: _line(m, t) > m.gaussian("b", 0.0, variance=1.0),
        lambda rng, t: _normal(rng)[:, None] + 0.5 * t > rng.standard_normal(N)[:, None],
    ),
    "a function": (
        lambda m, t: hg.factor(output=hg.Gaussian)(_cube)(_line(m, t)),
        lambda rng, t: (_normal(rng)[:, None] + 0.5 * t) ** 3,
    ),
}


def _cube(z):
    return z**3


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("n", [1, 4])
def test_predictions_agree_with_draws_by_hand(way: str, n: int) -> None:
    written, by_hand = WAYS[way]
    m = hg.Model()
    t = m.data("t", np.zeros(3))
    y = written(m, t)
    p = m.infer(operator="ask")
    new = T[:n]
    named = y is None or y.node.given or way == "exponential of a log rate"
    found = p.predict("y" if named else y, t=new, draws=N, seed=1)
    expected = by_hand(np.random.default_rng(2), new).astype(float)
    assert found.samples.shape == expected.shape
    sd = expected.std(axis=0)
    # both are averages of N draws: three and a half standard errors of the difference of two
    np.testing.assert_allclose(found.mean, expected.mean(axis=0), atol=3.5 * (sd * np.sqrt(2 / N)).max())
    np.testing.assert_allclose(found.samples.mean(axis=0), expected.mean(axis=0), atol=4 * (sd * np.sqrt(2 / N)).max())
    loose = (
        0.12 if way == "exponential of a log rate" else 0.06
    )  # the sd of N draws with so heavy a tail is known no better
    np.testing.assert_allclose(found.sd, sd, rtol=loose)
    np.testing.assert_allclose(found.samples.std(axis=0), sd, rtol=loose)
    for q in (0.1, 0.5, 0.9):
        share = np.mean(expected <= found.quantile(q), axis=0)
        assert (share > q - 0.02).all()  # a discrete quantile holds at least its share


def test_categories_are_predicted_with_their_probabilities() -> None:
    m = hg.Model()
    t = m.data("t", np.zeros(3))
    z = _line(m, t)
    m.ordinal("grade", z, [-1.0, 0.5])
    m.categorical("colour", logits=hg.stack([z, 0.0 * z, -1.0 * z], axis=1))
    p = m.infer()
    rng = np.random.default_rng(3)
    draws = _normal(rng)[:, None] + 0.5 * T
    cuts = special.ndtr(np.stack([-1.0 - draws, 0.5 - draws], axis=-1))
    grades = np.diff(np.concatenate([np.zeros((*draws.shape, 1)), cuts, np.ones((*draws.shape, 1))], axis=-1), axis=-1)
    found = p.predict("grade", t=T, draws=N)
    np.testing.assert_allclose(found.mean, grades.mean(axis=0), atol=0.01)
    assert found.samples.shape == (N, 4)
    softmax = special.softmax(np.stack([draws, 0 * draws, -draws], axis=-1), axis=-1)
    found = p.predict("colour", t=T, draws=N)
    np.testing.assert_allclose(found.mean, softmax.mean(axis=0), atol=0.01)
    np.testing.assert_allclose([np.mean(found.samples == k, axis=0) for k in range(3)], found.mean.T, atol=0.015)


def test_out_of_sample_predictions_of_a_line_are_the_closed_form() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((50, 3)), rng.standard_normal(50)
    model = hg.Model()
    w = model.gaussian("w", np.zeros(3), covariance=np.eye(3))
    model.gaussian("y", model.data("X", X) @ w, variance=0.5, observed=y)
    p = model.infer()
    new = rng.standard_normal((6, 3))
    covariance = np.linalg.inv(np.eye(3) + X.T @ X / 0.5)
    mean = covariance @ X.T @ y / 0.5
    found = p.predict("y", X=new, draws=N)
    sd = np.sqrt(np.einsum("ni,ij,nj->n", new, covariance, new))
    np.testing.assert_allclose(found.mean, new @ mean, atol=4 * sd.max() / np.sqrt(N))
    np.testing.assert_allclose(found.variance, sd**2 + 0.5, rtol=0.01)
    lower, upper = found.interval(0.9)
    np.testing.assert_allclose(upper - lower, 2 * 1.645 * np.sqrt(sd**2 + 0.5), rtol=0.05)
    np.testing.assert_array_equal(p.predict("y", X=new, draws=50).samples, p.predict("y", X=new, draws=50).samples)
    # what was asked leaves no trace
    np.testing.assert_array_equal(model.infer()[w].mean, p[w].mean)
    assert model["y"].shape == (50,)


def test_without_new_data_an_observed_variable_is_replicated_and_a_latent_one_has_its_posterior() -> None:
    model = hg.Model()
    x = model.gaussian("x", 0.0, variance=4.0)
    model.gaussian("y", x, variance=1.0, observed=[1.0, 2.0, np.nan])
    p = model.infer()
    again = p.predict("y", draws=N)
    np.testing.assert_allclose(again.mean, float(p[x].mean), atol=0.03)
    np.testing.assert_allclose(again.variance, float(p[x].variance) + 1.0, rtol=0.03)
    latent = p.predict(x, draws=N)
    assert latent.mean == pytest.approx(float(p[x].mean), abs=0.03)
    assert p.predict(2 * x + 1, draws=N).sd == pytest.approx(2 * float(p[x].sd), rel=0.03)


def test_effects_of_groups_are_kept_and_noise_of_rows_is_drawn_anew() -> None:
    rng = np.random.default_rng(3)
    group, y = rng.integers(0, 3, 60), rng.standard_normal(60)
    model = hg.Model()
    g = model.data("group", group)
    u = model.gaussian("u", 0.0, variance=1.0, size=3)
    noise = model.gaussian("noise", 0.0, variance=0.2, size=g.rows)
    model.gaussian("y", u[g] + noise, variance=0.3, observed=y)
    p = model.infer()
    found = p.predict("y", group=[2, 0], draws=N)
    belief = p["u"]
    np.testing.assert_allclose(found.mean, belief.mean[[2, 0]], atol=0.02)
    np.testing.assert_allclose(found.variance, belief.variance[[2, 0]] + 0.5, rtol=0.03)


def test_draws_are_joint_where_a_block_is_joint() -> None:
    rng = np.random.default_rng(4)
    t = np.linspace(5, 10, 40)
    model = hg.Model()
    a, b = model.gaussian("a", 0.0, variance=100.0), model.gaussian("b", 0.0, variance=100.0)
    model.gaussian("y", a + b * t, variance=1.0, observed=1 + 2 * t + rng.standard_normal(40))
    rate = model.gamma("rate", 2.0, 1.0)
    p = model.infer()
    draws = p.sample(N, seed=5)
    assert set(draws) == {"a", "b", "rate"}
    line = np.stack([draws["a"], draws["b"]])
    design = np.stack([np.ones(40), t], axis=1)
    exact = np.linalg.inv(np.eye(2) / 100 + design.T @ design)
    np.testing.assert_allclose(np.cov(line), exact, rtol=0.05)
    assert draws["rate"].mean() == pytest.approx(2.0, abs=0.04)
    some = p.sample(100, [a + 7 * b, "a"], seed=5)
    assert len(some) == 2
    assert next(iter(some.values())).shape == (100,)
    assert rate.name in p


def test_the_order_of_rows_does_not_matter_to_a_prediction() -> None:
    rng = np.random.default_rng(6)
    X = rng.standard_normal((30, 2))
    model = hg.Model()
    w = model.gaussian("w", np.zeros(2), covariance=np.eye(2))
    model.bernoulli("y", logit=model.data("X", X) @ w, observed=rng.random(30) < 0.5)
    p = model.infer()
    order = rng.permutation(30)
    one, other = p.predict("y", X=X, draws=2000).mean, p.predict("y", X=X[order], draws=2000).mean
    np.testing.assert_allclose(one[order], other, rtol=1e-10)


def test_pointwise_likelihoods_sum_to_a_dense_computation() -> None:
    rng = np.random.default_rng(7)
    X, y, k = rng.standard_normal((40, 2)), rng.standard_normal(40), rng.poisson(2.0, 5).astype(float)
    k[2] = np.nan
    model = hg.Model()
    w = model.gaussian("w", np.zeros(2), covariance=np.eye(2))
    model.gaussian("y", X @ w, variance=0.7, observed=y)
    rate = model.gamma("rate", 2.0, 1.0)
    model.poisson("k", rate, observed=k)
    p = model.infer()
    covariance = np.linalg.inv(np.eye(2) + X.T @ X / 0.7)
    mean = covariance @ X.T @ y / 0.7
    by_hand = stats.norm(X @ mean, np.sqrt(np.einsum("ni,ij,nj->n", X, covariance, X) + 0.7)).logpdf(y)
    found = p.log_likelihood(pointwise=True)
    np.testing.assert_allclose(found["y"], by_hand, rtol=1e-9)
    shape, b = 2.0 + np.nansum(k), 1.0 + 4
    counts = stats.nbinom(shape, b / (b + 1)).logpmf(k[~np.isnan(k)])
    np.testing.assert_allclose(found["k"][~np.isnan(k)], counts, rtol=1e-8)
    assert np.isnan(found["k"][2])
    assert p.log_likelihood() == pytest.approx(by_hand.sum() + counts.sum())


def test_a_pickled_posterior_predicts_the_same() -> None:
    model = hg.Model()
    t = model.data("t", [0.0, 1.0])
    a = model.gaussian("a", 0.0, variance=1.0)
    model.gaussian("y", a * t + np.exp(-t), variance=1.0, observed=[1.0, 2.0])
    p = model.infer()
    q = pickle.loads(pickle.dumps(p))
    np.testing.assert_array_equal(q.predict("y", t=[3.0]).samples, p.predict("y", t=[3.0]).samples)


def test_a_pickle_without_its_model_can_be_read_and_says_that_it_cannot_predict() -> None:
    model = hg.Model()
    t = model.data("t", [0.0, 1.0])
    a = model.gaussian("a", 0.0, variance=1.0)
    model.gaussian("y", a * t, variance=1.0, observed=[1.0, 2.0])
    model.unpicklable = lambda: None  # type: ignore[attr-defined]
    p = model.infer()
    q = pickle.loads(pickle.dumps(p))
    np.testing.assert_array_equal(q["a"].mean, p["a"].mean)
    with pytest.raises(ModelError, match="without its model"):
        q.predict("y", t=[1.0])


def test_predictions_over_hyper_parameters_agree_with_a_grid() -> None:
    y = np.array([0.3, -1.2, 2.0, 0.4, -0.9])
    model = hg.Model()
    t = model.data("t", np.ones(5))
    s = model.half_normal("s", 1.0)
    model.gaussian("y", 0.0 * t, sd=s, observed=y)
    p = model.infer()
    found = p.predict("y", t=np.ones(2), draws=N, seed=1)
    grid = np.linspace(1e-3, 8, 40_000)
    weight = stats.norm.pdf(grid) * np.prod(stats.norm(0, grid[:, None]).pdf(y), axis=1)
    weight /= weight.sum()
    np.testing.assert_allclose(found.variance, np.sum(weight * grid**2), rtol=0.04)
    tail = np.sum(weight * 2 * stats.norm(0, grid).cdf(-3.0))
    assert np.mean(np.abs(found.samples) > 3.0) == pytest.approx(tail, abs=0.006)
    assert p.predict("y", draws=100).samples.shape == (100, 5)


def test_wrong_questions_are_answered_with_a_sentence() -> None:
    model = hg.Model()
    t = model.data("t", [0.0, 1.0])
    a = model.gaussian("a", 0.0, variance=1.0)
    model.gaussian("y", a * t, variance=1.0, observed=[1.0, 2.0])
    p = model.infer()
    other = hg.Model().gaussian("b", 0.0, variance=1.0)
    for wrong in (
        lambda: p.predict("z"),
        lambda: p.predict(3),
        lambda: p.predict("y", s=[1.0]),
        lambda: p.predict("y", t=["a"]),
        lambda: p.predict("y", draws=0),
        lambda: p.predict(other),
        lambda: p.sample(-1),
        lambda: p.sample(10, ["z"]),
    ):
        with pytest.raises(ModelError):
            wrong()
    np.testing.assert_array_equal(model.infer()[a].mean, p[a].mean)
