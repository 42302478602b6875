"""Every reference case of every schema-1 file in the folder of cases, driven from the files themselves.

The folder is named by the environment variable HELIOGRAPH_CASES, by default ``../shared/cases`` beside the repository.
Nothing here knows an id: a new file, case or factor name is picked up as it is.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

import heliograph.factors as factors
from heliograph.families import Bernoulli, Beta, Family, Gamma, Gaussian, MultivariateGaussian

FOLDER = Path(os.environ.get("HELIOGRAPH_CASES") or Path(__file__).resolve().parents[2] / "../shared/cases")
CLOSE, LOOSE, SHARE = 1e-8, 1e-5, 0.98  # what the issue asks: 98 % within 1e-8, every one within 1e-5

MAKE = {
    "Gaussian": lambda c: Gaussian(c["mean"], c["variance"]),
    "Gamma": lambda c: Gamma(c["shape"], c["rate"]),
    "Beta": lambda c: Beta(c["a"], c["b"]),
    "Bernoulli": lambda c: Bernoulli(c["p"]),
    "MultivariateGaussian": lambda c: MultivariateGaussian(c["mean"], c["covariance"]),
}


def read_cases(folder: Path) -> list[dict]:
    cases = []
    for path in sorted(folder.glob("*.json")):
        content = json.loads(path.read_text())
        if isinstance(content, dict) and content.get("schema") == 1:
            cases += [{**case, "file": path.name} for case in content["cases"]]
    return cases


CASES = read_cases(FOLDER) if FOLDER.is_dir() else []
FACTORS = {
    f.name: f for f in vars(factors).values() if isinstance(f, type) and issubclass(f, factors.Factor) and f.name
}

pytestmark = pytest.mark.skipif(
    not CASES, reason=f"no reference cases: {FOLDER} holds no schema-1 file (set HELIOGRAPH_CASES to a folder of cases)"
)


def as_incoming(factor: factors.Factor, port: str, content: dict, case: dict) -> Family | np.ndarray:
    """A message of the file as one of ours; a point mass at a data port is plain data."""
    kind, families = content["family"], factor.families[port]
    if kind == "PointMass":
        value = np.asarray(content["value"], dtype=float)
        return families[0].point_mass(value) if families else value  # type: ignore[attr-defined]
    if kind == "Uniform":
        if families[0] is MultivariateGaussian:
            sizes = [len(m["mean"]) for m in case["incoming"].values() if m["family"] == "MultivariateGaussian"]
            sizes += [len(m["value"]) for m in case["incoming"].values() if isinstance(m.get("value"), list)]
            return MultivariateGaussian.uniform((), sizes[0])
        return families[0].uniform(())  # type: ignore[attr-defined]
    return MAKE[kind](content)


def compare(ours: Family, content: dict) -> float:
    """The largest relative error of a belief's parameters, each measured as the folder's README says."""
    kind = content["family"]
    if kind == "PointMass":
        return float(np.max(np.abs(ours.point - np.asarray(content["value"])))) if ours.point is not None else np.inf
    if kind == "Uniform":
        return 0.0 if bool(ours.is_uniform) else np.inf
    assert type(ours).__name__ == kind, f"the belief is a {type(ours).__name__}, the case has a {kind}"
    if isinstance(ours, Gaussian):
        mean, variance = content["mean"], content["variance"]
        scale = max(abs(mean), np.sqrt(variance))
        return max(abs(float(ours.mean) - mean) / scale, abs(float(ours.variance) / variance - 1))
    if isinstance(ours, MultivariateGaussian):
        mean, covariance = np.array(content["mean"]), np.array(content["covariance"])
        sd = np.sqrt(np.diag(covariance))
        gap = np.abs(ours.mean - mean) / np.maximum(np.abs(mean), sd)
        return float(max(gap.max(), (np.abs(ours.covariance - covariance) / np.outer(sd, sd)).max()))
    if isinstance(ours, Gamma):
        pairs = [(ours.shape_parameter, content["shape"]), (ours.rate, content["rate"])]
    elif isinstance(ours, Beta):
        pairs = [(ours.a, content["a"]), (ours.b, content["b"])]
    elif isinstance(ours, Bernoulli):
        p, gap = content["p"], abs(float(ours.p) - content["p"])
        # 1 - p is known only to the rounding of p itself
        return max(gap / max(p, 1e-300), max(gap - 2**-52, 0.0) / max(1 - p, 2**-53))
    else:
        raise AssertionError(f"no comparison for a {kind}")
    return max(abs(float(a) - b) / max(abs(b), 1e-300) for a, b in pairs)


def error_of(case: dict) -> float:
    """The largest relative error of the case, belief and log_z."""
    factor = FACTORS.get(case["factor"])
    assert factor is not None, f"case {case['id']}: no factor is called {case['factor']!r}; there are {sorted(FACTORS)}"
    f = factor()
    incoming = {port: as_incoming(f, port, content, case) for port, content in case["incoming"].items()}
    error = compare(f.belief(case["to"], incoming), case["belief"])
    log_z = case.get("log_z")
    if log_z is not None:
        # a Uniform of the files is the constant 1, a uniform Bernoulli of ours is normalised: 1/2 and 1/2
        flat = sum(c["family"] == "Uniform" and isinstance(incoming[p], Bernoulli) for p, c in case["incoming"].items())
        ours = float(f.log_z(incoming)) + flat * np.log(2)
        error = max(error, abs(ours - log_z) / max(1.0, abs(log_z)))
    return float(np.nan_to_num(error, nan=np.inf))


@pytest.mark.parametrize("case", CASES, ids=[c["id"] for c in CASES])
def test_a_reference_case_is_met(case):
    error = error_of(case)
    assert error <= LOOSE, f"{case['id']} of {case['file']}: relative error {error:.2e}"


def test_nearly_all_reference_cases_are_met_closely():
    errors = {}
    for case in CASES:
        try:
            errors[case["id"]] = error_of(case)
        except Exception as failure:
            errors[case["id"]] = np.inf
            print(f"{case['id']}: {type(failure).__name__}: {failure}")
    far = {k: e for k, e in errors.items() if e > CLOSE}
    print(f"{len(errors) - len(far)} of {len(errors)} cases within {CLOSE:g}; the others: {far}")
    assert len(far) <= (1 - SHARE) * len(errors), f"too many cases beyond {CLOSE:g}: {far}"
