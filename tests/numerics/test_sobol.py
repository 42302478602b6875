"""Sobol' points are SciPy's, bit for bit."""

import inspect
import subprocess
import sys

import numpy as np
import pytest
from scipy.stats import qmc

from heliograph.numerics.sobol import BITS, scrambled_sobol, sobol

NAMED = "rng" if "rng" in inspect.signature(qmc.Sobol).parameters else "seed"  # before scipy 1.15


def of_scipy(dimension, log2_n, **settings):
    points = qmc.Sobol(dimension, bits=BITS, **settings).random(1 << log2_n)
    return np.rint(points * 2.0**BITS).astype(np.int64)


@pytest.mark.parametrize("dimension", [1, 2, 7, 32, 33, 60])
def test_plain_points_are_those_of_scipy(dimension):
    np.testing.assert_array_equal(sobol(dimension, 9), of_scipy(dimension, 9, scramble=False))


@pytest.mark.parametrize("dimension", [1, 3, 32, 33])
def test_scrambled_points_are_those_of_scipy_and_nets_of_the_same_bits_with_any_later_one(dimension):
    mine = scrambled_sobol(np.random.default_rng([3, dimension]), dimension, 11)
    np.testing.assert_array_equal(mine, of_scipy(dimension, 11, **{NAMED: np.random.default_rng([3, dimension])}))
    assert (mine == scrambled_sobol(np.random.default_rng([3, dimension]), dimension, 12)[: 1 << 11]).all()


def test_every_interval_of_a_net_holds_one_point():
    points = scrambled_sobol(np.random.default_rng(0), 5, 8) >> (BITS - 8)
    assert (np.sort(points, axis=0) == np.arange(256)[:, None]).all()


def test_a_first_question_does_not_load_all_of_scipys_statistics():
    program = (
        "import sys, numpy as np, heliograph as hg\n"
        "from heliograph.oracles.importance.uniforms import Streams, uniforms_for\n"
        "u = uniforms_for(Streams(1, np.arange(2)), 0, 3, 'sobol')\n"
        "assert u.take(0, 4, np.arange(2)).shape == (2, 4, 3)\n"
        "assert 'scipy.stats' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
