"""The fast way of plain draws from a fixed proposal, against the same sums written out draw by draw."""

import numpy as np
import pytest
from scipy import special, stats

from heliograph.errors import FactorError
from heliograph.families import Beta, Gamma, Gaussian
from heliograph.oracles import ImportanceOracle, Pool, QuadratureOracle, sampler_of
from heliograph.oracles.importance.plain import PLAIN_CHUNK, PLAIN_FIRST
from heliograph.oracles.importance.uniforms import Streams
from heliograph.oracles.problem import groups_of


def logistic(z):
    return special.expit(z)


def rate_of(a, shift):
    return np.exp(0.3 * a + shift)


def odds_of(p, scale):
    return scale * np.log1p(5 * p / (1 - p))


def share_of(tau):
    return 1 / (1 + tau)


LAWS = {
    Gaussian: lambda m: stats.norm(m.mean[0], np.sqrt(m.variance[0])),
    Gamma: lambda m: stats.gamma(m.shape_parameter[0], scale=1 / m.rate[0]),
    Beta: lambda m: stats.beta(m.a[0], m.b[0]),
}
ONE = np.array([1.0])
CASES = {
    "logistic": (logistic, Beta, {"z": Gaussian(ONE, 3.0)}, Beta(2 * ONE, 1.0), {"z": Gaussian(0.0, 200.0)}),
    "far": (logistic, Beta, {"z": Gaussian(-9 * ONE, 0.3)}, Beta(3 * ONE, 7.0), {"z": Gaussian(0.0, 200.0)}),
    "rate": (
        rate_of,
        Gamma,
        {"a": Gaussian(ONE, 2.0), "shift": Gaussian(-ONE, 0.5)},
        Gamma(4 * ONE, 2.0),
        {"a": Gaussian(0.0, 9.0), "shift": Gaussian(-1.0, 1.0)},
    ),
    "odds": (
        odds_of,
        Gaussian,
        {"p": Beta(2 * ONE, 3.0), "scale": Gamma(3 * ONE, 1.0)},
        Gaussian(4 * ONE, 1.0),
        {"p": Beta(1.0, 1.0), "scale": Gamma(2.0, 0.5)},
    ),
    "share": (share_of, Beta, {"tau": Gamma(5 * ONE, 4.0)}, Beta(3 * ONE, 1.0), {"tau": Gamma(2.0, 1.0)}),
}


def drawn(rng, proposal, n):
    """The draws in the order in which the oracle makes them: chunk by chunk, port by port."""
    parts, left, size = [], n, PLAIN_FIRST
    while left:
        size = min(size, left)
        chunk = []
        for q in proposal.values():
            if isinstance(q, Gaussian):
                chunk.append(rng.standard_normal(size) * np.sqrt(q.variance) + q.mean)
            elif isinstance(q, Gamma):
                chunk.append(rng.gamma(q.shape_parameter, 1 / q.rate, size))
            else:
                chunk.append(rng.beta(q.a, q.b, size))
        parts.append(chunk)
        left, size = left - size, PLAIN_CHUNK
    return [np.concatenate(column) for column in zip(*parts, strict=True)]


def own_generator(seed, sampler, incoming):
    """What the oracle draws with for a row: a key of the run, and the row's own content."""
    ((_, problem),) = groups_of(sampler, incoming)
    return Streams(int(np.random.default_rng(seed).integers(2**63)), problem.identity).generators(0)[0]


def statistics(family, x):
    if family is Gaussian:
        return x, x * x
    return (x, np.log(x)) if family is Gamma else (np.log(x), np.log1p(-x))


@pytest.mark.parametrize("n", [3000, 30_000, 200_000])
@pytest.mark.parametrize("case", CASES)
def test_beliefs_errors_and_evidence_are_those_of_the_same_draws_summed_plainly(case, n):
    function, family, inputs, on_output, proposal = CASES[case]
    oracle = ImportanceOracle(n, proposal=proposal, draws="random", adapt=False, min_ess=1.0, k_threshold=9.0)
    answer = oracle.ask(np.random.default_rng(5), sampler_of(function, family), {**inputs, "out": on_output})
    assert not answer.failed.any()
    assert answer.n_evaluations == n
    xs = drawn(own_generator(5, sampler_of(function, family), {**inputs, "out": on_output}), proposal, n)
    out = function(*xs)
    log_w = LAWS[family](on_output).logpdf(np.clip(out, 1e-300, np.nextafter(1.0, 0.0) if family is Beta else np.inf))
    for x, m, q in zip(xs, inputs.values(), proposal.values(), strict=True):
        law = LAWS[type(q)](type(q).from_naturals(tuple(np.atleast_1d(a) for a in q.naturals), None))
        log_w += LAWS[type(m)](m).logpdf(x) - law.logpdf(x)
    w = np.exp(log_w)
    assert np.isclose(answer.log_z[0], np.log(w.mean()), rtol=0, atol=1e-10)  # sums in another order, no more
    assert np.isclose(answer.ess[0], w.sum() ** 2 / (w * w).sum(), rtol=1e-9)
    for port, x in zip((*inputs, "out"), (*xs, out), strict=True):
        belief = answer.beliefs[port]
        t = np.stack(statistics(type(belief), np.minimum(x, np.nextafter(1, 0)) if type(belief) is Beta else x))
        expected = (t * w).sum(axis=1) / w.sum()
        spread = np.sqrt(((t - expected[:, None]) ** 2 * w).sum(axis=1) / w.sum())
        for k, got in enumerate(belief.expected_statistics()):
            # projecting is solving: to some 1e-9 of the statistic's own spread
            assert abs(got[0] - expected[k]) < 1e-7 * spread[k], (port, k)
            error = np.sqrt((w**2 * (t[k] - expected[k]) ** 2).sum()) / w.sum()
            if type(belief) is not Beta:  # of a Beta the edge's share is added
                # from a quarter of the draws where there are many: some per cent of the error itself
                assert np.isclose(answer.standard_errors[port][k][0], error, rtol=0.15 if n > 8 * PLAIN_CHUNK else 1e-3)


def test_the_slow_way_gives_the_same_beliefs_to_its_errors():
    rng = np.random.default_rng(2)
    n = 40
    incoming = {"z": Gaussian(rng.normal(0, 3, n), rng.uniform(0.1, 9, n)), "out": Beta(rng.uniform(0.5, 4, n), 2.0)}
    sampler = sampler_of(logistic, Beta)
    settings = {"proposal": Gaussian(0.0, 200.0), "draws": "random", "adapt": False}
    exact = QuadratureOracle().ask(rng, sampler, incoming)
    spreads = []
    for pool in (None, Pool()):  # a pool keeps draws, so it takes the general way
        answer = ImportanceOracle(100_000, **settings, pool=pool).ask(np.random.default_rng(3), sampler, incoming)
        assert not answer.failed.any()
        spreads.append((answer.beliefs["z"].mean - exact.beliefs["z"].mean) / answer.standard_errors["z"][0])
        assert np.all(answer.pareto_k < 0.7)
    for z in spreads:
        assert 0.7 < z.std() < 1.35
    assert abs(np.corrcoef(spreads)[0, 1]) < 0.5  # they do not share draws


def test_messages_of_a_plate_do_not_share_their_errors():
    n = 300
    incoming = {"z": Gaussian(np.zeros(n), 2.0), "out": Beta(np.full(n, 2.0), 1.0)}
    oracle = ImportanceOracle(2000, proposal=Gaussian(0.0, 200.0), draws="random", adapt=False)
    means = oracle.ask(np.random.default_rng(0), sampler_of(logistic, Beta), incoming).beliefs["z"].mean
    assert len(np.unique(means)) == n
    assert abs(np.corrcoef(means[:-1], means[1:])[0, 1]) < 4 / np.sqrt(n)


def test_a_function_that_returns_what_it_was_given_is_not_written_to():
    kept = {}

    def lazily(z):
        kept["out"] = special.expit(z)
        return kept["out"]

    oracle = ImportanceOracle(5000, proposal=Gaussian(40.0, 200.0), draws="random", adapt=False)
    incoming = {"z": Gaussian(40 * ONE, 9.0), "out": Beta(ONE, 1.0)}
    oracle.ask(np.random.default_rng(0), sampler_of(lazily, Beta), incoming)
    assert (kept["out"] == 1.0).any()


def test_a_probability_outside_its_range_is_named_as_before():
    oracle = ImportanceOracle(5000, proposal=Gaussian(0.0, 200.0), draws="random", adapt=False)
    incoming = {"z": Gaussian(ONE, 9.0), "out": Beta(ONE, 1.0)}
    for wrong in (1.5, -0.1, np.nan):

        def odd(z):
            return np.where(z > 3, wrong, 0.5)  # noqa: B023 (called before the next one is made)

        with pytest.raises(FactorError, match="odd"):
            oracle.ask(np.random.default_rng(0), sampler_of(odd, Beta), incoming)
