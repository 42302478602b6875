"""Operators that predict without saying how wrong they may be: a run of theirs is checked before it counts as converged."""

import numpy as np
import pytest

import heliograph as hg
from heliograph.errors import AccuracyWarning, ConvergenceWarning
from heliograph.operators import Kjit
from heliograph.operators.protocol import Reply

X = np.random.default_rng(3).normal(size=(40, 2))
Y = (X @ [1.0, -1.0] + 0.3 * np.random.default_rng(4).normal(size=40) > 0).astype(float)


class Silent:
    """The quadrature's messages, with their centres moved by a share of a deviation, and not a word about it."""

    name = "silent"

    def __init__(self, moved):
        self.moved = moved

    def send(self, rng, to, incoming, ask, setting=None):
        belief = ask(incoming).beliefs[to]
        if self.moved and to == "z":
            belief = hg.Gaussian.from_mean_variance(
                belief.mean + self.moved * np.sqrt(belief.variance), belief.variance
            )
        none = np.zeros(len(belief), dtype=bool)
        return Reply(belief / incoming[to], none, none)


def regression(operator, **settings):
    logistic = hg.factor(lambda z: 1 / (1 + np.exp(-z)), output=hg.Beta, name="logistic")
    model = hg.Model()
    w = model.gaussian("w", np.zeros(2), covariance=np.eye(2))
    model.bernoulli("y", logistic(X @ w), observed=Y)
    return model.infer(operator=operator, progress=False, **settings), w, logistic


def test_right_predictions_are_found_right():
    posterior, w, logistic = regression(Silent(0.0))
    exact, v, _ = regression("ask")
    assert posterior.converged
    assert posterior.error_estimate <= 1e-9
    assert exact[v].kl(posterior[w]) < 1e-6  # each settled to that
    asked = logistic.n_asked
    assert asked > posterior.trace.n_asked  # the checks are counted with the factor


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("moved", [0.03, 0.3])
def test_wrong_predictions_are_no_convergence_and_their_size_is_said(moved):
    posterior, w, _ = regression(Silent(moved))
    exact, v, _ = regression("ask")
    assert not posterior.converged
    assert "of factor 'logistic' to 'z', checked with the oracle, were wrong by" in posterior.status
    assert posterior.error_estimate >= exact[v].kl(posterior[w])
    assert posterior.error_estimate > 1e-3
    assert f"{posterior.error_estimate:.2g} nats" in posterior.status


def test_the_user_hears_of_it():
    with (
        pytest.warns(ConvergenceWarning, match="the beliefs settled, but 8 predicted messages"),
        pytest.warns(AccuracyWarning),
    ):
        regression(Silent(0.3))


@pytest.mark.filterwarnings("ignore")
def test_without_a_check_nothing_is_converged_and_the_beliefs_are_the_same_bits():
    checked, w, _ = regression(Silent(0.0))
    unchecked, v, _ = regression(Silent(0.0), audit=False)
    assert not unchecked.converged
    assert "were not checked" in unchecked.status
    assert np.isnan(unchecked.error_estimate)
    assert (checked[w].mean == unchecked[v].mean).all()


@pytest.mark.filterwarnings("ignore")
def test_the_papers_operator_never_claims_more_than_was_found():
    tanh = hg.factor(lambda z: np.tanh(z), output=hg.Gaussian, name="tanh")
    rng = np.random.default_rng(0)
    kjit = Kjit(60, 80, minibatch=30, threshold=-7.0)
    for _ in range(2):
        z = rng.normal(size=60)
        y = np.tanh(z) + 0.3 * rng.normal(size=60)
        models = []
        for operator in (kjit, "ask"):
            model = hg.Model()
            unknown = model.gaussian("z", 0.0, variance=1.0, size=60)
            model.gaussian("y", tanh(unknown), variance=0.09, observed=y)
            posterior = model.infer(operator=operator, progress=False, max_sweeps=20)
            models.append((posterior, posterior[unknown]))
        (learned, belief), (_, exact) = models
        realised = float(np.sum(exact.kl(belief)))
        assert not learned.converged or realised <= 1e-3
        assert not learned.error_estimate <= 0.1 * realised  # NaN says that nothing is known
