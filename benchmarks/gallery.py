"""The examples beside NumPyro: our seconds, NUTS's first and second run, and how far our posteriors are from its draws.

``python -m benchmarks.gallery`` prints the table; ``--write`` keeps the means and deviations of long runs (4,000 draws) in
``tests/examples/nuts.json``, which the tests of the examples compare with. NumPyro is no dependency of the package.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parent.parent
STORED = ROOT / "tests" / "examples" / "nuts.json"


def example(name: str) -> Any:
    """The module of one example."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def models() -> dict[str, Callable[[Any], None]]:  # noqa: C901  (a function for every example)
    """The same models in NumPyro, as functions of the example's data; sites have the names of our variables."""
    import jax.numpy as jnp
    import numpyro
    import numpyro.distributions as dist
    from jax.scipy.special import ndtr

    def normal(name: str, mean: Any, sd: Any, size: tuple[int, ...] = ()) -> Any:
        d = dist.Normal(mean, sd)
        return numpyro.sample(name, d.expand(size).to_event(len(size)) if size else d)

    def between(z: Any, low: Any, high: Any) -> None:
        numpyro.factor("y", jnp.log(jnp.clip(ndtr(high - z) - ndtr(low - z), 1e-30)).sum())

    def bayes_point_machine(d: Any) -> None:
        w = normal("w", 0.0, 2.0, (3,))
        between(-(2 * d["y"] - 1) * (d["x"] @ w), -jnp.inf, 0.0)

    def line(d: Any, sd: float) -> Any:
        return normal("a", 0.0, sd) + normal("b", 0.0, sd) * d["x"]

    def robust_regression(d: Any) -> None:
        numpyro.sample("y", dist.StudentT(3.0, line(d, 5.0), 0.4), obs=d["y"])

    def negative_binomial(d: Any) -> None:
        numpyro.sample("y", dist.NegativeBinomial2(jnp.exp(line(d, 2.0)), 2.0), obs=d["y"])

    def item_response(y: Any) -> None:
        ability = normal("ability", 0.0, 1.0, (y.shape[0],))
        slope, intercept = normal("slope", 1.0, 0.4, (y.shape[1],)), normal("intercept", 0.0, 1.5, (y.shape[1],))
        numpyro.sample("y", dist.Bernoulli(logits=ability[:, None] * slope + intercept), obs=y)

    def gp_classification(d: Any) -> None:
        root = np.linalg.cholesky(example("gp_classification").covariance(d["x"]))
        f = numpyro.deterministic("f", root @ normal("white", 0.0, 1.0, (len(d["x"]),)))
        numpyro.sample("y", dist.Bernoulli(logits=f), obs=d["y"])

    def ordinal_cuts(d: Any) -> None:
        slope = normal("slope", 0.0, 2.0)
        cuts = numpyro.sample("cuts", dist.ImproperUniform(dist.constraints.ordered_vector, (), event_shape=(3,)))
        numpyro.factor("prior", dist.Normal(jnp.array([-1.0, 0.0, 1.0]), 1.0).log_prob(cuts).sum())
        ends = jnp.concatenate([jnp.array([-jnp.inf]), cuts, jnp.array([jnp.inf])])
        k = d["y"].astype(int)
        between(slope * d["x"], ends[k], ends[k + 1])

    def softmax_regression(d: Any) -> None:
        w = normal("w", 0.0, 1.0, (3, 5))
        numpyro.sample("y", dist.Categorical(logits=d["x"] @ w.T), obs=d["y"].astype(int))

    def censored_survival(d: Any) -> None:
        u = 1.5 * (jnp.log(d["t"]) - normal("base", 0.0, 2.0) - normal("effect", 0.0, 1.0) * d["treated"])
        numpyro.factor("y", (jnp.where(d["alive"], 0.0, u) - jnp.exp(u)).sum())

    def hierarchical_binomial(d: Any) -> None:
        spread, mean = numpyro.sample("spread", dist.HalfNormal(1.0)), normal("mean", 0.0, 2.0)
        z = numpyro.deterministic("z", mean + spread * normal("white", 0.0, 1.0, d["n"].shape))
        numpyro.sample("y", dist.Binomial(d["n"].astype(int), logits=z), obs=d["y"])

    def stochastic_volatility(y: Any) -> None:
        root = np.linalg.cholesky(example("stochastic_volatility").covariance())
        h = numpyro.deterministic("h", root @ normal("white", 0.0, 1.0, y.shape))
        numpyro.sample("y", dist.Normal(0.0, jnp.exp(h / 2)), obs=y)

    def poisson_random_effects(d: Any) -> None:
        spread = numpyro.sample("spread", dist.HalfNormal(1.0))
        effect = numpyro.deterministic("effect", spread * normal("white", 0.0, 1.0, (12,)))
        z = line(d, 2.0) + effect[d["group"]] + d["log_weeks"]
        numpyro.sample("y", dist.Poisson(jnp.exp(z)), obs=d["y"])

    def trueskill(d: Any) -> None:
        module = example("trueskill")
        skill = normal("skill", 0.0, 2.0, (module.PLAYERS,))
        gap = skill[d["teams"][:, :2]].sum(1) - skill[d["teams"][:, 2:]].sum(1)
        ends = np.array([-np.inf, -module.MARGIN, module.MARGIN, np.inf]) / (2 * module.NOISE)
        k = (d["outcome"] + 1).astype(int)
        between(gap / (2 * module.NOISE), ends[k], ends[k + 1])

    found = dict(locals())
    return {name: f for name, f in found.items() if (ROOT / "examples" / f"{name}.py").exists()}


def nuts(
    function: Callable[[Any], None], data: Any, warmup: int, draws: int, seed: int, runs: int = 2
) -> tuple[dict[str, np.ndarray], list[float]]:
    """Draws, and the seconds of the first run (with compilation) and of a second one."""
    import jax
    from numpyro.infer import MCMC, NUTS

    seconds, found = [], {}
    sampler = MCMC(NUTS(function), num_warmup=warmup, num_samples=draws, progress_bar=False)
    for k in range(runs):
        start = time.perf_counter()
        sampler.run(jax.random.PRNGKey(seed + k), data)
        found = {n: np.asarray(v, dtype=float) for n, v in sampler.get_samples().items()}
        seconds.append(time.perf_counter() - start)
    return found, seconds


def ours(name: str) -> tuple[Any, list[float]]:
    """Our posterior, and the seconds of two runs, the model's writing included."""
    module, seconds, posterior = example(name), [], None
    data = module.data()
    for _ in range(2):
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            posterior = module.model(data).infer(max_sweeps=200)
        seconds.append(time.perf_counter() - start)
    return posterior, seconds


def errors(posterior: Any, truth: dict[str, dict[str, Any]]) -> tuple[float, float, float]:
    """The largest error of a mean in deviations, and the least and largest ratio of deviations."""
    worst, low, high = 0.0, np.inf, 0.0
    for name, moments in truth.items():
        if name not in posterior:
            continue
        belief = posterior[name]
        mean, sd = np.ravel(moments["mean"]), np.ravel(moments["sd"])
        ratio = np.ravel(np.sqrt(belief.variance)) / sd
        worst = max(worst, float((np.abs(np.ravel(belief.mean) - mean) / sd).max()))
        low, high = min(low, float(ratio.min())), max(high, float(ratio.max()))
    return worst, low, high


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--write", action="store_true", help="keep means and deviations of 1,000 + 4,000 draws")
    args = parser.parse_args()
    known = json.loads(STORED.read_text()) if STORED.exists() else {}
    print("| example | ours, first s | second | NUTS 500 + 1,000, first s | second | mean off by, sds | sd ratio |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    import numpyro

    numpyro.enable_x64()
    for name, function in models().items():
        if args.names and name not in args.names:
            continue
        data = example(name).data()
        posterior, own = ours(name)
        _, theirs = nuts(function, data, 500, 1000, 0)
        if args.write:
            draws, _ = nuts(function, data, 1000, 4000, 7, runs=1)
            known[name] = {
                n: {"mean": v.mean(0).round(5).tolist(), "sd": v.std(0).round(5).tolist()}
                for n, v in draws.items()
                if n != "white"
            }
            STORED.parent.mkdir(exist_ok=True)
            STORED.write_text(json.dumps(known, indent=0) + "\n")
        off, low, high = errors(posterior, known[name]) if name in known else (np.nan,) * 3
        print(
            f"| {name} | {own[0]:.3f} | {own[1]:.3f} | {theirs[0]:.2f} | {theirs[1]:.2f} | {off:.3f} | {low:.3f}-{high:.3f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
