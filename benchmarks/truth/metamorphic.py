"""The same model written differently: rows in another order, other units. The answer is the first one's, rewritten.

The only kind whose truth is heliograph's own answer, to the model as first written: what it finds is a difference between the two.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.truth.verdict import answer_of
from benchmarks.truth.world import Truth, World, literal, rounded

__all__ = ["rewritten"]

Rows = dict[str, np.ndarray]
BOXES = {
    "Gaussian": ("np.arcsinh(3 * z)", "np.abs(z) + 0.3 * z", "np.tanh(2 * z)", "z**2"),
    "Beta": ("1 / (1 + np.exp(-z))", "0.05 + 0.9 / (1 + np.exp(-3 * z))"),
    "Gamma": ("np.exp(0.7 * z)", "0.1 + z**2"),
}


def rewritten(rng: np.random.Generator, kind: str, seed: int) -> World:
    """One model twice: `write(rows, unit)` gives the source, a permutation or a unit the second form."""
    n = int(rng.integers(2, 61))
    form = str(
        rng.choice(
            ["box", "box on X @ w", "regression", "games", "precisions", "two units"],
            p=[0.3, 0.15, 0.1, 0.15, 0.1, 0.2],
        )
    )
    settings: dict[str, Any] = {}
    box = said = ""
    rows: Rows = {"x": rounded(rng.normal(0, 1.3, n)), "z": rounded(rng.normal(0, 1.3, n), 3)}
    if form.startswith("box"):
        family = str(rng.choice(list(BOXES)))
        box = f"@hg.factor(output=hg.{family})\ndef box(z):\n    return {rng.choice(BOXES[family])}\n"
        rows["y"] = {
            "Gaussian": rounded(rng.normal(0.5, 1, n)),
            "Beta": rng.integers(0, 2, n),
            "Gamma": rng.poisson(2.0, n),
        }[family]
        said = {
            "Gaussian": 'm.gaussian("y", out, variance=0.3, observed={y})',
            "Beta": 'm.bernoulli("y", out, observed={y})',
            "Gamma": 'm.poisson("y", out, observed={y})',
        }[family]
        how = str(rng.choice(["learned", "learned", "quadrature", "importance"]))
        settings = {} if how == "learned" else {"operator": "ask", "oracle": how}
    if form == "box":
        asked, per_row = "z", True
        text = box + 'm = hg.Model()\nz = m.gaussian("z", {x}, variance=1.0)\nout = box(z)\n' + said
    elif form == "box on X @ w":
        asked, per_row = "w", False
        text = box + 'm = hg.Model()\nw = m.gaussian("w", np.zeros(2), covariance=np.eye(2))\n'
        text += "out = box(np.column_stack([{x}, {z}]) @ w)\n" + said
    elif form == "regression":
        asked, per_row = "w", False
        rows["y"] = rng.integers(0, 2, n)
        text = 'm = hg.Model()\nw = m.gaussian("w", np.zeros(2), covariance=np.eye(2))\n'
        text += (
            f'm.bernoulli("y", {rng.choice(["logit", "probit"])}=np.column_stack([{{x}}, {{z}}]) @ w, observed={{y}})'
        )
    elif form == "games":
        asked, per_row = "s", False
        k = int(rng.integers(2, 7))
        rows["x"] = rng.integers(0, k, n)
        rows["z"] = (rows["x"] + rng.integers(1, k, n)) % k
        text = f'm = hg.Model()\ns = m.gaussian("s", 0.0, variance={{unit}}**2, size={k})\n'
        text += 'a = m.gaussian("a", s[{x}], variance={unit}**2)\n'
        text += 'b = m.gaussian("b", s[{z}], variance={unit}**2)\nm.constrain(a > b)'
    elif form == "two units":  # of one unknown and of what is seen, while the other keeps its own
        asked, per_row = "a", False
        rows["x"] = rounded(rng.uniform(0.3, 3.0, n), 3)
        shape = str(rng.choice(["(a * {x}) * b", "decay(a, b, {x})", "m.maximum(a * {x}, {unit} * b)"]))
        curve = 2.0 * rows["x"] * 1.5 if "*" in shape else 2.0 * np.exp(-0.7 * rows["x"])
        rows["y"] = rounded(curve + 0.1 * rng.standard_normal(n))
        text = "@hg.factor(output=hg.Gaussian)\ndef decay(a, b, x):\n    return a * np.exp(-0.5 * b * x)\n"
        text += 'm = hg.Model()\na = m.gaussian("a", 2.0 * {unit}, sd=0.5 * {unit})\nb = m.gaussian("b", 1.5, sd=0.2)\n'
        text += f'm.gaussian("y", {shape}, sd=0.3 * {{unit}}, observed={{unit}} * {{y}})'
    else:
        asked, per_row = "x", True
        rows["y"] = rounded(rows["x"] + rng.normal(0, 1, n))
        text = 'm = hg.Model()\nx = m.gaussian("x", {x}, variance=1.0)\nt = m.gamma("t", 3.0, 2.0, size={n})\n'
        text += 'm.gaussian("y", x, precision=t, observed={y})'
    order = rng.permutation(n)
    unit = float(10.0 ** rng.integers(-6, 7)) if form in ("games", "two units") else 1.0
    seen = n if form == "two units" else 0  # densities of what is seen, in the other unit

    def write(order: np.ndarray, unit: float) -> str:
        values = {name: literal(v[order]) for name, v in rows.items()}
        for name, value in {**values, "unit": repr(unit), "n": str(n)}.items():
            text_of[name] = value
        result = text
        for name, value in text_of.items():
            result = result.replace("{" + name + "}", value)
        return result

    text_of: dict[str, str] = {}
    first = World(kind, seed, write(np.arange(n), 1.0), "rewritten", None, settings)
    source = write(order, unit)
    answer = _answer(first, asked, order if per_row else None, unit, seen)
    return World(kind, seed, source, "rewritten", answer, settings)


def _answer(first: World, asked: str, order: np.ndarray | None, unit: float, seen: int) -> Callable[[], Truth]:
    def truth() -> Truth:
        _, beliefs, log_evidence = answer_of(first)
        mean, sd = np.asarray(beliefs[asked].mean), np.sqrt(np.asarray(beliefs[asked].variance))
        if order is not None:
            mean, sd = mean[order], sd[order]
        log_evidence -= seen * np.log(unit)
        known = log_evidence if np.isfinite(log_evidence) else None  # of a run that said that a row failed
        return Truth({asked: unit * mean}, {asked: unit * sd}, log_evidence=known)

    return truth
