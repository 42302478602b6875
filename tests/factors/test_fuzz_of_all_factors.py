"""A quick size of ``python -m benchmarks.fuzz``, which puts 10,000 rows of random messages to every factor by hand."""

import pytest

fuzz = pytest.importorskip("benchmarks.fuzz", reason="the benchmarks are not beside the package")


@pytest.mark.parametrize(("kind", "family"), [pytest.param(k, i, id=f"{k.name}-{i}") for k, i in fuzz.kinds()])
def test_every_answer_is_finite_or_refused_in_a_sentence(kind, family):
    row = fuzz.fuzz(kind, family, 50, seed=1)
    assert row.lost == 0
    assert row.faults == ()
