"""References of two unknown numbers say how sure they are, and are right where they do."""

import numpy as np
import pytest

import heliograph as hg
from heliograph.families import Gaussian
from heliograph.families.charts import chart_of
from heliograph.oracles.quadrature.quadrature_oracle import QuadratureOracle
from heliograph.oracles.references import reference_of

SURE = 1e-6
FUNCTIONS = {
    "saturating": lambda a, b: a + np.tanh(b),
    "product": lambda a, b: a * b,
    "distance": lambda a, b: np.hypot(a, b),
    "kink": lambda a, b: np.maximum(a, b),
    "wave": lambda a, b: np.sin(7 * a) + b,
}


def hard_rows(box, n, seed, wide=1.0):
    """Narrow and broad cavities, near to and far from what narrow and broad outputs say."""
    rng = np.random.default_rng(seed)
    inputs = {p: Gaussian(1.5 * rng.standard_normal(n), 10 ** rng.uniform(-3, wide, n)) for p in ("a", "b")}
    out = Gaussian(2 * rng.standard_normal(n), 10 ** rng.uniform(-2, 1, n))
    return inputs | {box.sampler.child: out}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_a_reference_vouches_for_is_what_quadrature_finds(name):
    box = hg.factor(output=hg.Gaussian, name=name)(FUNCTIONS[name])
    incoming = hard_rows(box, 8, seed=11, wide=0.5)
    rng = np.random.default_rng(0)
    exact = QuadratureOracle(1e-9).ask(rng, box.sampler, incoming)
    for to in ("a", "b", box.sampler.child, None):
        found = reference_of(box.sampler)(rng, incoming, to)
        if to is None:
            realised = (found.log_z - exact.log_z) ** 2
        else:
            realised = exact.beliefs[to].kl(chart_of(exact.beliefs[to]).belief(np.zeros((8, 2)), found.moments))
        sure = found.sure < SURE
        assert (realised[sure] <= 10 * found.sure[sure] + 1e-13).all(), (to, realised[sure], found.sure[sure])


def test_smooth_functions_of_narrow_messages_are_known_to_rounding():
    box = hg.factor(output=hg.Gaussian)(FUNCTIONS["saturating"])
    incoming = hard_rows(box, 300, seed=3, wide=-1.0)
    agreed = incoming["a"].mean + np.tanh(incoming["b"].mean)
    incoming[box.sampler.child] = Gaussian(agreed + 0.5 * np.random.default_rng(7).standard_normal(300), 0.25)
    sure = reference_of(box.sampler)(np.random.default_rng(0), incoming, "a").sure
    assert (sure < 1e-9).mean() > 0.9


def broad_rows(box, n, seed):
    """As in the first sweep of a regression: nothing is known of the inputs, much of the output."""
    rng = np.random.default_rng(seed)
    a, b = (Gaussian(rng.standard_normal(n), rng.uniform(4.0, 16.0, n)) for _ in range(2))
    drawn = (m.mean + np.sqrt(m.variance) * rng.standard_normal(n) for m in (a, b))
    out = Gaussian(box(*drawn) + 0.5 * rng.standard_normal(n), 0.25)
    return {"a": a, "b": b, box.sampler.child: out}


def test_a_bend_that_is_sharp_beside_broad_messages_is_seen_by_closer_nodes():
    box = hg.factor(output=hg.Gaussian)(FUNCTIONS["saturating"])
    incoming = broad_rows(box, 60, seed=8)
    rng = np.random.default_rng(0)
    found = {to: reference_of(box.sampler)(rng, incoming, to) for to in ("a", "b")}
    sure = found["a"].sure < SURE
    assert sure.mean() > 0.8  # .1 of them with nodes up to 65 x 65: hundreds of questions of 250,000 calls each
    rows = np.flatnonzero(sure)[:4]
    exact = QuadratureOracle(1e-9).ask(rng, box.sampler, {p: m[rows] for p, m in incoming.items()})
    for to, reference in found.items():
        moments = tuple(m[rows] for m in reference.moments)
        realised = exact.beliefs[to].kl(chart_of(exact.beliefs[to]).belief(np.zeros((4, 2)), moments))
        assert (realised <= 10 * reference.sure[rows] + 1e-13).all(), (to, realised)


def test_nodes_do_not_come_closer_where_that_cannot_help():
    box = hg.factor(output=hg.Gaussian)(FUNCTIONS["kink"])
    incoming = broad_rows(box, 60, seed=9)
    found = reference_of(box.sampler)(np.random.default_rng(0), incoming, "a")
    doubtful = (found.sure > SURE).mean()
    assert doubtful > 0.8  # a kink in the midst of the mass is one at any distance
    assert found.n_evaluations < 12_000 * 60  # 25,000 where closer nodes are laid


def test_a_plate_of_two_unknown_numbers_hardly_asks_once_messages_are_narrow():
    rng = np.random.default_rng(4)
    box = hg.factor(output=hg.Gaussian)(FUNCTIONS["saturating"])
    x, y = rng.standard_normal((2, 40))
    model = hg.Model()
    a = model.gaussian("a", x, variance=0.04, size=40)
    b = model.gaussian("b", y, variance=0.04, size=40)
    model.gaussian("y", box(a, b), variance=0.25, observed=x + np.tanh(y) + 0.5 * rng.standard_normal(40))
    posterior = model.infer(seed=0)
    assert posterior.converged
    assert posterior.trace.n_asked <= 22  # the first twenty, and audits; 40 answers of 250,000 calls each before
    assert posterior.error_estimate < 1e-6


def test_steps_and_missing_values_are_never_vouched_for():
    step = hg.factor(output=hg.Gaussian)(lambda a, b: 1.0 * (a > b))
    incoming = hard_rows(step, 30, seed=5)
    near = np.abs(incoming["a"].mean - incoming["b"].mean) < np.sqrt(incoming["a"].variance + incoming["b"].variance)
    assert (reference_of(step.sampler)(np.random.default_rng(0), incoming, "a").sure[near] > 0.5).all()
    hole = hg.factor(output=hg.Gaussian)(lambda a, b: np.where(a > 3.0, np.nan, a + b))
    incoming = hard_rows(hole, 30, seed=6)
    seen = incoming["a"].mean + 7 * np.sqrt(incoming["a"].variance) > 3.0
    assert (reference_of(hole.sampler)(np.random.default_rng(0), incoming, "a").sure[seen] > 0.5).all()
