"""Reasons and remarks of docs/results/reproduced.md that the experiments themselves do not test, each put to a test of its own.

    python -m benchmarks.paper_reasons                                  # all, about three minutes; or some of their names
    python -m benchmarks.paper_reasons --json docs/results/reasons.json  # kept, for docs/results/make_tables.py

`TESTS`, at the end, lists the questions. Seeds are fixed; nothing depends on the clock.
"""

import argparse
import json
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import numpy as np

from heliograph.factors import CompoundGamma, LogisticBernoulli
from heliograph.factors.black_box import RunOptions
from heliograph.families import Bernoulli, Beta, Gamma, Gaussian, MultivariateGaussian, concatenate
from heliograph.operators.kjit.kernel_learner import Kjit
from heliograph.oracles import QuadratureOracle
from heliograph.paper.batch.kernels import decoded, encoded
from heliograph.paper.batch.messages import labelled_messages, log_kl_of
from heliograph.paper.batch.methods import columns_of
from heliograph.paper.columns import kjit_settings
from heliograph.paper.datasets import LogisticProblem, logistic_regression_problem
from heliograph.paper.exp1.parts import FULL, QUICK
from heliograph.paper.exp4.parts import compound_gamma_factor, incoming_messages
from heliograph.paper.rivals.eslami2014 import EslamiForest
from heliograph.paper.sequences.logistic import synthetic_sequence
from heliograph.paper.sequences.parts import level_of

COLUMNS = ("kjit (text)", "kjit (program)")
SEQUENCE = {"d": 20, "n": 300, "sweeps": 10, "particles": 50_000}  # of experiment 3, with the draws of its quick size


# ---- calls -----------------------------------------------------------------------------------------------------------
def calls(heads: int = 5, tails: int = 2, features: int = 2) -> Iterator[str]:
    """Shares of the variance of the logarithm of the number of calls."""
    for name in COLUMNS:
        found = np.array([_calls_of(name, *seeds) for seeds in product(range(heads), range(tails), range(features))])
        table = np.log(found.reshape(heads, tails, features))
        shares = [table.mean(axis=rest).var() / table.var() for rest in ((1, 2), (0, 2), (0, 1))]
        split = "{:.0%} with the first 20 messages, {:.0%} with the other problems, {:.0%} with the features".format(
            *shares
        )
        yield (
            f"{name}: {np.median(found):.0f} ({found.min()} to {found.max()}) calls in {found.size} runs; of the variance of the "
            f"logarithm {split}, {1 - sum(shares):.0%} with how they meet"
        )


def _calls_of(name: str, head: int, tail: int, features: int, n: int = 1500, minibatch: int = 20) -> int:
    """The problems that KJIT asks about; `head`, `tail` and `features` are seeds."""
    tau = concatenate([incoming_messages(head, minibatch), incoming_messages(1000 + tail, n)[minibatch:]])
    operator, box = Kjit(**kjit_settings("exp4", name)), compound_gamma_factor()
    operator.view = lambda rng, incoming, setting: ({"tau": incoming["tau"]}, 0)
    options = RunOptions(np.random.default_rng([features, 4]), operator, QuadratureOracle(), 1e-3)
    on_p = Beta(np.array([3.0]), 1.0)
    return sum(int(box.send("tau", {"tau": tau[k : k + 1], "out": on_p}, options).asked[0]) for k in range(n))


# ---- level -----------------------------------------------------------------------------------------------------------
def level(n_problems: int = 4) -> Iterator[str]:
    """The level of experiment 3 for other thresholds, and for another noise of the regression."""
    for name in COLUMNS:
        found = []
        for threshold, noise in ((-8.5, 1e-4), (-7.5, 1e-4), (-6.0, 1e-4), (-6.0, 1e-3)):
            given = {**kjit_settings("exp3", name), "threshold": threshold, "noise": noise}
            row = synthetic_sequence(name, 0, n_problems, n_test=100, operator=given, **SEQUENCE)
            settled, _ = level_of(row["series"]["log_variance"])
            found.append(
                f"{settled:.2f} with threshold {threshold} and noise {noise:g} ({sum(row['oracle_calls'])} calls)"
            )
        yield f"{name} settles at {', '.join(found)}; log 1e-4 is -9.21, log 1e-3 is -6.91"


# ---- forest ----------------------------------------------------------------------------------------------------------
def forest() -> Iterator[str]:
    """Mean and standard deviation of the log KL, on sampled labels as in the paper, at the quick size."""
    data, test = labelled_messages(0, n_train=QUICK["n_train"], n_test=QUICK["n_test"], **QUICK["sampled"])
    x, x_test = columns_of(data.incoming), columns_of(test.incoming)
    logs, moments = (encoded, decoded), (_moments_of, _from_moments)
    found = []
    for name, (encode, decode), view, ridge in (
        ("with quadratic leaves, logarithms and a ridge of 1e-6", logs, np.array, 1e-6),
        ("with a ridge of 1e-3", logs, np.array, 1e-3),
        ("with a ridge of 1", logs, np.array, 1.0),
        ("with variances in place of logarithms", moments, _without_logs, 1e-6),
        ("with these and a ridge of 1", moments, _without_logs, 1.0),
        ("with leaves that are constant", logs, np.array, 1e6),
    ):
        model = EslamiForest(ridge=ridge).fit(view(x), encode(data.belief))
        log_kl = log_kl_of(test.belief, decode(model.predict(view(x_test))[0]))
        known = log_kl[np.isfinite(log_kl)]
        found.append(f"{known.mean():.2f} (sd {known.std():.2f}) {name}")
    yield f"mean log KL {', '.join(found)}; the paper's own has -6.94 (3.88)"


def _without_logs(columns: np.ndarray) -> np.ndarray:
    """Locations and spreads in turn, the logarithms of the spreads undone."""
    return np.where(np.arange(columns.shape[1]) % 2, np.exp(columns), columns)


def _moments_of(belief: Gaussian) -> np.ndarray:
    return np.stack([belief.mean, belief.variance], axis=-1)


def _from_moments(y: np.ndarray) -> Gaussian:
    mean, variance = y.T
    return Gaussian(mean, np.where(variance > 0, variance, 1.0)).without(variance <= 0)


# ---- nodes -----------------------------------------------------------------------------------------------------------
def nodes() -> Iterator[str]:
    """The largest relative error of the mean and the integral with 200 nodes, against twenty times as many."""
    tau = incoming_messages(0, 1500)
    few, many = (_mean_and_integral(tau, k) for k in (200, 4000))
    worst = max(float(np.abs(a / b - 1).max()) for a, b in zip(few, many, strict=True))
    off = float(np.abs(few[0] / CompoundGamma().belief("tau", {"tau": tau}).mean - 1).max())
    yield f"200 nodes against 4,000 over 1,500 problems: relative error at most {worst:.1e}; against the closed factor {off:.1e}"


def _mean_and_integral(tau: Gamma, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Of ``Gamma(tau) (1 + tau)^-2``, by n equal steps of log tau where the density is above e^-40 of its top."""
    a, b = (k[:, None] for k in tau.naturals)

    def log_density(u: np.ndarray) -> np.ndarray:
        return (a + 1) * u - b * np.exp(u) - 2 * np.log1p(np.exp(u))

    coarse = np.log(tau.mean)[:, None] + np.linspace(-40, 10, 5001)
    height = log_density(coarse)
    above = height > height.max(axis=1, keepdims=True) - 40
    first, last = np.argmax(above, axis=1), above.shape[1] - 1 - np.argmax(above[:, ::-1], axis=1)
    rows = np.arange(len(first))
    low, high = coarse[rows, first], coarse[rows, last]
    u = np.linspace(low, high, n, axis=1)
    p = np.exp(log_density(u) - height.max(axis=1, keepdims=True)) * ((high - low) / (n - 1))[:, None]
    return (p * np.exp(u)).sum(1) / p.sum(1), p.sum(1)


# ---- gain ------------------------------------------------------------------------------------------------------------
def gain(n_problems: int = 10) -> Iterator[str]:
    """Disagreement with the best labels, and distance from exact EP, when every message is wrong by this much and no more."""
    w = np.random.default_rng([0, 2**31]).standard_normal(20)
    problems = [logistic_regression_problem(np.random.default_rng([0, k]), w=w) for k in range(n_problems)]
    exact = [_by_ep(one, -np.inf, np.random.default_rng(0)) for one in problems]
    found = []
    for log_kl in (-4.0, -6.0, -8.0, -10.0, -np.inf):
        noisy = [_by_ep(one, log_kl, np.random.default_rng(k)) for k, one in enumerate(problems)]
        wrong = [np.mean((one.X_test @ m > 0) != one.bayes_label) for one, (m, _) in zip(problems, noisy, strict=True)]
        kl = [MultivariateGaussian(*a).kl(MultivariateGaussian(*b)) for a, b in zip(exact, noisy, strict=True)]
        found.append(
            f"{np.mean(wrong):.4f} and {np.median(kl):.2g} nats at {log_kl:g}"
            if np.isfinite(log_kl)
            else f"{np.mean(wrong):.4f} with exact messages"
        )
    yield f"disagreement with the best labels, and KL from exact EP, by the log KL of every message: {', '.join(found)}"


def _by_ep(problem: LogisticProblem, log_kl: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Ten sweeps of EP by hand; the mean of every belief of z is moved, up or down, until its KL is this."""
    x, y = problem.X, Bernoulli.point_mass(problem.y)
    tau, nu = np.zeros(len(x)), np.zeros(len(x))
    for sweep in range(11):
        covariance = np.linalg.inv(np.eye(x.shape[1]) + (x.T * tau) @ x)
        mean = covariance @ (x.T @ nu)
        if sweep == 10:
            break
        v, m = np.einsum("ni,ij,nj->n", x, covariance, x), x @ mean
        shift, precision = m / v - nu, 1 / v - tau
        belief = LogisticBernoulli().belief("z", {"z": Gaussian.from_naturals((shift, precision)), "y": y})
        moved = belief.mean + rng.choice([-1.0, 1.0], len(x)) * np.sqrt(2 * belief.variance * np.exp(log_kl))
        tau, nu = 1 / belief.variance - precision, moved / belief.variance - shift
    return mean, covariance


# ---- chains ----------------------------------------------------------------------------------------------------------
def chains() -> Iterator[str]:
    """Depths of a forest that learns messages in the order of their means, and of one that learns them in a random order."""
    data, _ = labelled_messages(0, n_train=4000, n_test=10, **{**FULL["exact"], "n_problems": 4, "keep_sweeps": 10})
    x, y = columns_of(data.incoming), encoded(data.belief)
    orders = {"by their means": np.argsort(x[:, 0]), "shuffled": np.random.default_rng(0).permutation(len(x))}
    for name, order in orders.items():
        forest = EslamiForest(n_trees=8).fit(x[order[:100]], y[order[:100]])
        depths = []
        for k in range(100, len(order), 50):
            forest.update(x[order[k : k + 50]], y[order[k : k + 50]])
            if k + 50 in (500, 1000, 2000, 4000):
                depths.append(f"{_deepest(forest)} after {k + 50}")
        yield f"messages that come {name}: deepest leaf {', '.join(depths)} (balanced trees would have 7 in the end)"


def _deepest(forest: EslamiForest) -> int:
    depth = np.zeros(forest.n_nodes_, dtype=int)
    for node in range(forest.n_nodes_):  # children come after their parents
        if forest.feature_[node] >= 0:
            depth[forest.child_[node] : forest.child_[node] + 2] = depth[node] + 1
    return int(depth.max())


TESTS: dict[str, tuple[str, Callable[[], Iterator[str]]]] = {
    "gain": (
        "Does a log KL of messages below -8 bring no gain in EP, as the paper says? Each is moved until it is so wrong.",
        gain,
    ),
    "forest": (
        "Does the forest of exp1 owe its lead over the paper's own to quadratic leaves, logarithms and a tiny ridge?",
        forest,
    ),
    "level": (
        "Does the level at which the uncertainty of exp3 settles follow the threshold above which KJIT asks, or the noise that the "
        "regression is told of?",
        level,
    ),
    "chains": ("Do forests that split leaves online become long chains, as the paper says?", chains),
    "calls": (
        "Is the number of oracle calls in exp4 luck of the first 20 messages? These, the later problems and the random features "
        "are drawn apart, each with every other.",
        calls,
    ),
    "nodes": ("Do 200 nodes give the integral of exp4 to 14 digits?", nodes),
}


def main() -> None:
    """Print what is found, and keep it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=list(TESTS), metavar="name", help=", ".join(TESTS))
    parser.add_argument("--json", type=Path, help="where to keep what is found, beside what other tests found")
    options = parser.parse_args()
    for name in options.names:
        question, test = TESTS[name]
        print(f"{name}: {question}", flush=True)
        found = []
        for sentence in test():
            print(f"    {sentence}", flush=True)
            found.append(sentence)
        if options.json:
            keep(options.json, {"name": name, "question": question, "found": found})


def keep(path: Path, row: dict[str, object]) -> None:
    """Put what one test found in the place of what it found before; the others stay."""
    before = {one["name"]: one for one in json.loads(path.read_text())} if path.exists() else {}
    before[row["name"]] = row
    rows = [before[name] for name in TESTS if name in before]
    path.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
