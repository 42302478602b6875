"""Functions that users write: with holes in their domain, of probabilities, of categories, with data of any rank."""

import numpy as np
import pytest

import heliograph as hg
from heliograph.errors import FactorError
from heliograph.oracles.references import reference_of


def root_factor(**more):
    @hg.factor(output=hg.Gaussian, **more)
    def root(z):
        return np.sqrt(z)

    return root


def half_line(m, v, y, vo):
    """Mean and variance of N(z; m, v) N(sqrt(z); y, vo) over z > 0, by sums over even middles."""
    h = (max(m, 0.0) + 12 * np.sqrt(v)) / 400_000
    z = h * (np.arange(400_000) + 0.5)
    log_w = -0.5 * (z - m) ** 2 / v - 0.5 * (np.sqrt(z) - y) ** 2 / vo
    w = np.exp(log_w - log_w.max())
    w /= w.sum()
    return w @ z, w @ (z - w @ z) ** 2


CASES = np.array([[0.3, 1.0, 0.5, 0.1], [-0.5, 0.5, 0.1, 0.3], [2.0, 0.3, 1.2, 0.05], [0.1, 0.2, 0.8, 1e-3]])


@pytest.mark.parametrize("oracle", ["auto", "quadrature", "importance"])
def test_where_a_partial_function_gives_nan_nothing_can_be(oracle):
    root = root_factor(partial=True)
    m, v, y, vo = CASES.T
    answer = root.ask({"z": hg.Gaussian(m, v), "out": hg.Gaussian(y, vo)}, oracle=oracle)
    for k, case in enumerate(CASES):
        mean, variance = half_line(*case)
        assert answer.beliefs["z"].mean[k] == pytest.approx(mean, abs=1e-3)
        assert answer.beliefs["z"].variance[k] == pytest.approx(variance, rel=1e-2)
    assert root.sampler.impossible.count > 0
    assert not answer.failed.any()


def test_a_whole_run_respects_the_domain_and_its_reference_doubts_the_edge():
    root = root_factor(partial=True)
    m, v, y, vo = CASES.T
    model = hg.Model()
    z = model.gaussian("z", m, variance=v)
    model.gaussian("y", root(z), variance=vo, observed=y)
    posterior = model.infer(progress=False)
    for k, case in enumerate(CASES):
        mean, variance = half_line(*case)
        assert posterior[z].mean[k] == pytest.approx(mean, abs=1e-4)
        assert posterior[z].variance[k] == pytest.approx(variance, rel=1e-3)
    reference = reference_of(root.sampler)(
        np.random.default_rng(0), {"z": hg.Gaussian(m, v), "out": hg.Gaussian(y, vo)}, "z"
    )
    assert reference.sure[0] > 1e-9  # half of the cells' edges fall beside the edge of the domain


def test_nan_where_there_is_mass_is_an_error_unless_the_domain_is_said_to_be_partial():
    with pytest.raises(FactorError, match="outside the support"):
        root_factor().ask({"z": hg.Gaussian([0.3], 1.0), "out": hg.Gaussian([0.5], 0.1)})


def test_a_partial_factor_is_saved_and_loaded_as_one(tmp_path):
    root = root_factor(partial=True)
    root.belief("z", {"z": hg.Gaussian([0.3], 1.0), "out": hg.Gaussian([0.5], 0.1)})
    root.save(tmp_path / "root.hg")
    again = hg.load_factor(tmp_path / "root.hg", lambda z: np.sqrt(z))
    assert again.sampler.impossible is not None


def test_a_function_of_probabilities_has_the_moments_of_their_dirichlet():
    weights = np.array([1.0, 2.0, 4.0])

    @hg.factor(output=hg.Gaussian)
    def worth(p):
        return p @ weights

    concentration = np.array([[2.0, 3.0, 1.5]])
    incoming = {"p": hg.Dirichlet(concentration), "out": hg.Gaussian([2.5], 0.2)}
    answer = worth.ask(incoming)
    draws = np.random.default_rng(0).dirichlet(concentration[0], 400_000)
    w = np.exp(-0.5 * (draws @ weights - 2.5) ** 2 / 0.2)
    expected = (w[:, None] * np.log(draws)).sum(axis=0) / w.sum()
    assert answer.beliefs["p"].expected_statistics()[0][0] == pytest.approx(expected, abs=0.01)
    assert answer.beliefs["out"].mean[0] == pytest.approx((w @ (draws @ weights)) / w.sum(), abs=0.003)


def test_data_of_any_rank_comes_by_keyword():
    matrices = np.random.default_rng(0).normal(size=(5, 2, 2))

    @hg.factor(output=hg.Gaussian, data_ranks={"form": 2})
    def quadratic(z, form):
        return form[:, 0, 0] * z + form[:, 1, 1]

    model = hg.Model()
    z = model.gaussian("z", 0.0, variance=1.0, size=5)
    model.gaussian("y", quadratic(z, form=matrices), variance=0.5, observed=np.ones(5))
    posterior = model.infer(progress=False)
    slope, shift = matrices[:, 0, 0], matrices[:, 1, 1]
    precision = 1 + slope**2 / 0.5
    assert posterior[z].mean == pytest.approx(slope * (1 - shift) / 0.5 / precision, abs=1e-6)
    assert posterior[z].variance == pytest.approx(1 / precision, rel=1e-6)


@pytest.mark.parametrize("rank", [None, 0, 1])
def test_a_table_of_data_beside_one_vector_has_to_say_what_a_row_is(rank):
    table = np.arange(6.0).reshape(3, 2)
    ranks = {} if rank is None else {"x": rank}

    @hg.factor(output=hg.Gaussian, data_ranks=ranks)
    def score(w, x):
        return np.sum(w * (x if x.ndim > 1 else x[:, None]), axis=-1)

    model = hg.Model()
    w = model.gaussian("w", np.zeros(2), covariance=np.eye(2))
    if rank is None:
        with pytest.raises(
            hg.ModelError, match=r"shape \(3, 2\) beside one vector variable; say .*data_ranks={'x': 1}"
        ):
            score(w, x=table)
    else:
        assert score(w, x=table).shape == table.shape[: 2 - rank]
