"""A variable that stands twice in an expression counts once: against dense algebra, or refused with a sentence."""

import numpy as np
import pytest
import scipy.sparse
from scipy import stats

import heliograph as hg

EXACT = {"rtol": 1e-9, "atol": 1e-11}  # linear-Gaussian trees: nothing but rounding, over a few steps


def condition(mean, covariance, rows, shift, noise, y):
    """Posterior mean and covariance of u ~ N(mean, covariance) and the evidence, given y = rows u + shift + noise."""
    rows, y = np.atleast_2d(rows), np.atleast_1d(y) - np.atleast_1d(shift)
    total = rows @ covariance @ rows.T + noise * np.eye(len(rows))
    gain = np.linalg.solve(total, rows @ covariance).T
    log_evidence = stats.multivariate_normal(rows @ mean, total).logpdf(y)
    return mean + gain @ (y - rows @ mean), covariance - gain @ rows @ covariance, log_evidence


class Dense:
    """An expression beside its coefficients of all base entries and its constant."""

    def __init__(self, x, rows, shift):
        self.x, self.rows, self.shift = x, np.asarray(rows, float), np.asarray(shift, float)


def random_scalar_expression(rng, leaves, n_steps):
    """A random expression in which variables and whole expressions stand several times."""
    pool = list(leaves)
    for _ in range(n_steps):
        a, b = (pool[rng.integers(len(pool))] for _ in range(2))
        c = round(float(rng.normal()), 2) or 0.5
        match rng.integers(7):
            case 0 | 1:
                new = Dense(a.x + b.x, a.rows + b.rows, a.shift + b.shift)
            case 2 | 3:
                new = Dense(a.x - b.x, a.rows - b.rows, a.shift - b.shift)
            case 4:
                new = Dense(c * a.x, c * a.rows, c * a.shift)
            case 5:
                new = Dense(c - a.x / 4, -a.rows / 4, c - a.shift / 4)
            case _:
                new = Dense(-(a.x + c) + b.x * 2, -a.rows + 2 * b.rows, -a.shift - c + 2 * b.shift)
        pool.append(new)
    return pool[-1]


@pytest.mark.parametrize("seed", range(200))
def test_a_random_expression_of_repeated_scalars_has_the_posterior_of_dense_algebra(seed):
    rng = np.random.default_rng(seed)
    model = hg.Model()
    mean, variance = rng.normal(size=5), rng.uniform(0.5, 2.0, 5)
    a = model.gaussian("a", mean[0], variance=variance[0])
    b = model.gaussian("b", mean[1], variance=variance[1])
    s = model.gaussian("s", mean[2:], variance=variance[2:])
    unit = np.eye(5)
    leaves = [Dense(x, unit[k], 0.0) for k, x in enumerate((a, b, s[0], s[1], s[2]))]
    e = random_scalar_expression(rng, leaves, n_steps=int(rng.integers(2, 9)))
    model.gaussian("y", e.x, variance=0.3, observed=1.7)
    posterior = model.infer()
    want, covariance, log_evidence = condition(mean, np.diag(variance), e.rows, e.shift, 0.3, 1.7)
    got = [posterior[a].mean, posterior[b].mean, *posterior[s].mean]
    spread = [posterior[a].variance, posterior[b].variance, *posterior[s].variance]
    np.testing.assert_allclose(got, want, **EXACT)
    np.testing.assert_allclose(spread, np.diag(covariance), **EXACT)
    np.testing.assert_allclose(posterior.log_evidence, log_evidence, **EXACT)


@pytest.mark.parametrize("seed", range(40))
def test_rows_that_hold_an_entry_once_twice_or_not_at_all_are_summed_row_by_row(seed):
    # row i is made of the entries s[2i], s[2i + 1] and t[i] only, gathered in any order: a tree
    rng = np.random.default_rng(seed)
    n = 6
    model = hg.Model()
    s = model.gaussian("s", 0.5, variance=2.0, size=2 * n)
    t = model.gaussian("t", -1.0, variance=1.0, size=n)
    unit = np.eye(3 * n)

    def leaf():
        if rng.integers(3) == 0:
            return Dense(t, unit[2 * n :], np.zeros(n))
        index = 2 * np.arange(n) + rng.integers(0, 2, n)
        return Dense(s[index], unit[:][index], np.zeros(n))

    parts = [leaf() for _ in range(4)]
    weights = rng.choice([1.0, -1.0, 2.0, 0.5], size=4)
    weights_by_row = rng.choice([1.0, 0.0, -2.0], size=n) + np.eye(1, n)[0] * 0.25
    x = weights[0] * parts[0].x + weights[1] * parts[1].x - weights[2] * parts[2].x + weights_by_row * parts[3].x
    rows = weights[0] * parts[0].rows + weights[1] * parts[1].rows - weights[2] * parts[2].rows
    rows = rows + weights_by_row[:, None] * parts[3].rows
    y = rng.normal(size=n)
    model.gaussian("y", x, variance=0.7, observed=y)
    posterior = model.infer()
    prior = np.r_[np.full(2 * n, 0.5), np.full(n, -1.0)], np.diag(np.r_[np.full(2 * n, 2.0), np.ones(n)])
    want, covariance, log_evidence = condition(*prior, rows, 0.0, 0.7, y)
    np.testing.assert_allclose(np.r_[posterior[s].mean, posterior[t].mean], want, **EXACT)
    np.testing.assert_allclose(np.r_[posterior[s].variance, posterior[t].variance], np.diag(covariance), **EXACT)
    np.testing.assert_allclose(posterior.log_evidence, log_evidence, **EXACT)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("seed", range(15))
def test_products_with_one_vector_are_summed_to_one_product(seed, sparse):
    rng = np.random.default_rng(seed)
    d, n = 3, 4
    mean, root = rng.normal(size=d), rng.normal(size=(d, d))
    prior = root @ root.T + np.eye(d)
    model = hg.Model()
    w = model.gaussian("w", mean, covariance=prior)
    e = model.gaussian("e", 0.0, variance=0.5, size=n)
    x1, x2, x3 = rng.normal(size=(3, n, d))
    x3 = x3 * (rng.random((n, d)) < 0.6)
    k = rng.normal(size=d)
    given = scipy.sparse.csr_array(x3) if sparse else x3
    index = rng.integers(0, n, n)
    z = x1 @ (2 * w + k) - (given @ w)[index] / 2 + e + x2 @ (w - 3 * w) + (w + w - 2 * w) @ x1[0]
    rows = 2 * x1 - x3[index] / 2 - 2 * x2
    y = rng.normal(size=n)
    model.gaussian("y", z, variance=0.2, observed=y)
    posterior = model.infer()
    want, covariance, log_evidence = condition(mean, prior, rows, x1 @ k, 0.7, y)
    # e is integrated out as noise; EP sweeps until it moves by less than 1e-6 nats
    np.testing.assert_allclose(posterior[w].mean, want, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(posterior[w].covariance, covariance, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(posterior.log_evidence, log_evidence, rtol=1e-6)


def prior_moments(write):
    """Mean and variance of an expression of x ~ N(0, 1) that nothing was observed of."""
    model = hg.Model()
    x = model.gaussian("x", 0.0, variance=1.0)
    y = write(x)
    copy = model.gaussian("copy", y, variance=1e-12)
    found = model.infer()[copy]
    return float(found.mean), float(found.variance)


@pytest.mark.parametrize(
    ("write", "variance"),
    [
        (lambda x: x + x, 4.0),
        (lambda x: x - x, 0.0),
        (lambda x: 2 * x + x, 9.0),
        (lambda x: x / 2 + x - 0.5 * x, 1.0),
        (lambda x: sum([x] * 10), 100.0),
        (lambda x: (x + 1) - (1 - x), 4.0),
    ],
)
def test_a_variable_added_to_itself_has_the_variance_of_a_multiple(write, variance):
    mean, found = prior_moments(write)
    assert abs(mean) < 1e-12
    assert found == pytest.approx(variance + 1e-12, rel=1e-9, abs=1e-15)


def test_what_two_expressions_share_stays_shared():
    # y1 = s + c and y2 = s + d with s = a + b are a tree through s, and exact; taken apart they would be a loop
    model = hg.Model()
    a, b, c, d = (model.gaussian(name, 0.0, variance=v) for name, v in zip("abcd", (1.0, 2.0, 3.0, 4.0), strict=True))
    s = a + b
    model.gaussian("y1", s + c, variance=0.5, observed=1.0)
    model.gaussian("y2", s + s + d - s, variance=0.5, observed=2.0)
    posterior = model.infer()
    rows = np.array([[1.0, 1, 1, 0], [1, 1, 0, 1]])
    want, covariance, _ = condition(np.zeros(4), np.diag([1.0, 2, 3, 4]), rows, 0.0, 0.5, [1.0, 2.0])
    np.testing.assert_allclose([posterior[x].mean for x in (a, b, c, d)], want, **EXACT)
    np.testing.assert_allclose([posterior[x].variance for x in (a, b, c, d)], np.diag(covariance), **EXACT)


def test_a_long_sum_is_written_and_placed_without_recursion():
    model = hg.Model()
    x = model.gaussian("x", 0.0, variance=1.0, size=150)
    total = x[0]
    for k in range(1, 150):
        total = total + x[k]
    total = total - x[0]
    model.gaussian("y", total, variance=1.0, observed=3.0)
    posterior = model.infer()
    np.testing.assert_allclose(posterior[x].mean[[0, 1, 149]], [0.0, 3.0 / 150, 3.0 / 150], rtol=1e-6)


def test_a_stack_with_repeated_entries_is_refused_but_a_product_with_it_is_exact():
    model = hg.Model()
    s = model.gaussian("s", 1.0, variance=2.0, size=3)
    with pytest.raises(hg.ModelError, match="'s' twice"):
        model.stack(s[[0, 0, 1]])
    x = np.array([[1.0, 2.0, 3.0], [0.5, 0.0, -1.0]])
    model.gaussian("y", x @ (s[[0, 0, 1]] + 0.5), variance=0.3, observed=[1.0, 2.0])
    posterior = model.infer()
    rows = x @ np.eye(3)[[0, 0, 1]]
    want, covariance, _ = condition(np.ones(3), 2 * np.eye(3), rows, x @ np.full(3, 0.5), 0.3, [1.0, 2.0])
    np.testing.assert_allclose(posterior[s].mean, want, rtol=1e-6)
    np.testing.assert_allclose(posterior[s].variance, np.diag(covariance), rtol=1e-6)


def test_a_product_with_scalars_takes_up_the_scalars_that_are_added_to_it():
    model = hg.Model()
    s = model.gaussian("s", 1.0, variance=2.0, size=3)
    x = np.array([[1.0, 2.0, 3.0], [0.5, 0.0, -1.0]])
    model.gaussian("y", x @ s + 2 * s[[2, 0]], variance=0.3, observed=[1.0, 2.0])
    posterior = model.infer()
    rows = x + 2 * np.eye(3)[[2, 0]]
    want, covariance, _ = condition(np.ones(3), 2 * np.eye(3), rows, 0.0, 0.3, [1.0, 2.0])
    np.testing.assert_allclose(posterior[s].mean, want, rtol=1e-6)
    np.testing.assert_allclose(posterior[s].variance, np.diag(covariance), rtol=1e-6)


def test_two_products_with_the_same_scalars_are_joint():
    # one vector for both, so nothing is factorised between them
    model = hg.Model()
    s = model.gaussian("s", 1.0, variance=2.0, size=2)
    model.gaussian("y", np.array([[1.0, 2.0]]) @ s, variance=0.3, observed=[1.0])
    model.gaussian("z", np.array([[1.0, -1.0]]) @ s, variance=0.3, observed=[2.0])
    posterior = model.infer()
    rows = np.array([[1.0, 2.0], [1.0, -1.0]])
    want, covariance, _ = condition(np.ones(2), 2 * np.eye(2), rows, 0.0, 0.3, [1.0, 2.0])
    np.testing.assert_allclose(posterior[s].mean, want, rtol=1e-6)
    np.testing.assert_allclose(posterior[s].variance, np.diag(covariance), rtol=1e-6)


# ---- events and constants ----------------------------------------------------------------------------------------
def test_a_comparison_in_which_the_variable_cancels_is_certain():
    model = hg.Model()
    x = model.gaussian("x", 0.0, variance=1.0)
    sure = x > x - 1
    assert float(model.infer()[sure].mean) == 1.0
    model.constrain(sure)
    model.constrain(x - x + 1 > 0)
    after = model.infer()
    assert float(after[x].variance) == pytest.approx(1.0, rel=1e-12)
    assert after.log_evidence == pytest.approx(0.0, abs=1e-12)
    never = 2 * x < x + x - 1
    assert float(model.infer()[never].mean) == 0.0
    with pytest.raises(hg.ContradictionError, match="never true"):
        model.constrain(never)


def test_a_comparison_with_twice_the_variable_cuts_the_variable():
    model = hg.Model()
    x = model.gaussian("x", 0.0, variance=1.0)
    model.constrain(2 * x > x + 0.5)
    # the mean of a normal above 0.5
    assert float(model.infer()[x].mean) == pytest.approx(stats.truncnorm(0.5, np.inf).mean(), rel=1e-9)


def test_the_larger_of_a_variable_and_itself_plus_a_constant_is_exact():
    model = hg.Model()
    x = model.gaussian("x", 0.0, variance=1.0, size=3)
    y = model.maximum(x, x + np.array([-1.0, 0.0, 2.0]))
    model.gaussian("z", y, variance=1.0, observed=[1.0, 1.0, 1.0])
    np.testing.assert_allclose(model.infer()[x].mean, [0.5, 0.5, -0.5], rtol=1e-12)


def test_equal_says_what_is_left_of_two_expressions_of_one_variable():
    model = hg.Model()
    x = model.gaussian("x", 0.0, variance=1.0)
    model.equal(x, 3 * x - 4)
    assert float(model.infer()[x].mean) == 2.0


@hg.factor(output=hg.Gaussian)
def added(u, v):
    return u + v


REFUSED = {
    "a product with a multiple": lambda m, x, s: x * (2 * x + 1),
    "a product of parts that overlap in one row": lambda m, x, s: s[[0, 1, 2]] * s[[2, 1, 0]],
    "a product of expressions": lambda m, x, s: (x + s[0]) * (s[1] - s[0]),
    "the larger of x and 2 x": lambda m, x, s: m.maximum(x, 2 * x),
    "a choice between a variable and itself": lambda m, x, s: m.select(m.bernoulli("b", 0.3), x, x + 1),
    "a mixture of one mean": lambda m, x, s: m.mixture("y", m.bernoulli("b", 0.3), s[[0, 0]], 1.0),
    "a mixture of one precision among three": lambda m, x, s: m.mixture(
        "y", m.categorical("c", [0.2, 0.3, 0.5]), s, precision=m.gamma("g", 2.0, 1.0, size=2)[[0, 1, 0]]
    ),
    "a black box": lambda m, x, s: added(x, x),
    "a black box of parts": lambda m, x, s: added(s[[0, 1]], s[[1, 1]]),
    "a black box of expressions": lambda m, x, s: added(x, 2 * x - 1),
    "equal of a variable and itself": lambda m, x, s: m.equal(x, x),
    "equal of a Gamma and itself": lambda m, x, s: m.equal(*[m.gamma("g", 2.0, 1.0)] * 2),
    "a stack": lambda m, x, s: m.stack(s + s[0]),
    "a variable greater than itself": lambda m, x, s: x > x,
}


ROWS = np.array([[1.0, 2.0], [3.0, -1.0], [2.0, 4.0]])
SAME_ROW = {
    "a row times a multiple": lambda m, z, w: z * (2 * z + 1),
    "a row and a multiple": lambda m, z, w: added(z, 2 * z),
    "a row and a multiple of it in X": lambda m, z, w: z[0] * z[2],
    "the same product written twice": lambda m, z, w: added(z, ROWS @ w),
    "a sparse product written twice": lambda m, z, w: added(z, scipy.sparse.csr_array(ROWS) @ w),
    "a product with a scaled vector": lambda m, z, w: added(z, ROWS @ (3 * w - 1)),
    "a row in a sum": lambda m, z, w: z * (z + m.gaussian("e", 0.0, variance=1.0)),
}


@pytest.mark.parametrize("scalars", [False, True])
@pytest.mark.parametrize("what", SAME_ROW)
def test_one_row_of_a_product_at_two_ports_is_refused_and_two_rows_are_not(what, scalars):
    model = hg.Model()
    if scalars:
        w = model.gaussian("w", 0.0, variance=1.0, size=2)
    else:
        w = model.gaussian("w", np.zeros(2), covariance=np.eye(2))
    z = ROWS @ w
    with pytest.raises(hg.ModelError, match="'w' twice"):
        SAME_ROW[what](model, z, w)
    z[0] * z[1]  # two quantities that share a vector: a loop, and no error
    added(z[:2], z[[1, 0]] + 1)


@pytest.mark.parametrize("what", REFUSED)
def test_a_factor_that_meets_a_variable_twice_is_refused_and_the_model_stays(what):
    model = hg.Model()
    x = model.gaussian("x", 0.0, variance=1.0)
    s = model.gaussian("s", 0.0, variance=1.0, size=3)
    with pytest.raises(hg.ModelError, match=r"twice|same random"):
        REFUSED[what](model, x, s)
    model.infer()


def test_a_factor_of_a_variable_and_a_function_of_it_is_a_loop_and_no_error():
    model = hg.Model()
    x = model.gaussian("x", 0.0, variance=1.0)
    model.gaussian("y", x + model.maximum(x, 0.0), variance=1.0, observed=1.0)
    model.gaussian("z", x, precision=model.exp(0.1 * x), observed=1.0)
    assert "max(x, constant 0.0)" in model.summary()


def test_one_precision_of_all_components_is_one_random_quantity():
    model = hg.Model()
    means = model.gaussian("means", [-1.0, 2.0], variance=1e-10)
    precision = model.gamma("precision", 3.0, 2.0)
    which = model.bernoulli("which", 0.3)
    model.mixture("x", which, means, precision=precision, observed=0.7)
    posterior = model.infer()
    t = np.linspace(1e-6, 25.0, 400_001)  # a dense grid; the trapezium rule is exact to 1e-8 here
    density = stats.gamma.pdf(t, 3.0, scale=0.5) * (
        0.7 * stats.norm.pdf(0.7, -1.0, t**-0.5) + 0.3 * stats.norm.pdf(0.7, 2.0, t**-0.5)
    )
    z = np.trapezoid(density, t)
    assert posterior.log_evidence == pytest.approx(np.log(z), abs=1e-5)
    assert float(posterior[precision].mean) == pytest.approx(np.trapezoid(density * t, t) / z, rel=1e-6)
