"""Experiment 2: how uncertainty behaves along two curves of messages, and whether small uncertainty means small error."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from heliograph.families import Beta, Gaussian
from heliograph.families.coordinates import logs_of
from heliograph.kernels import median_heuristic
from heliograph.paper.batch.kernels import HOUSE, PROGRAM, Grid, Sizes, decoded, encoded, kernel_grid, select
from heliograph.paper.batch.learned import learned
from heliograph.paper.batch.messages import Labelled, labelled_messages, log_kl_of
from heliograph.paper.batch.methods import columns_of
from heliograph.paper.batch.methods import with_mode_value as seen_by_trees
from heliograph.paper.columns import KJIT, published
from heliograph.paper.exp1.parts import FULL as EXP1_FULL
from heliograph.paper.exp1.parts import QUICK as EXP1_QUICK
from heliograph.paper.rivals.forest import Agreement, ForestLearner
from heliograph.paper.rivals.forests import ExtraTrees, RandomForest
from heliograph.paper.running.parts import Outcome, Part, plain_settings, split_by_method
from heliograph.regression import bayesian_linear as linear

__all__ = ["FULL", "METHODS", "QUICK", "assemble", "curves", "doubt_of_method", "headlines", "parts_of", "smoothness"]

NOISE = 1e-4  # the paper's output noise
_LEVELS = (1e-4, 1e-3, 1e-2, 1e-1)  # nats above which certain predictions are counted
_LEAST, _MOST = 1e-17, 1e6  # doubts are cut here, so that their logarithms are numbers

FULL: dict[str, Any] = {
    "methods": (*KJIT, "eslami forest", "random forest", "extra trees", "learned"),
    "n_train": EXP1_FULL["n_train"],
    "n_test": EXP1_FULL["n_test"],
    "sizes": EXP1_FULL["sizes"],
    # the curves were drawn through and beside the messages of the authors' program; here with exact labels
    "messages": {**EXP1_FULL["sampled"], "particles": 0},
    "n_curve": 500,
    "wrong_kl": 0.1,  # nats: a mean off by 0.45 deviations, which is visible in a plot
    "thresholds": {
        **dict.fromkeys(KJIT, -8.5),
        "eslami forest": -6.0,
        "random forest": -6.0,
        "extra trees": -6.0,
    },
    "tolerance": 1e-3 / 300,  # nats per message of a problem with 300 of them: where the default operator is certain
}
QUICK: dict[str, Any] = {
    **FULL,
    "n_train": 1500,
    "n_test": 800,
    "sizes": {**EXP1_QUICK["sizes"], "D_in": 200, "D_out": 400},
    "messages": {**EXP1_QUICK["sampled"], "particles": 0},
}


def curves(n: int = 500) -> tuple[np.ndarray, np.ndarray]:
    """Means ``(n,)`` and log precisions ``(2, n)`` of the messages along the two test curves."""
    m = np.linspace(-13, 13, n)
    return m, np.stack([0.02 * m + 2.6, -0.02 * m**2 + 1.6])


def smoothness(log_doubt: np.ndarray) -> tuple[float, float]:
    """Total variation and biggest jump of a curve.

    >>> smoothness(np.array([0.0, 2.0, 1.0]))
    (3.0, 2.0)
    """
    steps = np.abs(np.diff(log_doubt))
    return float(steps.sum()), float(steps.max())


class Doubtful(NamedTuple):
    """A method that predicts beliefs and states an uncertainty."""

    answer: Callable[[dict[str, Any]], tuple[Gaussian, np.ndarray]]  # beliefs and log doubts
    uncertainty: str  # what is used as uncertainty


# ---- the methods -----------------------------------------------------------------------------------------------------
def _text(rng: np.random.Generator, data: Labelled, sizes: Sizes) -> Doubtful:
    """Widths by leave-one-out at the ridge that it will have, noise over a prior variance of 1; expected statistics."""
    y = encoded(data.belief, "statistics")
    grid = Grid(HOUSE.inner, HOUSE.outer, (NOISE,))
    (found,) = select(rng, kernel_grid("joint_gaussian", data.incoming, grid, "exact"), data, y, sizes, grid)
    return _bayesian(found.map, data, "statistics")


def _house(rng: np.random.Generator, data: Labelled, sizes: Sizes) -> Doubtful:
    """The operator of experiments 3 and 5: the median heuristic, mean and log variance."""
    return _bayesian(median_heuristic(data.incoming).features(rng, sizes.D_out, sizes.D_in), data, "log")


def _bayesian(feature_map: Any, data: Labelled, target: str) -> Doubtful:
    posterior = linear.fit(feature_map.features(data.incoming), encoded(data.belief, target), 1.0, NOISE)

    def answer(incoming: dict[str, Any]) -> tuple[Gaussian, np.ndarray]:
        mean, variance = linear.predict(posterior, feature_map.features(incoming))
        return decoded(mean, target), np.log(variance + NOISE)  # eq. (15)

    return Doubtful(answer, "log predictive variance of the mean")


def _program(rng: np.random.Generator, data: Labelled, sizes: Sizes) -> Doubtful:
    """Experiment 1's operator: every output has widths, features and a ridge of its own.

    The variance is the program's, ``x' (X X' + ridge I)^-1 x + ridge``: eq. (15) has the noise in front of the first term
    too.
    """
    y = encoded(data.belief)
    found = select(rng, kernel_grid("joint_gaussian", data.incoming, PROGRAM), data, y, sizes, PROGRAM)
    fits = [
        linear.fit(c.map.features(data.incoming), y[:, [j]], 1.0, c.ridge) for j, c in enumerate(found)
    ]  # a prior variance of 1 and this noise: its covariance is the ridge times theirs

    def answer(incoming: dict[str, Any]) -> tuple[Gaussian, np.ndarray]:
        each = [linear.predict(fit, c.map.features(incoming)) for fit, c in zip(fits, found, strict=True)]
        of_mean = each[0][1] / found[0].ridge + found[0].ridge
        return decoded(np.concatenate([m for m, _ in each], axis=1)), np.log(of_mean)

    return Doubtful(answer, "log predictive variance of the mean")


def _eslami(rng: np.random.Generator, data: Labelled, sizes: Sizes) -> Doubtful:
    forest = ForestLearner(sizes.n_trees)
    forest.fit(rng, "z", seen_by_trees(data.incoming), encoded(data.belief))

    def answer(incoming: dict[str, Any]) -> tuple[Gaussian, np.ndarray]:
        mean, doubt = forest.predict(seen_by_trees(incoming))
        return decoded(mean), _log(doubt[:, 0])

    return Doubtful(answer, "log mean KL of the trees' beliefs from their average")


def _trees(kind: Any) -> Callable[..., Doubtful]:
    def fit(rng: np.random.Generator, data: Labelled, sizes: Sizes) -> Doubtful:
        forest = kind(sizes.n_trees, random_state=int(rng.integers(2**31)))
        forest.fit(columns_of(data.incoming), encoded(data.belief))
        agreement = Agreement(logs_of(Gaussian))

        def answer(incoming: dict[str, Any]) -> tuple[Gaussian, np.ndarray]:
            trees = forest.trees(columns_of(incoming))
            return decoded(trees.mean(axis=0)), _log(agreement.disagreement(trees))

        return Doubtful(answer, "log mean KL of the trees' beliefs from their average")

    return fit


def _ours(rng: np.random.Generator, data: Labelled, sizes: Sizes) -> Doubtful:
    model = learned(data)

    def answer(incoming: dict[str, Any]) -> tuple[Gaussian, np.ndarray]:
        prediction = model.predict(incoming)
        return prediction.belief, _log(prediction.expected_kl)

    return Doubtful(answer, "log expected KL")


def _log(doubt: np.ndarray) -> np.ndarray:
    return np.log(np.clip(doubt, _LEAST, _MOST))


METHODS: dict[str, Callable[..., Doubtful]] = {
    "kjit (text)": _text,
    "kjit (program)": _program,
    "kjit (house)": _house,
    "eslami forest": _eslami,
    "random forest": _trees(RandomForest),
    "extra trees": _trees(ExtraTrees),
    "learned": _ours,
}


# ---- parts -----------------------------------------------------------------------------------------------------------
def doubt_of_method(
    method: str,
    seed: int,
    n_train: int,
    n_test: int,
    sizes: Mapping[str, int],
    messages: Mapping[str, int],
    n_curve: int,
    wrong_kl: float,
    threshold: float,
) -> dict[str, Any]:
    """Train one method on exact labels; its doubt along the curves, and doubt beside error on test messages."""
    data, test = labelled_messages(seed, n_train=n_train, n_test=n_test, **messages)
    model = METHODS[method](np.random.default_rng([seed, 1]), data, Sizes(**sizes))
    m, log_precision = curves(n_curve)
    out = Beta(np.ones(n_curve), 2.0)
    along = np.stack([model.answer({"z": Gaussian(m, np.exp(-lp)), "out": out})[1] for lp in log_precision])
    log_doubt, log_kl = _errors(model, test)
    train_doubt, train_kl = _errors(model, data)
    measured = [smoothness(curve) for curve in along]
    return {
        "total_variation": [tv for tv, _ in measured],
        "biggest_jump": [jump for _, jump in measured],
        "mean_log_uncertainty": [float(curve.mean()) for curve in along],
        "certain_means": f"{model.uncertainty} below {threshold:.4g}",
        **_certain(log_doubt < threshold, log_kl, wrong_kl),
        "threshold": threshold,
        "n_test": len(test),
        "n_no_belief": len(test) - len(log_kl),
        "mean_log_kl": float(log_kl.mean()),
        "train_mean_log_kl": float(train_kl.mean()),
        "rank_correlation": _rank_correlation(log_doubt, log_kl),
        "uncertainty": model.uncertainty,
        "series": {
            "log_uncertainty": along,
            "test_log_uncertainty": log_doubt,
            "test_log_kl": log_kl,
            "train_log_uncertainty": train_doubt,
            "train_log_kl": train_kl,
        },
    }


def _certain(certain: np.ndarray, log_kl: np.ndarray, wrong_kl: float) -> dict[str, Any]:
    """How wrong the predictions are that a method is certain about."""
    return {
        "wrong_log_kl": float(np.log(wrong_kl)),
        "wrong_means": f"KL(exact belief || predicted belief) above {wrong_kl:g} nats",
        "certain_and_wrong": int((certain & (log_kl > np.log(wrong_kl))).sum()),
        "certain_above": {f"{kl:g}": int((certain & (log_kl > np.log(kl))).sum()) for kl in _LEVELS},
        "certain_worst_log_kl": float(log_kl[certain].max()) if certain.any() else None,
        "n_certain": int(certain.sum()),
    }


def _rank_correlation(a: np.ndarray, b: np.ndarray) -> float | None:
    """Spearman's; there is none if all doubts, or all errors, are the same (below rounding)."""
    from scipy.stats import rankdata  # loading it takes half a second

    return float(np.corrcoef(rankdata(a), rankdata(b))[0, 1]) if np.ptp(a) > 0 and np.ptp(b) > 0 else None


def _errors(model: Doubtful, data: Labelled) -> tuple[np.ndarray, np.ndarray]:
    """Log doubt and log KL of every message that a belief was predicted for."""
    belief, log_doubt = model.answer(data.incoming)
    log_kl = log_kl_of(data.belief, belief)
    there = np.isfinite(log_kl)
    return log_doubt[there], log_kl[there]


def training_messages(seed: int, n_train: int, n_test: int, messages: Mapping[str, int]) -> dict[str, Any]:
    """The messages to z that were learned, beside which the curves are drawn."""
    data, _ = labelled_messages(seed, n_train=n_train, n_test=n_test, **messages)
    z = data.incoming["z"]
    return {"series": {"mean": z.mean, "log_precision": np.log(z.precision)}}


def parts_of(settings: Mapping[str, Any], seed: int) -> list[Part]:
    """The training messages, and a method each."""
    shared = {"seed": seed, **{k: settings[k] for k in ("n_train", "n_test", "messages")}}
    made = [Part("exp2 training messages", training_messages, shared)]
    own = {**shared, **{k: settings[k] for k in ("sizes", "n_curve", "wrong_kl")}}
    for method in settings["methods"]:
        threshold = settings["thresholds"].get(method, float(np.log(settings["tolerance"])))
        made.append(Part(f"exp2 {method}", doubt_of_method, {**own, "method": method, "threshold": threshold}))
    return made


def assemble(settings: Mapping[str, Any], seed: int, results: Mapping[str, dict[str, Any]]) -> Outcome:
    """Methods, and the curves they were tried along."""
    m, log_precision = curves(settings["n_curve"])
    methods, of_methods = split_by_method(settings, results, "exp2")
    series: dict[str, Any] = {"curves": {"mean": m, "log_precision": log_precision}, "methods": of_methods}
    if "exp2 training messages" in results:
        series["training"] = results["exp2 training messages"]["series"]
    json = {"experiment": "exp2", "settings": plain_settings(settings, seed), "methods": methods}
    return Outcome({**json, "paper": published("exp2")}, series)


def headlines(json: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """What is shown as a spread over seeds."""
    found = {}
    for method, row in json["methods"].items():
        both = {"total variation": "total_variation", "biggest jump": "biggest_jump", "mean": "mean_log_uncertainty"}
        found[method] = {f"{name}, set {k + 1}": row[key][k] for name, key in both.items() for k in (0, 1)}
        found[method] |= {"rank correlation": row["rank_correlation"], "certain and wrong": row["certain_and_wrong"]}
        found[method]["certain"] = row["n_certain"]
        found[method] |= {"mean log KL, test": row["mean_log_kl"], "train": row["train_mean_log_kl"]}
    return found
