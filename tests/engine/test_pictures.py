"""Pictures of posteriors, models and runs: what is drawn is what was found."""

import matplotlib
import numpy as np
import pytest

import heliograph as hg
from heliograph.errors import ModelError
from heliograph.graph.draw import layers_of

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def _closed():
    yield
    from matplotlib import pyplot

    pyplot.close("all")


def _model(n: int = 30):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 2))
    model = hg.Model()
    w = model.gaussian("w", np.zeros(2), covariance=np.eye(2))
    u = model.gaussian("u", 0.0, variance=1.0, size=n)
    model.gamma("g", 2.0, 1.0)
    model.categorical("c", [0.2, 0.8])
    model.bernoulli("y", logit=X @ w + u, observed=rng.random(n) < 0.5)
    return model, w, u


def test_a_posterior_is_drawn_with_a_panel_for_every_variable() -> None:
    model, w, u = _model()
    p = model.infer()
    axes = p.plot()
    assert [ax.get_title() for ax in axes] == ["w", "u", "g", "c"]
    line = axes[1].lines[0]
    np.testing.assert_allclose(line.get_ydata(), p[u].mean)
    density = axes[0].lines[0].get_xydata()
    assert density[np.argmax(density[:, 1]), 0] == pytest.approx(p[w].mean[0], abs=0.02)
    chosen = p.plot(["w", u[:3] * 2.0])
    assert len(chosen) == 2
    assert p.plot(["w"], axes=chosen[1])[0] is chosen[1]
    with pytest.raises(ModelError, match="as many axes"):
        p.plot(axes=[chosen[0]])


def test_posteriors_over_hyper_parameters_are_drawn_too() -> None:
    model = hg.Model()
    s = model.half_normal("s", 1.0)
    x = model.gaussian("x", 0.0, sd=s, size=3)
    model.gaussian("y", x, variance=0.5, observed=[0.3, -1.0, 2.0])
    axes = model.infer().plot()
    assert [ax.get_title() for ax in axes] == ["s", "x"]
    assert all(ax.lines for ax in axes)


def test_the_changes_of_a_run_are_drawn_on_given_axes() -> None:
    from matplotlib import pyplot

    model, *_ = _model()
    p = model.infer()
    ax = pyplot.subplots()[1]
    assert p.trace.plot(ax=ax) is ax
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), p.trace.changes[p.trace.changes > 0])


def test_a_model_is_drawn_with_parents_above_children() -> None:
    model, *_ = _model()
    nodes, plates = layers_of(model.graph)
    for k, plate in enumerate(model.graph.plates):
        for port, edge in plate.edges.items():
            if port == plate.factor.child and len(plate.edges) > 1:
                assert nodes[edge.node] > plates[k]
            elif port != plate.factor.child:
                assert nodes[edge.node] < plates[k]
    ax = model.plot()
    texts = [t.get_text() for t in ax.texts]
    assert any(t.startswith("w") for t in texts)
    assert any(t.startswith("logistic_bern") for t in texts)
    assert model.plot(ax=ax) is ax


def test_a_model_that_no_picture_could_show_is_refused() -> None:
    model = hg.Model()
    for k in range(50):
        model.gaussian(f"x{k}", 0.0, variance=1.0)
    with pytest.raises(ModelError, match="summary"):
        model.plot()
