"""What is asked and what is trusted, as plain functions of records."""

import numpy as np
import pytest

from heliograph.families import Gaussian
from heliograph.families.charts import chart_of
from heliograph.operators.learned import decide
from heliograph.operators.learned.decide import RARE
from heliograph.operators.learned.records import ALONE, Beside, Prediction, Trust, View
from heliograph.operators.learned.view import EvidenceChart
from heliograph.operators.protocol import Setting


def view_of_gaussians(n, excess=None):
    cavity = Gaussian(np.zeros(n), 2.0)
    chart = chart_of(cavity)
    excess = np.full(n, -1.0) if excess is None else excess
    return View(chart, chart.moments(cavity), np.zeros((n, 1)), None, excess, "z", cavity)


def predicted(kl, *, log_ratio=None, unseen=None, sd=0.1):
    n = len(kl)
    unseen = np.zeros(n, dtype=bool) if unseen is None else np.asarray(unseen)
    zero = np.zeros((n, 2))
    return Prediction(zero, np.full((n, 2), sd**2), np.ones((n, 2)), np.asarray(kl, float), unseen, log_ratio)


# ---- the limit -------------------------------------------------------------------------------------------------------
def trusted_by(limit, kl):
    return kl[kl <= limit.kl]


@pytest.mark.parametrize("together", [1, 7, 200])
def test_what_is_trusted_stays_within_the_tolerance_together(together):
    rng = np.random.default_rng(together)
    setting = Setting(tolerance=1e-5, share=0.05, together=together)
    for spread in (0.1, 1.0, 4.0):
        kl = 1e-6 * np.exp(spread * rng.standard_normal(200))
        limit = decide.limit_of(kl, None, Trust(), setting)
        kept = trusted_by(limit, kl)
        unknowns = decide.shared_unknowns(None, len(kl), setting)
        assert decide.joint_error(kept, unknowns) <= 200 * 1e-5
        # and no more is asked than must be: with the next row it would be too much, or that row is too bad by itself
        rest = np.sort(kl[kl > limit.kl])
        if len(rest):
            alone = decide.MOST_SHARES * 1e-5 * min(unknowns / 200, 1.0) / RARE
            assert decide.joint_error(np.append(kept, rest[0]), unknowns) > 200 * 1e-5 or rest[0] > alone


def test_one_row_may_not_take_the_tolerance_of_all():
    kl = np.append(np.full(99, 1e-12), 5e-4)  # together far below what 100 messages may be wrong by
    setting = Setting(tolerance=1e-4)
    assert decide.joint_error(kl) < 100 * 1e-4
    assert decide.limit_of(kl, None, Trust(), setting).kl < 5e-4


def test_rows_beside_leave_less_to_those_at_hand():
    kl, setting = np.full(20, 2e-7), Setting(tolerance=1e-5, share=0.1, together=100)
    alone = decide.limit_of(kl, None, Trust(), setting, ALONE)
    crowded = decide.limit_of(kl, None, Trust(), setting, Beside(np.full(80, 1.9e-7), 0.5))
    assert (kl <= alone.kl).all() and not (kl <= crowded.kl).any()


def test_nobody_is_asked_to_know_more_than_averaged_answers_do():
    kl = np.full(10, 1e-3)
    noisy = Trust(label_kl=1e-2)
    limit = decide.limit_of(kl, None, noisy, Setting(tolerance=1e-9))
    assert limit.kl == decide.least_error(noisy) == pytest.approx(2e-3)
    assert "even averaged" in limit.warning and "2e-03" in limit.warning


def test_the_noise_that_the_regression_adds_itself_is_no_fault_of_the_oracle():
    limit = decide.limit_of(np.full(10, 1e-3), None, Trust(nugget_kl=1e-2), Setting(tolerance=1e-9))
    assert limit.kl == pytest.approx(2e-3) and limit.warning is None


def test_noisy_answers_that_are_good_enough_are_not_complained_of():
    assert decide.limit_of(np.full(10, 1e-3), None, Trust(label_kl=1e-2), Setting(tolerance=1.0)).warning is None


def test_an_empty_plate_has_a_limit():
    assert decide.limit_of(np.zeros(0), None, Trust(), Setting(tolerance=1e-3)).kl == 0.0


# ---- the decision ----------------------------------------------------------------------------------------------------
def test_expectations_are_corrected_by_how_such_expectations_fared():
    view, setting = view_of_gaussians(4), Setting(tolerance=1e-3)
    prediction = predicted([1e-5, 2e-5, 2e-4, 1e-5], log_ratio=np.full(4, -1.0))
    honest = decide.decide(view, prediction, Trust(), setting)
    optimist = decide.decide(view, prediction, Trust(factor=20.0), setting)
    assert honest.certain
    assert np.array_equal(optimist.kl, 20.0 * prediction.kl)
    assert optimist.doubtful.tolist() == [False, False, True, False]


def test_unseen_rows_are_not_certain_whatever_is_expected():
    view = view_of_gaussians(3)
    prediction = predicted(np.full(3, 1e-12), log_ratio=np.full(3, -1.0), unseen=[False, True, False])
    decision = decide.decide(view, prediction, Trust(), Setting(tolerance=1e-3))
    assert not decision.certain and not decision.doubtful.any() and decision.unseen[1]


def test_a_message_is_doubtful_where_it_is_improper_beyond_doubt_though_no_answer_was():
    ratio = np.array([-1.0, 0.3, 0.5])  # log variance of belief over cavity, with a deviation of 0.1
    view, prediction = view_of_gaussians(3), predicted(np.full(3, 1e-12), log_ratio=ratio)
    strict = decide.decide(view, prediction, Trust(always_proper=True), Setting(tolerance=1e-3))
    assert strict.doubtful.tolist() == [False, False, True]
    assert decide.decide(view, prediction, Trust(always_proper=False), Setting(tolerance=1e-3)).certain


def test_the_leverage_of_a_prediction_is_that_of_its_message():
    cavity = Gaussian(np.zeros(3), np.array([1.0, 2.0, 5.0]))
    belief = Gaussian(np.ones(3), np.array([0.5, 1.9, 0.1]))
    view = view_of_gaussians(3)._replace(cavity=cavity)
    prediction = predicted(np.ones(3), log_ratio=np.log(belief.variance / cavity.variance))
    np.testing.assert_allclose(
        decide.leverage_of(view, prediction), decide.leverage(belief / cavity, cavity), rtol=1e-12
    )
    # the long way, where no ratio of variances is at hand
    view = view._replace(base=view.chart.moments(belief))
    plain = prediction._replace(log_ratio=None)
    np.testing.assert_allclose(decide.leverage_of(view, plain), decide.leverage(belief / cavity, cavity), rtol=1e-12)


def test_leverage_where_nothing_came_in_or_nobody_can_say():
    prediction = predicted(np.ones(2))
    assert decide.leverage_of(view_of_gaussians(2)._replace(cavity=None), prediction).tolist() == [1.0, 1.0]
    evidence = View(EvidenceChart(), (np.zeros(2),), np.zeros((2, 1)), None, None, None, None)
    assert decide.leverage_of(evidence, prediction) is None


# ---- what is stated, and what is asked besides -----------------------------------------------------------------------
def test_better_predictions_are_stated_as_better_but_never_below_the_noise_of_labels():
    kl = np.array([1e-2, 1e-4, 1e-7])
    assert np.array_equal(decide.stated_kl(kl, Trust()), kl)
    assert np.array_equal(decide.stated_kl(kl, Trust(factor=2.0, stated=2.0)), kl)
    stated = decide.stated_kl(kl, Trust(factor=2.0, stated=0.02, label_kl=1e-5))
    np.testing.assert_allclose(stated, [1e-4, 1e-5, 1e-7])


def test_audits_are_a_share_of_the_labels_and_go_on_in_the_long_run():
    assert not decide.audits_allowed(0, 9, 0) and decide.audits_allowed(0, 10, 0)
    assert not decide.audits_allowed(1, 10, 10_000)
    assert [decide.audits_allowed(k, 10, 10**6) for k in (2, 3)] == [True, False]  # two tenfolds beyond 10^4


def test_audited_rows_are_one_or_none_and_nothing_is_drawn_where_no_audit_is_allowed():
    rng = np.random.default_rng(0)
    before = rng.bit_generator.state
    assert not len(decide.audited_rows(rng, 50, 1.0, n_audits=1, n_labels=10, n_trusted=0))
    assert rng.bit_generator.state == before
    counts = {"n_audits": 0, "n_labels": 10, "n_trusted": 0}
    found = [decide.audited_rows(rng, 50, 0.01, **counts) for _ in range(400)]
    assert {len(f) for f in found} == {0, 1}
    assert 150 < sum(map(len, found)) < 250  # half of them: 50 rows of a hundredth each
    assert 0 <= min(f[0] for f in found if len(f)) <= max(f[0] for f in found if len(f)) < 50


def test_a_batch_ends_where_the_widths_are_chosen_anew():
    assert decide.batch_size(20, 40) == 10 and decide.batch_size(4, 20) == 8
    assert decide.batch_size(38, 40) == 2
    assert decide.batch_size(60, 40) == 1  # overdue


def test_surprise_needs_a_large_ratio_and_new_labels():
    assert decide.surprised(5.1, 24, 20)
    assert not decide.surprised(4.9, 24, 20) and not decide.surprised(100.0, 23, 20)


def test_a_reference_is_slow_by_the_call_or_by_the_evaluation():
    assert decide.slow_reference(2.1, 26) and not decide.slow_reference(1.9, 26)
    assert not decide.slow_reference(2.1, 26_000)


def test_a_label_is_asked_for_as_precisely_as_the_tolerance_needs():
    assert decide.label_precision(0.0) is None
    # a relative standard error e costs e^2 / 2 nats
    assert decide.label_precision(1e-4) ** 2 / 2 == pytest.approx(decide.LABEL_SHARE * 1e-4)


def test_the_usual_error_follows_the_latest_answers():
    assert decide.usual_error(np.zeros(0)) == 0.0
    assert decide.usual_error(np.concatenate([np.full(1000, 1.0), np.full(64, 1e-3)])) == 1e-3


def test_an_answer_is_improper_only_beyond_its_own_noise():
    ratio, noise = np.array([-0.1, 0.5, 0.7, 1e-10]), np.array([0.0, 0.01, 0.01, 0.0])
    assert decide.improper_answers(ratio, noise) == 1  # 7 deviations; 5 may be chance, and 1e-10 rounding
