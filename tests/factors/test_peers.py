"""Facts from the peers' own tests that one factor can express, driven from the files beside the reference cases.

A rule reads a fact by the words that describe it and returns pairs (ours, theirs). Facts without a rule are whole
models, tested elsewhere, or do not apply; `docs/peers.md` says which and why for each, and a test holds it to that.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heliograph.errors import ContradictionError
from heliograph.factors import (
    BernoulliBeta,
    BetaFactor,
    Between,
    ConditionalTable,
    Difference,
    Dot,
    Factor,
    GammaRate,
    GaussianFactor,
    GaussianPrecision,
    Logistic,
    LogisticBernoulli,
    Maximum,
    Poisson,
    Positive,
    ProbitBernoulli,
    Product,
    Scale,
    Select,
    Sum,
)
from heliograph.families import Bernoulli, Beta, Categorical, Family, Gamma, Gaussian, MultivariateGaussian

FOLDER = Path(os.environ.get("HELIOGRAPH_CASES") or Path(__file__).resolve().parents[2] / "../shared/cases") / "peers"
TABLE = Path(__file__).resolve().parents[2] / "docs/peers.md"


def read_facts() -> list[dict]:
    facts = []
    for path in sorted(FOLDER.glob("*.json")):
        facts += [{**fact, "peer": path.stem} for fact in json.loads(path.read_text())]
    return facts


FACTS = read_facts() if FOLDER.is_dir() else []
pytestmark = pytest.mark.skipif(not FACTS, reason=f"no facts of the peers: {FOLDER} is absent or empty")
Pairs = list[tuple[Any, Any]]


# ---- reading messages --------------------------------------------------------------------------------------------
def parse(m: Any) -> Any:
    """A message of the files as one of ours; anything that is not a message as it is."""
    if not isinstance(m, dict) or "family" not in m:
        return m
    kind = m["family"]
    if kind == "Uniform":
        return Gaussian.uniform()
    if kind == "PointMass":
        return np.asarray(m["value"], dtype=float)
    if kind == "Gaussian":
        if "precision" in m:
            shift = m.get("precision_mean", m.get("mean_times_precision"))
            return Gaussian.from_naturals((np.array(float(shift)), np.array(float(m["precision"]))))
        if m["variance"] < 0:
            return Gaussian.from_naturals((np.array(m["mean"] / m["variance"]), np.array(1.0 / m["variance"])))
        return Gaussian(m["mean"], m["variance"])
    if kind == "MvGaussian":
        if "covariance" in m:
            return MultivariateGaussian(m["mean"], m["covariance"])
        precision = np.array(m["precision_matrix"], dtype=float)
        shift = np.array(m["precision_mean"]) if "precision_mean" in m else precision @ np.array(m["mean"])
        return MultivariateGaussian.from_naturals((shift, precision))
    if kind == "Gamma":
        return Gamma.from_naturals((np.array(m["shape"] - 1.0), np.array(float(m["rate"]))))
    if kind == "Beta":
        return Beta(m.get("true_count", m.get("a")), m.get("false_count", m.get("b")))
    if kind == "Bernoulli":
        return Bernoulli(m["p"])
    return m


def parsed(fact: dict) -> dict:
    inputs = fact["inputs"]
    return {k.removeprefix("m_"): parse(v) for k, v in inputs.items()} if isinstance(inputs, dict) else {}


def theirs(fact: dict) -> Any:
    """The expected value; where it was recomputed, the recomputed one."""
    for key in ("independent_check", "independent"):
        found = fact.get(key, {})
        if isinstance(fact["expected"], dict) and {"mean", "variance"} <= set(found):
            return parse({"family": "Gaussian", "mean": found["mean"], "variance": found["variance"]})
        if isinstance(fact["expected"], float) and "value" in found:
            return found["value"]
        if {"precision_mean", "precision"} <= set(found):
            return parse({"family": "Gaussian", **{k: found[k] for k in ("precision_mean", "precision")}})
    return parse(fact["expected"])


def sent_or_belief(factor: Factor, to: str, incoming: dict, fact: dict) -> Family:
    return factor.belief(to, incoming) if fact["to"].startswith("posterior") else factor.message(to, incoming)


# ---- rules: Infer.NET --------------------------------------------------------------------------------------------
def expected_sigmoid(fact: dict) -> Pairs:
    """E sigma, and by the tilted moments E sigma' and E sigma'' under N(m, v)."""
    m, v = fact["inputs"]["m"], fact["inputs"]["v"]
    z = Gaussian(m, v)
    incoming = {"z": z, "y": Bernoulli.point_mass(1)}
    value = np.exp(LogisticBernoulli().log_z(incoming))
    order = len(re.search(r"sigma('*)", fact["factor or model"]).group(1))  # type: ignore[union-attr]
    belief = LogisticBernoulli().belief("z", incoming)
    slope = (belief.mean - m) / v
    bend = (belief.variance - v) / v**2 + slope**2
    return [((value, value * slope, value * bend)[order], fact["expected"])]


def logistic_likelihood(fact: dict) -> Pairs:
    given = parsed(fact)
    y = given["sample"] if "sample" in given else given["y"]
    incoming = {"z": given.get("logOdds", given.get("w_prior")), "y": Bernoulli.point_mass(float(y))}
    if fact["kind"] == "evidence":
        return [(LogisticBernoulli().log_z(incoming), theirs(fact))]
    return [(LogisticBernoulli().belief("z", incoming), theirs(fact))]


def logistic_limit(fact: dict) -> Pairs:
    y, narrow = Bernoulli.point_mass(1), [Gaussian(1.0, v) for v in (1e-8, 1e-20, 1e-29)]
    return [(LogisticBernoulli().message("z", {"z": z, "y": y}), theirs(fact)) for z in narrow]


def logistic_factor(fact: dict) -> Pairs:
    given = parsed(fact)
    incoming = {"z": given["x_message"], "p": given["p_message"]}
    if fact["kind"] == "evidence":
        return [(Logistic().log_z(incoming), theirs(fact))]
    return [(Logistic().belief("z", incoming), theirs(fact))]


def above(fact: dict) -> Pairs:
    """x > t is x - t > 0."""
    given = parsed(fact)
    incoming = {"x": Gaussian(given["prior"].mean - given["t"], given["prior"].variance), "y": Bernoulli.point_mass(1)}
    if fact["kind"] == "evidence":
        return [(np.exp(Positive().log_z(incoming)), theirs(fact))]
    belief = Positive().belief("x", incoming)
    return [(Gaussian(belief.mean + given["t"], belief.variance), theirs(fact))]


def is_positive(fact: dict) -> Pairs:
    given = parsed(fact)
    x = given["x"] if isinstance(given["x"], Family) else Gaussian.point_mass(given["x"])
    y = given.get("isPositive", Bernoulli.uniform())
    y = y if isinstance(y, Family) else Bernoulli.point_mass(float(y))
    if fact["to"] == "Bernoulli log-odds":
        return [(Positive().message("y", {"x": x, "y": y}).log_odds, theirs(fact))]
    return [(sent_or_belief(Positive(), "x", {"x": x, "y": y}, fact), theirs(fact))]


def is_between(fact: dict) -> Pairs:
    given = parsed(fact)
    y = 0.0 if "False" in fact["factor or model"] else 1.0
    incoming = {"x": given["x"], "lower": given["lower"], "upper": given["upper"], "y": Bernoulli.point_mass(y)}
    return [(sent_or_belief(Between(), "x", incoming, fact), theirs(fact))]


def maximum(fact: dict) -> Pairs:
    given = {k: v if isinstance(v, Family) else Gaussian.point_mass(v) for k, v in parsed(fact).items()}
    incoming = {"a": given["x"], "b": given["y"], "out": given["max"]}
    if fact["kind"] == "evidence":
        return [(Maximum().log_z(incoming), theirs(fact))]
    to = {"x": "a", "y": "b", "max": "out"}[fact["to"].split()[-1]]
    return [(sent_or_belief(Maximum(), to, incoming, fact), theirs(fact))]


def product(fact: dict) -> Pairs:
    given = parsed(fact)
    incoming = {"a": given.get("A", Gaussian.uniform()), "b": given["B"], "out": given["product"]}
    to = {"A": "a", "B": "b", "product": "out"}[fact["to"].split()[-1]]
    if "Exception" in str(fact["expected"]):
        with pytest.raises(ContradictionError):
            Product().message(to, incoming)
        return []
    return [(sent_or_belief(Product(), to, incoming, fact), theirs(fact))]


def plus(fact: dict) -> Pairs:
    given = parsed(fact)
    if "a0" in given:
        incoming = {"a": given["a0"], "b": given["a1"], "out": given["x_likelihood"]}
        return [(Sum().belief("a", incoming), theirs(fact))]
    return [(Sum().message("out", {**given, "out": Gaussian.uniform()}), theirs(fact))]


def gaussian_of_precision(fact: dict) -> Pairs:
    given = parsed(fact)
    given.pop("force_proper", None)
    if fact["kind"] == "evidence":
        return [(GaussianPrecision().log_z(given), theirs(fact))]
    return [(sent_or_belief(GaussianPrecision(), fact["to"].split()[-1], given, fact), theirs(fact))]


def gamma_of_rate(fact: dict) -> Pairs:
    given = parsed(fact)
    x = given.get("x_message", given.get("x"))
    rate = given.get("rate_message", given.get("rate_prior"))
    incoming = {"x": x, "shape": given["shape"], "rate": rate}
    if fact["kind"] == "evidence":
        return [(GammaRate().log_z(incoming), theirs(fact))]
    # the source projects by mean and variance, or keeps the shape: the mean is what both agree on
    expected = fact["expected"]
    return [(GammaRate().belief(fact["to"].split()[-1], incoming).mean, expected["shape"] / expected["rate"])]


def bernoulli_certain(fact: dict) -> Pairs:
    given = parsed(fact)
    return [(BernoulliBeta().message("p", {"y": given["x"], "p": given["p"]}), theirs(fact))]


def gate_exit(fact: dict) -> Pairs:
    a, b = (parse(v) for v in fact["inputs"]["values"])
    incoming = {"a": a, "b": b, "s": Bernoulli(fact["inputs"]["p_case1"]), "out": Gaussian.uniform()}
    return [(Select().message("out", incoming), theirs(fact))]


def one_point_mixture(fact: dict) -> Pairs:
    v, out = fact["inputs"]["prior_var_total"], parse(fact["inputs"]["likelihood"])
    incoming = {"a": Gaussian(1.0, v), "b": Gaussian(0.0, v), "s": Bernoulli.uniform(), "out": out}
    return [(Select().belief("s", incoming).p, fact["expected"][1])]


# ---- rules: ReactiveMP -------------------------------------------------------------------------------------------
def probit(fact: dict) -> Pairs:
    given = parsed(fact)
    y = given.get("out", Bernoulli.uniform())
    z = given["in"] if isinstance(given["in"], Family) else Gaussian.point_mass(given["in"])
    y = y if isinstance(y, Family) else Bernoulli.point_mass(y)
    to = {"in": "z", "out": "y"}[fact["to"]]
    return [(ProbitBernoulli().message(to, {"z": z, "y": y}), theirs(fact))]


def normal(fact: dict) -> Pairs:
    given = parsed(fact)
    incoming = {"x": given.get("out", Gaussian.uniform()), "mean": given.get("μ", Gaussian.uniform())}
    to = {"out": "x", "mu": "mean"}[fact["to"]]
    if "τ" in given:
        return [(GaussianPrecision().message(to, {**incoming, "precision": given["τ"]}), theirs(fact))]
    return [(GaussianFactor().message(to, {**incoming, "variance": given["v"]}), theirs(fact))]


def signed(fact: dict) -> Pairs:
    given = parsed(fact)
    factor = Sum() if fact["node"].startswith("+") else Difference()
    names = {"in1": "a", "in2": "b", "out": "out"}
    incoming = {names[k]: v for k, v in given.items()}
    if not fact["to"].startswith("joint"):
        incoming[names[fact["to"]]] = Gaussian.uniform()
        return [(factor.message(names[fact["to"]], incoming), theirs(fact))]
    joint = theirs(fact)
    return [(factor.belief(port, incoming), joint.marginal(i)) for i, port in enumerate(("a", "b"))]


def times(fact: dict) -> Pairs:
    given = parsed(fact)
    if fact["to"].startswith("joint"):
        incoming = {"a": given["A"], "b": given["in"], "out": given["out"]}
        return [(Product().belief("b", incoming), parse(fact["expected"]["in"]))]
    incoming = {"x": given.get("in"), "constant": given["A"], "out": given.get("out")}
    return [(Scale().message({"in": "x", "out": "out"}[fact["to"]], incoming), theirs(fact))]


def dot(fact: dict) -> Pairs:
    given = parsed(fact)
    if given["in2"].ndim == 0:
        incoming = {"x": given.get("in1"), "constant": given["in2"], "out": given.get("out")}
        return [(Scale().message({"in1": "x", "out": "out"}[fact["to"]], incoming), theirs(fact))]
    incoming = {"w": given.get("in1"), "x": given["in2"], "out": given.get("out", Gaussian.uniform())}
    return [(Dot().message({"in1": "w", "out": "out"}[fact["to"]], incoming), theirs(fact))]


def bernoulli_node(fact: dict) -> Pairs:
    given = parsed(fact)
    incoming = {"y": Bernoulli.point_mass(given["out"]), "p": given["p"]}
    return [(BernoulliBeta().belief("p", incoming), parse(fact["expected"]["p"]))]


def fixed_parameters(fact: dict) -> Pairs:
    factor, to, names = {
        "Beta": (BetaFactor(), "p", {"out": "p", "a": "a", "b": "b"}),
        "GammaShapeRate": (GammaRate(), "x", {"out": "x", "α": "shape", "β": "rate"}),
    }[fact["node"]]
    return [(factor.belief(to, {names[k]: v for k, v in parsed(fact).items()}), parse(fact["expected"]["out"]))]


def poisson_node(fact: dict) -> Pairs:
    given = parsed(fact)
    incoming = {"count": given["out"], "rate": given.get("l", Gamma.uniform())}
    if fact["to"].startswith("joint"):
        return [(Poisson().belief("rate", incoming), parse(fact["expected"]["l"]))]
    return [(Poisson().message("rate", incoming), theirs(fact))]


def negation(fact: dict) -> Pairs:
    given = parsed(fact)
    parent, child = (Categorical([1 - float(given[k].p), float(given[k].p)]) for k in ("in", "out"))
    incoming = {"parent": parent, "table": np.array([[0.0, 1.0], [1.0, 0.0]]), "child": child}
    return [(ConditionalTable().belief("parent", incoming).p[1], fact["expected"]["p"])]


Rule = Callable[[dict], Pairs]
RULES: list[tuple[str, Rule]] = [
    (r"^E\[sigma", expected_sigmoid),
    (r"BernoulliFromLogOdds.*\(limit\)", logistic_limit),
    (r"BernoulliFromLogOdds.*observed", logistic_likelihood),
    (r"^Logistic factor.*#(evidence|posterior \(projected belief\) of x)", logistic_factor),
    (r"(constrain x > t|evidence of x.*with x>)", above),
    (r"^IsPositive", is_positive),
    (r"^IsBetween\(x,(1,3\) observed|lower,upper\) observed True, context far)", is_between),
    (r"^Max\(", maximum),
    (r"^Product = A\*B", product),
    (r"^(Plus: a \+ b|same#posterior of a0)", plus),
    (r"^Gaussian\(x; mean, precision\)(?!.*proper forced)", gaussian_of_precision),
    (r"(x~Gamma\(shape|^compound gamma, difficult)", gamma_of_rate),
    (r"^Bernoulli\(x; p\), improper.*\"p\": 1.0", bernoulli_certain),
    (r"^gate exit", gate_exit),
    (r"^one-point mixture", one_point_mixture),
    (r"^Probit", probit),
    (r"^NormalMean(Precision|Variance)#(out|mu)", normal),
    (r"^[+-] \(out = in1", signed),
    (r"^\* \(out = A", times),
    (r"^dot \(out", dot),
    (r"^Bernoulli#joint", bernoulli_node),
    (r"^(Beta|GammaShapeRate)#", fixed_parameters),
    (r"^Poisson#", poisson_node),
    (r"^NOT#", negation),
]


def described(fact: dict) -> str:
    """The words a rule reads: what it is about, to what end, and the inputs."""
    about = fact.get("factor or model", fact.get("node", ""))
    end = "evidence" if fact["kind"] == "evidence" else fact["to"]
    return f"{about}#{end}#{json.dumps(fact['inputs'])}"


def rule_of(fact: dict) -> Rule | None:
    text = described(fact)
    return next((rule for pattern, rule in RULES if re.search(pattern, text)), None)


RUN = [(f, rule) for f in FACTS if (rule := rule_of(f)) is not None]


def tolerance_of(fact: dict) -> float:
    """The peers' own tolerance, but not below 1e-9 (their digits) nor above 1e-2 where they are lax."""
    value = fact.get("tolerance", {}).get("value", 1e-8)
    return float(np.clip(value if isinstance(value, (int, float)) else 1e-3, 1e-9, 1e-2))


def close(ours: Any, expected: Any, tolerance: float) -> bool:
    """Natural parameters to an absolute tolerance (relative for large ones), numbers to a relative one."""
    if isinstance(ours, Family) and not isinstance(expected, Family):
        return ours.point is not None and bool(np.allclose(ours.point, expected, rtol=tolerance))
    if isinstance(ours, Family):
        pairs = zip(ours.naturals, expected.naturals, strict=True)
        return all(np.allclose(a, b, rtol=tolerance, atol=tolerance) for a, b in pairs)
    return bool(np.allclose(ours, expected, rtol=tolerance, atol=1e-300))


@pytest.mark.parametrize("fact,rule", RUN, ids=[f"{f['peer']}-{f['id']}" for f, _ in RUN])
def test_a_fact_of_a_peer_holds(fact, rule):
    for ours, expected in rule(fact):
        if isinstance(expected, Gaussian) and isinstance(ours, Gamma) and expected.is_uniform:
            expected = Gamma.uniform()
        assert close(ours, expected, tolerance_of(fact)), f"{described(fact)}: ours {ours!r}, theirs {expected!r}"


def test_the_table_in_the_docs_has_a_row_for_every_fact_and_tells_the_truth():
    rows = {}
    for line in TABLE.read_text().splitlines():
        cells = [c.strip() for c in line.strip().strip("|").split("|")]
        if len(cells) >= 4 and cells[0] in {f["peer"] for f in FACTS}:
            rows[cells[0], cells[1]] = cells[3]
    missing = [(f["peer"], f["id"]) for f in FACTS if (f["peer"], str(f["id"])) not in rows]
    assert not missing, f"docs/peers.md says nothing of {missing}"
    for fact in FACTS:
        said_run = rows[fact["peer"], str(fact["id"])].startswith("run as a message")
        assert said_run == (rule_of(fact) is not None), f"docs/peers.md is wrong about {fact['peer']} {fact['id']}"
