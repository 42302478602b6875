"""Long runs of elliptical slice sampling (Murray, Adams, MacKay 2010) for the examples, kept for their tests.

``python -m benchmarks.gallery_truth`` writes means and deviations to ``tests/examples/truth.json``. Every model is written a second
time here, as a log likelihood of standard Gaussians, by NumPy and SciPy alone; 256 chains start at draws of the prior.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.special import log_expit, log_ndtr, logsumexp, ndtr

from benchmarks.gallery import ROOT, example

STORED = ROOT / "tests" / "examples" / "truth.json"
CHAINS = 256


class Latent(NamedTuple):
    """A model as a function of white Gaussians."""

    size: int
    log_likelihood: Callable[[np.ndarray], np.ndarray]  # (chains, size) -> (chains,)
    shown: Callable[[np.ndarray], dict[str, np.ndarray]]  # (chains, size) -> our variables


def slices(rng: np.random.Generator, model: Latent, warmup: int, draws: int) -> dict[str, dict[str, Any]]:
    """Means and deviations over all chains and draws."""
    x = rng.standard_normal((CHAINS, model.size))
    level = model.log_likelihood(x)
    sums: dict[str, list[np.ndarray]] = {}
    for k in range(warmup + draws):
        nu, height = rng.standard_normal(x.shape), level + np.log(rng.random(CHAINS))
        angle = rng.uniform(0, 2 * np.pi, CHAINS)
        low, high = angle - 2 * np.pi, angle.copy()
        todo = np.ones(CHAINS, dtype=bool)
        while todo.any():
            i = np.flatnonzero(todo)
            new = x[i] * np.cos(angle[i])[:, None] + nu[i] * np.sin(angle[i])[:, None]
            value = model.log_likelihood(new)
            good = value > height[i]
            x[i[good]], level[i[good]] = new[good], value[good]
            todo[i[good]] = False
            bad = i[~good]
            low[bad] = np.where(angle[bad] < 0, angle[bad], low[bad])
            high[bad] = np.where(angle[bad] >= 0, angle[bad], high[bad])
            angle[bad] = rng.uniform(low[bad], high[bad])
        if k >= warmup:
            for name, value in model.shown(x).items():
                total = sums.setdefault(name, [np.zeros(value.shape[1:]), np.zeros(value.shape[1:])])
                total[0] += value.mean(0)
                total[1] += (value**2).mean(0)
    return {
        n: {"mean": (a / draws).round(5).tolist(), "sd": np.sqrt(b / draws - (a / draws) ** 2).round(5).tolist()}
        for n, (a, b) in sums.items()
    }


def _interval(z: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    return np.log(np.clip(ndtr(high - z) - ndtr(low - z), 1e-30, None)).sum(-1)


def models() -> dict[str, Latent]:
    """The examples whose truth is neither a closed form nor a grid."""
    d = {
        n: example(n).data() for n in (p.stem for p in (ROOT / "examples").glob("*.py")) if hasattr(example(n), "data")
    }
    found: dict[str, Latent] = {}
    bpm = d["bayes_point_machine"]
    found["bayes_point_machine"] = Latent(
        3, lambda t: log_ndtr((2 * bpm["y"] - 1) * (2 * t @ bpm["x"].T)).sum(-1), lambda t: {"w": 2 * t}
    )
    irt = d["item_response"]
    n, k = irt.shape

    def split(t: np.ndarray) -> dict[str, np.ndarray]:
        return {"ability": t[:, :n], "slope": 1 + 0.4 * t[:, n : n + k], "intercept": 1.5 * t[:, n + k :]}

    def answers(t: np.ndarray) -> np.ndarray:
        s = split(t)
        logit = s["ability"][:, :, None] * s["slope"][:, None] + s["intercept"][:, None]
        return log_expit((2 * irt - 1) * logit).sum((1, 2))

    found["item_response"] = Latent(n + 2 * k, answers, split)
    gp = d["gp_classification"]
    root = np.linalg.cholesky(example("gp_classification").covariance(gp["x"]))
    found["gp_classification"] = Latent(
        40, lambda t: log_expit((2 * gp["y"] - 1) * (t @ root.T)).sum(-1), lambda t: {"f": t @ root.T}
    )
    cut = d["ordinal_cuts"]
    label = cut["y"].astype(int)

    def ordered(t: np.ndarray) -> np.ndarray:
        cuts = np.array([-1.0, 0.0, 1.0]) + t[:, 1:]
        far = np.full((len(t), 1), np.inf)
        ends = np.concatenate([-far, cuts, far], axis=1)
        value = _interval(2 * t[:, :1] * cut["x"], ends[:, label], ends[:, label + 1])
        return np.where((np.diff(cuts) > 0).all(1), value, -1e6 + np.minimum(np.diff(cuts), 0).sum(1))

    found["ordinal_cuts"] = Latent(
        4, ordered, lambda t: {"slope": 2 * t[:, 0], "cuts": np.array([-1.0, 0, 1]) + t[:, 1:]}
    )
    soft = d["softmax_regression"]

    def chosen(t: np.ndarray) -> np.ndarray:
        scores = np.einsum("nd,ckd->cnk", soft["x"], t.reshape(-1, 3, 5))
        return (scores[:, np.arange(150), soft["y"].astype(int)] - logsumexp(scores, axis=-1)).sum(-1)

    found["softmax_regression"] = Latent(15, chosen, lambda t: {"w": t.reshape(-1, 3, 5)})
    hos = d["hierarchical_binomial"]

    def wards(t: np.ndarray) -> dict[str, np.ndarray]:
        return {"spread": np.abs(t[:, 0]), "mean": 2 * t[:, 1], "z": 2 * t[:, 1:2] + np.abs(t[:, :1]) * t[:, 2:]}

    found["hierarchical_binomial"] = Latent(
        17,
        lambda t: (hos["y"] * log_expit(wards(t)["z"]) + (hos["n"] - hos["y"]) * log_expit(-wards(t)["z"])).sum(-1),
        wards,
    )
    vol = d["stochastic_volatility"]
    walk = np.linalg.cholesky(example("stochastic_volatility").covariance())
    found["stochastic_volatility"] = Latent(
        60, lambda t: -0.5 * (t @ walk.T + vol**2 * np.exp(-t @ walk.T)).sum(-1), lambda t: {"h": t @ walk.T}
    )
    poi = d["poisson_random_effects"]

    def groups(t: np.ndarray) -> dict[str, np.ndarray]:
        spread = np.abs(t[:, 0])
        return {"spread": spread, "a": 2 * t[:, 1], "b": 2 * t[:, 2], "effect": spread[:, None] * t[:, 3:]}

    def seizures(t: np.ndarray) -> np.ndarray:
        g = groups(t)
        z = g["a"][:, None] + g["b"][:, None] * poi["x"] + g["effect"][:, poi["group"]] + poi["log_weeks"]
        return (poi["y"] * z - np.exp(np.minimum(z, 50.0))).sum(-1)

    found["poisson_random_effects"] = Latent(15, seizures, groups)
    game, rules = d["trueskill"], example("trueskill")
    ends = np.array([-np.inf, -rules.MARGIN, rules.MARGIN, np.inf]) / (2 * rules.NOISE)
    who = (game["outcome"] + 1).astype(int)

    def games(t: np.ndarray) -> np.ndarray:
        gap = (2 * t)[:, game["teams"][:, :2]].sum(-1) - (2 * t)[:, game["teams"][:, 2:]].sum(-1)
        return _interval(gap / (2 * rules.NOISE), ends[who], ends[who + 1])

    found["trueskill"] = Latent(rules.PLAYERS, games, lambda t: {"skill": 2 * t})
    return found


def main() -> None:
    """Write the file, and print how far two runs are apart; item_response does not settle at these lengths, and is not kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--warmup", type=int, default=1000)
    parser.add_argument("--draws", type=int, default=1000)
    args = parser.parse_args()
    known = json.loads(STORED.read_text()) if STORED.exists() else {}
    for name, model in models().items():
        if args.names and name not in args.names:
            continue
        first = slices(np.random.default_rng(1), model, args.warmup, args.draws)
        second = slices(np.random.default_rng(2), model, args.warmup, args.draws)
        gaps = [np.abs(np.subtract(first[v]["mean"], second[v]["mean"]) / first[v]["sd"]).max() for v in first]
        ratios = [np.abs(np.divide(first[v]["sd"], second[v]["sd"]) - 1).max() for v in first]
        print(f"{name}: two runs apart by {max(gaps):.3f} sds, sds by {max(ratios):.3f}", flush=True)
        if max(gaps) > 0.1:
            continue
        known[name] = {
            v: {s: ((np.array(first[v][s]) + np.array(second[v][s])) / 2).round(5).tolist() for s in ("mean", "sd")}
            for v in first
        }
        STORED.parent.mkdir(exist_ok=True)
        STORED.write_text(json.dumps(known) + "\n")


if __name__ == "__main__":
    main()
