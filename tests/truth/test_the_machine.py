"""The truth machine itself: what is broken on purpose must be found, and its own integrals must be right."""

import time
import warnings

import numpy as np
import pytest
from benchmarks.truth import CRASHED, KINDS, REFUSED, RIGHT, SAID, SILENT, Truth, World, judge, make, verdict
from benchmarks.truth.grids import beta_projected, ep, gamma_projected, line, moments
from benchmarks.truth.table import rows
from benchmarks.truth.world import literal, rounded
from scipy.special import digamma, log_ndtr

import heliograph as hg


def _first(kind, verdict, seeds=range(12)):
    """The first world of a kind with that verdict, so that a break can be seen to change it."""
    return next(w for w in (make(kind, s) for s in seeds) if judge(w).verdict == verdict)


# ---- what is broken is found -------------------------------------------------------------------------------------
def test_a_message_off_by_half_is_silently_wrong(monkeypatch):
    from heliograph.engine.blocks import compile as compiling

    world = _first("gaussian regression", RIGHT)
    write = compiling._Compiler._write_known

    def half(self, plate):
        write(self, plate)
        self.known[-1] = self.known[-1]._replace(weight=0.5 * self.known[-1].weight)

    monkeypatch.setattr(compiling._Compiler, "_write_known", half)
    assert judge(world).verdict == SILENT


@pytest.mark.parametrize("kind", ["box tree", "conjugate", "single factor", "gaussian chain"])
def test_rows_in_the_wrong_order_are_silently_wrong(monkeypatch, kind):
    def plate(world):
        mean = next(iter(world.truth().mean.values()))
        return np.ndim(mean) == 1 and len(mean) > 2 and judge(world).verdict == RIGHT

    world = next(w for w in (make(kind, s) for s in range(60)) if plate(w))
    read = hg.Posterior.__getitem__

    def reversed_rows(self, variable):
        belief = read(self, variable)
        return belief[::-1] if belief.shape else belief

    def reversed_categories(self, variable):
        belief = read(self, variable)
        return belief if not isinstance(belief, hg.Dirichlet) else hg.Dirichlet(belief.concentration[..., ::-1])

    asked = next(iter(world.truth().mean))
    dirichlet = "dirichlet" in next(t for t in world.source.splitlines() if t.startswith(f"{asked} ="))
    monkeypatch.setattr(hg.Posterior, "__getitem__", reversed_categories if dirichlet else reversed_rows)
    assert judge(world).verdict == SILENT


def test_a_wrong_evidence_alone_is_silently_wrong(monkeypatch):
    world = _first("conjugate", RIGHT)
    right = judge(world)
    monkeypatch.setattr(hg.Posterior, "log_evidence", 12.0)
    wrong = judge(world)
    assert (right.verdict, wrong.verdict) == (RIGHT, SILENT) and wrong.note.startswith("evidence")


def test_what_is_not_a_number_is_wrong(monkeypatch):
    world = _first("conjugate", RIGHT)
    monkeypatch.setattr(hg.Posterior, "log_evidence", np.nan)
    assert judge(world).verdict == SILENT


# ---- every verdict can be given ----------------------------------------------------------------------------------
MODEL = 'm = hg.Model()\nx = m.gaussian("x", 0.0, variance=4.0)'


def _world(source=MODEL, mean=0.0, truth=True, **settings):
    answer = Truth({"x": np.float64(mean)}, {"x": np.float64(2.0)}, log_evidence=0.0)
    return World("test", 0, source, "exact" if truth else "impossible", (lambda: answer) if truth else None, settings)


def test_right_and_silently_wrong():
    assert judge(_world()).verdict == RIGHT
    assert judge(_world(mean=1.0)).verdict == SILENT


def test_one_of_our_warnings_makes_a_wrong_answer_said_and_a_right_one_needlessly_warned():
    warning = MODEL + '\nimport warnings\nwarnings.warn("careful", hg.AccuracyWarning)'
    said, needless = judge(_world(warning, mean=1.0)), judge(_world(warning))
    assert (said.verdict, needless.verdict) == (SAID, RIGHT)
    table = rows([said, needless])
    assert table[1][table[0].index("needless")] == "1"


def test_a_warning_that_is_not_ours_says_nothing():
    stray = MODEL + '\nimport warnings\nwarnings.warn("overflow", RuntimeWarning)'
    result = judge(_world(stray, mean=1.0))
    assert result.verdict == SILENT and result.stray


def test_our_error_is_a_refusal_and_any_other_a_crash():
    assert judge(_world(MODEL, tolerance=-1.0)).verdict == REFUSED
    assert judge(_world(MODEL + "\n1 / 0")).verdict == CRASHED


def test_an_impossible_model_must_be_refused_or_warned_about():
    assert judge(_world(truth=False)).verdict == SILENT
    assert judge(_world(truth=False, tolerance=-1.0)).verdict == RIGHT


def test_a_model_that_hangs_is_a_crash(monkeypatch):
    monkeypatch.setattr(verdict, "SECONDS", 1)
    start = time.perf_counter()
    result = judge(_world(MODEL + "\nwhile True:\n    pass"))
    assert result.verdict == CRASHED and "took longer" in result.note and time.perf_counter() - start < 10


# ---- the generator and its arithmetic ----------------------------------------------------------------------------
@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_and_a_seed_give_the_same_model_and_another_seed_another(kind):
    assert make(kind, 5).description == make(kind, 5).description
    assert make(kind, 5).source != make(kind, 6).source


def test_numbers_survive_the_source():
    values = np.array([[1 / 3, np.nan], [-np.inf, 1e-300]])
    assert np.array_equal(eval(literal(values), {"np": np}), values, equal_nan=True)
    assert rounded(123456.0, 2) == 120000.0 and rounded(0.0) == 0.0


def test_our_ep_of_gaussian_rows_is_the_dense_posterior_and_evidence():
    rng = np.random.default_rng(0)
    x, y, mean = rng.standard_normal((7, 3)), rng.standard_normal(7), np.array([0.5, 0.0, -1.0])
    covariance = np.diag([1.0, 2.0, 0.5])
    m, belief, log_evidence, settled = ep(
        lambda z: -0.5 * (y[:, None] - z) ** 2 / 0.3 - 0.5 * np.log(2 * np.pi * 0.3), x, mean, covariance, 0.0
    )
    exact = np.linalg.inv(np.linalg.inv(covariance) + x.T @ x / 0.3)
    total = x @ covariance @ x.T + 0.3 * np.eye(7)
    gap = y - x @ mean
    z = -0.5 * gap @ np.linalg.solve(total, gap) - 0.5 * np.linalg.slogdet(2 * np.pi * total)[1]
    assert settled and np.allclose(belief, exact, rtol=1e-6)
    assert np.allclose(m, exact @ (np.linalg.solve(covariance, mean) + x.T @ y / 0.3), atol=1e-6)
    assert log_evidence == pytest.approx(z, abs=1e-6)


def test_a_line_s_moments_are_those_of_a_truncated_gaussian():
    x, weight, log_z = line(lambda x: -0.5 * x**2 - 0.5 * np.log(2 * np.pi), np.array([2.0]), np.array([20.0]))
    mean, sd = moments(x, weight)
    hazard = np.exp(-2.0 - 0.5 * np.log(2 * np.pi) - log_ndtr(-2.0))
    assert log_z[0] == pytest.approx(log_ndtr(-2.0), abs=1e-6)
    assert mean[0] == pytest.approx(hazard, abs=1e-6) and sd[0] ** 2 == pytest.approx(
        1 + 2 * hazard - hazard**2, abs=1e-5
    )


def test_projections_give_a_gamma_and_a_beta_back():
    k, r = np.array([0.3, 4.0, 900.0]), np.array([2.0, 0.1, 30.0])
    mean, sd = gamma_projected(k / r, digamma(k) - np.log(r))
    assert np.allclose(mean, k / r) and np.allclose(sd, np.sqrt(k) / r, rtol=1e-8)
    a, b = np.array([0.4, 3.0, 80.0]), np.array([2.0, 3.0, 700.0])
    mean, sd = beta_projected(digamma(a) - digamma(a + b), digamma(b) - digamma(a + b))
    assert np.allclose(mean, a / (a + b)) and np.allclose(sd, np.sqrt(a * b / (a + b + 1)) / (a + b), rtol=1e-7)


def test_truths_are_computed_without_a_word():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for kind in ("gaussian graph", "discrete loop", "conjugate"):
            truth = make(kind, 3).truth
            assert truth is not None and truth().log_evidence is not None
