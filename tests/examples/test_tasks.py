"""The ten tasks of a new user: each script runs, is short, and gives the right answer."""

import ast
import runpy
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

TASKS = Path(__file__).resolve().parents[2] / "examples" / "tasks"


def _lines(path: Path) -> int:
    """Statements of a script, imports, data and the docstring left out."""
    body = ast.parse(path.read_text()).body
    return sum(not isinstance(node, (ast.Import, ast.ImportFrom)) for node in body[1:])


@pytest.mark.parametrize("path", sorted(TASKS.glob("*.py")), ids=lambda p: p.stem)
def test_a_task_takes_at_most_ten_statements(path: Path) -> None:
    assert _lines(path) <= 10


def _run(name: str) -> dict:
    return runpy.run_path(str(TASKS / f"{name}.py"))


def test_predictions_are_those_of_the_closed_form() -> None:
    found = _run("predict")
    X, y = found["X"], found["y"]
    covariance = np.linalg.inv(np.eye(2) + X.T @ X)
    new = np.array([[1.0, 0.0], [0.0, 2.0]])
    np.testing.assert_allclose(found["prediction"].mean, new @ covariance @ X.T @ y, atol=0.02)
    sd = np.sqrt(1 + np.einsum("ni,ij,nj->n", new, covariance, new))
    np.testing.assert_allclose(found["prediction"].sd, sd, rtol=0.01)


def test_evidences_are_those_of_dense_algebra() -> None:
    found = _run("compare_models")
    t, y = found["t"], found["y"]
    for k, name in enumerate(found["comparison"].names):
        X = np.ones((10, 1)) if name == "constant" else np.stack([np.ones(10), t], axis=1)
        exact = stats.multivariate_normal(np.zeros(10), X @ X.T + 0.25 * np.eye(10)).logpdf(y)
        assert found["comparison"].log_evidence[k] == pytest.approx(exact)


def test_the_interval_is_that_of_a_gamma() -> None:
    found = _run("interval")
    np.testing.assert_allclose([found["lower"], found["upper"]], stats.gamma(15, scale=1 / 6).interval(0.95))


def test_the_file_has_the_beta() -> None:
    kept = _run("save_and_load")["kept"]
    assert (float(kept["p"].a), float(kept["p"].b)) == (14.0, 8.0)
    assert kept.log_evidence == pytest.approx(-np.log(21))  # every number of wins is as probable as any other


def test_new_data_take_few_sweeps() -> None:
    found = _run("new_data")
    assert found["second"].converged
    assert found["second"].n_sweeps <= 5


def test_missing_values_have_a_posterior() -> None:
    found = _run("missing_values")
    level = found["posterior"]["level"]
    precision = 2 + 0.01
    assert float(level.mean) == pytest.approx(9.3 / precision)
    np.testing.assert_allclose(found["posterior"]["y"].sd[[1, 3]], np.sqrt(1 + 1 / precision))


def test_the_simulator_is_inverted_as_on_a_grid() -> None:
    found = _run("custom_simulator")
    x = np.linspace(-8, 6, 200_001)
    for k, y in enumerate([0.5, 0.3, 0.8]):
        p = stats.norm(-1, 1).pdf(x) * stats.norm(np.exp(-np.exp(x) * 2), 0.05).pdf(y)
        mean = np.sum(x * p) / p.sum()
        assert found["posterior"]["log rate"].mean[k] == pytest.approx(mean, abs=2e-3)


def test_a_run_that_stopped_early_says_so_and_goes_on() -> None:
    assert _run("non_convergence")["posterior"].converged


def test_draws_are_joint() -> None:
    found = _run("joint_samples")
    X = np.stack([np.ones(30), found["t"]], axis=1)
    covariance = np.linalg.inv(np.eye(2) / 100 + X.T @ X)
    exact = covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1])
    ours = np.corrcoef(found["draws"]["a"], found["draws"]["b"])[0, 1]
    assert ours == pytest.approx(exact, abs=0.01)


def test_pictures_are_drawn() -> None:
    from matplotlib import pyplot

    assert len(_run("plot")["axes"]) == 1
    pyplot.close("all")
