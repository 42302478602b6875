"""What a block says of a variable is sent after everything that it depends on."""

import numpy as np
import pytest

import heliograph as hg


def test_a_message_that_nothing_in_the_loop_reads_reaches_its_variable():
    """The score of a count hears of d[2] by a message that is sent once, at the end; d was read off the block before it."""

    @hg.factor(output=hg.Gaussian)
    def bent(z):
        return np.arctan(2 * z)

    def belief(loop):
        model = hg.Model()
        a = model.gaussian("a", -0.52, sd=0.3)
        b, d = (model.gaussian(name, 0.0, sd=sd, size=4) for name, sd in (("b", 3.0), ("d", 0.3)))
        if loop:
            product = (d[[3]] + b[[3]] + b[[2]]) * (a * np.array([0.98]))
            model.gaussian("y", product, sd=100.0, observed=[0.05])
        model.binomial("wins", [8], logit=bent(model.minimum(b[[2]], d[[2]])), observed=[7])
        return model.infer()[d]

    alone, looped = belief(False), belief(True)
    assert alone.mean[2] > 0.2
    assert looped.mean[2] == pytest.approx(alone.mean[2], abs=0.01)
    assert looped.variance[2] == pytest.approx(alone.variance[2], rel=0.02)
