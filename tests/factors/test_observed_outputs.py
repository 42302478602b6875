"""Outputs of black boxes that were observed: exact values, counts, and given log densities, each against sums over a grid."""

import numpy as np
import pytest
from scipy import stats

import heliograph as hg
from heliograph.errors import AccuracyWarning, FactorError, ModelError, UnsupportedError
from heliograph.factors.black_box.densities import check_log_density
from heliograph.oracles.forms.roots import roots_of


def on_a_line(log_like, mean, variance):
    """Mean, variance and log evidence of N(z; mean, variance) p(y | z), by sums over even nodes."""
    z = mean + np.sqrt(variance) * np.linspace(-14, 14, 560_001)
    log_w = stats.norm.logpdf(z, mean, np.sqrt(variance)) + log_like(z)
    w = np.exp(log_w - log_w.max())
    m = w @ z / w.sum()
    return m, w @ (z - m) ** 2 / w.sum(), float(np.log(w.sum() * (z[1] - z[0])) + log_w.max())


# ---- exact values of a deterministic function ------------------------------------------------------------------------
def observed(function, y, mean=0.3, variance=1.0, output=hg.Gaussian, **more):
    box = hg.factor(function, output=output, **more)
    model = hg.Model()
    z = model.gaussian("z", mean, variance=variance, size=len(y))
    box(z, observed=np.array(y))
    posterior = model.infer(progress=False)
    return posterior[z], posterior


def of_atoms(places, weights):
    mean = weights @ places / weights.sum()
    return mean, weights @ (places - mean) ** 2 / weights.sum(), np.log(weights.sum())


def test_an_invertible_function_makes_its_input_known():
    y = np.array([2.0, -1e-3, 1e6])
    belief, posterior = observed(lambda z: np.sinh(z), y)
    z = np.arcsinh(y)
    assert belief.is_point.all()
    assert belief.mean == pytest.approx(z, rel=1e-12)
    truth = np.sum(stats.norm.logpdf(z, 0.3, 1.0) - np.log(np.cosh(z)))
    assert posterior.log_evidence == pytest.approx(truth, abs=1e-9)
    assert posterior.converged


@pytest.mark.parametrize("y", [4.0, 0.25, 1e-6])
def test_two_roots_have_the_weights_of_the_change_of_variables(y):
    belief, posterior = observed(lambda z: z**2, [y])
    places = np.sqrt(y) * np.array([-1.0, 1.0])
    mean, variance, log_z = of_atoms(places, stats.norm.pdf(places, 0.3, 1.0) / (2 * np.sqrt(y)))
    assert (belief.mean[0], belief.variance[0]) == pytest.approx((mean, variance), rel=1e-9)
    assert posterior.log_evidence == pytest.approx(log_z, abs=1e-9)


def test_poles_are_no_roots():
    belief, posterior = observed(lambda z: np.tan(z), [1.5])
    places = np.arctan(1.5) + np.pi * np.arange(-8, 9)
    mean, variance, log_z = of_atoms(places, stats.norm.pdf(places, 0.3, 1.0) / (1 + 1.5**2))
    assert (belief.mean[0], belief.variance[0]) == pytest.approx((mean, variance), rel=1e-8)
    assert posterior.log_evidence == pytest.approx(log_z, abs=1e-8)


def test_a_given_derivative_is_used():
    asked = []

    def derivative(z):
        asked.append(len(z))
        return 3 * z**2 - 1

    belief, posterior = observed(lambda z: z**3 - z, [0.2], derivative=derivative)
    places = np.sort(np.roots([1.0, 0.0, -1.0, -0.2]).real)
    weights = stats.norm.pdf(places, 0.3, 1.0) / np.abs(3 * places**2 - 1)
    assert (belief.mean[0], belief.variance[0]) == pytest.approx(of_atoms(places, weights)[:2], rel=1e-12)
    assert posterior.log_evidence == pytest.approx(of_atoms(places, weights)[2], abs=1e-12)
    assert asked


def test_the_density_is_that_of_the_output_in_its_own_unit():
    _, posterior = observed(lambda z: np.exp(z), [2.0, 3.0], output=hg.Gamma)
    truth = stats.lognorm.logpdf([2.0, 3.0], 1.0, scale=np.exp(0.3)).sum()
    assert posterior.log_evidence == pytest.approx(truth, abs=1e-9)
    _, posterior = observed(lambda z: 1 / (1 + np.exp(-z)), [0.2], output=hg.Beta)
    truth = stats.norm.logpdf(np.log(0.2 / 0.8), 0.3, 1.0) - np.log(0.2 * 0.8)
    assert posterior.log_evidence == pytest.approx(truth, abs=1e-9)


def test_a_row_of_a_vector_is_conditioned_on_exactly():
    box = hg.factor(lambda z: np.sinh(z), output=hg.Gaussian)
    rows, y = np.array([[1.0, 2.0, -1.0], [0.5, -1.0, 0.0]]), np.array([2.0, 0.3])
    model = hg.Model()
    w = model.gaussian("w", np.zeros(3), covariance=np.eye(3))
    box(rows @ w, observed=y)
    posterior = model.infer(progress=False)
    gain = np.linalg.solve(rows @ rows.T, rows).T
    assert posterior[w].mean == pytest.approx(gain @ np.arcsinh(y), abs=1e-6)
    assert posterior[w].covariance == pytest.approx(np.eye(3) - gain @ rows, abs=1e-6)


def test_categories_beside_the_number_have_roots_of_their_own_and_missing_values_say_nothing():
    @hg.factor(output=hg.Gaussian)
    def either(z, s):
        return np.where(s == 1, z, 2 * z + 1)

    model = hg.Model()
    z, s = model.gaussian("z", 0.5, variance=1.0, size=2), model.bernoulli("s", 0.3, size=2)
    model.observe(either(z, s), np.array([2.0, np.nan]))
    posterior = model.infer(progress=False)
    places, weights = np.array([2.0, 0.5]), np.array([0.3, 0.7 / 2]) * stats.norm.pdf([2.0, 0.5], 0.5, 1.0)
    mean, variance, log_z = of_atoms(places, weights)
    assert posterior[s].p == pytest.approx([weights[0] / weights.sum(), 0.3], abs=1e-6)
    assert posterior[z].mean == pytest.approx([mean, 0.5], abs=1e-5)
    assert posterior[z].variance == pytest.approx([variance, 1.0], abs=1e-5)
    assert posterior.log_evidence == pytest.approx(log_z, abs=1e-4)


@pytest.mark.filterwarnings("ignore::heliograph.errors.OracleWarning", "ignore::heliograph.errors.ConvergenceWarning")
@pytest.mark.parametrize("y", [-1.0, 0.0])
def test_a_value_that_cannot_be_or_has_no_density_fails_aloud(y):
    _, posterior = observed(lambda z: z**2, [y])
    assert not posterior.converged
    assert posterior.error_estimate == np.inf


def test_what_has_no_density_is_refused_with_a_remedy():
    with pytest.raises(UnsupportedError, match=r"on a whole interval.*Observe the event"):
        observed(lambda z: np.maximum(z, 0.0), [0.0])
    box = hg.factor(lambda a, b: a * b, output=hg.Gaussian, name="product")
    model = hg.Model()
    a, b = model.gaussian("a", 0.5, variance=1.0), model.gaussian("b", 0.0, variance=1.0)
    box(a, b, observed=2.0)
    with pytest.raises(
        UnsupportedError, match=r"'product' is observed exactly, and 2 of its inputs.*noise.*log_density="
    ):
        model.infer(progress=False)
    noisy = hg.factor(lambda z, rng: z + rng.standard_normal(z.shape), output=hg.Gaussian, name="noisy")
    with pytest.raises(UnsupportedError, match=r"it draws random numbers"):
        noisy.ask({"z": hg.Gaussian([0.0], 1.0), "out": np.array([1.0])})


@pytest.mark.parametrize("shift", [0.0, 0.31])
def test_all_roots_are_found_whatever_lies_between_them(shift):
    polynomial = np.poly([-3.1, -3.09, -0.2, 0.0, 0.0004, 2.5])  # two roots in one cell, and a cluster
    functions = [
        (lambda t: np.polyval(polynomial, t), [-3.1, -3.09, -0.2, 0.0, 0.0004, 2.5]),
        (lambda t: np.sin(9 * t), np.pi / 9 * np.arange(-34, 35)),
        (lambda t: np.cbrt(t - 1), [1.0]),
        (lambda t: np.where(t > 0.5, 1.0, -1.0), []),
        (lambda t: 1 / (t - 0.25), []),
    ]

    def value(row, at):
        return np.array([functions[r][0](x) for r, x in zip(row, at, strict=True)])

    with np.errstate(all="ignore"):  # as whoever calls a factor has it
        found = roots_of(value, np.full(5, shift), np.ones(5))
    for k, (_, truth) in enumerate(functions):
        inside = np.asarray(truth)[np.abs(np.asarray(truth) - shift) < 11.9]
        here = np.sort(found.at[found.row == k])
        here = here[np.abs(here - shift) < 11.9]
        assert here == pytest.approx(np.sort(inside), abs=1e-9), k


# ---- given log densities ----------------------------------------------------------------------------------------------
def log_student(y, z):
    return stats.t.logpdf(y, 3, loc=np.exp(z), scale=0.3)


def student_factor():
    @hg.factor(output=hg.Gaussian, log_density=log_student)
    def noisy(z, rng):
        return np.exp(z) + 0.3 * rng.standard_t(3, size=z.shape)

    return noisy


@pytest.mark.parametrize("oracle", [None, "quadrature", "importance"])
def test_a_given_log_density_serves_where_the_output_is_observed(oracle):
    y = np.array([1.0, 2.5, 0.1, 8.0, -40.0])
    noisy = student_factor()
    answer = noisy.ask({"z": hg.Gaussian(np.full(5, 0.3), 1.0), "out": y}, oracle=oracle)
    for k, value in enumerate(y):
        mean, variance, log_z = on_a_line(lambda z, v=value: log_student(v, z), 0.3, 1.0)
        truth = hg.Gaussian(mean, variance)
        assert answer.beliefs["z"][k].kl(truth) < (1e-12 if oracle != "importance" else 30 * answer.expected_kl["z"][k])
        assert answer.log_z[k] == pytest.approx(log_z, abs=1e-9 + 5 * answer.log_z_error[k])


def test_a_whole_regression_by_log_density_is_that_of_its_oracle_and_hardly_asks():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(60, 3))
    y = np.exp(rows @ [0.5, -1.0, 0.3]) + 0.3 * rng.standard_t(3, size=60)
    found = {}
    for operator in ("learned", "ask"):
        model = hg.Model()
        w = model.gaussian("w", np.zeros(3), covariance=np.eye(3))
        student_factor()(rows @ w, observed=y)
        found[operator] = posterior = model.infer(operator=operator, progress=False)
        assert posterior.converged
        belief = posterior[w]
        if operator == "learned":
            first = belief
    assert first.kl(belief) < max(1e-9, found["learned"].error_estimate)
    assert found["learned"].trace.n_asked < 60
    assert found["learned"].log_evidence == pytest.approx(found["ask"].log_evidence, abs=1e-3)  # the tolerance


def test_a_log_density_of_two_unknowns_agrees_with_a_grid():
    def log_p(y, a, b):
        return stats.norm.logpdf(y, a, np.exp(b))

    @hg.factor(output=hg.Gaussian, log_density=log_p)
    def measured(a, b, rng):
        return a + np.exp(b) * rng.standard_normal(a.shape)

    model = hg.Model()
    a, b = model.gaussian("a", 0.3, variance=1.0), model.gaussian("b", -0.5, variance=0.5)
    measured(a, b, observed=1.7)
    posterior = model.infer(progress=False)
    u, v = np.meshgrid(np.linspace(-7, 8, 1501), np.linspace(-6, 5, 1501), indexing="ij")
    w = stats.norm.pdf(u, 0.3, 1) * stats.norm.pdf(v, -0.5, 0.5**0.5) * np.exp(log_p(1.7, u, v))
    for variable, at in ((a, u), (b, v)):
        mean = (w * at).sum() / w.sum()
        assert posterior[variable].mean == pytest.approx(mean, abs=1e-5)
        assert posterior[variable].variance == pytest.approx((w * (at - mean) ** 2).sum() / w.sum(), rel=1e-4)
    assert posterior.log_evidence == pytest.approx(np.log(w.sum() * 0.01 * 11 / 1500), abs=1e-4)


def test_minus_infinity_says_that_nothing_can_be_and_nan_is_an_error():
    def above(y, z):
        return np.where(z > y, 0.0, -np.inf)

    box = hg.factor(lambda z, rng: z - 1e3 * rng.random(z.shape), output=hg.Gaussian, log_density=above)
    with pytest.warns(AccuracyWarning, match="log_evidence is off"):  # of a thousand
        answer = box.ask({"z": hg.Gaussian([0.3, 0.3], 1.0), "out": np.array([1.0, -2.0])})
    for k, edge in enumerate([1.0, -2.0]):
        truth = stats.truncnorm(edge - 0.3, np.inf, 0.3, 1.0)
        assert (answer.beliefs["z"].mean[k], answer.beliefs["z"].variance[k]) == pytest.approx(truth.stats(), abs=1e-8)
    bad = hg.factor(lambda z: z, output=hg.Gaussian, log_density=lambda y, z: y + np.sqrt(z))
    with pytest.raises(FactorError, match=r"outside the support|log_density"):
        bad.ask({"z": hg.Gaussian([0.3], 1.0), "out": np.array([1.0])})
    flat = hg.factor(lambda z: z, output=hg.Gaussian, name="flat", log_density=lambda y, z: 0.0)
    with pytest.raises(FactorError, match=r"log_density of factor 'flat' returned shape"):
        flat.ask({"z": hg.Gaussian([0.3], 1.0), "out": np.array([1.0])})


# ---- counts -----------------------------------------------------------------------------------------------------------
def log_poisson(y, z):
    return stats.poisson.logpmf(y, np.exp(z))


def poisson_factor(**more):
    @hg.factor(output=int, **more)
    def arrivals(z, rng):
        return rng.poisson(np.minimum(np.exp(z), 1e9))

    return arrivals


def test_counts_drawn_by_a_simulator_are_hit_within_the_stated_error():
    counts = np.array([0.0, 1.0, 2.0, 3.0, 8.0])
    answer = poisson_factor().ask({"z": hg.Gaussian(np.full(5, 0.3), 1.0), "count": counts, "out": np.ones(5)})
    assert not answer.failed.any()
    for k, y in enumerate(counts):
        mean, variance, log_z = on_a_line(lambda z, v=y: log_poisson(v, z), 0.3, 1.0)
        assert answer.beliefs["z"][k].kl(hg.Gaussian(mean, variance)) < 10 * answer.expected_kl["z"][k]
        assert answer.expected_kl["z"][k] < 0.05
        assert abs(answer.log_z[k] - log_z) < 4 * answer.log_z_error[k]


def test_counts_with_a_log_density_are_the_models_own_poisson():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(40, 3))
    y = rng.poisson(np.exp(rows @ [0.5, -1.0, 0.3])).astype(float)
    y[3] = np.nan
    beliefs = []
    for own in (True, False):
        model = hg.Model()
        w = model.gaussian("w", np.zeros(3), covariance=np.eye(3))
        if own:
            model.poisson("y", log_rate=rows @ w, observed=y)
        else:
            poisson_factor(log_density=log_poisson)(rows @ w, observed=y)
        posterior = model.infer(progress=False)
        assert posterior.converged
        beliefs.append((posterior[w], posterior.log_evidence))
    assert beliefs[1][0].kl(beliefs[0][0]) < 1e-5
    assert beliefs[1][1] == pytest.approx(beliefs[0][1], abs=1e-2)


def test_counts_are_whole_numbers_that_were_observed():
    arrivals = poisson_factor()
    model = hg.Model()
    z = model.gaussian("z", 0.0, variance=1.0, size=2)
    with pytest.raises(ModelError, match=r"say what was observed"):
        arrivals(z)
    with pytest.raises(ModelError, match=r"counts.*-1 was observed"):
        arrivals(z, observed=[1, -1])
    with pytest.raises(ModelError, match=r"counts.*0\.5 was observed"):
        arrivals(z, observed=[1, 0.5])
    assert arrivals(np.zeros(3), rng=np.random.default_rng(0)).shape == (3,)
    half = hg.factor(lambda z, rng: z + 0.5, output=int, name="half")
    half(z, observed=[1, 2])
    with pytest.raises(FactorError, match=r"'half' says output=int and returned"):
        model.infer(progress=False)


# ---- a log density that is not that of the draws ---------------------------------------------------------------------------
def poisson_wrong(y, z):
    return stats.poisson.logpmf(y, np.exp(0.5 * z))


def student_wrong(scale=0.3, shift=0.0, power=0.0):
    def log_p(y, z):
        return stats.t.logpdf(y, 3, loc=np.exp(z) + shift, scale=scale) + power * z

    return log_p


@pytest.mark.parametrize(
    "log_p", [student_wrong(0.45), student_wrong(0.2), student_wrong(shift=0.3), student_wrong(power=1.0)]
)
def test_a_log_density_of_other_noise_than_the_draws_is_an_error(log_p):
    noisy = hg.factor(student_factor().sampler.function, output=hg.Gaussian, log_density=log_p, name="noisy")
    with pytest.raises(
        FactorError, match=r"log_density of factor 'noisy' is not that of the function's own draws: at z="
    ):
        noisy.ask({"z": hg.Gaussian(np.full(5, 0.3), 1.0), "out": np.full(5, 1.2)})


def test_a_log_density_of_other_counts_is_an_error_and_a_missing_factorial_a_warning_about_the_evidence():
    given = {"z": hg.Gaussian(np.full(5, 0.8), 1.0), "count": np.full(5, 2.0), "out": np.ones(5)}
    with pytest.raises(FactorError, match="not that of the function's own draws"):
        poisson_factor(log_density=poisson_wrong).ask(given)
    right = poisson_factor(log_density=log_poisson).ask(given)
    with pytest.warns(AccuracyWarning, match="log_evidence is off"):
        short = poisson_factor(log_density=lambda y, z: y * z - np.exp(z)).ask(given)
    np.testing.assert_allclose(short.beliefs["z"].mean, right.beliefs["z"].mean, atol=1e-9)
    np.testing.assert_allclose(short.log_z - right.log_z, np.log(2.0), atol=1e-6)


def test_a_draw_where_the_density_is_nothing_is_an_error():
    def below(y, z):
        return np.where(y < z, 0.0, -np.inf)

    box = hg.factor(lambda z, rng: z + rng.random(z.shape), output=hg.Gaussian, log_density=below)
    with pytest.raises(FactorError, match="was drawn, where it says that nothing can be"):
        box.ask({"z": hg.Gaussian([0.3], 1.0), "out": np.array([1.0])})


@pytest.mark.parametrize("seed", range(20))
def test_right_log_densities_are_let_pass(seed, recwarn):
    rng = np.random.default_rng(seed)
    shape, width = rng.uniform(0.5, 4.0), np.exp(rng.normal(0, 2))
    kinds = [
        (lambda a, rng: a + width * rng.standard_normal(a.shape), lambda y, a: stats.norm.logpdf(y, a, width)),
        (lambda a, rng: np.exp(a) * rng.standard_t(2, a.shape), lambda y, a: stats.t.logpdf(y, 2, scale=np.exp(a))),
        (lambda a, rng: a + rng.gamma(shape, size=a.shape), lambda y, a: stats.gamma.logpdf(y - a, shape)),
        (lambda a, rng: rng.uniform(a, a + width), lambda y, a: stats.uniform.logpdf(y, a, width)),
        (
            lambda a, rng: np.where(rng.random(a.shape) < 0.3, -5.0, a) + 0.1 * rng.standard_normal(a.shape),
            lambda y, a: np.logaddexp(
                np.log(0.3) + stats.norm.logpdf(y, -5, 0.1), np.log(0.7) + stats.norm.logpdf(y, a, 0.1)
            ),
        ),
    ]
    function, log_p = kinds[seed % len(kinds)]
    box = hg.factor(function, output=hg.Gaussian, log_density=log_p)
    places = {"a": rng.normal(0, 1.5, 4)}
    assert check_log_density(box.sampler, places, ["a"]) > 0
    assert not recwarn.list
