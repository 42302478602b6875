"""From an oracle's answer to labels, and how predictions compare with it."""

import numpy as np
import pytest

from heliograph.errors import FileFormatError
from heliograph.families import Beta, Gaussian
from heliograph.families.charts import chart_of
from heliograph.operators.learned.calibration import Calibration
from heliograph.operators.learned.learn import compare, directions_of, labels_of, realised_error, statement_of
from heliograph.operators.learned.predict import Correction
from heliograph.operators.learned.records import Forecast, Labels, View
from heliograph.operators.learned.view import EvidenceChart
from heliograph.oracles.answer import Answer

N = 6


def answer(failed=(), unknown=()):
    """Beliefs of z and out; whole rows that failed, and rows at which the output alone is unknown."""
    rng = np.random.default_rng(0)
    beliefs = {"z": Gaussian(rng.normal(size=N), rng.uniform(0.5, 1, N)), "out": Beta(rng.uniform(2, 3, N), 2.0)}
    bad, blind = np.isin(np.arange(N), failed), np.isin(np.arange(N), unknown)
    kl = {"z": np.where(bad, np.inf, 1e-4), "out": np.where(bad | blind, np.inf, 2e-4)}
    covariance = {p: np.tile(np.diag([1e-4, 4e-4]), (N, 1, 1)) for p in beliefs}
    zero = np.zeros(N)
    log_z = np.where(bad, -np.inf, rng.normal(size=N))
    return Answer(beliefs, log_z, {}, covariance, covariance, kl, zero + 0.1, zero, zero, bad, 0)


def view(base_variance=2.0, scale=None, n=N):
    cavity = Gaussian(np.zeros(n), base_variance)
    chart = chart_of(cavity)
    inputs = np.arange(2.0 * n).reshape(n, 2)
    return View(chart, chart.moments(cavity), inputs, scale, np.zeros(n), "z", cavity)


def test_an_answer_teaches_every_direction_but_point_masses_and_log_z_last():
    assert list(directions_of(answer(), {"z": "proper", "out": "proper"})) == ["z", "out", None]
    assert list(directions_of(answer(), {"z": "proper", "out": "point"})) == ["z", None]


def test_a_statement_knows_the_rows_that_failed_in_its_own_direction():
    said = answer(failed=[1], unknown=[3])
    z, out, log_z = (statement_of(said, to) for to in ("z", "out", None))
    assert np.flatnonzero(z.failed).tolist() == [1] and np.flatnonzero(~z.good).tolist() == [1]
    assert np.flatnonzero(out.failed).tolist() == [1, 3]
    assert np.flatnonzero(log_z.failed).tolist() == [1]
    np.testing.assert_allclose(log_z.kl, 0.01)


def test_labels_are_corrections_from_the_base_that_give_the_beliefs_back():
    said, seen = statement_of(answer(), "z"), view()
    labels = labels_of(seen, said, 100)
    again = seen.chart.belief(labels.targets, seen.base)
    assert said.value.kl(again).max() < 1e-20
    np.testing.assert_allclose(labels.noise, [[1e-4 / 2.0, 4e-4]] * N)  # of (mean / sd of the base, log variance)
    assert np.array_equal(labels.inputs, seen.inputs) and labels.n_improper == 0


def test_labels_are_in_units_of_the_scale():
    scale = np.linspace(0.1, 3, N)
    said = statement_of(answer(), "z")
    plain, scaled = labels_of(view(), said, 100), labels_of(view(scale=scale), said, 100)
    np.testing.assert_allclose(scaled.targets * scale[:, None], plain.targets)
    np.testing.assert_allclose(scaled.noise * scale[:, None] ** 2, plain.noise)
    assert np.array_equal(scaled.kl, plain.kl)


def test_failed_rows_and_rows_that_cannot_be_seen_are_no_labels():
    seen = view()
    seen.inputs[4, 0] = np.nan
    labels = labels_of(seen, statement_of(answer(failed=[1]), "z"), 100)
    assert labels.inputs[:, 1].tolist() == [1.0, 5.0, 7.0, 11.0]  # rows 0, 2, 3 and 5
    assert labels_of(view(), statement_of(answer(failed=range(N)), "z"), 100) is None


def test_no_more_labels_than_there_is_room_for():
    said = statement_of(answer(failed=[0]), "z")
    assert labels_of(view(), said, 2).inputs[:, 0].tolist() == [2.0, 4.0]
    assert labels_of(view(), said, 0) is None


def test_answers_that_widen_the_cavity_are_counted_as_improper():
    said = statement_of(answer(), "z")
    wide = said.value.variance > 0.7
    assert 0 < wide.sum() < N
    assert labels_of(view(0.5), said, 100).n_improper == (np.log(said.value.variance / 0.5) > 6 * 0.02).sum()


def test_log_z_is_learned_as_a_difference():
    base = np.linspace(-1, 1, N)
    said = statement_of(answer(failed=[2]), None)
    seen = View(EvidenceChart(), (base,), np.zeros((N, 1)), None, None, None, None)
    labels = labels_of(seen, said, 100)
    rows = [0, 1, 3, 4, 5]
    np.testing.assert_allclose(labels.targets[:, 0], (said.value - base)[rows])
    np.testing.assert_allclose(labels.noise, 0.01)


def test_errors_are_kl_of_beliefs_and_squares_of_log_z():
    a, b = Gaussian(np.zeros(2), 1.0), Gaussian(np.ones(2), 1.0)
    assert np.array_equal(realised_error(a, b), a.kl(b))
    assert realised_error(np.array([1.0]), np.array([3.0])).tolist() == [4.0]


def test_a_comparison_counts_the_answers_own_error_and_only_good_rows():
    said, seen, calibration = statement_of(answer(failed=[1]), "z"), view(), Calibration()
    forecast = Forecast(np.full((N, 2), 0.3), np.full(N, 3e-4))
    ratio = compare(calibration, seen, forecast, said, audited=True)
    good = np.arange(N) != 1
    realised = said.value.kl(seen.chart.belief(forecast.mean, seen.base))[good]
    np.testing.assert_allclose(calibration.expected, 4e-4)
    np.testing.assert_allclose(calibration.realised, realised)
    np.testing.assert_allclose(calibration.informative, 0.75)
    assert calibration.n_audits == N - 1
    assert ratio == pytest.approx(realised.sum() / (5 * 4e-4))


def test_where_the_oracle_says_nothing_nothing_is_compared():
    said, calibration = statement_of(answer(failed=range(N)), "z"), Calibration()
    assert compare(calibration, view(), Forecast(np.zeros((N, 2)), np.ones(N)), said, False) == 1.0
    assert len(calibration) == 0


# ---- what a correction makes of labels -------------------------------------------------------------------------------
def grown(n=30):
    rng = np.random.default_rng(1)
    x = rng.uniform(-2, 2, (n, 2))
    known = Correction(2, 2, start=20)
    known.process.use()
    known.append(Labels(x, np.sin(x), np.full((n, 2), 1e-6), np.full(n, 1e-3)))
    return known, x


def test_a_correction_trusts_by_its_labels_and_its_calibration():
    known, _ = grown()
    assert known.trust().always_proper and known.trust().label_kl == 1e-3
    known.append(Labels(np.zeros((1, 2)), np.zeros((1, 2)), np.zeros((1, 2)), np.zeros(1), n_improper=1))
    assert not known.trust().always_proper
    known.calibration.note(np.full(50, 1e-3), np.full(50, 5e-3))
    assert known.trust().factor == known.calibration.factor > 1


def test_accepted_rows_are_counted_and_stated():
    known, _ = grown()
    known.calibration.note(np.full(50, 1e-3), np.full(50, 1e-6))
    settled = known.settled(None, None, np.full(7, 1e-1), np.zeros((7, 2)), known.trust())
    assert known.n_trusted == 7 and not settled.asked
    assert (settled.expected_kl < 1e-1).all() and (settled.expected_kl >= 1e-3).all()


def test_the_state_of_a_correction_comes_back_and_nonsense_is_refused():
    known, x = grown()
    known.n_trusted, known.n_improper = 12, 3
    arrays = known.state()
    again = Correction.from_state(arrays, 20)
    assert again.trust() == known.trust()
    assert (again.n_trusted, again.n_improper) == (12, 3)
    for a, b in zip(known.process.predict(x), again.process.predict(x), strict=True):
        assert np.allclose(a, b, rtol=1e-9, atol=1e-12)
    with pytest.raises(FileFormatError):
        Correction.from_state({**arrays, "own_kl": arrays["own_kl"][:-1]}, 20)
    del arrays["n_trusted"]  # files of the first version have none
    assert Correction.from_state(arrays, 20).n_trusted == 0
