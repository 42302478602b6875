"""What a factor tells of itself, what it may be made of, and runs that have little time."""

import dataclasses
import functools

import matplotlib as mpl
import numpy as np
import pytest

import heliograph as hg
from heliograph.errors import ModelError
from heliograph.operators.learned import Learned
from heliograph.operators.protocol import Setting
from heliograph.oracles.references import reference_of

mpl.use("Agg")


def regression(box, seed=0, n=60):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, 3))
    y = np.sinh(x @ np.array([0.5, -0.3, 0.2])) + 0.3 * rng.standard_normal(n)
    model = hg.Model()
    w = model.gaussian("w", np.zeros(3), covariance=np.eye(3))
    model.gaussian("y", box(x @ w), variance=0.09, observed=y)
    return model


def test_a_report_counts_what_the_function_itself_counts():
    n_rows = 0

    @hg.factor(output=hg.Gaussian)
    def counted(z):
        nonlocal n_rows
        n_rows += len(z)
        return np.sinh(z)

    posterior = regression(counted).infer(progress=False)
    report = counted.report()
    assert report.n_evaluations == n_rows
    assert report.n_asked == posterior.trace.n_asked == counted.n_asked
    assert report.n_reference_evaluations < n_rows
    lines = str(report).splitlines()
    assert len(lines) == 10 and "counted(z) -> Gaussian" in lines[0]
    assert report.labels["z"] >= 20


@pytest.mark.parametrize(("saved", "words"), [(0.5, "0.5 s less than"), (-0.5, "0.5 s more than")])
def test_a_report_says_whether_learning_has_saved_time_or_cost_some(saved, words):
    @hg.factor(output=hg.Gaussian)
    def unused(z):
        return np.sinh(z)

    assert f"about {words} asking" in str(dataclasses.replace(unused.report(), seconds_saved=saved))


def test_a_picture_shows_the_exact_belief_within_its_band():
    @hg.factor(output=hg.Gaussian)
    def steep(z):
        return np.sinh(z)

    with pytest.raises(ModelError, match="no message yet"):
        steep.plot()
    regression(steep).infer(progress=False)
    axes = steep.plot()
    (line,) = axes.get_lines()
    centres, drawn = line.get_data()
    incoming, _ = steep.seen["z"]
    middle = np.argsort(incoming["z"].mean, kind="stable")[len(incoming["z"]) // 2]
    variance, out = incoming["z"].variance[middle], incoming["out"][[middle]]
    sure = np.flatnonzero(np.isfinite(drawn))
    assert len(sure) >= 10
    for k in sure[:: len(sure) // 5]:  # sums over a hundred thousand nodes
        ends = np.array([min(centres[k], 0.0), max(centres[k], 0.0)]) + 12 * np.sqrt(variance) * np.array([-1, 1])
        z = np.linspace(*ends, 100_001)  # the likelihood lies near 0
        log_w = -0.5 * (z - centres[k]) ** 2 / variance - 0.5 * (np.sinh(z) - out.mean[0]) ** 2 / out.variance[0]
        w = np.exp(log_w - log_w.max())
        assert drawn[k] == pytest.approx(w @ z / w.sum(), abs=1e-3)
    with pytest.raises(ModelError, match="no ports"):
        steep.plot(over="nowhere")


def test_numpy_functions_and_partial_functions_are_factors():
    by_ufunc, by_hand = (
        hg.factor(np.sinh, output=hg.Gaussian),
        hg.factor(lambda z: np.sinh(z), output=hg.Gaussian, name="f"),
    )
    assert by_ufunc.ports == ("x", "out") and by_ufunc.name == "sinh"
    a, b = (regression(box).infer(progress=False)["w"] for box in (by_ufunc, by_hand))
    assert np.array_equal(a.mean, b.mean)
    product = hg.factor(np.multiply, output=hg.Gaussian)
    assert product.ports == ("x1", "x2", "out")
    assert product(np.array([2.0]), np.array([3.0])) == 6.0

    def scaled(z, scale):
        return np.sinh(z) * scale

    part = hg.factor(functools.partial(scaled, scale=1.0), output=hg.Gaussian)
    assert part.name == "scaled"
    c = regression(part).infer(progress=False)["w"]
    assert np.allclose(a.mean, c.mean, atol=1e-6)


def test_a_run_without_time_says_how_far_it_came():
    @hg.factor(output=hg.Gaussian)
    def steep(z):
        return np.sinh(z)

    with pytest.warns(hg.ConvergenceWarning):
        posterior = regression(steep).infer(progress=False, seconds=1e-9)
    assert posterior.n_sweeps == 1 and not posterior.converged
    settled = regression(steep).infer(progress=False, seconds=600.0)
    assert settled.converged
    for wrong in (0, -1.0, "soon", np.nan):
        with pytest.raises(ModelError, match="seconds"):
            regression(steep).infer(seconds=wrong)


def test_past_its_deadline_nothing_is_asked_and_strange_rows_are_no_certainty():
    @hg.factor(output=hg.Gaussian)
    def steep(z):
        return np.sinh(z)

    rng, operator = np.random.default_rng(0), Learned(reference="none", audit=0.0)
    setting = Setting(1e-4, steep.sampler, steep.evaluate, reference_of(steep.sampler))
    incoming = {"z": hg.Gaussian(rng.normal(size=50), 0.5), "out": hg.Gaussian(rng.normal(size=50), 0.2)}
    operator.send(rng, "z", incoming, lambda rows, precision=None: steep.ask(rows), setting)

    def nobody(rows, precision=None):
        raise AssertionError("asked after the deadline")

    far = {"z": hg.Gaussian(rng.normal(30.0, 1.0, 50), 0.5), "out": hg.Gaussian(rng.normal(size=50), 0.2)}
    reply = operator.send(rng, "z", far, nobody, setting._replace(deadline=-np.inf))
    assert not reply.asked.any()
    assert (reply.expected_kl >= 1.0).all()
