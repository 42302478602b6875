import matplotlib
import numpy as np
import pytest

from heliograph.errors import FileFormatError
from heliograph.operators.learned.calibration import Calibration

matplotlib.use("Agg")


def test_honest_expectations_are_left_alone():
    rng = np.random.default_rng(0)
    kept = Calibration()
    expected = np.exp(rng.uniform(-12, -4, 300))
    kept.note(expected, expected * 0.5 * rng.chisquare(2, 300))  # half a chi-squared of two has mean 1
    assert 1.0 <= kept.factor < 1.3


def test_optimism_is_multiplied_away_and_caution_is_not_rewarded():
    kept = Calibration()
    kept.note(np.full(200, 1e-4), np.full(200, 6e-4))
    assert 5 < kept.factor < 6
    modest = Calibration()
    modest.note(np.full(200, 1e-4), np.full(200, 1e-6))
    assert modest.factor == 1.0


def test_one_outlier_does_not_rule():
    kept = Calibration()
    kept.note(np.full(50, 1e-4), np.full(50, 1e-4))
    kept.note(np.array([1e-4]), np.array([1e4]))
    assert kept.factor < 2.2  # cut at 50 times, among sixty


def test_the_table_counts_every_pair_once():
    rng = np.random.default_rng(1)
    kept = Calibration()
    expected = np.exp(rng.uniform(-14, -2, 120))
    kept.note(expected, 2 * expected)
    kept.note(np.array([1e-3]), np.array([np.inf]))  # nothing to learn from
    table = kept.table()
    assert table.count.sum() == 120
    assert np.allclose(table.realised, 2 * table.expected)
    assert np.allclose(table.worst_ratio, 2.0)
    assert "factor in use" in str(kept)


def test_it_draws_itself():
    from matplotlib.figure import Figure

    axes = Figure().subplots()
    kept = Calibration()
    kept.note(np.array([1e-4, 1e-3]), np.array([2e-4, 0.0]))
    kept.note(np.array([1e-5]), np.array([1e-5]), audited=True)
    kept.plot(axes)
    assert {t.get_text() for t in axes.get_legend().get_texts()} == {"asked", "audited", "perfectly honest"}


def test_state_comes_back_and_nonsense_is_refused():
    kept = Calibration()
    kept.note(np.array([1e-4, 1e-3]), np.array([2e-4, 5e-3]), audited=True)
    other = Calibration()
    other.restore(kept.state())
    assert other.factor == kept.factor and other.n_audits == 2
    with pytest.raises(FileFormatError):
        other.restore({**kept.state(), "realised": np.zeros(1)})


def test_labels_that_contradict_one_another_count_like_ten_comparisons():
    kept = Calibration()
    kept.expect(8.0)
    assert kept.factor == 8.0
    assert kept.stated == pytest.approx(5 * 8.0)
    kept.note(np.full(10, 1e-4), np.full(10, 1e-4))
    assert 4.0 < kept.factor < 5.0
    kept.expect(0.1)  # labels that agree better than expected prove nothing
    assert kept.factor == pytest.approx(1.0)
