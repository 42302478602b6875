"""Families as plates and as values: indexing, joining, copies, what is printed, what is refused."""

from __future__ import annotations

import copy
import itertools
import pickle
from typing import Any

import numpy as np
import pytest
from family_members import FAMILIES, assert_same, draw, event, every_family, few, points, seeds, values
from hypothesis import given

from heliograph.errors import HeliographError, ModelError, UnsupportedError
from heliograph.families import Categorical, Family, concatenate


# ---- plates -----------------------------------------------------------------------------------------------------------
@every_family
@few
@given(seed=seeds)
def test_indexing_joining_and_reshaping_move_whole_entries(family, seed):
    rng = np.random.default_rng(seed)
    a = draw(family, rng, (2, 3)) * points(family, np.where(values(family, rng, (2, 3)) > -1e9, np.nan, np.nan))
    b = draw(family, rng, (4, 3))
    joined = concatenate([a, b])
    assert joined.shape == (6, 3) and joined.ndim == 2 and joined.size == 18 and len(joined) == 6
    assert_same(joined[:2], a, 0.0)
    assert_same(joined[2:], b, 0.0)
    assert_same(joined.reshape(3, 6).reshape((6, 3)), joined, 0.0)
    assert_same(joined.reshape(-1)[7], joined[2, 1], 0.0)
    index = np.array([5, 0, 0])
    assert_same(joined[index][1], joined[0], 0.0)
    assert_same(joined[index, index % 3][0], joined[5, 2], 0.0)
    assert_same(joined[..., 1], joined[:, 1], 0.0)
    assert joined[None].shape == (1, 6, 3)
    mask = np.zeros((6, 3), dtype=bool)
    mask[3, 2] = True
    assert_same(joined[mask][0], joined[3, 2], 0.0)
    assert_same(b[0].broadcast_to((4, 3))[2], b[0], 0.0)
    assert concatenate([a[:0], a]).shape == (2, 3)


@every_family
def test_joining_keeps_point_masses_in_their_place(family):
    rng = np.random.default_rng(11)
    a, p = draw(family, rng), points(family, values(family, rng))
    joined = concatenate([a, p, a])
    np.testing.assert_array_equal(joined.is_point, [False] * 4 + [True] * 4 + [False] * 4)
    assert_same(joined[4:8], p, 0.0)
    assert joined[:4].point is None


@every_family
def test_entries_are_chosen_from_two_plates_point_masses_included(family):
    rng = np.random.default_rng(21)
    a, p = draw(family, rng), points(family, values(family, rng))
    chosen = np.array([True, False, False, True])
    for one, other in ((a, p), (p, a), (a, a[::-1]), (p, p[::-1])):
        both = one.where(chosen, other)
        assert_same(both[chosen], one[chosen], 0.0)
        assert_same(both[~chosen], other[~chosen], 0.0)
    assert a.where(np.ones(4, dtype=bool), p).point is None
    assert_same(a.where(chosen, a[1])[2], a[1], 0.0)  # one entry serves for all


@every_family
def test_parts_are_joined_at_given_rows_and_later_ones_replace_earlier(family):
    rng = np.random.default_rng(22)
    a, p = draw(family, rng), points(family, values(family, rng))
    rows = [np.array([4, 0, 2, 1]), np.array([3, 1])]
    joined = family.join([a, p[:2]], rows, 5)
    np.testing.assert_array_equal(joined.is_point, [False, True, False, True, False])
    assert_same(joined[[4, 0, 2]], a[:3], 0.0)
    assert_same(joined[[3, 1]], p[:2], 0.0)


@every_family
def test_an_entry_of_nan_or_infinity_is_not_finite_and_its_neighbours_are(family):
    rng = np.random.default_rng(23)
    a = draw(family, rng)
    np.testing.assert_array_equal(a.finite, True)
    np.testing.assert_array_equal(a.without(np.array([False, True, False, False])).finite, [True, False, True, True])
    beyond = family.from_naturals(tuple(np.where(np.isfinite(n), np.inf, n) for n in a.naturals))
    np.testing.assert_array_equal(beyond.finite, False)


def test_an_impossible_category_is_finite():
    np.testing.assert_array_equal(Categorical([[0.5, 0.5, 0.0], [0.2, 0.3, 0.5]]).finite, True)


@every_family
def test_the_value_that_stands_in_lies_inside_the_support(family):
    message = draw(family, np.random.default_rng(24))
    x = message.somewhere()
    assert message.in_support(x).all() and np.isfinite(message.log_density(x)).all()
    low, high = family.support
    assert ((low <= x) & (x <= high)).all()
    assert message.point_like(np.broadcast_to(x, (4, *x.shape))).is_point.all()


def test_joining_different_families_is_refused_in_a_sentence():
    rng = np.random.default_rng(12)
    first, second = FAMILIES[:2]
    with pytest.raises(UnsupportedError, match=f"{first.__name__}, {second.__name__}"):
        concatenate([draw(first, rng), draw(second, rng)])
    with pytest.raises(HeliographError):
        concatenate([])


@every_family
def test_an_index_cannot_reach_into_an_entry(family):
    a = draw(family, np.random.default_rng(13))
    with pytest.raises(IndexError):
        a[0, 0]
    with pytest.raises(TypeError):
        len(a[0])


@every_family
def test_an_empty_plate_is_a_plate(family):
    a = draw(family, np.random.default_rng(14), (4,))[:0]
    assert a.shape == (0,) and a.size == 0
    assert (a * a).shape == (0,) and (a**0.5).mean.shape[0] == 0
    assert a.kl(a).shape == (0,) and a.log_normaliser().shape == (0,)
    assert family.from_statistics(*a.expected_statistics()).shape == (0,)
    assert "shape=(0,)" in repr(a)


@every_family
def test_a_single_message_works_like_a_plate(family):
    rng = np.random.default_rng(15)
    plate = draw(family, rng)
    one = plate[1]
    assert one.shape == ()
    for quantity in ("mean", "variance", "proper", "is_point", "is_uniform"):
        np.testing.assert_allclose(getattr(one, quantity), getattr(plate, quantity)[1])
    for call in ("entropy", "log_normaliser"):
        np.testing.assert_allclose(getattr(one, call)(), getattr(plate, call)()[1])
    np.testing.assert_allclose(one.kl(plate[2]), plate.kl(plate[[0, 2, 0, 0]])[1])
    assert_same(one * one / one, one)
    assert_same(family.from_statistics(*one.expected_statistics()), one, 1e-9)


# ---- values -----------------------------------------------------------------------------------------------------------
@every_family
def test_a_value_cannot_be_changed(family):
    rng = np.random.default_rng(16)
    a = draw(family, rng)
    for name in ("naturals", "point", "mean", "anything"):
        with pytest.raises(AttributeError, match="cannot be changed"):
            setattr(a, name, 0)
    with pytest.raises(AttributeError, match="cannot be changed"):
        del a.naturals


@every_family
def test_what_it_was_made_from_may_change_afterwards(family):
    rng = np.random.default_rng(17)
    x = values(family, rng)
    p = points(family, x)
    before = p.point.copy()
    x[...] = 0
    np.testing.assert_array_equal(p.point, before)
    statistics = [np.array(s) for s in draw(family, rng).expected_statistics()]
    a = family.from_statistics(*statistics)
    before = [n.copy() for n in a.naturals]
    for s in statistics:
        s[...] = 0.25
    for x, y in zip(a.naturals, before, strict=True):
        np.testing.assert_array_equal(x, y)


@every_family
def test_copies_and_pickles_are_equal(family):
    rng = np.random.default_rng(18)
    a = concatenate([draw(family, rng), points(family, values(family, rng))])
    a.mean  # noqa: B018 (a family may keep what it has computed; a copy need not)
    for b in (copy.copy(a), copy.deepcopy(a), pickle.loads(pickle.dumps(a))):
        assert_same(b, a, 0.0)


@every_family
def test_repr_is_short_and_names_what_is_there(family):
    rng = np.random.default_rng(19)
    a = draw(family, rng, (50,))
    text = repr(a)
    assert text.startswith(family.__name__) and "(50,)" in text and len(text) < 400 and "\n" not in text
    assert "uniform" in repr(family.uniform((), *event(family)))
    mixed = concatenate([a, points(family, values(family, rng))])
    assert "4 point masses" in repr(mixed)
    assert "point" in repr(points(family, values(family, rng))[0])


@every_family
def test_the_docstring_says_what_uniform_point_mass_and_improper_mean(family):
    for word in ("Uniform:", "oint mass:", "mproper"):
        assert word in " ".join((family.__doc__ or "").split())
    assert family.chart in ("identity", "log", "logit", "simplex")
    assert len(family.ranks) == len(family.statistics) == len(draw(family, np.random.default_rng(0)).naturals)


@every_family
def test_its_own_draws_are_in_its_support_and_nonsense_is_not(family):
    rng = np.random.default_rng(20)
    x = draw(family, rng, (6,)).sample(rng, 7).astype(float)
    assert family.in_support(x).all()
    assert family.in_support(x).shape == (7, 6)
    assert not family.in_support(x * np.nan).any()
    assert not family.in_support(np.where(x >= -1e300, -np.inf, x)).any()


NONSENSE: dict[str, list[tuple[Any, ...]]] = {
    "Gaussian": [(0.0, -1.0), (0.0, np.nan), (0.0,)],
    "MultivariateGaussian": [
        ([0.0, 0.0], [[1.0, 0.5], [0.0, 1.0]]),
        ([0.0, 0.0], [[1.0, 2.0], [2.0, 1.0]]),
        ([0.0, 0.0], np.eye(3)),
        ([0.0, 0.0], [[1.0, np.nan], [np.nan, 1.0]]),
        (0.0, 1.0),
        ([0.0, 0.0],),
    ],
    "Gamma": [(0.0, 1.0), (1.0, -1.0), (np.nan, 1.0), (1.0, np.inf)],
    "Beta": [(0.0, 1.0), (1.0, -1.0), (np.nan, 1.0), (1.0, np.inf)],
    "Bernoulli": [(1.1,), (-0.1,), (np.nan,)],
    "Categorical": [([0.5, 0.6],), ([1.5, -0.5],), ([np.nan, 1.0],), (0.5,)],
    "Dirichlet": [([1.0, 0.0],), ([1.0],), ([1.0, np.nan],), (2.0,)],
}


@every_family
def test_parameters_that_make_no_sense_are_refused_in_a_sentence(family):
    for arguments in NONSENSE[family.__name__]:
        with pytest.raises(ModelError, match=family.__name__) as error:
            family(*arguments)
        assert "\n" not in str(error.value) or family.ranks[0]


@every_family
def test_statistics_that_no_member_has_are_refused(family):
    impossible = {
        "Gaussian": (1.0, 0.5),
        "MultivariateGaussian": ([1.0, 1.0], [[0.5, 0.0], [0.0, 0.5]]),
        "Gamma": (1.0, 0.1),
        "Beta": (-0.1, -0.1),
        "Bernoulli": (1.5,),
        "Categorical": ([0.7, 0.7],),
        "Dirichlet": ([-0.1, -0.1],),
    }
    with pytest.raises(ModelError):
        family.from_statistics(*impossible[family.__name__])


@every_family
def test_values_outside_the_support_are_no_point_masses(family):
    outside = {
        "Gamma": [0.0, -1.0, np.inf],
        "Beta": [-0.1, 1.1],
        "Bernoulli": [0.5, 2.0],
        "Categorical": [-1.0, 0.5, 3.0],
        "Dirichlet": [[0.5, 0.6], [1.5, -0.5]],
        "MultivariateGaussian": [[0.0, np.nan]],
        "Gaussian": [np.inf],
    }
    for x in outside[family.__name__]:
        with pytest.raises(ModelError, match=family.__name__):
            points(family, np.array(x))


def test_every_pair_of_laws_was_put_to_every_family():
    """The listing finds the seven families the package speaks of, so none escapes the tests above."""
    names = {f.__name__ for f in FAMILIES}
    assert names >= {"Bernoulli", "Beta", "Categorical", "Dirichlet", "Gamma", "Gaussian", "MultivariateGaussian"}
    assert names == set(NONSENSE)
    assert all(issubclass(a, Family) and a is not b for a, b in itertools.pairwise(FAMILIES))
