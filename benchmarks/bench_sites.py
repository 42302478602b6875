"""Large blocks and sites of several numbers: sweeps, processor time, and standard deviations beside NUTS or importance sampling.

    python -m benchmarks.bench_sites                # sweeps and times at full size
    python -m benchmarks.bench_sites --nuts         # and small sizes of the same models beside NUTS (NumPyro): minutes
    python -m benchmarks.bench_sites --only league

Every model is written with links that are observed as 0, so that its prior is one sparse precision, which the reference uses too.
"""

import argparse
import warnings

import numpy as np
from scipy.special import gammaln, logsumexp, ndtr

import heliograph as hg
from benchmarks.peers.figures import timed


class Field:
    """Numbers with a wide prior and links ``a'x ~ N(0, variance)``, as a model and as a dense precision."""

    def __init__(self, n, prior_variance):
        self.model = hg.Model()
        self.x = self.model.gaussian("x", np.zeros(n), variance=prior_variance)
        self.precision = np.eye(n) / prior_variance if n <= 1000 else None

    def link(self, name, i, j, weight, variance):
        """``x[i] - weight x[j] ~ N(0, variance)``."""
        self.model.gaussian(name, self.x[i] - weight * self.x[j], variance=variance, observed=np.zeros(len(i)))
        if self.precision is not None:
            for a, b in zip(i, j, strict=True):
                row = np.zeros(len(self.precision))
                row[a] += 1.0
                row[b] -= weight
                self.precision += np.outer(row, row) / variance


def drawn(precision, rng):
    """A draw of the field, to make data of."""
    return np.linalg.solve(np.linalg.cholesky(precision).T, rng.standard_normal(len(precision)))


def volatility(n):
    """Stochastic volatility: ``y_t ~ N(0, exp(h_t))``, h autoregressive."""
    rng = np.random.default_rng(1)
    h = np.zeros(n)
    for t in range(1, n):
        h[t] = 0.95 * h[t - 1] + 0.3 * rng.standard_normal()
    y = np.exp(0.5 * h) * rng.standard_normal(n)
    field = Field(n, 10.0)
    field.link("links", np.arange(1, n), np.arange(n - 1), 0.95, 0.09)
    field.model.gaussian("y", 0.0, precision=field.model.exp(-field.x), observed=y)
    return field, lambda jnp, x: -0.5 * (x + y**2 * jnp.exp(-x)).sum()


def grid(k):
    """Counts on a k x k grid of log rates with neighbours alike."""
    rng = np.random.default_rng(2)
    at = np.arange(k * k).reshape(k, k)
    smooth = np.add.outer(np.sin(np.arange(k) / 3.0), np.cos(np.arange(k) / 4.0))
    counts = rng.poisson(np.exp(0.5 + 0.7 * smooth)).astype(float).ravel()
    field = Field(k * k, 4.0)
    field.link("rows", at[:, 1:].ravel(), at[:, :-1].ravel(), 1.0, 0.1)
    field.link("columns", at[1:].ravel(), at[:-1].ravel(), 1.0, 0.1)
    field.model.poisson("counts", log_rate=field.x, observed=counts)
    return field, lambda jnp, x: (counts * x - jnp.exp(x)).sum()


def through_time(players, steps):
    """Skills of players that drift, and games of every step."""
    rng = np.random.default_rng(3)
    at = np.arange(players * steps).reshape(players, steps)
    truth = rng.standard_normal((players, 1)) + np.cumsum(0.2 * rng.standard_normal((players, steps)), axis=1)
    a, b, t = [], [], []
    for step in range(steps):
        order = rng.permutation(players)
        half = players // 2
        a.append(order[:half])
        b.append(order[half : 2 * half])
        t.append(np.full(half, step))
    a, b, t = (np.concatenate(v) for v in (a, b, t))
    won = truth[a, t] - truth[b, t] + rng.standard_normal(len(a)) > 0
    winner, loser = np.where(won, at[a, t], at[b, t]), np.where(won, at[b, t], at[a, t])
    field = Field(players * steps, 1.0)
    field.link("drift", at[:, 1:].ravel(), at[:, :-1].ravel(), 1.0, 0.04)
    gap = field.x[winner] - field.x[loser]
    field.model.bernoulli("won", probit=gap, observed=np.ones(len(winner)))

    def log_likelihood(jnp, x):
        from jax.scipy.special import log_ndtr

        return log_ndtr(x[winner] - x[loser]).sum()

    return field, log_likelihood


def by_nuts(field, log_likelihood, n_draws):
    """Posterior means and sds of the field by NUTS, in units in which its prior is standard normal."""
    import jax
    import jax.numpy as jnp
    import numpyro
    import numpyro.distributions as dist
    from numpyro.infer import MCMC, NUTS

    jax.config.update("jax_enable_x64", True)
    half = jnp.asarray(np.linalg.inv(np.linalg.cholesky(field.precision)).T)

    def model():
        z = numpyro.sample("z", dist.Normal(0, 1).expand([len(field.precision)]).to_event(1))
        numpyro.factor("data", log_likelihood(jnp, half @ z))

    run = MCMC(NUTS(model), num_warmup=500, num_samples=n_draws, progress_bar=False)
    run.run(jax.random.PRNGKey(0))
    draws = np.asarray(run.get_samples()["z"]) @ np.asarray(half).T
    return draws.mean(axis=0), draws.std(axis=0)


def show(name, field, log_likelihood, n_draws):
    """Sweeps and time, and the reference where it is asked for."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        posterior, seconds = timed(lambda: field.model.infer(), 1)
    line = f"{name}: {posterior.n_sweeps} sweeps, {seconds:.2f} s, {posterior.status}"
    if said:
        line += f"; warned {len(said)} times"
    if n_draws and field.precision is not None:
        mean, sd = by_nuts(field, log_likelihood, n_draws)
        ratio = np.sqrt(posterior[field.x].variance) / sd
        z = np.abs((posterior[field.x].mean - mean) / sd)
        line += (
            f"; beside NUTS ({n_draws} draws): sds {ratio.min():.3f} to {ratio.max():.3f}, mean {ratio.mean():.4f}; "
            f"means off by at most {z.max():.3f} sds, {z.mean():.3f} on average"
        )
    print(line, flush=True)


# ---- ordinal data --------------------------------------------------------------------------------------------------
def ordinal(n, n_draws=100_000):
    """Ordinal data of four classes, three uncertain cuts and a slope, beside importance sampling."""
    rng = np.random.default_rng(1)
    x = rng.standard_normal(n)
    y = np.searchsorted([-1.0, 0.3, 1.5], 1.2 * x + rng.standard_normal(n))
    prior_mean, prior_variance = np.array([0.0, -1.0, 0.0, 1.0]), np.array([4.0, 2.0, 2.0, 2.0])
    model = hg.Model()
    b, c = model.gaussian("b", 0.0, variance=4.0), model.gaussian("c", prior_mean[1:], variance=2.0)
    z = model.gaussian("z", b * x, variance=1.0)
    above, below = np.flatnonzero(y > 0), np.flatnonzero(y < 3)
    model.constrain(z[above] > c[y[above] - 1])
    model.constrain(z[below] < c[y[below]])
    posterior, seconds = timed(lambda: model.infer(), 1)
    mean = np.array([float(posterior[b].mean), *posterior[c].mean])
    covariance = np.zeros((4, 4))
    covariance[0, 0], covariance[1:, 1:] = posterior[b].variance, posterior.covariance(c, c)
    covariance[0, 1:] = covariance[1:, 0] = posterior.covariance(b.reshape(1), c)[0]
    half = np.linalg.cholesky(1.1 * covariance)
    e = rng.standard_normal((n_draws, 4)) / np.sqrt(rng.chisquare(8.0, n_draws) / 8.0)[:, None]
    draws = mean + e @ half.T
    log_q = gammaln(6.0) - gammaln(4.0) - 2 * np.log(8 * np.pi) - 6 * np.log1p((e**2).sum(1) / 8)
    log_w = (-0.5 * (draws - prior_mean) ** 2 / prior_variance - 0.5 * np.log(2 * np.pi * prior_variance)).sum(1)
    for xi, k in zip(x, y, strict=True):
        upper = ndtr(draws[:, k + 1] - draws[:, 0] * xi) if k < 3 else 1.0
        lower = ndtr(draws[:, k] - draws[:, 0] * xi) if k > 0 else 0.0
        log_w += np.log(np.maximum(upper - lower, 1e-300))
    log_w -= log_q - np.log(np.diag(half)).sum()
    total = logsumexp(log_w)
    w = np.exp(log_w - total)
    first = w @ draws
    sd = np.sqrt(w @ (draws - first) ** 2)
    ratio = np.sqrt(np.diag(covariance)) / sd
    print(
        f"ordinal, random cuts, n = {n}: {posterior.n_sweeps} sweeps, {seconds:.2f} s, {posterior.status}; beside importance "
        f"sampling ({1 / (w**2).sum():.0f} draws' worth): sds {ratio.min():.3f} to {ratio.max():.3f}, means off by at most "
        f"{np.abs((mean - first) / sd).max():.3f} sds, log evidence {posterior.log_evidence - total + np.log(n_draws):+.4f}",
        flush=True,
    )


def league(n_players, n_games):
    """A league beyond the budget: estimated, and beside an exact solve where that is within reach."""
    rng = np.random.default_rng(0)
    skill = rng.standard_normal(n_players)
    a = rng.integers(n_players, size=n_games)
    b = (a + rng.integers(1, n_players, n_games)) % n_players
    won = skill[a] + rng.standard_normal(n_games) > skill[b]
    model = hg.Model()
    s = model.gaussian("skill", np.zeros(n_players), variance=1.0)
    gap = s[np.where(won, a, b)] - s[np.where(won, b, a)]
    model.bernoulli("won", probit=gap, observed=np.ones(n_games))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimated, fast = timed(lambda: model.infer(budget=1e-6), 1)
        exact, slow = timed(lambda: model.infer(budget=1e6), 1)
    ratio = np.sqrt(estimated[s].variance / exact[s].variance)
    z = np.abs(estimated[s].mean - exact[s].mean) / np.sqrt(exact[s].variance)
    print(
        f"league {n_players} / {n_games}: estimated {estimated.n_sweeps} sweeps, {fast:.2f} s ({estimated.structure['skill']}); "
        f"exact {exact.n_sweeps} sweeps, {slow:.2f} s; sds {ratio.min():.3f} to {ratio.max():.3f}, "
        f"means off by at most {z.max():.4f} sds",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", nargs="*", default=["ordinal", "volatility", "grid", "time", "league"])
    parser.add_argument("--nuts", type=int, nargs="?", const=4000, default=0, help="draws of the reference")
    parser.add_argument(
        "--expensive", action="store_true", help="the league of 1e4 / 1e5 beside its exact solve: minutes, 3 GB"
    )
    args = parser.parse_args()
    if "ordinal" in args.only:
        for n in (30, 200, 2000):
            ordinal(n)
    cases = {
        "volatility": (volatility, (300,), (10_000,)),
        "grid": (grid, (15,), (50,)),
        "time": (through_time, (20, 10), (200, 50)),
    }
    for name, (make, small, large) in cases.items():
        if name in args.only:
            if args.nuts:
                show(f"{name} {small}", *make(*small), args.nuts)
            show(f"{name} {large}", *make(*large), 0)
    if "league" in args.only:
        league(3_000, 30_000)
        if args.expensive:
            league(10_000, 100_000)


if __name__ == "__main__":
    main()
