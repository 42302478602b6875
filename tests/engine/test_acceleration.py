"""Slow runs jump ahead: fewer sweeps, the same fixed points, and no trace of units, or of a jump that missed."""

import itertools

import numpy as np
import pytest

import heliograph as hg
from heliograph.engine.acceleration import _ENTRIES, Jumps, _move, _Pair, _that_moved_most, _weights
from heliograph.engine.sweep_info import SweepInfo
from heliograph.families import Gaussian


def crossed(unit=1.0, shift=0.0):
    """Two crossed effects, factorised: EP creeps to the means of the dense solution."""
    rng = np.random.default_rng(0)
    i, j, y = rng.integers(0, 8, 60), rng.integers(0, 6, 60), rng.normal(size=60)
    model = hg.Model()
    a = model.gaussian("a", shift * unit, variance=4.0 * unit**2, size=8)
    b = model.gaussian("b", 0.0, variance=4.0 * unit**2, size=6)
    model.gaussian("y", a[i] + b[j], variance=0.3 * unit**2, observed=(y + shift) * unit)
    x = np.zeros((60, 14))
    x[np.arange(60), i] = x[np.arange(60), 8 + j] = 1.0
    mean = np.linalg.solve(x.T @ x / 0.3 + np.eye(14) / 4.0, x.T @ y / 0.3)
    return model, a, b, mean


@pytest.mark.filterwarnings("ignore::heliograph.errors.AccuracyWarning")
def test_a_slow_loop_reaches_the_means_of_dense_algebra_in_a_fifth_of_the_sweeps(monkeypatch):
    model, a, b, mean = crossed()
    fast = model.infer(structure="factorised")
    assert fast.converged
    assert np.concatenate([fast[a].mean, fast[b].mean]) == pytest.approx(mean, abs=1e-3)
    monkeypatch.setattr("heliograph.engine.run.Jumps", lambda _: Jumps(False))
    slow = model.infer(structure="factorised", max_sweeps=1000)
    assert slow.converged
    assert fast[a].variance == pytest.approx(slow[a].variance, rel=1e-3)
    assert fast.n_sweeps * 5 <= slow.n_sweeps


@pytest.mark.filterwarnings("ignore::heliograph.errors.AccuracyWarning")
@pytest.mark.parametrize(("unit", "shift"), [(1e-6, 0.0), (1e6, 0.0), (1.0, 1e4)])
def test_units_and_origins_do_not_matter(unit, shift):
    first, second = crossed(), crossed(unit, shift)
    p, q = (c[0].infer(structure="factorised") for c in (first, second))
    assert q.converged
    assert abs(p.n_sweeps - q.n_sweeps) <= 2
    assert q[second[2]].mean / unit == pytest.approx(p[first[2]].mean, abs=1e-3)


@pytest.mark.filterwarnings("ignore:the belief of")  # mean and precision are kept apart, and the run says so
@pytest.mark.parametrize("seed", range(4))
def test_a_mean_and_a_precision_of_three_values_converge(seed):
    """Row by row, undamped EP circles here; damping by hand finds the same point."""
    y = np.random.default_rng(seed).normal(2.0, 1.5, 3)
    found = []
    for settings in ({}, {"damping": 0.5, "max_sweeps": 400}):
        model = hg.Model()
        mu, tau = model.gaussian("mu", 0.0, variance=100.0), model.gamma("tau", 1e-3, 1e-3)
        model.gaussian("y", mu, precision=tau, observed=y)
        posterior = model.infer(structure="factorised", **settings)
        assert posterior.converged, posterior.status
        found.append([posterior.n_sweeps, float(posterior[tau].mean), float(posterior[mu].variance)])
    assert found[0][1:] == pytest.approx(found[1][1:], rel=0.03)
    assert found[0][0] < found[1][0]


class Messages:
    """A stand-in for the tables of a run: one message."""

    def __init__(self, message):
        self.message = message

    def snapshot(self, copy):
        from heliograph.engine.tables import Snapshot

        return Snapshot({(0, "x"): self.message}, {})


def info(change, n_shortened=0):
    return SweepInfo(1, change, "x", 0.0, False, *[0] * 6, *[0.0] * 5, n_shortened=n_shortened)


def creeping(rates, start, n, fixed, jumps, **kwargs):
    """Note n sweeps of a linear map whose fixed point has those means, and precision 1."""
    x = fixed + start
    for _ in range(n):
        new = fixed + rates * (x - fixed)
        before, after = (Gaussian.from_naturals((v, np.ones(len(v)))) for v in (x, new))
        nats = after.kl(before)
        jumps.note([before], [after], Messages(after), 1.0, info(float(nats.max()), **kwargs), (nats,))
        x = new
    return x


def test_a_linear_map_of_three_rates_is_solved_by_one_jump():
    fixed = np.array([3.0, -1.0, 2.0])
    jumps = Jumps(True)
    last = creeping(np.array([0.9, -0.8, 0.99]), np.array([0.1, 0.2, -0.1]), 5, fixed, jumps)
    there = jumps.suggested(1e-9).sent[0, "x"].naturals
    assert there[0] == pytest.approx(fixed, abs=1e-6)
    assert np.abs(last - fixed).max() > 0.08
    assert (there[1] == 1.0).all()  # what does not move stays


def test_fast_runs_and_short_memories_do_not_jump():
    for rates, n, kwargs in ((0.3, 6, {}), (0.9, 3, {}), (0.9, 6, {"n_shortened": 1})):
        jumps = Jumps(True)
        creeping(np.full(2, rates), np.ones(2) * 0.1, n, np.zeros(2), jumps, **kwargs)
        assert jumps.suggested(1e-9) is None


def test_a_jump_that_missed_is_undone_and_the_next_one_waits():
    jumps = Jumps(True)
    rates = np.array([0.9, -0.8])
    creeping(rates, np.ones(2) * 0.1, 5, np.zeros(2), jumps)
    assert jumps.suggested(1e-9) is not None
    assert jumps.missed(1.0, broken=False)
    creeping(rates, np.ones(2) * 0.1, 5, np.zeros(2), jumps)
    assert jumps.suggested(1e-9) is None
    creeping(rates, np.ones(2) * 0.1, 5, np.zeros(2), jumps)
    assert jumps.suggested(1e-9) is not None
    assert not jumps.missed(1e-9, broken=False)


def test_convergence_is_judged_by_plain_sweeps():
    """Right after a jump nothing is known of what is still to come."""
    model, *_ = crossed()
    infos = [i for _, i in hg.steps(model, structure="factorised")]
    assert all(np.isinf(a.to_go) for a, b in zip(infos[1:-1], infos, strict=False) if a.change < 1e-3 * b.change)
    assert np.isfinite(infos[-1].to_go)
    assert infos[-1].settled(1e-6)


@pytest.mark.parametrize("prior_variance", [10.0, 100.0])
def test_a_regression_of_many_columns_settles_within_ten_sweeps_where_plain_sweeps_settle(prior_variance):
    """A hundred weights by a thousand labels; by damped sweeps without jumps, which need many more, it is the same belief."""
    rng = np.random.default_rng(1100)
    x, w_true = rng.standard_normal((1000, 100)), rng.standard_normal(100)
    model = hg.Model()
    w = model.gaussian("w", np.zeros(100), covariance=prior_variance * np.eye(100))
    model.bernoulli("y", logit=x @ w, observed=rng.random(1000) < 1 / (1 + np.exp(-x @ w_true)))
    posterior, plain = model.infer(), model.infer(damping=0.2)
    assert posterior.converged and posterior.n_sweeps <= 10
    assert plain.converged and plain.n_sweeps > 10
    assert posterior[w].kl(plain[w]) < 1e-4  # a tenth of the tolerance


def test_moves_that_are_nearly_alike_are_weighted_by_the_last_few_of_them():
    """Six moves that shrink slowly, along a few ways: weights of all six are beyond reason, those of the last few cancel them."""
    rng = np.random.default_rng(0)
    ways = rng.normal(size=(300, 40))
    rates = np.linspace(0.85, 0.95, 40)
    moves = [ways @ rates**k for k in range(6)]
    weights = _weights(moves)
    assert weights is not None
    assert weights.sum() == pytest.approx(1.0)
    assert 0 < np.abs(weights).max() <= 1e3 and weights[0] == 0.0
    # the weights that add up to 1 and make the sum smallest, by Lagrange's equations of the moves that count
    used = np.flatnonzero(weights)
    f = np.stack(moves, axis=1)[:, used]
    n = len(used)
    equations = np.block([[f.T @ f, np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]])
    np.testing.assert_allclose(weights[used], np.linalg.solve(equations, np.append(np.zeros(n), 1.0))[:n], rtol=1e-4)
    assert used.tolist() == list(range(6 - n, 6)) and n >= 3
    more = np.stack(moves, axis=1)[:, 5 - n :]
    equations = np.block([[more.T @ more, np.ones((n + 1, 1))], [np.ones((1, n + 1)), np.zeros((1, 1))]])
    assert np.abs(np.linalg.solve(equations, np.append(np.zeros(n + 1), 1.0))[:-1]).max() > 1e3  # one more would not do


def test_in_a_large_model_the_entries_that_move_most_say_where_to_jump():
    n = 3 * _ENTRIES
    rest, far = np.zeros(n), np.random.default_rng(0).normal(size=n)
    states = [[Gaussian(rest + 0.8**k * far, np.ones(n))] for k in range(6)]
    pairs = [_Pair(a, b, None, 1.0, 0.1, (b[0].kl(a[0]),)) for a, b in itertools.pairwise(states)]
    (chosen,) = _that_moved_most(pairs[-1])
    assert len(chosen) == _ENTRIES
    assert np.abs(far[chosen]).min() > np.median(np.abs(far))
    weights = _weights([_move(p, pairs[-1].after, [chosen]) for p in pairs])
    jump = sum(w * p.after[0].mean for w, p in zip(weights, pairs, strict=True))
    assert jump == pytest.approx(rest, abs=1e-6)
    small = _Pair([Gaussian(0.0, 1.0).reshape(1)], [Gaussian(1.0, 1.0).reshape(1)], None, 1.0, 0.1, (np.array([0.5]),))
    assert _that_moved_most(small) == [None]
