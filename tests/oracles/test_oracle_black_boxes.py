"""Black boxes of many kinds against independent integration: right, or flagged, never wrong in silence."""

import numpy as np
import pytest
from black_boxes import BLACK_BOXES

from heliograph.oracles import ImportanceOracle


@pytest.mark.parametrize("name", list(BLACK_BOXES))
def test_messages_in_all_directions_are_right_or_flagged(name):
    box = BLACK_BOXES[name]
    incoming = box.incoming(np.random.default_rng(5), 40)
    answer = ImportanceOracle(precision=0.05).ask(np.random.default_rng(6), box.sampler, incoming)
    reference = box.reference(incoming)
    ok = ~answer.failed
    assert ok.mean() >= 0.95
    for port, exact in reference.items():
        kl = exact.kl(answer.beliefs[port])
        assert (kl[ok] < 1e-2).all(), port
        # the stated error is worth what it says: a KL 12 times the expected one is a deviation of five sigma
        assert (kl[ok] < 12 * answer.expected_kl[port][ok] + 1e-7).mean() > 0.97, port
