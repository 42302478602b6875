"""The temporal-uncertainty figure: what is drawn is what happened."""

from __future__ import annotations

import numpy as np

from heliograph.engine.sweep_info import Invocation, SweepInfo
from heliograph.engine.trace import Trace, _moving_average, plot_trace


def invocation(sweep, log_variance, asked, to="z"):
    asked = np.array(asked)
    none = np.zeros(len(asked), dtype=bool)
    return Invocation(sweep, "logistic", to, log_variance, asked, none, none)


def learned_trace():
    return Trace(
        [],
        [
            invocation(1, None, [True, True, True]),
            invocation(2, np.array([[-9.0, -3.0], [-5.0, -9.0], [np.nan, np.nan]]), [True, False, True]),
            invocation(2, np.array([[-7.0], [-8.0]]), [False, True], to="out"),
        ],
    )


def lines(ax, label):
    return next(line for line in ax.lines if str(line.get_label()).startswith(label))


def test_every_message_of_a_direction_is_one_mark_at_its_largest_log_variance():
    figure = plot_trace(learned_trace(), window=2)
    first, second = figure.axes
    assert first.get_title() == "logistic to z" and second.get_title() == "logistic to out"
    np.testing.assert_array_equal(lines(first, "log predictive").get_xydata(), [[3, -3.0], [4, -5.0]])
    np.testing.assert_array_equal(lines(second, "log predictive").get_ydata(), [-7.0, -8.0])
    asked = lines(first, "asked (5)")
    np.testing.assert_array_equal(asked.get_xdata(), [0, 1, 2, 3, 5])
    np.testing.assert_array_equal(asked.get_ydata(), -3.0)  # what was asked before anything was known is at the top


def test_problems_follow_one_another_with_dashed_lines_between():
    figure = plot_trace([learned_trace(), learned_trace()])
    dashed = [line.get_xdata()[0] for line in figure.axes[0].lines if line.get_linestyle() == "--"]
    fine = [line.get_xdata()[0] for line in figure.axes[0].lines if line.get_linewidth() == 0.5]
    assert dashed == [0, 6] and fine == [0, 3, 6, 9]


def test_the_moving_average_passes_over_what_is_not_known():
    values = np.array([np.nan, 2.0, 4.0, np.nan, 6.0, 8.0])
    np.testing.assert_allclose(_moving_average(values, 2), [np.nan, 2.0, 3.0, 4.0, 6.0, 7.0])


def test_a_run_that_learned_nothing_shows_its_changes(tmp_path):
    infos = [SweepInfo(k, c, "x", 0.0, False, *[0] * 6, *[0.0] * 5) for k, c in ((1, 1.0), (2, 0.1), (3, 0.0))]
    path = tmp_path / "change.png"
    figure = plot_trace(Trace(infos, []), path)
    (line,) = figure.axes[0].lines
    np.testing.assert_array_equal(line.get_xydata(), [[1, 1.0], [2, 0.1]])
    assert path.read_bytes()[:4] == b"\x89PNG"


def test_empty_and_unfinished_runs_can_be_drawn():
    assert plot_trace(Trace()).axes
    assert plot_trace(Trace([], [invocation(1, None, [False, True])])).axes


def test_a_million_messages_are_thinned():
    n = 1_000_000
    trace = Trace([], [invocation(1, np.zeros((n, 1)), np.zeros(n, dtype=bool))])
    figure = plot_trace(trace)
    assert len(lines(figure.axes[0], "log predictive").get_xdata()) == 200_000
