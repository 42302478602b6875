"""One hyper-parameter integrated, against a fine grid of dense algebra that knows nothing of EP, and what is refused."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import stats

import heliograph as hg
from heliograph.engine.compiled import compile_model, with_joint_parts
from heliograph.engine.nested.frozen import Frozen
from heliograph.engine.nested.points import Evaluator
from heliograph.engine.options import InferOptions
from heliograph.engine.run import Run
from heliograph.graph.replay import Replay

EFFECT = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
ERROR = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])


def schools(prior="half_cauchy", scale=5.0, effect=EFFECT, unit=1.0):
    model = hg.Model()
    tau = getattr(model, prior)("tau", scale * unit)
    mu = model.gaussian("mu", 0.0, sd=5.0 * unit)
    x = model.gaussian("x", mu, sd=tau, size=len(effect))
    model.gaussian("y", x, sd=ERROR[: len(effect)] * unit, observed=effect * unit)
    return model, tau, mu, x


def by_grid(log_prior, effect=EFFECT):
    """Evidence, and moments of tau and of the effects, by dense algebra on a fine grid of log tau."""
    grid = np.linspace(-9.0, 7.0, 1601)
    n = len(effect)
    log_p, means, variances = [], [], []
    for u in grid:
        tau = np.exp(u)
        prior = np.full((n, n), 25.0) + tau**2 * np.eye(n)
        noise = np.diag(ERROR[:n] ** 2)
        gain = prior @ np.linalg.inv(prior + noise)
        log_p.append(stats.multivariate_normal(np.zeros(n), prior + noise).logpdf(effect) + log_prior(tau) + u)
        means.append(gain @ effect)
        variances.append(np.diag(prior - gain @ prior))
    log_p, means, variances = np.array(log_p), np.array(means), np.array(variances)
    top = log_p.max()
    weight = np.exp(log_p - top)
    evidence = top + np.log(weight.sum() * (grid[1] - grid[0]))
    weight /= weight.sum()
    mean = weight @ means
    tau = np.exp(grid)
    moments = weight @ tau, np.sqrt(weight @ tau**2 - (weight @ tau) ** 2)
    return evidence, moments, mean, np.sqrt(weight @ (variances + (means - mean) ** 2)), (grid, weight)


PRIORS = {
    "half_cauchy": lambda t: stats.halfcauchy(scale=5.0).logpdf(t),
    "half_normal": lambda t: stats.halfnorm(scale=5.0).logpdf(t),
}


@pytest.mark.parametrize("prior", PRIORS)
def test_eight_schools_agree_with_dense_algebra_on_a_grid(prior):
    model, tau, _, x = schools(prior)
    posterior = model.infer()
    evidence, (mean, sd), effects, spreads, (grid, weight) = by_grid(PRIORS[prior])
    assert abs(posterior.log_evidence - evidence) < 0.01
    assert abs(posterior[tau].mean - mean) < 0.02 * sd
    assert abs(posterior[tau].sd / sd - 1) < 0.02
    assert np.abs((posterior[x].mean - effects) / spreads).max() < 0.015
    assert np.abs(posterior[x].sd / spreads - 1).max() < 0.02
    assert posterior.integration.n_evaluations <= 15
    quartiles = np.exp(np.interp([0.25, 0.5, 0.75], np.cumsum(weight), grid))
    np.testing.assert_allclose(posterior[tau].quantile([0.25, 0.5, 0.75]), quartiles, rtol=0.03)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_groups_agree_with_dense_algebra_on_a_grid(n):
    model, tau, _, x = schools(effect=EFFECT[:n])
    posterior = model.infer()
    evidence, (mean, _), effects, spreads, _ = by_grid(PRIORS["half_cauchy"], EFFECT[:n])
    assert abs(posterior.log_evidence - evidence) < 0.02
    assert np.abs((posterior[x].mean - effects) / spreads).max() < 0.03
    assert (
        abs(posterior[tau].mean / mean - 1) < 0.25 if n > 1 else True
    )  # the tail of one group is the prior's Cauchy tail


def test_units_and_the_order_of_rows_do_not_matter():
    first = schools()[0].infer()
    order = np.random.default_rng(0).permutation(8)
    model = hg.Model()
    tau = model.half_cauchy("tau", 5000.0)
    mu = model.gaussian("mu", 0.0, sd=5000.0)
    x = model.gaussian("x", mu, sd=tau, size=8)
    model.gaussian("y", x, sd=1000 * ERROR[order], observed=1000 * EFFECT[order])
    second = model.infer()
    np.testing.assert_allclose(second["x"].mean / 1000, first["x"].mean[order], rtol=1e-6)
    np.testing.assert_allclose(second.log_evidence, first.log_evidence - 8 * np.log(1000), atol=1e-6)
    assert second[tau].mean / 1000 == pytest.approx(float(first["tau"].mean), rel=1e-6)


def test_the_gradient_at_fixed_messages_is_that_of_the_whole_evidence():
    rng = np.random.default_rng(1)
    model = hg.Model()
    tau = model.half_normal("tau", 1.0)
    z = model.gaussian("z", model.gaussian("mu", 0.0, sd=3.0), sd=tau, size=30)
    model.poisson("count", log_rate=z, observed=rng.poisson(2.0, 30))
    evaluator = Evaluator(model, model.draft.hypers, InferOptions(tolerance=1e-6))
    for u in (-1.5, 0.0, 1.0):
        point = evaluator.at(np.array([u]), True)
        up, down = (evaluator.at(np.array([u + s]), False).log_density for s in (0.01, -0.01))
        assert point.gradient[0] == pytest.approx((up - down) / 0.02, abs=3e-3 * max(1.0, abs(point.gradient[0])))


def test_a_model_at_a_value_is_the_ordinary_model_with_that_number():
    model, _, _, x = schools()
    at = Replay(model, {"tau": np.asarray(3.0)}, frozenset())
    ordinary = hg.Model()
    mu = ordinary.gaussian("mu", 0.0, sd=5.0)
    y = ordinary.gaussian("x", mu, sd=3.0, size=8)
    ordinary.gaussian("y", y, sd=ERROR, observed=EFFECT)
    np.testing.assert_array_equal(at.graph.plates[1].data["variance"], ordinary.graph.plates[1].data["variance"])
    assert at.variable(x).name == "x"


def test_the_best_value_alone_says_so_and_has_smaller_standard_deviations():
    model, tau, _, x = schools()
    best, whole = model.infer(integrate=False), model.infer()
    assert "best value" in best.status
    assert best[tau].sd == 0
    assert (best[x].sd < whole[x].sd).all()


def test_a_gamma_variable_given_as_sd_is_integrated_over():
    model = hg.Model()
    tau = model.gamma("tau", 2.0, 0.4)
    mu = model.gaussian("mu", 0.0, sd=5.0)
    x = model.gaussian("x", mu, sd=tau, size=8)
    model.gaussian("y", x, sd=ERROR, observed=EFFECT)
    posterior = model.infer()
    evidence, (mean, sd), effects, spreads, _ = by_grid(lambda t: stats.gamma(2.0, scale=2.5).logpdf(t))
    assert abs(posterior.log_evidence - evidence) < 0.01
    assert abs(posterior[tau].mean - mean) < 0.02 * sd
    assert np.abs(posterior[x].sd / spreads - 1).max() < 0.02
    assert np.abs((posterior[x].mean - effects) / spreads).max() < 0.015


def test_expressions_of_variables_and_of_hyper_parameters_are_read_at_every_value():
    model, tau, mu, x = schools()
    posterior = model.infer()
    gap = posterior[x[0] - x[1]]
    cov = posterior.covariance(x, x)
    assert gap.variance == pytest.approx(cov[0, 0] + cov[1, 1] - 2 * cov[0, 1], rel=0.01)
    scaled = posterior[tau * x[2]]  # an expression that is no part of the run, with a hyper-parameter in it
    assert scaled.mean == pytest.approx(
        float(np.sum(posterior[tau].weights * posterior[tau].values * posterior[x[2]].components.mean)), rel=1e-2
    )
    assert posterior[tau**2].mean == pytest.approx(float(posterior[tau].variance + posterior[tau].mean ** 2), rel=1e-9)
    assert posterior[mu].sample(np.random.default_rng(0), 5).shape == (5,)


def test_the_same_seed_gives_the_same_bits():
    first, second = schools()[0].infer(seed=3), schools()[0].infer(seed=3)
    np.testing.assert_array_equal(first["x"].mean, second["x"].mean)
    assert first.log_evidence == second.log_evidence


class TestRefusals:
    def test_more_than_six_numbers(self):
        model = hg.Model()
        s = model.half_normal("s", 1.0, size=7)
        x = model.gaussian("x", 0.0, sd=s)
        model.gaussian("y", x, sd=1.0, observed=np.ones(7))
        with pytest.raises(hg.UnsupportedError, match=r"7 hyper-parameters .*integrate="):
            model.infer()

    def test_steps_of_a_model_with_hyper_parameters(self):
        with pytest.raises(hg.ModelError, match=r"'tau'.*use infer"):
            hg.steps(schools()[0])

    def test_a_symbol_as_data_or_as_a_truth_value(self):
        model, tau, _, _ = schools()
        with pytest.raises(hg.ModelError, match="cannot decide"):
            bool(tau > 1)
        with pytest.raises(hg.ModelError, match="given as data"):
            np.asarray(tau)
        with pytest.raises(hg.ModelError, match="must be a number"):
            model.half_normal("b", tau)

    @pytest.mark.parametrize("wrong", ["all", 3, ["nobody"], [None]])
    def test_a_wrong_list(self, wrong):
        with pytest.raises(hg.ModelError, match="integrate"):
            schools()[0].infer(integrate=wrong)

    def test_a_symbol_of_another_model(self):
        model, _, _, _ = schools()
        other = hg.Model().half_normal("s", 1.0)
        with pytest.raises(hg.ModelError, match="another model"):
            model.gaussian("z", 0.0, sd=other)

    def test_a_failed_call_leaves_the_model_as_it_was(self):
        model, tau, _, _ = schools()
        with pytest.raises(hg.ModelError):
            model.gaussian("z", 0.0, sd=tau - 1e6)
        assert "z" not in model.summary()
        model.infer()


def test_threads_give_the_same_bits_as_one_after_the_other():
    rng = np.random.default_rng(2)
    count = rng.poisson(np.exp(0.5 + 0.7 * rng.normal(size=15)))

    def posterior(executor):
        model = hg.Model()
        s = model.half_normal("s", 1.0, size=2)
        z = model.gaussian("z", model.gaussian("mu", 0.0, sd=s[0]), sd=s[1], size=15)
        model.poisson("count", log_rate=z, observed=count)
        return model.infer(executor=executor)

    alone = posterior(None)
    with ThreadPoolExecutor(3) as executor:
        together = posterior(executor)
    assert together.log_evidence == alone.log_evidence
    assert together.integration.n_evaluations == alone.integration.n_evaluations
    np.testing.assert_array_equal(together["z"].mean, alone["z"].mean)


def test_what_is_remembered_from_value_to_value_changes_no_bit():
    n, rng = 80, np.random.default_rng(3)
    y = rng.normal(size=n)
    model = hg.Model()
    phi, s = model.flat("phi", -1.0, 1.0), model.half_normal("s", 1.0)
    shared = model.gaussian("shared", 0.0, sd=s, size=4)
    x = model.chain("x", n, hg.Gaussian(0.0, 1.0), lambda before: model.gaussian("x", phi * before, sd=s))
    model.bernoulli("y", logit=x + shared[np.arange(n) % 4] * y + s * shared[np.arange(n) % 3], observed=y > 0)
    keeping = Evaluator(model, model.draft.hypers, InferOptions())
    for u in ([0.3, -0.5], [-0.4, 0.2], [0.3, -0.5]):
        keeping.points.clear()
        fresh = Evaluator(model, model.draft.hypers, InferOptions())
        assert keeping.at(np.array(u), False).log_density == fresh.at(np.array(u), False).log_density


def test_the_change_of_blocks_at_fixed_messages_is_that_of_the_whole_evidence():
    rng = np.random.default_rng(4)
    n, groups = 40, rng.integers(0, 6, 40)
    model = hg.Model()
    s, rho = model.half_normal("s", 1.0), model.flat("rho", -1.0, 1.0)
    x = model.chain("x", n, hg.Gaussian(0.0, 1.0), lambda before: model.gaussian("x", rho * before, sd=s))
    pairs = model.gaussian("pairs", np.zeros(2), covariance=np.eye(2) * s**2, size=6)
    model.poisson("y", log_rate=x + pairs[groups, 0] * rho + s * 0.3, observed=rng.poisson(2.0, n))
    evaluator = Evaluator(model, model.draft.hypers, InferOptions())
    point = evaluator.at(np.array([-0.3, 0.4]), False)
    messages, step = point.posterior.messages(), np.array([0.02, -0.03])
    written, graph = point.model.graph.snapshot(), evaluator._replay(point.u + step).graph.snapshot()
    change = Frozen(written, compile_model(written), messages).change(graph, with_joint_parts)
    whole = Run(compile_model(graph), InferOptions(), messages).log_evidence()
    assert change == pytest.approx(whole - point.posterior.log_evidence, abs=1e-9)
    assert abs(change) > 1e-3


def _counts(model, z):
    r = model.log_normal("r", 0.0, 1.0)
    model.negative_binomial("y", log_mean=z, dispersion=r, observed=[1.0, 4.0, 2.0])


def _student(model, z):
    s, nu = model.half_normal("s", 1.0), model.log_normal("nu", 1.5, 0.8)
    model.student_t("y", z, scale=s, dof=nu, observed=[0.3, -4.0, 1.0])


def _both(model, z):
    s = model.half_normal("s", 1.0)
    model.student_t("y", z + model.gaussian("w", 0.0, sd=s), scale=s, dof=3.0, observed=[0.3, -4.0, 1.0])


@pytest.mark.parametrize("likelihood", [_counts, _student, _both])
def test_the_change_of_plain_factors_at_fixed_messages_is_that_of_the_whole_evidence(likelihood):
    model = hg.Model()
    likelihood(model, model.gaussian("z", 0.0, sd=1.0, size=3) + model.gaussian("mu", 0.0, sd=2.0))
    evaluator = Evaluator(model, model.draft.hypers, InferOptions())
    point = evaluator.at(evaluator.centre + 0.5, False)
    written, messages = point.model.graph.snapshot(), point.posterior.messages()
    frozen = Frozen(written, compile_model(written), messages)
    for k in range(len(point.u)):
        there = point.u.copy()
        there[k] += 1e-4
        graph = evaluator._replay(there).graph.snapshot()
        whole = Run(compile_model(graph), InferOptions(), messages).log_evidence() - point.posterior.log_evidence
        assert abs(whole) > 1e-6
        assert frozen.change(graph, with_joint_parts) == pytest.approx(whole, abs=1e-10)
        # slopes leave out what is of second order: the square of the step, times a curvature of a few units
        assert frozen.change(graph, with_joint_parts, linear=True) == pytest.approx(whole, abs=1e-7)


def test_other_numbers_of_what_is_neither_plain_nor_a_block_are_left_to_the_whole_evidence():
    @hg.factor(output=hg.Beta)
    def link(z, slope):
        return 1 / (1 + np.exp(-slope * z))

    model = hg.Model()
    p = link(model.gaussian("z", 0.0, sd=1.0, size=3), model.log_normal("slope", 0.0, 0.5))
    model.bernoulli("y", p, observed=[1.0, 0.0, 1.0])
    evaluator = Evaluator(model, model.draft.hypers, InferOptions())
    point = evaluator.at(evaluator.centre, False)
    written = point.model.graph.snapshot()
    frozen = Frozen(written, compile_model(written), point.posterior.messages())
    assert frozen.change(evaluator._replay(point.u + 0.1).graph.snapshot(), with_joint_parts) is None
