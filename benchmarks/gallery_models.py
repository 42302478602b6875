"""The examples' models a second time, in NumPyro, for `benchmarks.gallery`."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parent.parent


def example(name: str) -> Any:
    """The module of one example."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def data_of(module: Any) -> tuple[Any, ...]:
    """What an example's model is a function of: its data, a script's arrays, or nothing."""
    if hasattr(module, "data"):
        return (module.data(),)
    arrays = {n: a for n, a in vars(module).items() if isinstance(a, np.ndarray)}
    return (arrays,) if arrays else ()


def models() -> dict[str, Callable[..., None]]:  # noqa: C901  (a function for every example)
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

    def precise(mean: Any, y: Any) -> None:
        precision = numpyro.sample("precision", dist.Gamma(1.0, 1.0))
        numpyro.sample("y", dist.Normal(mean, precision**-0.5), obs=y)

    def mean_and_precision(y: Any) -> None:
        precise(normal("mean", 0.0, 10.0), y)

    def regression_unknown_noise(d: Any) -> None:
        precise(line(d, 3.0), d["y"])

    def gp_regression(d: Any) -> None:
        root = np.linalg.cholesky(example("gp_regression").kernel(d["x"], d["x"]) + 1e-8 * np.eye(25))
        f = numpyro.deterministic("f", root @ normal("white", 0.0, 1.0, (25,)))
        numpyro.sample("y", dist.Normal(f, 0.3), obs=d["y"])

    def clutter(y: Any) -> None:
        x = normal("x", 0.0, 10.0)
        both = [dist.Normal(x, 1.0).log_prob(y), dist.Normal(0.0, 10.0**0.5).log_prob(y)]
        numpyro.factor("y", jnp.logaddexp(*both).sum())

    def ab_test() -> None:
        p = numpyro.sample("p", dist.Beta(1.0, 1.0).expand([2]).to_event(1))
        numpyro.sample("y", dist.Binomial(1000, p), obs=np.array([110, 135]))

    def autoregression(d: Any) -> None:
        n, known = len(d["seen"]), ~np.isnan(d["seen"])
        back = np.eye(n) - 1.6 * np.eye(n, k=-1) + 0.8 * np.eye(n, k=-2)
        back[1, 0] = 0.0
        x = numpyro.deterministic("x", np.linalg.inv(back) @ normal("white", 0.0, 1.0, (n,)))
        numpyro.sample("y", dist.Normal(x[known], 1.0), obs=d["seen"][known])

    def skills_through_time(d: Any) -> None:
        sd = np.sqrt(np.array([2.0, 0.5, 0.5, 0.5]))[:, None]
        skill = numpyro.deterministic("skill", jnp.cumsum(sd * normal("white", 0.0, 1.0, (4, 3)), axis=0))
        between(skill[d["year"], d["loser"]] - skill[d["year"], d["winner"]], -jnp.inf, 0.0)

    def eight_schools(d: Any) -> None:
        tau, mu = numpyro.sample("tau", dist.HalfCauchy(5.0)), normal("mu", 0.0, 5.0)
        theta = numpyro.deterministic("theta", mu + tau * normal("white", 0.0, 1.0, (8,)))
        numpyro.sample("y", dist.Normal(theta, d["error"]), obs=d["y"])

    def sir_simulator(y: Any) -> None:
        from jax import lax

        beta, gamma = jnp.exp(normal("log_beta", np.log(0.4), 0.3)), jnp.exp(normal("log_gamma", np.log(0.2), 0.3))

        def step(state: Any, _: None) -> Any:
            s, i = state
            new, gone = i * -jnp.expm1(-gamma / 4), s * -jnp.expm1(-beta * i / 4000)
            return (s - gone, i + gone - new), i + gone - new

        _, infected = lax.scan(step, (995.0, 5.0), None, length=128)
        numpyro.sample("y", dist.Poisson(0.1 * infected[15::16]), obs=y)

    found = dict(locals())
    return {name: f for name, f in found.items() if (ROOT / "examples" / f"{name}.py").exists()}
