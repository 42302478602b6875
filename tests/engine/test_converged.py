"""What `converged` promises (docs/convergence.md), on models where an engine may look settled and not be."""

import warnings

import numpy as np
import pytest

import heliograph as hg
from heliograph.engine.compiled import compile_model
from heliograph.engine.convergence import drifting, motion, still_to_go
from heliograph.engine.pace import Pace
from heliograph.oracles import ImportanceOracle


def chain(innovation, n=1000, seed=0):
    """A random walk seen with unit noise, and its exact means and standard deviations by a dense solve."""
    rng = np.random.default_rng(seed)
    y = np.cumsum(rng.standard_normal(n) * np.sqrt(innovation)) + rng.standard_normal(n)
    model = hg.Model()
    s = model.gaussian("s", 0.0, variance=100.0, size=n)
    model.gaussian("step", s[1:] - s[:-1], variance=innovation, observed=np.zeros(n - 1))
    model.gaussian("y", s, variance=1.0, observed=y)
    difference = np.diff(np.eye(n), axis=0)
    covariance = np.linalg.inv(np.eye(n) * 1.01 + difference.T @ difference / innovation)
    return model, s, covariance @ y, np.sqrt(np.diag(covariance))


def quiet(model, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.infer(**settings)


@pytest.mark.parametrize("damping", [None, 0.5, 0.9])
@pytest.mark.parametrize("max_sweeps", [60, 230, 700, 1500])
@pytest.mark.parametrize("innovation", [1e-2, 1e-4, 1e-6])
def test_a_long_chain_is_right_to_a_hundredth_sd_or_not_converged(innovation, max_sweeps, damping):
    model, s, mean, sd = chain(innovation, n=300)
    posterior = quiet(model, max_sweeps=max_sweeps, damping=damping)
    right = np.abs(posterior[s].mean - mean).max() < 0.01 * sd.min()
    right &= np.abs(np.sqrt(posterior[s].variance) / sd - 1).max() < 0.01
    assert right or not posterior.converged


def test_a_chain_of_a_thousand_converges_when_it_is_given_the_sweeps():
    for innovation in (1e-2, 1e-6):
        model, s, mean, sd = chain(innovation)
        posterior = quiet(model, max_sweeps=2000)
        assert posterior.converged and posterior.status == "converged"
        assert np.abs((posterior[s].mean - mean) / sd).max() < 0.01


@pytest.mark.parametrize("rate", [0.3, 0.9, 0.99, 0.999])
def test_what_is_still_to_come_is_read_off_three_sweeps(rate):
    """A mean that moves by 1e-4, 1e-4 r, ... has 1e-4 r^2 / (1 - r) before it; its KL is half the square of that."""
    means = np.cumsum([0.0, 1e-4, 1e-4 * rate])
    beliefs = [[hg.Gaussian(np.array([m, 0.0]), 1.0)] for m in means[::-1]]
    ahead = 1e-4 * rate**2 / (1 - rate)
    assert still_to_go(*beliefs) == pytest.approx(0.5 * ahead**2, rel=1e-2)


def test_a_belief_that_swings_or_jumped_once_is_not_taken_for_slow():
    for means in ([1e-4, 0.0, 1e-4], [1e-4, 0.0, 0.0]):
        beliefs = [[hg.Gaussian(np.array([m]), 1.0)] for m in means]
        assert still_to_go(*beliefs) == pytest.approx(0.5e-8, rel=1e-6)


@pytest.mark.parametrize("rate", [0.1, 0.38, 0.7])
def test_a_belief_that_swings_and_calms_down_is_not_taken_for_one_that_speeds_up(rate):
    """At a rate of .38 two moves to and fro are 1.6 times as long as the last, as are two of a belief that gets faster."""
    means = np.cumsum([0.0, 1e-4, -1e-4 * rate])
    beliefs = [[hg.Gaussian(np.array([m, 0.0]), 1.0)] for m in means[::-1]]
    for jointly in (None, [True]):
        assert still_to_go(*beliefs, jointly) == pytest.approx(0.5 * (1e-4 * rate) ** 2, rel=1e-6)


def test_moves_that_were_measured_are_not_measured_again():
    """The last move and the one before it come from the records of their sweeps; improper beliefs have none."""
    rng = np.random.default_rng(0)
    new, old, older = ([hg.Gaussian(1e-3 * rng.standard_normal(5), 1.0 + 1e-3 * rng.random(5))] for _ in range(3))
    nodes = hg.Model().gaussian("x", 0.0, variance=1.0, size=5).node
    moves = tuple(motion([nodes], a, b).nats for a, b in ((new, old), (old, older)))
    for jointly in ([False], [True]):
        assert still_to_go(new, old, older, jointly, moves) == still_to_go(new, old, older, jointly)
    improper = [hg.Gaussian.from_naturals((np.zeros(5), np.full(5, -1.0)))]
    found = motion([nodes], improper, old)
    assert found.broken and np.isinf(found.change) and found.nats == (None,)


def test_a_belief_that_speeds_up_is_far_from_rest():
    means = np.cumsum([0.0, 1e-4, 1.5e-4])
    beliefs = [[hg.Gaussian(np.array([m]), 1.0)] for m in means[::-1]]
    assert still_to_go(*beliefs) > 0.1


def test_moves_at_right_angles_slow_down_by_their_lengths():
    """One entry after the other moves, by 1e-4 and then by half of that; as much again is still to come."""
    where = np.array([[0.0, 0.0], [1e-4, 0.0], [1e-4, 0.5e-4]])
    beliefs = [[hg.Gaussian(m, 1.0)] for m in where[::-1]]
    assert still_to_go(*beliefs, [True]) == pytest.approx(0.5 * 0.5e-4**2, rel=1e-3)


def test_the_step_is_shortened_by_failure_and_swings_and_grows_again_with_progress():
    pace = Pace(None)
    pace.failed()
    assert pace.step == 0.5
    for change in 2.0 ** -np.arange(12):
        assert pace.note(change, lambda _: False)
    assert 0.7 < pace.step <= 1.0
    before = pace.step
    judged = [pace.note(1.0, lambda _: False) for _ in range(6)]
    assert judged == [False] * 5 + [True]  # not by a few sweeps that go nowhere
    assert pace.step == before / 2
    for _ in range(6):
        pace.note(1.0, lambda n: n == 6)  # drifting: a shorter step would only take longer
    assert pace.step > before / 2
    for _ in range(100):
        pace.failed()
    assert pace.step > 0  # however short, it never ends a run
    fixed = Pace(0.3)
    fixed.failed()
    assert fixed.damping == pytest.approx(0.3)


def gaussians(points):
    """Beliefs of two unknowns of sd 1."""
    return [[hg.Gaussian(np.array(p), 1.0)] for p in points]


def test_what_circles_or_swings_does_not_drift():
    """Circles of five sweeps go on in one direction as seen from three of them, and come back over six."""
    way = np.arange(7)[:, None] * np.array([1e-4, 2e-4])
    angle = 2 * np.pi * np.arange(7) / 5
    circle = 1e-4 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    swing = 1e-4 * (-1.0) ** np.arange(7)[:, None] * np.ones(2)
    for path, expected in (
        (way, True),
        (0.98 ** np.arange(7)[:, None] * 1e-4 * np.ones(2), True),
        (circle, False),
        (swing, False),
    ):
        beliefs = gaussians(path)
        assert drifting(beliefs[-1], beliefs[-2], beliefs[0], 6) is expected


@hg.factor(output=hg.Gaussian)
def softplus(z):
    return np.logaddexp(0.0, z)


def curved(seed=1):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((30, 2))
    model = hg.Model()
    w = model.gaussian("w", np.ones(2), covariance=np.eye(2))
    y = softplus(x @ np.array([1.0, -1.0])) + 0.3 * rng.standard_normal(30)
    model.gaussian("y", softplus(x @ w), variance=0.1, observed=y)
    return model, w


def test_noise_above_the_tolerance_is_never_called_converged():
    model, _ = curved()
    with pytest.warns((hg.ConvergenceWarning, hg.AccuracyWarning), match="hidden by noise|may have added"):
        posterior = model.infer(operator="ask", oracle=ImportanceOracle(256), max_sweeps=60)
    assert not posterior.converged and "hidden by noise" in posterior.status
    assert posterior.n_sweeps < 60  # it does not go on where going on shows nothing


def test_noise_that_is_tolerated_does_not_stop_a_run_from_converging():
    model, w = curved()
    exact = model.infer(operator="ask", oracle="quadrature")
    posterior = model.infer(operator="ask", oracle=ImportanceOracle(16384))
    assert posterior.converged
    assert exact[w].kl(posterior[w]) < 1e-3


class Overstating:
    """Quadrature that says it is wrong by ten nats."""

    def ask(self, rng, sampler, incoming):
        from heliograph.oracles import QuadratureOracle

        answer = QuadratureOracle().ask(rng, sampler, incoming)
        return answer._replace(expected_kl={p: np.full_like(k, 10.0) for p, k in answer.expected_kl.items()})


def test_an_oracle_that_overstates_its_error_does_not_make_a_run_converge():
    model, _ = curved()
    posterior = quiet(model, operator="ask", oracle=Overstating(), max_sweeps=30)
    assert not posterior.converged and posterior.n_sweeps > 3


def test_messages_that_cannot_be_computed_are_named_and_not_converged():
    """A black box that answers only on one side of zero, so that some rows never get a message."""

    class HalfBlind:
        def ask(self, rng, sampler, incoming):
            from heliograph.oracles import QuadratureOracle

            answer = QuadratureOracle().ask(rng, sampler, incoming)
            bad = np.arange(len(answer.failed)) == 2
            kl = {p: np.where(bad, np.inf, k) for p, k in answer.expected_kl.items()}
            return answer._replace(failed=bad, expected_kl=kl)

    @hg.factor(output=hg.Gaussian)
    def cubed(z):
        return z**3

    model = hg.Model()
    x = model.gaussian("x", 0.0, variance=1.0, size=4)
    model.gaussian("y", cubed(x), variance=0.5, observed=[0.1, 1.0, -2.0, 3.0])
    with pytest.warns(hg.OracleWarning, match=r"factor 'cubed' to variable 'x' \(row 2\)"):
        posterior = model.infer(operator="ask", oracle=HalfBlind())
    assert not posterior.converged and posterior.unsent.n_failed >= 1
    assert "failed" in posterior.status
    assert posterior[x].variance[2] == 1.0 and posterior[x].variance[1] != 1.0


def test_a_row_that_is_not_finite_costs_that_row_only():
    from heliograph.factors.probit import ProbitBernoulli

    class HalfBroken(ProbitBernoulli):
        def message(self, to, incoming, power=1.0):
            message = super().message(to, incoming, power)
            if to != "z":
                return message
            shift = message.naturals[0].copy()
            shift[1] = np.nan
            return message.from_naturals((shift, message.naturals[1]))

    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((20, 2)), rng.random(20) < 0.5
    model, without = hg.Model(), hg.Model()
    w = model.gaussian("w", np.zeros(2), covariance=np.eye(2))
    model.bernoulli("y", probit=x @ w, observed=y)
    next(p for p in model.graph.plates if p.name == "probit_bernoulli").factor = HalfBroken()
    with pytest.warns(hg.ConvergenceWarning, match=r"1 of 20 messages of factor .* \(row 1\)"):
        posterior = model.infer()
    assert not posterior.converged and posterior.unsent.n_skipped == 1
    u = without.gaussian("w", np.zeros(2), covariance=np.eye(2))
    rest = np.arange(20) != 1
    without.bernoulli("y", probit=x[rest] @ u, observed=y[rest])
    assert without.infer()[u].kl(posterior[w]) < 1e-5  # as if the row were not there


def test_a_user_s_own_stopping_rule_does_not_silence_the_warning():
    model, _ = curved()
    with pytest.warns(hg.ConvergenceWarning, match="stopped after 2 sweeps"):
        posterior = model.infer(operator="ask", oracle="quadrature", stop=hg.after(2))
    assert not posterior.converged
    settled = model.infer(operator="ask", oracle="quadrature", stop=hg.after(40))
    assert settled.converged  # it had settled, whatever the rule was


def test_damping_does_not_hide_a_change():
    """At damping 0.97 the damped change of logistic regression falls below any limit long before the beliefs are right."""
    rng = np.random.default_rng(3)
    x = rng.standard_normal((200, 4))
    model = hg.Model()
    w = model.gaussian("w", np.zeros(4), covariance=np.eye(4))
    model.bernoulli("y", logit=x @ w, observed=x @ np.ones(4) + rng.standard_normal(200) > 0)
    exact = model.infer(tolerance=1e-6)
    for max_sweeps in (20, 60, 150, 400):
        posterior = quiet(model, damping=0.97, max_sweeps=max_sweeps)
        assert not posterior.converged or exact[w].kl(posterior[w]) < 1e-4


def watched_names(model):
    return [n.name for n in compile_model(model.graph.snapshot()).watched()]


def labels_of():
    x = np.random.default_rng(0).normal(size=(40, 3))
    return x, (x.sum(axis=1) + np.random.default_rng(1).logistic(size=40) > 0) * 1.0


def test_the_rows_of_a_regression_are_not_watched_beside_the_vector_that_they_are_made_of():
    x, y = labels_of()
    model = hg.Model()
    w = model.gaussian("w", np.zeros(3), covariance=np.eye(3))
    model.bernoulli("y", logit=x @ w, observed=y)
    assert watched_names(model) == ["w"]
    scalars = hg.Model()  # the marginals of single numbers say nothing of their differences
    a, b = scalars.gaussian("a", 0.0, variance=1.0), scalars.gaussian("b", 0.0, variance=1.0)
    scalars.bernoulli("y", logit=a * x[:, 0] + b * x[:, 1], observed=y)
    assert len(watched_names(scalars)) == 3
    both = hg.Model()
    u, v = (both.gaussian(name, np.zeros(3), covariance=np.eye(3)) for name in "uv")
    both.bernoulli("y", logit=x @ u + x**2 @ v, observed=y)
    assert len(watched_names(both)) == 3


def test_no_row_moves_by_more_nats_than_its_vector(monkeypatch):
    x, y = labels_of()
    model = hg.Model()
    w = model.gaussian("w", np.zeros(3), covariance=4.0 * np.eye(3))
    model.bernoulli("y", logit=x @ w, observed=y)
    lean = model.infer()
    monkeypatch.setattr("heliograph.engine.compiled._implied", lambda *_: frozenset())
    full = model.infer()
    assert [(i.change, i.moving) for i in lean.trace.sweeps] == [(i.change, i.moving) for i in full.trace.sweeps]
