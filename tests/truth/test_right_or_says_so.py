"""A few random models of every kind: none may be silently wrong, and none may crash."""

import pytest
from benchmarks.truth import CRASHED, KINDS, SILENT, judge, make

SEEDS = {  # the rest of the minute that these tests may take goes to kinds that cost milliseconds
    "mixture of two": 3, "mean and precision": 6, "regression": 6, "single factor": 30, "box tree": 6, "box pair": 4,
    "box loop": 3, "noisy box": 2, "gaussian loop": 12, "regression fixed point": 14, "rewritten": 5, "impossible": 29,
    "hierarchical": 18, "extreme": 30, "shared product": 12, "program": 6, "larger program": 4,
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_no_random_model_is_silently_wrong(kind):
    results = [judge(make(kind, seed)) for seed in range(1000, 1000 + SEEDS.get(kind, 24))]
    bad = [r for r in results if r.verdict in (SILENT, CRASHED)]
    assert not bad, "\n\n".join(f"{r.verdict}: {r.note}\n{make(r.kind, r.seed).description}" for r in bad)
