"""Which numbers belong together, against SciPy's connected components."""

import numpy as np
import pytest
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from heliograph.numerics.joined_sets import joined_sets


@pytest.mark.parametrize("seed", range(20))
def test_the_sets_are_the_connected_parts_of_the_graph_of_the_lists(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 60))
    lists = [rng.integers(n, size=rng.integers(1, 5)).tolist() for _ in range(int(rng.integers(0, 40)))]
    ends = np.array([(numbers[0], k) for numbers in lists for k in numbers], dtype=int).reshape(-1, 2)
    _, part = connected_components(coo_array((np.ones(len(ends)), ends.T), shape=(n, n)), directed=False)
    named = sorted({k for numbers in lists for k in numbers})
    expected = [{k for k in named if part[k] == p} for p in dict.fromkeys(part[k] for k in named)]
    assert joined_sets(lists) == expected
