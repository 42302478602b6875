"""The laws every factor obeys, put to each one found by walking the package, not by what its `__init__` lists."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from incoming_messages import answerable, every_factor, incoming_of, make, n_families, targets
from law_specs import LONG, NO_PORTS, NO_UNITS, NOT_A_DENSITY, UNITS, held
from laws import gradient_law, order_law, plate_law, silence_law, units_law

from heliograph.errors import ContradictionError, UnsupportedError
from heliograph.factors import Prior, supported
from heliograph.families import Categorical, Family

KINDS = [kind for kind in every_factor() if kind.__name__ not in NO_PORTS]


def pairs() -> list:
    return [pytest.param(f, i, id=f"{f.name}-{i}") for f in KINDS for i in range(n_families(f))]


def finite(m: Family) -> bool:
    """No NaN and no infinity among the natural parameters (an impossible category is -inf)."""
    return all(np.isfinite(a).all() or (isinstance(m, Categorical) and not np.isnan(a).any()) for a in m.naturals)


@pytest.mark.parametrize("kind,family", pairs())
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
@given(seed=st.integers(0, 2**32 - 1))
def test_random_messages_never_give_nan_and_never_warn(kind, family, seed):
    rng = np.random.default_rng(seed)
    factor = make(kind, family, rng)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for n in (6,):
            incoming = incoming_of(factor, family, rng, n, wild=True)
            for to in targets(factor):
                try:
                    sent = factor.message(to, incoming)
                    log_z = factor.log_z(incoming)
                except (ContradictionError, UnsupportedError):
                    continue
                assert finite(sent), f"{factor.name} to {to}: {sent!r} of {incoming}"
                assert not np.isnan(log_z).any(), f"{factor.name} log_z: {log_z} of {incoming}"


@pytest.mark.parametrize("kind,family", pairs())
def test_the_belief_is_the_message_times_what_came_in(kind, family):
    rng = np.random.default_rng(6)
    factor = make(kind, family, rng)
    incoming = incoming_of(factor, family, rng, 6, wild=False)
    for to in targets(factor):
        product = factor.message(to, incoming) * incoming[to]
        for a, b in zip(factor.belief(to, incoming).naturals, product.naturals, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-7 * np.abs(b).max())


@pytest.mark.parametrize("kind,family", pairs())
def test_a_message_does_not_change_with_what_it_says_it_does_not_read(kind, family):
    rng = np.random.default_rng(7)
    factor = make(kind, family, rng)
    incoming = incoming_of(factor, family, rng, 6, wild=False)
    other = incoming_of(factor, family, rng, 6, wild=False)
    for to in targets(factor):
        reads = factor.depends(to, frozenset())
        mixed = {p: incoming[p] if p in reads else other[p] for p in factor.ports}
        for a, b in zip(factor.message(to, incoming).naturals, factor.message(to, mixed).naturals, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("kind,family", pairs())
def test_a_port_that_nothing_is_sent_to_is_refused(kind, family):
    factor = make(kind, family, np.random.default_rng(6))
    incoming = incoming_of(factor, family, np.random.default_rng(7), 3, wild=False)
    for port in ("nowhere", *(p for p in factor.ports if not factor.families.get(p))):
        for ask in (factor.message, factor.belief):
            with pytest.raises(UnsupportedError, match=f"sends no message to '{port}'"):
                ask(port, incoming)


def test_every_factor_of_the_package_is_listed_as_supported_and_has_a_law_spec():
    listed = {row.factor for row in supported()}
    for kind in KINDS:
        assert kind.name and kind.ports, f"{kind.__name__}: a factor has a name and ports, or is named in NO_PORTS"
        assert kind.name in listed, f"{kind.name}: not in supported()"
        assert (kind.name in UNITS) != (kind.name in NO_UNITS), f"{kind.name}: say in law_specs.py what its units are"
    assert len({kind.name for kind in KINDS}) == len(KINDS)


@pytest.mark.parametrize("kind,family", pairs())
def test_the_belief_less_the_cavity_is_the_gradient_of_log_z(kind, family):
    rng = np.random.default_rng(8)
    n = 6 if kind.name in LONG else 24  # each comparison of a mixture integrates over two precisions
    compared = 0
    for wild in (False, True):
        factor = make(kind, family, rng, n)
        incoming = incoming_of(factor, family, rng, n, wild)
        if not isinstance(factor, Prior):
            incoming = answerable(factor, incoming)
        for power in (1.0, 0.5) if kind.powers else (1.0,):
            compared += gradient_law(factor, incoming, rng, power, held=held)
    assert compared >= 2 * n


@pytest.mark.parametrize("kind,family", pairs())
def test_rows_in_any_order_give_the_same_rows(kind, family):
    rng = np.random.default_rng(9)
    factor = make(kind, family, rng, 21)
    incoming = incoming_of(factor, family, rng, 21, wild=True)
    if not isinstance(factor, Prior):
        incoming = answerable(factor, incoming)
    order_law(factor, incoming, rng)


@pytest.mark.parametrize("kind,family", pairs())
def test_a_plate_is_its_rows_one_by_one_at_every_size(kind, family):
    for n in (1, 2, 3, 7, 20, 21, 50):
        rng = np.random.default_rng(n)
        factor = make(kind, family, rng, n)
        incoming = incoming_of(factor, family, rng, n, wild=n == 20)
        if not isinstance(factor, Prior):
            incoming = answerable(factor, incoming) if n == 20 else incoming
        plate_law(factor, incoming, most=3 if kind.name in LONG else 50)  # eleven integrals a row


@pytest.mark.parametrize("kind,family", [p for p in pairs() if p.values[1] in UNITS.get(p.values[0].name, {})])
def test_in_other_units_the_answer_is_the_same_in_those_units(kind, family):
    rng = np.random.default_rng(10)
    for k in (-9, -2, 5, 9) if kind.name in LONG else range(-9, 10):
        factor = make(kind, family, rng)
        incoming = incoming_of(factor, family, rng, 2 if kind.name in LONG else 5, wild=False)
        for units in UNITS[kind.name][family]:
            units_law(factor, incoming, units, k, held=held)


@pytest.mark.parametrize("kind,family", [p for p in pairs() if p.values[0].name not in NOT_A_DENSITY])
def test_a_silent_child_leaves_the_evidence_of_the_uniform_message(kind, family):
    rng = np.random.default_rng(11)
    factor = make(kind, family, rng)
    silence_law(factor, incoming_of(factor, family, rng, 30, wild=False))
