"""Posteriors in files: what is read back is what was written, and no damage goes unnoticed."""

import numpy as np
import pytest

import heliograph as hg
from heliograph.errors import FileFormatError, ModelError


def _posterior() -> hg.Posterior:
    rng = np.random.default_rng(0)
    t = np.linspace(5, 10, 30)
    model = hg.Model()
    a, b = model.gaussian("a", 0.0, variance=100.0), model.gaussian("b", 0.0, variance=100.0, size=2)
    model.gaussian("y", a + b[0] * t + b[1] * t**2, variance=1.0, observed=1 + 2 * t + rng.standard_normal(30))
    w = model.gaussian("w", np.zeros(3), covariance=np.eye(3))
    model.bernoulli("k", logit=rng.standard_normal((30, 3)) @ w, observed=rng.random(30) < 0.5)
    model.gamma("g", 2.0, 1.0, size=(2, 2))
    model.beta("p", 2.0, 1.0)
    model.categorical("c", [0.2, 0.3, 0.5])
    model.dirichlet("d", [1.0, 2.0, 3.0])
    return model.infer()


@pytest.fixture(scope="module")
def posterior() -> hg.Posterior:
    return _posterior()


def test_what_is_read_back_is_what_was_written(posterior: hg.Posterior, tmp_path) -> None:
    posterior.save(tmp_path / "p.hg")
    read = hg.load_posterior(tmp_path / "p.hg")
    assert list(read) == list(posterior)
    for name in posterior:
        assert type(read[name]) is type(posterior[name])
        assert read[name].shape == posterior[name].shape
        np.testing.assert_array_equal(read[name].mean, posterior[name].mean)
        np.testing.assert_array_equal(read[name].variance, posterior[name].variance)
    assert read.log_evidence == posterior.log_evidence
    assert read.converged and read.status == posterior.status and read.n_sweeps == posterior.n_sweeps
    assert read.structure == posterior.structure
    assert read.summary().split("\n")[:6] == posterior.summary().split("\n")[:6]
    assert read.compare(posterior) == 0.0
    assert len(read.table()) == len(posterior.table())
    prior = read.as_prior()
    assert prior["w"].kl(posterior["w"]) == pytest.approx(0.0)


def test_joint_draws_come_from_the_file_too(posterior: hg.Posterior, tmp_path) -> None:
    posterior.save(tmp_path / "p.hg")
    read = hg.load_posterior(tmp_path / "p.hg")
    draws, exact = read.sample(20_000, seed=1), posterior.sample(20_000, seed=2)
    for name in posterior:
        assert draws[name].shape == exact[name].shape
    ours = np.corrcoef(np.column_stack([draws["a"], draws["b"]]).T)
    theirs = np.corrcoef(np.column_stack([exact["a"], exact["b"]]).T)
    assert theirs[0, 1] < -0.9
    np.testing.assert_allclose(ours, theirs, atol=0.02)
    joint = read.covariance("a", "b")
    assert joint.shape == (1, 2)
    with pytest.raises(ModelError, match="no joint covariance"):
        read.covariance("a", "g")


def test_draws_from_a_file_where_values_were_observed_or_equal_and_in_any_unit(tmp_path) -> None:
    model = hg.Model()
    a, b = model.gaussian("a", 0.0, sd=1e9), model.gaussian("b", 0.0, sd=1e-9)
    c, d = model.gaussian("c", 0.0, sd=1.0), model.gaussian("d", 0.0, sd=1.0)
    model.gaussian("sum", c + d, sd=1e-9, observed=1.0)  # c and d are one number but for rounding
    model.gaussian("y", 1e-9 * a + 1e9 * b, sd=1.0, observed=[1.0, np.nan])
    model.infer().save(tmp_path / "p.hg")
    read = hg.load_posterior(tmp_path / "p.hg")
    draws = read.sample(20_000, seed=0)
    np.testing.assert_array_equal(draws["y"][:, 0], 1.0)
    for name in "abcd":
        assert np.std(draws[name]) == pytest.approx(read[name].sd, rel=0.02)
    assert np.std(draws["c"] + draws["d"]) < 1e-6
    assert np.corrcoef(draws["a"], draws["b"])[0, 1] == pytest.approx(-0.5, abs=0.03)


def test_two_hundred_random_corruptions_are_all_noticed(posterior: hg.Posterior, tmp_path) -> None:
    rng, whole, damaged = np.random.default_rng(3), tmp_path / "p.hg", tmp_path / "q.hg"
    posterior.save(whole)
    data = whole.read_bytes()
    for _ in range(200):
        changed = bytearray(data)
        how = rng.integers(3)
        at = int(rng.integers(len(data)))
        if how == 0:
            changed[at] ^= int(rng.integers(1, 256))
        elif how == 1:
            del changed[at : at + int(rng.integers(1, 100))]
        else:
            changed[at:at] = rng.bytes(int(rng.integers(1, 50)))
        damaged.write_bytes(bytes(changed))
        with pytest.raises(FileFormatError):
            hg.load_posterior(damaged)


def test_a_file_of_something_else_is_named(tmp_path) -> None:
    @hg.factor(output=hg.Gaussian)
    def twice(z):
        return 2 * z

    twice.save(tmp_path / "f.hg")
    with pytest.raises(FileFormatError, match="no saved posterior"):
        hg.load_posterior(tmp_path / "f.hg")


def test_a_posterior_over_hyper_parameters_is_kept_with_its_mixtures(tmp_path) -> None:
    model = hg.Model()
    s = model.half_normal("s", 1.0)
    x = model.gaussian("x", 0.0, sd=s, size=4)
    model.gaussian("y", x, variance=0.5, observed=[0.3, -1.0, 2.0, 0.1])
    p = model.infer()
    assert list(p) == ["s", "x"]
    p.save(tmp_path / "p.hg")
    read = hg.load_posterior(tmp_path / "p.hg")
    for name in ("s", "x"):
        np.testing.assert_array_equal(read[name].mean, p[name].mean)
        np.testing.assert_array_equal(read[name].interval(0.8), p[name].interval(0.8))
    draws = p.sample(20_000, seed=1)
    np.testing.assert_allclose(draws["x"].mean(axis=0), p["x"].mean, atol=0.03)
    np.testing.assert_allclose(draws["x"].std(axis=0), p["x"].sd, rtol=0.05)
    assert draws["s"].mean() == pytest.approx(float(p["s"].mean), rel=0.05)
    # where the scale is large, so are the effects: the draws are joint
    assert np.corrcoef(draws["s"], np.abs(draws["x"]).max(axis=1))[0, 1] > 0.3
    assert max(len(line) for line in p.summary().split("\n")) <= 100
    assert "s" in p and p._repr_html_().startswith("<table>")
