"""A function must be what its factor takes it for: a value for each sample, draws from its rng alone, the same tomorrow."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import heliograph as hg
from heliograph.errors import AccuracyWarning, FactorError
from heliograph.factors.black_box import load_factor
from heliograph.factors.black_box.reading import changed, numbers_read
from heliograph.oracles import ImportanceOracle

QUICK = ImportanceOracle(512, adapt=False, min_ess=1.0, k_threshold=np.inf)


own = np.random.default_rng(5)  # a generator that no factor is given


def asked(function, output=hg.Gaussian, n=5, **more):
    """A factor that has been asked about a few rows."""
    made = hg.factor(output=output, **more)(function)
    given = {hg.Gaussian: hg.Gaussian(np.zeros(n), 4.0), hg.Bernoulli: hg.Bernoulli(np.full(n, 0.7))}[output]
    made.ask({"z": hg.Gaussian(np.linspace(-2, 2, n), 1.0), "out": given}, oracle=QUICK)
    return made


def solve(f, **settings):
    model = hg.Model()
    z = model.gaussian("z", np.linspace(-1, 1, 5), variance=1.0)
    model.gaussian("y", f(z), variance=0.1, observed=np.linspace(-1, 2, 5))
    return model.infer(progress=False, **settings)


# ---- each sample has a value of its own ---------------------------------------------------------------------------
@pytest.mark.parametrize("n", [1, 2, 5])
@pytest.mark.parametrize(
    "function",
    [
        lambda z: z - z.mean(),
        lambda z: z / z.std(),
        np.cumsum,
        np.sort,
        lambda z: np.sin(z) * np.abs(z).max(),
        lambda z: 1e-9 * (z - z.mean()),
        lambda z: z + np.random.default_rng(0).standard_normal(z.shape),
        lambda z: z + np.arange(len(z)),
    ],
)
def test_a_value_that_depends_on_the_other_samples_is_an_error(function, n):
    with pytest.raises(FactorError, match="depends on the samples that are given beside it"):
        asked(lambda z: function(z), n=n, name="mixed")


def test_a_solver_that_steps_for_all_samples_together_is_said_to_limit_the_accuracy():
    with pytest.warns(AccuracyWarning, match="cannot be more accurate"):
        asked(lambda z: np.sin(z) + 1e-4 * z.mean())


def test_functions_of_each_sample_alone_pass_in_any_precision_and_shape():
    @hg.factor(output=hg.Gaussian)
    def plain(z):
        return np.squeeze(1e4 + np.sin(z)[:, None]).astype(np.float32)

    plain.ask({"z": hg.Gaussian(np.zeros(3), 1.0), "out": hg.Gaussian(np.full(3, 1e4), 1.0)}, oracle=QUICK)


def test_small_numbers_do_not_hide_draws():
    with pytest.raises(FactorError, match="two different values at the same inputs"):
        asked(lambda z: 1e-12 * (z + 1e-3 * own.standard_normal(z.shape)))


def test_one_draw_for_all_samples_is_an_error():
    with pytest.raises(FactorError, match="one number for all samples"):
        asked(lambda z, rng: z + rng.standard_normal())
    with pytest.raises(FactorError, match="one number for all samples"):
        asked(lambda z, rng: (rng.random() < 1 / (1 + np.exp(-z))) * 1.0, output=hg.Bernoulli)


def test_draws_from_elsewhere_than_the_rng_are_an_error():
    with pytest.raises(FactorError, match="draw from rng alone"):
        asked(lambda z, rng: z + own.standard_normal(z.shape))


def test_draws_that_depend_on_the_other_samples_are_an_error():
    with pytest.raises(FactorError, match="another mean beside others"):
        asked(lambda z, rng: z - z.mean() + 0.1 * rng.standard_normal(z.shape))


@pytest.mark.parametrize("p", [1e-3, 0.5, 0.999])
def test_rare_events_and_constants_are_no_shared_draws(p):
    asked(lambda z, rng: (rng.random(z.shape) < p) * 1.0, output=hg.Bernoulli)
    asked(lambda z, rng: np.ones_like(z))


# ---- the same function tomorrow -------------------------------------------------------------------------------------
def test_a_number_that_changes_between_two_runs_is_noticed_until_all_is_forgotten():
    scale = 2.0

    @hg.factor(output=hg.Gaussian)
    def scaled(z):
        return scale * z

    solve(scaled)
    scale = 3.0
    with pytest.raises(FactorError, match=r"\(scale changed\).*call .forget\(\)"):
        solve(scaled)
    scaled.forget()
    again = solve(scaled)
    precision = 1 + 9 / 0.1
    assert again["z"].variance == pytest.approx(np.full(5, 1 / precision), rel=1e-4)


def test_what_a_function_counts_is_no_change_and_costs_no_calls():
    seen = []

    @hg.factor(output=hg.Gaussian)
    def counting(z):
        seen.append(len(z))
        return np.sinh(z)

    incoming = {"z": hg.Gaussian(np.zeros(3), 1.0), "out": hg.Gaussian(np.ones(3), 1.0)}
    counting.ask(incoming, oracle=QUICK)
    before = sum(seen)
    cost = counting.ask(incoming, oracle=QUICK).n_evaluations
    assert sum(seen) == before + cost  # nothing besides the question


def test_a_file_knows_the_function_it_was_learned_of(tmp_path):
    made = hg.factor(output=hg.Gaussian, name="wave")(lambda z: np.sin(z))
    solve(made)
    made.save(tmp_path / "wave.hg")
    solve(load_factor(tmp_path / "wave.hg", lambda z: np.sin(1.0 * z)))
    with pytest.raises(FactorError, match="not the function whose messages were learned"):
        solve(load_factor(tmp_path / "wave.hg", lambda z: np.sin(1.001 * z)))


def test_a_file_knows_the_draws_it_was_learned_of(tmp_path):
    made = hg.factor(output=hg.Gaussian, name="noisy")(lambda z, rng: z + rng.standard_normal(z.shape))
    settings = {"operator": "kjit", "oracle": QUICK, "max_sweeps": 1}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        solve(made, **settings)
    made.save(tmp_path / "noisy.hg")
    other = load_factor(tmp_path / "noisy.hg", lambda z, rng: z + 2 * rng.standard_normal(z.shape))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        solve(other, **settings)
    assert any("not the function whose messages were learned" in str(w.message) for w in said)


def test_numbers_that_a_function_reads_are_found_wherever_they_are():
    table, deep = np.arange(3.0), {"rate": 2.0}

    class Scaled:
        def __init__(self, scale):
            self.scale = scale

        def __call__(self, z):
            return self.scale * z

        def method(self, z):
            return self.scale * z

    def inner(z):
        return deep["rate"] * z

    def outer(z, shift=1.0):
        return inner(z) + table[0] + shift

    made = Scaled(1.0)
    for function, change in (
        (outer, lambda: table.__setitem__(0, 5.0)),
        (outer, lambda: deep.update(rate=3.0)),
        (made, lambda: setattr(made, "scale", made.scale + 1)),
        (made.method, lambda: setattr(made, "scale", made.scale + 1)),
    ):
        before = numbers_read(function)
        assert not changed(before, numbers_read(function))
        change()
        assert changed(before, numbers_read(function))


# ---- what goes wrong is said in a sentence -------------------------------------------------------------------------
def test_the_sample_at_which_a_function_raises_is_named():
    def fragile(z):
        if (z > 3.0).any():
            raise ValueError("too large")
        return z

    with pytest.raises(FactorError, match=r"raised ValueError: too large; at z=[3-9]\.") as caught:
        asked(fragile)
    assert "vectorized" not in str(caught.value)


def test_a_function_of_one_sample_is_told_what_to_say():
    with pytest.raises(FactorError, match="say vectorized=False"):
        asked(lambda z: 1.0 if z > 0 else 0.0)


@pytest.mark.parametrize("given", [[[1, 2], [3]], "word", None, ("a", "b"), {"a": 1}])
def test_what_is_no_array_is_named(given):
    with pytest.raises(FactorError, match="factor 'odd' returned"):
        asked(lambda z: given, name="odd")


@pytest.mark.parametrize("scale", [1.0, 1e-12, 1e12])
def test_a_wrong_derivative_is_noticed_in_any_unit(scale):
    def belief(derivative):
        made = hg.factor(output=hg.Gaussian, derivative=derivative)(lambda z: scale * (z**3 + z))
        model = hg.Model()
        z = model.gaussian("z", 0.0, variance=1.0, size=2)
        made(z, observed=scale * np.array([2.0, 10.0]))
        return model.infer(progress=False)

    right = belief(lambda z: scale * (3 * z**2 + 1))
    assert right.log_evidence == pytest.approx(belief(None).log_evidence, abs=1e-6)
    for wrong in (lambda z: scale * 3 * z**2, lambda z: -scale * (3 * z**2 + 1), lambda z: 0 * z):
        with pytest.raises(FactorError, match=r"derivative of factor .* is wrong: at z="):
            belief(wrong)
    with pytest.raises(FactorError, match="derivative of factor"):
        belief(lambda z: "steep")


@pytest.mark.parametrize("output", [hg.Gamma, hg.Bernoulli, hg.Beta])
@pytest.mark.parametrize("oracle", ["quadrature", "importance"])
def test_a_function_whose_every_value_is_outside_its_family_is_at_fault_and_not_the_row(output, oracle):
    made = hg.factor(output=output, name="outside")(lambda z: -1.5 - np.abs(z))
    given = {hg.Gamma: hg.Gamma([2.0], 1.0), hg.Bernoulli: hg.Bernoulli([0.5]), hg.Beta: hg.Beta([2.0], 2.0)}[output]
    with pytest.raises(FactorError, match=r"factor 'outside' returned .* outside the support of"):
        made.ask({"z": hg.Gaussian([0.5], 1.0), "out": given}, oracle=oracle)


def test_what_a_function_returns_is_the_engines_own():
    kept = np.zeros(10**6)

    def refilled(z):
        return np.add(z, 0.0, out=kept[: len(z)])

    answers = [solve(hg.factor(output=hg.Gaussian)(f))["z"] for f in (refilled, lambda z: z, lambda z: z + 0.0)]
    for other in answers[:2]:
        np.testing.assert_array_equal(other.mean, answers[2].mean)
    positive = hg.factor(output=hg.Gamma)(lambda z: z)  # its own input, with values that a reference replaces
    model = hg.Model()
    rate = model.gamma("rate", 2.0, 1.0, size=3)
    model.poisson("y", positive(rate), observed=[0, 2, 5])
    posterior = model.infer(progress=False)
    assert posterior["rate"].mean == pytest.approx((2 + np.array([0, 2, 5])) / 2, rel=1e-3)
