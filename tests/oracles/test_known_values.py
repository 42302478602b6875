"""What references remember of a function: right to rounding, no calls where it is known, calls where it is not."""

from typing import Any

import numpy as np
import pytest

import heliograph as hg
from heliograph.oracles import Sampler
from heliograph.oracles.references import KnownValues, Reference, reference_of
from heliograph.oracles.references.smooth_table import SmoothTable, rounding_of

SMOOTH = {
    "tanh": (np.tanh, False, False),
    "rate": (np.exp, True, False),
    "probability": (lambda z: 1 / (1 + np.exp(-z)), True, True),
    "bent at a corner of panels": (np.abs, False, False),
    "wave": (lambda z: np.sin(5 * z), False, False),
}


def laid(function, positive, bounded, low, high, d=1, n=40_000):
    """A table of a function over a box, and how often the function was called to lay it."""
    table, calls = SmoothTable(np.ones(d), rounding_of(positive, bounded)), [0]

    def call(at):
        calls[0] += len(at)
        return function(*at.T)

    said = table.lay(np.random.default_rng(1).uniform(low, high, (n, d)), call)
    assert said == calls[0]
    return table, calls[0]


@pytest.mark.parametrize("name", SMOOTH)
def test_a_table_of_a_smooth_function_is_the_function_to_rounding(name):
    function, positive, bounded = SMOOTH[name]
    table, calls = laid(function, positive, bounded, -8.0, 8.0)
    at = np.random.default_rng(2).uniform(-11.0, 11.0, 20_000)  # wider than what was wanted, for problems to come
    value, true = table.read(at[:, None]), function(at)
    assert calls < 10_000
    assert np.isfinite(value).all()
    off = np.abs(value - true)
    if bounded:
        assert (off <= 1e-13 * true).all()
        assert (off <= 1e-13 * (1 - true) + 1e-14).all()
    else:
        assert (off <= 1e-13 * (true if positive else np.abs(true).max())).all()


def test_a_table_of_two_numbers_is_the_function_to_rounding():
    table, _ = laid(lambda a, b: a + np.tanh(b), False, False, -5.0, 5.0, d=2, n=100_000)
    at = np.random.default_rng(3).uniform(-6.0, 6.0, (20_000, 2))
    assert np.abs(table.read(at) - at[:, 0] - np.tanh(at[:, 1])).max() < 1e-13


@pytest.mark.parametrize(
    ("function", "where"),
    [
        (lambda z: np.maximum(z, 0.3), lambda z: np.abs(z - 0.3) < 0.01),  # a kink
        (lambda z: np.where(z > 1.1, 1.0, 0.0), lambda z: np.abs(z - 1.1) < 0.01),  # a step
        (lambda z: 1 / (z - 0.37), lambda z: np.abs(z - 0.37) < 0.02),  # a pole
        (lambda z: z + 1e-9 * np.sin(1e5 * z), lambda z: np.ones(len(z), dtype=bool)),  # noise
    ],
)
def test_where_a_function_is_not_smooth_nothing_is_kept(function, where):
    table, _ = laid(function, False, False, -4.0, 4.0)
    at = np.random.default_rng(4).uniform(-4.0, 4.0, 200_000)
    value, true, rough = table.read(at[:, None]), function(at), where(at)
    assert np.isnan(value[rough]).all()
    known = np.isfinite(value)
    assert (np.abs(value - true)[known] <= 1e-11 * (1 + np.abs(true[known]))).all()


def counted(function):
    """A function that counts its samples."""

    def box(z):
        box.calls += len(z)
        return function(z)

    box.calls = 0
    return box


def remembering_and_plain(function):
    """References of a function with tables and without, and the tables."""
    sampler, known = hg.factor(output=hg.Gaussian)(function).sampler, KnownValues()
    return asked(sampler, known), asked(sampler, None), known


def asked(sampler: Sampler, known: KnownValues | None):
    refer = reference_of(sampler, known)
    assert refer is not None

    def found(rng, rows, to) -> Reference:
        reference = refer(rng, rows, to)
        assert reference is not None
        return reference

    return found


def rows_of_tanh(n, seed, sd) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {
        "z": hg.Gaussian(rng.standard_normal(n), sd**2 * rng.uniform(0.7, 1.3, n)),
        "out": hg.Gaussian(rng.standard_normal(n), 0.2),
    }


@pytest.mark.parametrize("to", ["z", "out", None])
def test_references_of_a_known_function_are_what_they_were_and_call_nothing(to):
    function = counted(np.tanh)
    remembering, plain, _ = remembering_and_plain(function)
    rng = np.random.default_rng(0)
    for seed in range(3):
        remembering(rng, rows_of_tanh(40, seed, 1.0), to)
    rows = rows_of_tanh(40, 7, 0.8)
    before = function.calls
    found = remembering(rng, rows, to)
    assert function.calls == before
    assert found.n_evaluations == 0
    same = plain(rng, rows, to)
    assert same.n_evaluations == function.calls - before > 0
    pairs = zip(found.moments, same.moments, strict=True) if to else [(np.array(found.log_z), np.array(same.log_z))]
    for a, b in pairs:
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-12)


def test_rows_that_look_closer_than_a_table_has_looked_see_the_function_itself():
    """A dent that no place of a coarse table falls into is seen by narrow rows, as it was before there were tables."""

    def dented(z):
        return z + np.where(np.abs(z - 0.4531) < 5e-3, 1.0, 0.0)

    remembering, plain, _ = remembering_and_plain(dented)
    rng = np.random.default_rng(0)
    for seed in range(3):
        remembering(rng, rows_of_tanh(40, seed, 1.0), "z")
    narrow = {"z": hg.Gaussian(np.full(3, 0.4531), 1e-5), "out": hg.Gaussian(np.full(3, 1.2), 0.2)}
    found, same = remembering(rng, narrow, "z"), plain(rng, narrow, "z")
    assert found.n_evaluations > 0
    np.testing.assert_allclose(found.moments[0], same.moments[0], rtol=0, atol=1e-12)


def test_each_value_of_the_known_inputs_has_a_table_of_its_own_and_many_have_none():
    def dose(z, t):
        return np.tanh(z) * t

    rng = np.random.default_rng(0)
    remembering, _, known = remembering_and_plain(dose)
    for few in (True, False):
        for seed in range(15):
            rows = rows_of_tanh(40, seed, 1.0)
            rows["out"] = hg.Gaussian(rng.normal(0.0, 0.3, 40), 1.0)
            rows["t"] = np.resize([1.0, 2.0], 40) if few else rng.uniform(1.0, 2.0, 40)
            found = remembering(rng, {p: rows[p] for p in ("z", "t", "out")}, "z")
        assert (found.n_evaluations == 0) == few
    assert len(known.tables) == 2


def test_a_function_that_fails_beyond_what_was_asked_for_is_called_as_before():
    def root(z):
        if (z < -11.5).any():
            raise ValueError("no such root")
        return np.sqrt(z + 11.5)

    remembering, plain, _ = remembering_and_plain(root)
    rng = np.random.default_rng(0)
    for seed in range(4):
        rows = rows_of_tanh(40, seed, 0.7) | {"out": hg.Gaussian(rng.normal(3.4, 0.1, 40), 0.2)}
        found, same = remembering(rng, rows, "z"), plain(rng, rows, "z")
        np.testing.assert_allclose(found.moments[0], same.moments[0], rtol=1e-11, atol=1e-12)


def test_a_table_that_cannot_be_laid_wider_stays_what_it_was():
    def call(at):
        if (at < -14.0).any():
            raise ValueError("no such place")
        return np.tanh(at[:, 0])

    table, rng = SmoothTable(np.ones(1), rounding_of(False, False)), np.random.default_rng(5)
    table.lay(rng.uniform(-2.0, 8.0, (5_000, 1)), call)
    with pytest.raises(ValueError, match="no such place"):
        table.lay(rng.uniform(-10.0, -8.0, (5_000, 1)), call)
    at = rng.uniform(-2.0, 8.0, 1_000)
    assert np.abs(table.read(at[:, None]) - np.tanh(at)).max() < 1e-14


def test_what_is_remembered_is_forgotten_with_all_that_was_learned():
    box = hg.factor(output=hg.Gaussian)(counted(np.tanh))
    model = hg.Model()
    z = model.gaussian("z", 0.0, sd=1.0, size=30)
    model.gaussian("y", box(z), sd=0.4, observed=np.tanh(np.random.default_rng(0).standard_normal(30)))
    model.infer(seed=0, progress=False)
    assert box.form_values[()].tables
    box.forget()
    assert not box.form_values
