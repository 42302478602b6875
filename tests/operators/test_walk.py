"""How far a message walks from `BlackBox.send` to the user's function, as benchmarks/walk.py measures it."""

import pytest
from benchmarks.walk import deepest_stacks


@pytest.fixture(scope="module")
def stacks():
    return deepest_stacks()


@pytest.mark.parametrize("who", ["oracle", "reference"])
def test_the_walk_to_the_users_function_is_short(stacks, who):
    assert len(stacks[who]) <= 20
    assert len({place.file for place in stacks[who]}) <= 15


def test_the_operators_part_of_the_walk_is_its_loop_alone(stacks):
    own = [place for place in stacks["oracle"] if place.file.startswith("operators/")]
    assert {place.file for place in own} == {"operators/learned/operator.py"} and len(own) <= 5
