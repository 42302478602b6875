"""Models that contradict themselves, and data that no parameter could have given: the only right answer is to say so."""

# ruff: noqa: E501  (a model per line)

from __future__ import annotations

import numpy as np

from benchmarks.truth.world import World, literal, rounded

__all__ = ["impossible"]


def impossible(rng: np.random.Generator, kind: str, seed: int) -> World:
    """One of two dozen contradictions, with random numbers."""
    c = rounded(rng.normal(0, 2))
    gap = rounded(10 ** rng.uniform(-3, 2), 3)
    n = int(rng.choice([1, 3, 20]))
    i = int(rng.integers(n))
    bounds = np.full(n, -3.0)
    bounds[i] = 1.5
    box = "@hg.factor(output=hg.{0})\ndef box(z):\n    return {1}\nm = hg.Model()\nx = m.gaussian('x', 0.0, variance=1.0, size={2})\n"
    lower = f"x = m.gaussian('x', {c}, variance={gap})\n"
    plate = f"x = m.gaussian('x', 0.0, variance=1.0, size={n})\n"
    ones = literal(np.ones(n))
    models = {
        "two bounds": lower + f"m.constrain(x > {c + gap})\nm.constrain(x < {c})",
        "two bounds of a plate": plate + f"m.constrain(x > {literal(bounds)})\nm.constrain(x < 1.0)",
        "bound and interval": lower + f"m.constrain(m.between(x, {c}, {c + gap}))\nm.constrain(x > {c + 2 * gap})",
        "two intervals": lower + f"m.constrain(m.between(x, {c}, {c + gap}))\nm.constrain(m.between(x, {c + 2 * gap}, {c + 3 * gap}))",
        "order in a circle": plate.replace(f"size={n}", "size=3")
        + "m.constrain(x[0] > x[1])\nm.constrain(x[1] > x[2])\nm.constrain(x[2] > x[0])",
        "greater both ways": "a = m.gaussian('a', 0.0, variance=1.0)\nb = m.gaussian('b', 0.0, variance=1.0)\n"
        "m.constrain(a > b)\nm.constrain(b > a)",
        "observed below its bound": f"x = m.gaussian('x', 0.0, variance=1.0, observed={c})\nm.constrain(x > {c + gap})",
        "equal and observed": f"a = m.gaussian('a', 0.0, variance=1.0, observed={c})\n"
        f"b = m.gaussian('b', 0.0, variance=1.0, observed={c + gap})\nm.equal(a, b)",
        "sum observed": "a = m.gaussian('a', 0.0, variance=1.0, observed=1.0)\nb = m.gaussian('b', 0.0, variance=1.0, observed=1.0)\n"
        f"s = a + b\nm.observe(s, {2 + gap})",
        "certain event did not happen": "s = m.bernoulli('s', 1.0)\nm.observe(s, 0.0)",
        "impossible category": "s = m.categorical('s', np.array([0.4, 0.6, 0.0]), observed=2)",
        "impossible in a table": "s = m.categorical('s', np.array([0.5, 0.5]))\n"
        "t = m.categorical('t', np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]), given=s, observed=2)",
        "two children disagree": "s = m.categorical('s', np.array([0.5, 0.5]))\n"
        "t = m.categorical('t', np.eye(2), given=s, observed=0)\nu = m.categorical('u', np.eye(2), given=s, observed=1)",
        "equal categories": "a = m.categorical('a', np.array([1.0, 0.0]))\nb = m.categorical('b', np.array([0.0, 1.0]))\nm.equal(a, b)",
        "labels disagree": "p = m.bernoulli('p', 0.5)\nq = m.bernoulli('q', 0.5)\nm.equal(p, q)\nm.observe(p, 1.0)\nm.observe(q, 0.0)",
        "attached disagree": "s = m.categorical('s', np.array([0.5, 0.5]))\nm.attach(s, hg.Categorical(np.array([1.0, 0.0])))\n"
        "m.attach(s, hg.Categorical(np.array([0.0, 1.0])))",
        "negative count": "r = m.gamma('r', 1.0, 1.0)\nm.poisson('y', r, observed=-1)",
        "more than all": "p = m.beta('p', 1.0, 1.0)\nm.binomial('y', 3, p, observed=4)",
        "negative gamma": "r = m.gamma('r', 1.0, 1.0, observed=-2.0)",
        "probability above one": "p = m.beta('p', 1.0, 1.0, observed=1.5)",
        "nan in a prior": "x = m.gaussian('x', np.nan, variance=1.0)",
        "nan in a matrix": "w = m.gaussian('w', np.zeros(2), covariance=np.eye(2))\nz = np.array([[1.0, np.nan]]) @ w\n"
        "m.gaussian('y', z, variance=1.0, observed=np.array([1.0]))",
        "box never says yes": box.format("Bernoulli", "(z > np.inf).astype(float)", n) + f"m.observe(box(x), {ones})",
        "box out of its family": box.format("Beta", "2 + 0 * z", n) + f"m.bernoulli('y', box(x), observed={ones})",
        "box gives nan": box.format("Gaussian", "np.sqrt(-1 - z**2)", n) + f"m.gaussian('y', box(x), variance=1.0, observed={ones})",
        "box gives infinity": box.format("Gaussian", "np.exp(1000 + z)", n) + f"m.gaussian('y', box(x), variance=1.0, observed={ones})",
        "box's constant is not what was seen": box.format("Bernoulli", "0 * z", n) + f"m.observe(box(x), {ones})",
        "another model's variable": "o = hg.Model()\nz = o.gaussian('z', 0.0, variance=1.0)\nm.constrain(z > 1.0)\n"
        "x = m.gaussian('x', 0.0, variance=1.0)",
        "another model's data": "o = hg.Model()\nz = o.gaussian('z', 0.0, variance=1.0)\nm.observe(z, 1.0)\n"
        "x = m.gaussian('x', 0.0, variance=1.0)",
    }  # fmt: skip
    name = list(models)[seed % len(models)]  # every one comes, in turn
    source = models[name] if models[name].startswith("@") else "m = hg.Model()\n" + models[name]
    how = str(rng.choice(["", "kjit", "ask"])) if "@hg" in source else ""
    return World(kind, seed, f"# {name}\n{source}", "impossible", None, {"operator": how} if how else {})
