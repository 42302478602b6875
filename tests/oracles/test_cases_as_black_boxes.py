"""The reference cases of factors that are functions, put to both oracles as if only the function were known.

An answer is right, or says by how much it may be wrong, or says that there is none.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

import heliograph as hg
from heliograph.errors import HeliographError, UnsupportedError
from heliograph.families import Family

FILE = (
    Path(os.environ.get("HELIOGRAPH_CASES") or Path(__file__).resolve().parents[2] / "../shared/cases")
    / "messages.json"
)
CASES = json.loads(FILE.read_text())["cases"] if FILE.is_file() else []
NOTICEABLE, STATED = 1e-3, 20.0  # nats, and times what an answer states, beyond which it is silently wrong

pytestmark = pytest.mark.skipif(not CASES, reason=f"no reference cases: there is no {FILE.name} (set HELIOGRAPH_CASES)")


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


# factor -> (family of the output, the file's port of it, the function of the other ports)
BOXES = {
    "logistic": (hg.Beta, "p", lambda z: sigmoid(z)),
    "exp": (hg.Gamma, "out", lambda z: np.exp(z)),
    "sum": (hg.Gaussian, "out", lambda a, b: a + b),
    "difference": (hg.Gaussian, "out", lambda a, b: a - b),
    "product": (hg.Gaussian, "out", lambda a, b: a * b),
    "maximum": (hg.Gaussian, "out", lambda a, b: np.maximum(a, b)),
    "select": (hg.Gaussian, "out", lambda a, b, s: np.where(s == 1, a, b)),
    "positive": (hg.Bernoulli, "y", lambda x: x > 0),
    "between": (hg.Bernoulli, "y", lambda x, lower, upper: (lower < x) & (x < upper)),
    "dot": (hg.Gaussian, "out", lambda w, x: np.sum(w * x, axis=1)),
    "logistic_bernoulli": (hg.Bernoulli, "y", lambda z, rng: rng.random(z.shape) < sigmoid(z)),
    "probit_bernoulli": (hg.Bernoulli, "y", lambda z, rng: z + rng.standard_normal(z.shape) > 0),
    "bernoulli_beta": (hg.Bernoulli, "y", lambda p, rng: rng.random(p.shape) < p),
    "gaussian": (hg.Gaussian, "x", lambda mean, variance, rng: mean + np.sqrt(variance) * rng.standard_normal(mean.shape)),
    "gaussian_precision": (
        hg.Gaussian, "x", lambda mean, precision, rng: mean + rng.standard_normal(mean.shape) / np.sqrt(precision)
    ),
    "gamma_rate": (hg.Gamma, "x", lambda shape, rate, rng: rng.gamma(shape, 1 / rate)),
}  # fmt: skip

MAKE = {
    "Gaussian": lambda c: hg.Gaussian([c["mean"]], c["variance"]),
    "Gamma": lambda c: hg.Gamma([c["shape"]], c["rate"]),
    "Beta": lambda c: hg.Beta([c["a"]], c["b"]),
    "Bernoulli": lambda c: hg.Bernoulli([c["p"]]),
    "MultivariateGaussian": lambda c: hg.MultivariateGaussian([c["mean"]], [c["covariance"]]),
}


def families_of(name):
    """The family of each port, by the cases themselves."""
    found = {BOXES[name][1]: BOXES[name][0]}
    for case in CASES:
        if case["factor"] == name:
            found |= {p: getattr(hg, m["family"]) for p, m in case["incoming"].items() if m["family"] in MAKE}
            if case["belief"]["family"] in MAKE:
                found.setdefault(case["to"], getattr(hg, case["belief"]["family"]))
    return found


def message_of(content, family):
    if content["family"] == "PointMass":
        value = np.asarray([content["value"]], dtype=float)
        return value if family is None else family.point_mass(value)
    if content["family"] == "Uniform":
        return family.uniform((1,))
    return MAKE[content["family"]](content)


def verdict_of(case, box, out, families, oracle):
    """(what became of the case, KL, stated)."""
    incoming = {("out" if p == out else p): message_of(m, families.get(p)) for p, m in case["incoming"].items()}
    to = "out" if case["to"] == out else case["to"]
    if case["belief"]["family"] not in MAKE or not isinstance(incoming[to], Family):
        return "no question", 0.0, 0.0
    truth = message_of(case["belief"], families[case["to"]])
    try:
        answer = box.ask(incoming, oracle=oracle)
    except UnsupportedError:
        return "refused", np.nan, np.nan
    if answer.failed_at(to)[0]:
        return "failed", np.nan, np.nan
    kl, stated = float(truth.kl(answer.beliefs[to])[0]), float(answer.expected_kl[to][0])
    wrong = kl > NOTICEABLE and kl > STATED * stated
    if case["log_z"] is not None:  # uniform in the file is the constant 1; of a label, ours gives each value one half
        labels = sum(m["family"] == "Uniform" and families.get(p) is hg.Bernoulli for p, m in case["incoming"].items())
        log_z = case["log_z"] - labels * np.log(2.0)
        wrong |= bool(abs(answer.log_z[0] - log_z) > 0.01 + 1e-9 * abs(log_z) + 10 * answer.log_z_error[0])
    return "silent" if wrong else "right" if kl <= NOTICEABLE else "said", kl, stated


@pytest.mark.parametrize("oracle", ["auto", "importance"])
@pytest.mark.parametrize("name", sorted(BOXES))
def test_no_case_is_silently_wrong(name, oracle):
    family, out, function = BOXES[name]
    box = hg.factor(output=family, name=name)(function)
    if oracle == "importance" and box.sampler.stochastic:
        pytest.skip("the same oracle again")
    families, found = families_of(name), {}
    for case in CASES:
        if case["factor"] == name:
            try:
                found[case["id"]] = verdict_of(case, box, out, families, oracle)
            except HeliographError as error:
                found[case["id"]] = f"raised {error}", np.nan, np.nan
    silent = {k: v for k, v in found.items() if v[0] == "silent" or v[0].startswith("raised")}
    assert not silent
    assert any(v[0] == "right" for v in found.values()), found
