"""What the report says of made-up numbers."""

import pytest

from heliograph.paper.registry import sentences_of, tables_of
from heliograph.paper.report.style import number
from heliograph.paper.report.tables import Cell


def _said(outcome):
    return " ".join(sentences_of(outcome.json))


def _rows(outcome, which=0):
    table = tables_of(outcome.json)[which]
    return {name: dict(zip(table.columns[1:], cells, strict=True)) for name, cells in table.rows}


def test_agreement_in_error_and_distance_of_posteriors_are_both_told(made_up):
    said = _said(made_up.exp3())
    assert "0.0710 of the test rows and exact EP on 0.0700: within .002" in said
    assert "0.200 nats in the median and 0.500 at worst" in said


def test_a_larger_difference_is_not_called_agreement(made_up):
    outcome = made_up.exp3()
    outcome.json["methods"]["kjit (text)"]["disagreement"] = [0.075] * 3
    assert "not within .002" in _said(outcome)


def test_falling_asks_and_the_ratio_of_times_are_computed(made_up):
    said = _said(made_up.exp3())
    assert "asks 400 times in the first problem and 22.0 times in a later one: its asks fall" in said
    assert (
        "takes 40.0 times as long a problem as kjit (text) in its last one" in said and "with 500,000, 41 times" in said
    )


def test_rising_asks_are_not_said_to_fall(made_up):
    outcome = made_up.exp3()
    outcome.json["methods"]["kjit (text)"]["oracle_calls"] = [4, 40, 400]
    assert "do not fall" in _said(outcome)


def test_the_departure_on_blood_is_named_with_its_distance(made_up):
    said = _said(made_up.exp5())
    assert "kjit (text) departs from exact EP on blood transfusion: 60.0 nats away, error 0.3100 against 0.3492" in said
    assert "On the given splits exact EP's errors are the paper's" in said


def test_own_splits_are_not_compared_digit_by_digit(made_up):
    outcome = made_up.exp5()
    outcome.json["settings"]["splits"] = None
    assert "luck of the split" in _said(outcome)


def test_batch_learning_is_compared_with_the_paper_and_with_the_noise_of_the_labels(made_up):
    said = _said(made_up.exp1())
    assert "the mean log KL of kjit (program), -8.80, agrees with the paper's -8.97 (difference 0.17" in said
    assert "at -9.20 from the exact beliefs" in said and "kjit (house) reaches -15.20" in said
    assert (
        "kjit (house) is best and sum of expected products worst against exact labels, as in the paper's table" in said
    )


def test_another_order_of_kernels_is_admitted(made_up):
    outcome = made_up.exp1()
    outcome.json["methods"]["mean variance"]["mean_log_kl"] = -16.0
    assert "not the paper's order" in _said(outcome)


def test_certain_and_wrong_messages_are_counted(made_up):
    said = _said(made_up.exp2())
    assert "varies 5.0 and 5.0 times as much" in said and "wrong (log KL above -4.6) about none" in said
    assert "about 7 of these" in said


def test_features_have_a_slope_and_a_larger_effect(made_up):
    said = _said(made_up.features())
    assert "power -0.50, as Monte Carlo's" in said and "D_out has more effect, as the paper says" in said


def test_the_papers_number_stands_under_ours(made_up):
    row = _rows(made_up.exp3())["kjit (text)"]
    assert row["disagreement"] == Cell("0.0710", "0.0712")
    assert row["oracle calls, problem 1"] == Cell("400", "487") and row["in all"] == Cell("444")
    assert _rows(made_up.exp5())["kjit (text)"]["error, blood transfusion"] == Cell("0.3100", "0.3166")
    assert _rows(made_up.exp5(), 2)["kjit (text)"]["banknote"] == Cell("2.00", "1.30")
    assert _rows(made_up.exp1())["kjit (program)"]["sampled: mean"] == Cell("-8.80", "-8.97")


def test_nothing_of_the_paper_stands_beside_our_own_mixture(made_up):
    for make in made_up.ALL.values():
        for table in tables_of(make().json):
            for name, cells in table.rows:
                assert "house" not in name or all(c.paper is None for c in cells), table.caption


def test_a_row_of_fewer_problems_says_so(made_up):
    outcome = made_up.exp3()
    row = outcome.json["methods"]["sampling"]
    outcome.json["methods"]["sampling"] = {k: v[:1] if isinstance(v, list) else v for k, v in row.items()}
    names = [name.lower() for name in _rows(outcome)]
    assert "sampling (1 of 3 problems)" in names and "kjit (text)" in names


def test_a_kl_beyond_numbers_is_shown_as_infinite_and_not_forgotten(made_up):
    assert _rows(made_up.exp3())["Heess's network"]["KL, worst"] == Cell("∞")


@pytest.mark.parametrize("name", ["exp1", "exp2", "exp3", "exp4", "exp5", "features"])
def test_an_experiment_without_a_finished_method_says_so(made_up, name):
    told = {**made_up.ALL[name]().json, "methods": {}}
    assert sentences_of(told) == ["No method has finished yet."] and tables_of(told) == []


@pytest.mark.parametrize("name", ["exp1", "exp2", "exp3", "exp4", "exp5", "features"])
def test_every_experiment_has_sentences_and_a_table_whose_rows_fit_its_heads(made_up, name):
    outcome = made_up.ALL[name]()
    assert len(sentences_of(outcome.json)) >= 2
    tables = tables_of(outcome.json)
    assert tables and all(len(cells) == len(t.columns) - 1 for t in tables for _, cells in t.rows)


def test_numbers_keep_three_digits_whatever_their_size():
    assert [number(x) for x in (12.345, 0.00012345, 123456.7, 1.0)] == ["12.3", "0.000123", "123,457", "1.00"]
