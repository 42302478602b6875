"""Where sweeps are heading, on linear maps whose fixed point is known: slow modes behind fast ones, swings, spirals."""

import numpy as np
import pytest

import heliograph as hg
from heliograph.engine.convergence import still_to_go
from heliograph.engine.heading import Heading, distance_ahead

LIMIT = 1e-6  # nats, as `infer` has it by default: the change of a sweep; ten times that may be to come


def path(rng, modes, n_watched, hidden=1.0):
    """A function from the number of a sweep to the watched means: real parts of sums of modes; the first may be hidden."""
    size = rng.standard_normal((n_watched, len(modes))) + 1j * rng.standard_normal((n_watched, len(modes)))
    size[:, 0] *= hidden
    return lambda k: (size * np.asarray(modes) ** k).sum(axis=1).real / np.sqrt(len(modes))


@pytest.mark.parametrize("modes", [[0.99, 0.3], [-0.95, 0.6], [0.99 * np.exp(0.2j)], [0.999, 0.5, -0.4]])
@pytest.mark.parametrize("n_watched", [1, 3, 20])
def test_the_fixed_point_of_a_few_modes_is_found_from_seven_sweeps(modes, n_watched):
    at = path(np.random.default_rng(3), modes, n_watched)
    means = np.array([at(k) for k in range(10, 17)])
    truth = 0.5 * (means[-1] ** 2).max()
    assert distance_ahead(np.c_[means, 0 * means]) == pytest.approx(truth, rel=1e-3)
    logs = np.array([at(k) for k in range(10, 17)])
    assert distance_ahead(np.c_[0 * logs, logs]) == pytest.approx(2 * truth, rel=1e-3)


def stopped(at, with_heading, most=200):
    """The nats that were still to go where the rules of a run took the beliefs for settled."""
    heading, beliefs = Heading(), [[hg.Gaussian(at(k), 1.0)] for k in range(2)]
    heading.restart(beliefs[0])
    heading.note(beliefs[1])
    for k in range(2, most):
        older, old, new = *beliefs[-2:], [hg.Gaussian(at(k), 1.0)]
        if new[0].kl(old[0]).max() <= LIMIT:
            ahead = still_to_go(new, old, older)
            if max(ahead, heading.ahead(new) if with_heading else 0.0) <= 10 * LIMIT:
                return 0.5 * (at(k) ** 2).max()
        heading.note(new)
        beliefs = [old, new]
    return 0.0  # not settled, and says so


def spectra(rng, kind, radius):
    if kind == "creeping":
        return np.r_[radius, rng.uniform(-0.5, 0.5, 2)]
    if kind == "swinging":
        return radius * np.r_[rng.choice([-1, 1]), rng.uniform(-1, 1, 2)]
    return radius * np.exp(1j * rng.uniform(0.05, np.pi, 2)) * np.r_[1.0, rng.uniform(0, 1)]


@pytest.mark.parametrize("kind", ["creeping", "swinging", "spiralling"])
@pytest.mark.parametrize("n_watched", [1, 2, 20])
def test_runs_that_pass_through_their_rest_are_not_taken_for_settled(kind, n_watched):
    """By the last three sweeps alone, a third of these maps, watched at one entry, are more than 1e-3 nats from their rest."""
    rng = np.random.default_rng(11)
    radii = [(radius, hidden) for radius in (0.9, 0.99, 0.999) for hidden in (1.0, 0.1) for _ in range(2)]
    maps = [path(rng, spectra(rng, kind, radius), n_watched, hidden) for radius, hidden in radii]
    assert sum(stopped(at, with_heading=True) > 1e-3 for at in maps) <= 1  # one of 160 such maps at a radius of .999
    if n_watched == 1:
        assert sum(stopped(at, with_heading=False) > 1e-3 for at in maps) >= 2


def test_fast_runs_are_not_held_up():
    rng = np.random.default_rng(7)
    for _ in range(50):
        modes = rng.uniform(-0.4, 0.4, 6)
        at = path(rng, modes, 20)
        means = np.array([at(k) for k in range(3, 10)])
        assert distance_ahead(np.c_[means, 0 * means]) <= 10 * 0.5 * np.diff(means, axis=0)[-1].max() ** 2 + 1e-12
