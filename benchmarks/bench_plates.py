"""Learned messages against asked ones on plates of every size: trees and loops, six factors.

    python benchmarks/bench_plates.py                        # every size from 1 to 60
    python benchmarks/bench_plates.py --sizes 1,2,3,7,20,21,50 --factors asinh,pair

A tree gives each row variables of its own, a loop lets all rows share the coefficients of a regression. Prints by factor and
shape the worst KL(asked || learned) of the unknowns over the sizes, which size it was, how many sizes kept the tolerance
and how many estimates covered what was realised. The oracle is quadrature for both, but for the stochastic factor: there what is
asked is replaced by the hand-made factor of which the black box is a sampler.
"""

import argparse
import time
import warnings

import numpy as np
from scipy.special import expit
from threadpoolctl import threadpool_limits

import heliograph as hg

TOLERANCE = 1e-3
SETTLED = hg.changed_less_than(1e-10) | hg.after(200)  # what is compared are messages, not how far EP was from its end


def asinh():
    @hg.factor(output=hg.Gaussian)
    def box(z):
        return np.arcsinh(3 * z)

    return box, lambda model, out, z, rng: model.gaussian(
        "y", out, variance=0.3, observed=np.arcsinh(3 * z) + 0.5 * rng.standard_normal(len(z))
    )


def logistic():
    @hg.factor(output=hg.Beta)
    def box(z):
        return expit(z)

    def observe(model, out, z, rng):
        counts = rng.binomial(8, expit(z))
        model.attach(out, hg.Beta(1.0 + counts, 9.0 - counts))

    return box, observe


def exp():
    @hg.factor(output=hg.Gamma)
    def box(z):
        return np.exp(np.minimum(z, 50.0))

    return box, lambda model, out, z, rng: model.poisson("y", out, observed=rng.poisson(np.exp(z)))


def square():
    @hg.factor(output=hg.Gaussian)
    def box(z):
        return z**2

    return box, lambda model, out, z, rng: model.gaussian(
        "y", out, variance=0.5, observed=z**2 + 0.7 * rng.standard_normal(len(z))
    )


def pair():
    @hg.factor(output=hg.Gaussian)
    def box(z, b):
        return z + np.tanh(b)

    return box, lambda model, out, z, rng: model.gaussian(
        "y", out, variance=0.5, observed=z + 0.7 * rng.standard_normal(len(z))
    )


def threshold():
    @hg.factor(output=hg.Bernoulli)
    def box(z, rng):
        return (z + rng.logistic(size=z.shape) > 0).astype(float)

    def observe(model, out, z, rng):
        y = (rng.random(len(z)) < expit(z)).astype(float)
        if out is None:
            return y
        return model.observe(out, y)

    return box, observe


FACTORS = {f.__name__: f for f in (asinh, logistic, exp, square, pair, threshold)}


def build(name, shape, n, box, observe, by_hand=False):
    """The model and its unknowns."""
    rng = np.random.default_rng([n, sum(map(ord, name))])
    model = hg.Model()
    if shape == "tree":
        x = z = model.gaussian("x", 0.3, variance=1.0, size=n)
        truth = 0.3 + rng.standard_normal(n)
    else:
        design = np.column_stack([np.ones(n), rng.standard_normal((n, 2))])
        x = model.gaussian("w", np.array([0.5, 0.0, 0.0]), covariance=np.eye(3))
        z, truth = design @ x, design @ np.array([0.5, 0.8, -0.4])
    unknowns, inputs = [x], [z]
    if name == "pair":
        b = model.gaussian("b", 0.2, variance=0.5, size=n)
        unknowns.append(b), inputs.append(b)
    if by_hand:
        model.bernoulli("y", model.sigmoid(z), observed=observe(model, None, truth, rng))
    else:
        observe(model, box(*inputs), truth, rng)
    return model, unknowns


def compare(name, shape, n, tolerance=TOLERANCE):
    """Realised error of a new factor's learned messages on one plate, its estimate, and whether both runs settled."""
    box, observe = FACTORS[name]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        by_hand = name == "threshold"
        model, unknowns = build(name, shape, n, box, observe, by_hand)
        if by_hand:
            asked = model.infer(stop=SETTLED, progress=False)
        else:
            asked = model.infer(operator="ask", oracle="quadrature", stop=SETTLED, progress=False)
        truth = [asked[u] for u in unknowns]
        model, unknowns = build(name, shape, n, box, observe)
        oracle = None if by_hand else "quadrature"
        learned = model.infer(oracle=oracle, tolerance=tolerance, stop=SETTLED, seed=n, progress=False)
    realised = sum(float(np.sum(a.kl(learned[u]))) for a, u in zip(truth, unknowns, strict=True))
    return realised, learned.error_estimate, bool(asked.converged and learned.converged)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default=",".join(map(str, range(1, 61))))
    parser.add_argument("--factors", default=",".join(FACTORS))
    parser.add_argument("--shapes", default="tree,loop")
    options = parser.parse_args()
    sizes = [int(n) for n in options.sizes.split(",")]
    print(
        f"{'factor':12}{'shape':7}{'sizes':>6}{'worst KL':>11}{'at n':>6}{'kept':>7}{'covered':>9}{'settled':>9}{'s':>7}"
    )
    with threadpool_limits(1):
        for name in options.factors.split(","):
            for shape in options.shapes.split(","):
                started = time.perf_counter()
                found = [compare(name, shape, n) for n in sizes]
                realised, estimate, settled = map(np.array, zip(*found, strict=True))
                worst = int(np.argmax(np.nan_to_num(realised, nan=np.inf)))
                print(
                    f"{name:12}{shape:7}{len(sizes):6}{realised[worst]:11.1e}{sizes[worst]:6}"
                    f"{int((realised <= TOLERANCE).sum()):7}{int((estimate >= realised - 1e-9).sum()):9}"
                    f"{int(settled.sum()):9}{time.perf_counter() - started:7.1f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
