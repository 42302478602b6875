"""The loop: stepping, stopping, warning, rolling back, and saying so."""

import dataclasses
import itertools

import numpy as np
import pytest

import heliograph as hg
from heliograph.engine.options import InferOptions
from heliograph.engine.properness import apply_policy


def _model(n=40, d=3, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, d))
    y = rng.random(n) < 1 / (1 + np.exp(-x @ np.ones(d)))
    model = hg.Model()
    w = model.gaussian("w", np.zeros(d), covariance=np.eye(d))
    model.bernoulli("y", logit=x @ w, observed=y)
    return model, w


def test_steps_yield_a_usable_posterior_after_every_sweep():
    model, w = _model()
    means = [posterior[w].mean for posterior, _ in hg.steps(model, stop=hg.after(4))]
    assert len(means) == 4
    moves = [np.abs(a - b).max() for a, b in itertools.pairwise(means)]
    assert moves[0] > moves[-1] > 0


def test_a_kept_step_is_not_changed_by_later_sweeps():
    for schedule in ("parallel", "sequential"):
        model, w = _model()
        kept = []
        for posterior, _ in hg.steps(model, stop=hg.after(3), schedule=schedule):
            kept.append((posterior, posterior[w].mean.copy()))
        for posterior, mean in kept:
            assert np.array_equal(posterior[w].mean, mean)


def test_rules_combine():
    info = hg.SweepInfo(5, 1e-3, "w", 0.0, False, 0, 0, 0, 0, 0, 0, 0.0, 0.0, 0.0, 0.0, 0.0)
    few, small = hg.after(5), hg.changed_less_than(1e-6)
    assert (few | small)(info) and not (few & small)(info)
    assert not (few | small).converged(info)
    assert (few & small)(info._replace(change=0.0)) and (few | small).converged(info._replace(change=0.0))
    assert repr(small | few) == "changed_less_than(1e-06) | after(5)"


def test_a_run_that_was_cut_short_says_which_variable_moves():
    model, _ = _model()
    with pytest.warns(hg.ConvergenceWarning, match="variable 'w' still moves"):
        posterior = model.infer(max_sweeps=2)
    assert not posterior.converged and posterior.n_sweeps == 2


def test_the_trace_tells_every_sweep():
    model, _ = _model()
    posterior = model.infer()
    changes = posterior.trace.changes
    assert len(changes) == posterior.n_sweeps and changes[-1] <= 1e-6 < changes[0]
    assert all(info.n_messages > 0 and info.seconds > 0 for info in posterior.trace.sweeps)
    assert "sweeps" in repr(posterior.trace)


def test_a_diverging_sweep_is_rolled_back_and_damped():
    """A loopy Gaussian model whose undamped parallel messages blow up: precision with strong negative couplings."""
    rng = np.random.default_rng(1)
    n = 12
    model = hg.Model()
    x = model.gaussian("x", 0.0, variance=1.0, size=n)
    i, j = np.triu_indices(n, 1)
    model.gaussian("pair", x[i] + x[j], variance=0.5, observed=rng.standard_normal(len(i)))
    posterior = model.infer(max_sweeps=2000, tolerance=1e-6)
    precision = np.eye(n)
    shift = np.zeros(n)
    seen = model["pair"].node.observed.point
    for a, b, value in zip(i, j, seen, strict=True):
        u = np.zeros(n)
        u[[a, b]] = 1
        precision += np.outer(u, u) / 0.5
        shift += u * value / 0.5
    assert posterior.converged
    assert np.allclose(posterior[x].mean, np.linalg.solve(precision, shift), atol=1e-3)  # loopy means are exact


def test_keeping_the_mean_adds_no_negative_precision():
    cavity = hg.Gaussian(np.array([1.0]), np.array([2.0]))
    belief = hg.Gaussian(np.array([1.5]), np.array([3.0]))  # wider than the cavity: the message is improper
    message = belief / cavity
    settled = apply_policy(message, message.as_uniform(), cavity, "keep mean")
    assert settled.n_improper == 1 and settled.message.precision[0] == 0
    assert (settled.message * cavity).mean[0] == pytest.approx(1.5)
    assert apply_policy(message, message.as_uniform(), cavity, "skip").message.is_uniform.all()
    allowed = apply_policy(message, message.as_uniform(), cavity, "allow")
    assert np.array_equal(allowed.message.precision, message.precision) and allowed.n_improper == 1


def test_a_message_that_is_not_finite_is_skipped():
    cavity = hg.Gaussian(np.zeros(2), np.ones(2))
    bad = hg.Gaussian.from_naturals((np.array([np.nan, 1.0]), np.array([1.0, 1.0])))
    settled = apply_policy(bad, hg.Gaussian.uniform((2,)), cavity, "allow")
    assert settled.n_skipped == 1 and settled.message.is_uniform[0] and settled.message.shift[1] == 1.0


def test_progress_can_be_forced_and_changes_nothing(capsys):
    model, w = _model()
    quiet, loud = model.infer(progress=False), model.infer(progress=True)
    assert np.array_equal(quiet[w].mean, loud[w].mean)


def test_a_graph_can_be_printed_and_drawn():
    model, _ = _model()
    assert "logistic_bernoulli" in model.summary() and "MultivariateGaussian(3)" in model.summary()
    dot = model.to_dot()
    assert dot.startswith("graph model {") and dot.count("--") == 5


def test_a_tree_s_single_pass_counts_what_its_black_box_asked():
    @hg.factor(output=hg.Gaussian)
    def twice(x):
        return 2 * x

    model = hg.Model()
    x = model.gaussian("x", 1.0, variance=1.0)
    model.gaussian("y", twice(x), variance=0.5, observed=3.0)
    posterior = model.infer(operator="ask", oracle="quadrature")
    assert posterior.n_sweeps == 0 and posterior.trace.n_asked == 1
    assert posterior[x].precision == pytest.approx(1 + 4 / 0.5, rel=1e-6)  # y = 2 x + noise, by hand


@pytest.mark.parametrize("function", [hg.infer, hg.Model.infer])
def test_the_help_of_infer_lists_every_setting(function):
    lines = function.__doc__.splitlines()
    assert not {field.name for field in dataclasses.fields(InferOptions)} - set(lines)
