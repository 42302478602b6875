"""What a posterior shows to people: summaries, tables, comparisons, pickles."""

import pickle
import re

import numpy as np
import pytest
from scipy import stats

import heliograph as hg
from heliograph.engine import readable
from heliograph.errors import ModelError


def _posterior(n: int = 40, seed: int = 0, names: int = 1) -> hg.Posterior:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    model = hg.Model()
    w = model.gaussian("w", np.zeros(3), covariance=np.eye(3))
    u = model.gaussian("u", 0.0, variance=1.0, size=n)
    for k in range(names - 1):
        model.gamma(f"a variable with quite a long name, number {k}", 1.0, 1.0)
    model.bernoulli("y", logit=X @ w + u, observed=rng.random(n) < 0.5)
    model.categorical("c", [0.2, 0.8])
    return model.infer()


def test_a_posterior_is_a_collection_of_named_variables() -> None:
    p = _posterior()
    assert list(p) == ["w", "u", "c"]
    assert len(p) == 3
    assert "w" in p and "y" in p and "mu" not in p and 3 not in p
    assert {name: p[name].shape for name in p} == {"w": (), "u": (40,), "c": ()}


@pytest.mark.parametrize(("n", "names"), [(1, 1), (40, 1), (100_000, 1), (5, 80)])
def test_a_summary_fits_a_page_whatever_the_plate(n: int, names: int) -> None:
    p = _posterior(n, names=names)
    lines = p.summary().split("\n")
    assert max(len(line) for line in lines) <= 100
    assert len(lines) <= 50
    html = p._repr_html_()
    assert html.count("<tr>") <= 50
    assert len(html) < 20_000


def test_html_shows_names_as_text() -> None:
    model = hg.Model()
    x = model.gaussian("<script>x</script>", 0.0, variance=1.0)
    p = model.infer()
    for html in (model._repr_html_(), p._repr_html_(), p[x]._repr_html_(), p.trace._repr_html_()):
        assert "<script>" not in html
        assert html.startswith("<table>")
    assert "Model(<script>" in repr(model)


def test_families_show_their_first_entries_in_notebooks() -> None:
    html = hg.Gaussian(np.arange(1000.0).reshape(10, 100), 1.0)._repr_html_()
    assert "0, 29" in html and "... and 970 more" in html
    assert "Gamma(shape 1., rate 2.)" in hg.Gamma(1.0, 2.0)._repr_html_()


def test_the_table_has_a_row_for_every_entry() -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is an extra")
    p = _posterior(4)
    table = p.table(0.8)
    assert isinstance(table, pandas.DataFrame)
    assert list(table.index[:4]) == ["w[0]", "w[1]", "w[2]", "u[0]"]
    row = table.loc["w[1]"]
    mean, sd = p["w"].mean[1], p["w"].sd[1]
    np.testing.assert_allclose(row[["mean", "sd", "10%", "90%"]], [mean, sd, *stats.norm(mean, sd).interval(0.8)])
    np.testing.assert_allclose(table.loc[["c[0]", "c[1]"], "mean"], [0.2, 0.8])


def test_without_pandas_the_table_is_a_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readable, "find_spec", lambda name: None)
    table = _posterior(2).table()
    assert [row.name for row in table[:4]] == ["w[0]", "w[1]", "w[2]", "u[0]"]
    assert table[0].lower < table[0].mean < table[0].upper


def test_columns_of_a_table_name_the_entries_of_the_vector() -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is an extra")
    frame = pandas.DataFrame(np.eye(3), columns=["age", "height", "dose"])
    model = hg.Model()
    X = model.data("X", frame)
    w = model.gaussian("w", np.zeros(3), covariance=np.eye(3))
    model.gaussian("y", X @ w, variance=1.0, observed=[1.0, 2.0, 3.0])
    assert list(model.infer().table().index) == ["w[age]", "w[height]", "w[dose]"]
    model.observe(X=frame * 2)
    assert list(model.infer().table().index) == ["w[age]", "w[height]", "w[dose]"]


def test_evidences_are_compared_as_by_hand() -> None:
    y = np.array([0.3, -0.4, 1.2])
    found, by_hand = {}, {}
    for name, variance in (("a", 0.01), ("b", 1.0), ("c", 100.0)):
        model = hg.Model()
        x = model.gaussian("x", 0.0, variance=variance)
        model.gaussian("y", x, variance=1.0, observed=y)
        found[name] = model.infer()
        by_hand[name] = stats.multivariate_normal(np.zeros(3), np.eye(3) + variance).logpdf(y)
    result = hg.compare(found)
    assert list(result.names) == sorted(by_hand, key=lambda k: -by_hand[k])
    np.testing.assert_allclose(result.log_evidence, sorted(by_hand.values(), reverse=True), rtol=1e-10)
    weights = np.exp(result.log_evidence)
    np.testing.assert_allclose(result.probability, weights / weights.sum())
    assert found["a"].compare(found["c"]) == pytest.approx(by_hand["a"] - by_hand["c"])
    assert re.search(r"model +log evidence", repr(result))


def test_evidences_of_different_data_are_not_compared() -> None:
    def posterior(values):
        model = hg.Model()
        x = model.gaussian("x", 0.0, variance=1.0)
        model.gaussian("y", x, variance=1.0, observed=values)
        return model.infer()

    with pytest.raises(ModelError, match="same data"):
        posterior([1.0, 2.0]).compare(posterior([1.0, 3.0]))
    with pytest.raises(ModelError, match="at least two"):
        hg.compare({"a": posterior([1.0])})


def test_a_posterior_survives_pickling() -> None:
    p = _posterior()
    q = pickle.loads(pickle.dumps(p))
    for name in p:
        np.testing.assert_array_equal(p[name].mean, q[name].mean)
    assert q.log_evidence == p.log_evidence
    assert q.summary() == p.summary()


def test_the_covariance_of_a_variable_with_itself_is_its_variance() -> None:
    model = hg.Model()
    x = model.gaussian("x", 0.0, variance=2.0)
    model.bernoulli("y", probit=x, observed=1)
    w = model.gaussian("w", np.zeros(2), covariance=np.eye(2))
    p = model.infer()
    assert p.covariance(x, x) == pytest.approx(float(p[x].variance))
    np.testing.assert_allclose(p.covariance(w, w), np.eye(2))


def test_a_model_with_gates_says_so_wherever_it_is_shown() -> None:
    model = hg.Model()
    s = model.bernoulli("s", 0.5)
    with model.when(s):
        model.gaussian("inside", 0.0, variance=1.0)
    assert "gates" in repr(model)
    assert "inside" in model._repr_html_() and "inside" in model.summary()


def test_draws_of_what_is_not_there_are_refused_by_every_posterior(tmp_path):
    model = hg.Model()
    scale = model.half_normal("scale", 1.0)
    x = model.gaussian("x", 0.0, sd=scale, size=3)
    model.gaussian("y", x, sd=0.5, observed=[1.0, -2.0, 0.5])
    integrated = model.infer()
    integrated.save(tmp_path / "p.hg")
    for posterior in (integrated, hg.load_posterior(tmp_path / "p.hg")):
        draws = posterior.sample(4, ["x"], seed=1)
        assert list(draws) == ["x"] and draws["x"].shape == (4, 3)
        np.testing.assert_array_equal(posterior.sample(4, [x], seed=1)["x"], draws["x"])
        np.testing.assert_array_equal(posterior.sample(4, "x", seed=1)["x"], draws["x"])
        for wrong, words in (
            (["z"], "no variable is called 'z'"),
            ([2 * x], "no variable is called"),
            ([x[0]], "take them"),
        ):
            with pytest.raises(ModelError, match=words):
                posterior.sample(4, wrong)
        with pytest.raises(ModelError, match="number of draws"):
            posterior.sample(0)
    assert list(integrated.sample(4, [scale])) == ["scale"]
