"""Gaussian blocks beside algorithms written by hand and beside other libraries: time, sweeps and numbers.

    python benchmarks/bench_blocks.py                      # everything; about ten minutes
    python benchmarks/bench_blocks.py --only gp chain
    python benchmarks/bench_blocks.py --most 10000         # logistic regressions of at most so many rows

Processor time of one thread, the model's construction included, each pair side by side in one run; the least of a few
repeats. Goals stand beside the figures. Peers that are not installed are left out with a sentence.
"""

import argparse
import importlib.util

import numpy as np
from scipy.special import expit, ndtr
from threadpoolctl import threadpool_limits

import heliograph as hg
from benchmarks.peers import chain, gp_probit, logistic, mixture, random_effects, trueskill
from benchmarks.peers.figures import ended, goal, infer, row, timed, within_goal, worst


# ---- logistic regression ----------------------------------------------------------------------------------------
def logistic_problem(n, d):
    rng = np.random.default_rng(n + d)
    x, w = rng.standard_normal((n, d)), rng.standard_normal(d)
    return x, (rng.random(n) < expit(x @ w)).astype(float)


def logistic_by_engine(x, y, prior_variance):
    d = x.shape[1]
    model = hg.Model()
    w = model.gaussian("w", np.zeros(d), covariance=prior_variance * np.eye(d))
    model.bernoulli("y", logit=x @ w, observed=y)
    posterior = infer(model)
    return posterior, posterior[w]


def bench_logistic(most):
    limits = {(10_000, 50): 5.0, (100_000, 50): 4.0}  # times Laplace
    within = total = 0
    for n, d in [(300, 20), *((n, d) for n in (1000, 10_000, 100_000) for d in (20, 50, 100))]:
        if n > most:
            continue
        x, y = logistic_problem(n, d)
        for prior_variance in (1.0, 10.0, 100.0):
            _, by_laplace = timed(lambda: logistic.laplace(x, y, prior_variance))  # noqa: B023
            by_hand, by_ep = timed(lambda: logistic.expectation_propagation(x, y, prior_variance))  # noqa: B023
            (posterior, belief), ours = timed(lambda: logistic_by_engine(x, y, prior_variance))  # noqa: B023
            mean, covariance, sweeps = by_hand
            laplace_ratio, ep_ratio = ours / by_laplace, ours / by_ep
            told = (
                goal(laplace_ratio, limits[n, d], "x", posterior.converged)
                if (n, d) in limits
                else f"{laplace_ratio:.1f}x"
            )
            by_hand_told = goal(ep_ratio, 1.3, "x", posterior.converged) if n == 300 else f"{ep_ratio:.1f}x"
            row(
                f"logistic {n} x {d}, prior variance {prior_variance:g}",
                ended(posterior, 10) + ";",
                f"{ours:.4f} s;",
                f"Laplace {by_laplace:.4f} s, {told};",
                f"EP by hand {by_ep:.4f} s, {sweeps} sweeps, {by_hand_told};",
                worst(belief, mean, np.sqrt(np.diag(covariance))) if posterior.converged else "",
            )
            total += n >= 1000
            within += n >= 1000 and within_goal(posterior, 10)
    row("logistic: within 10 sweeps", f"{within} of {total} (goal: all)")


# ---- Gaussian-process classification ----------------------------------------------------------------------------
def bench_gp(most):
    for n in (300, 1000):
        rng = np.random.default_rng(n)
        x = rng.standard_normal((n, 2))
        gaps = ((x[:, None] - x) ** 2).sum(axis=-1)
        kernel = 4 * np.exp(-0.5 * gaps) + 1e-4 * np.eye(n)
        y = (rng.random(n) < ndtr(2 * np.sin(2 * x[:, 0]))).astype(float)

        def engine(n=n, kernel=kernel, y=y):
            model = hg.Model()
            f = model.gaussian("f", np.zeros(n), covariance=kernel)
            model.bernoulli("y", probit=np.eye(n) @ f, observed=y)
            posterior = infer(model)
            return posterior, posterior[f]

        (mean, variance, sweeps), by_ep = timed(lambda: gp_probit.expectation_propagation(kernel, y))  # noqa: B023
        (posterior, belief), ours = timed(engine)
        ratio = goal(ours / by_ep, 1.5, "x", posterior.converged)
        same = worst(belief, mean, np.sqrt(variance))
        by_hand = f"by hand {by_ep:.3f} s, {sweeps} sweeps, {ratio};"
        row(f"GP probit n = {n}", ended(posterior, 30) + ";", f"{ours:.3f} s;", by_hand, same)


# ---- TrueSkill --------------------------------------------------------------------------------------------------
def bench_trueskill(most):
    for n_players, n_games in ((100, 1000), (10_000, 100_000)):
        rng = np.random.default_rng(n_games)
        skill = rng.normal(25, 8, n_players)
        first = rng.integers(0, n_players, n_games)
        second = (first + rng.integers(1, n_players, n_games)) % n_players
        wins = rng.random(n_games) < ndtr((skill[first] - skill[second]) / (4 * np.sqrt(2)))
        winner, loser = np.where(wins, first, second), np.where(wins, second, first)

        def engine(structure, n_players=n_players, winner=winner, loser=loser):
            model = hg.Model()
            skills = model.gaussian("skill", 25.0, variance=64.0, size=n_players)
            a = model.gaussian("of winner", skills[winner], variance=16.0)
            b = model.gaussian("of loser", skills[loser], variance=16.0)
            model.constrain(a > b)
            posterior = infer(model, structure=structure)
            return posterior, posterior[skills]

        (mean, variance, sweeps), by_hand = timed(
            lambda: trueskill.factorised(winner, loser, n_players, 25.0, 64.0, 16.0)  # noqa: B023
        )
        for structure in ("auto", "factorised"):
            (posterior, belief), ours = timed(lambda: engine(structure))  # noqa: B023
            kept = posterior.structure["skill"]
            row(
                f"TrueSkill {n_players} players, {n_games} games, {structure}",
                f"skills {kept};",
                ended(posterior) + ";",
                f"{ours:.4f} s;",
                f"by hand, factorised {by_hand:.4f} s, {sweeps} sweeps, {goal(ours / by_hand, 2.5, 'x', posterior.converged)};",
                worst(belief, mean, np.sqrt(variance)),
            )


# ---- chains and random effects ----------------------------------------------------------------------------------
def bench_chain(most):
    seconds = 0.0
    for n in (1000, 10_000, 100_000):
        if (
            seconds > 2.0
        ):  # of a tenth of the length, where the hundred-thousandth state takes about half a second by hand
            row(f"Gaussian chain n = {n}", f"left out: a tenth of it took {seconds:.1f} s; goals MISSED")
            return
        seconds = _one_chain(n)


def _one_chain(n, drift=0.1, noise=0.5):
    rng = np.random.default_rng(0)
    y = np.cumsum(rng.normal(0, drift**0.5, n)) + rng.normal(0, noise**0.5, n)

    def engine():
        model = hg.Model()
        x = model.gaussian(
            "x", 0.0, variance=np.r_[100.0, np.full(n - 1, 1e9)]
        )  # only the first has a prior to speak of
        model.gaussian("step", x[1:] - x[:-1], variance=drift, observed=np.zeros(n - 1))
        model.gaussian("y", x, variance=noise, observed=y)
        posterior = infer(model)
        return posterior, posterior[x]

    (mean, variance), by_hand = timed(lambda: chain.smoother(y, 100.0, drift, noise))
    (posterior, belief), ours = timed(engine)
    row(
        f"Gaussian chain n = {n}",
        f"structure {posterior.structure['x']};",
        f"{ours:.3f} s;",
        f"loop by hand {by_hand:.3f} s, {goal(ours / by_hand, 0.5, 'x')};",
        worst(belief, mean, np.sqrt(variance)),
    )
    if importlib.util.find_spec("statsmodels") is None:
        row("", "statsmodels is not installed, so its smoother is left out")
        return ours
    from statsmodels.tsa.statespace.structural import UnobservedComponents

    def by_statsmodels():
        peer = UnobservedComponents(y, level="llevel")
        peer.ssm.initialize_known(np.zeros(1), 100.0 * np.eye(1))
        return peer.smooth([noise, drift]).smoothed_state_cov

    _, theirs = timed(by_statsmodels, repeats=1)
    row("", f"statsmodels' smoother {theirs:.2f} s, {goal(ours / theirs, 0.1, 'x')}")
    return ours


def bench_mixed(most):
    groups, n, d = 10_000, 50_000, 3
    rng = np.random.default_rng(0)
    g, x = rng.integers(0, groups, n), np.c_[np.ones(n), rng.standard_normal((n, d - 1))]
    truth = np.array([-0.5, 1.0, 0.5])
    y = (rng.random(n) < expit(x @ truth + rng.normal(0, 0.8, groups)[g])).astype(float)

    def engine():
        model = hg.Model()
        w = model.gaussian("w", np.zeros(d), covariance=10.0 * np.eye(d))
        effect = model.gaussian("effect", 0.0, variance=0.64, size=groups)
        model.bernoulli("y", logit=x @ w + effect[g], observed=y)
        posterior = infer(model)
        return posterior, posterior[w]

    (mode, sd, _), by_laplace = timed(lambda: random_effects.laplace(x, y, g, groups, 10.0, 0.64))
    (posterior, belief), ours = timed(engine)
    mean, exact = random_effects.integrated(x, y, g, groups, 10.0, 0.64, mode, sd)
    row(
        f"mixed logistic {groups} groups, {n} rows",
        ended(posterior) + ";",
        f"{ours:.3f} s (the prototype: 0.6 s);",
        f"Laplace with groups eliminated {by_laplace:.3f} s, sds {np.round(sd / exact, 3)} of the exact ones;",
        f"against groups integrated out: {worst(belief, mean, exact)} (goal 0.98-1.02)",
    )


def bench_grid(most):
    """Counts on a grid: the language has no `precision=` matrix, so the field is written as differences of neighbours."""
    side = 50
    rng = np.random.default_rng(0)
    cell = np.arange(side**2).reshape(side, side)
    i, j = np.r_[cell[1:].ravel(), cell[:, 1:].ravel()], np.r_[cell[:-1].ravel(), cell[:, :-1].ravel()]
    u = np.linspace(0, 3, side)
    counts = rng.poisson(np.exp(1 + np.sin(u[:, None]) * np.cos(2 * u))).ravel()

    def engine():
        model = hg.Model()
        x = model.gaussian("x", 0.0, variance=100.0, size=side**2)
        model.gaussian("smooth", x[i] - x[j], variance=0.05, observed=np.zeros(len(i)))
        model.poisson("count", log_rate=x, observed=counts)
        posterior = infer(model)
        return posterior, posterior[x]

    (posterior, belief), ours = timed(engine)
    field = (1 + np.sin(u[:, None]) * np.cos(2 * u)).ravel()
    z = (belief.mean - field) / np.sqrt(belief.variance)
    row(f"Poisson grid {side} x {side}", ended(posterior) + ";", f"{ours:.3f} s (the prototype: 0.15 s, 6 sweeps);")
    row("", f"the field that made the counts: {np.mean(np.abs(z) < 2):.1%} of cells within 2 sds")


# ---- mixtures ---------------------------------------------------------------------------------------------------
def bench_mixture(most):
    from sklearn.mixture import BayesianGaussianMixture

    n, k, centres = 10_000, 3, np.array([-6.0, 0.0, 6.0])
    settled, right, ours, theirs, sweeps = 0, 0, [], [], []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        y = rng.normal(centres[rng.integers(0, k, n)], 1.0)

        def engine(y=y, seed=seed):
            model = hg.Model()
            means = model.gaussian("means", 0.0, variance=100.0, size=k)
            which = model.categorical("which", np.full(k, 1 / k), size=n)
            model.mixture("y", which, means, variance=1.0, observed=y)
            posterior = infer(model, seed=seed)
            return posterior, posterior[means]

        def peer(y=y, seed=seed):
            return BayesianGaussianMixture(n_components=k, random_state=seed).fit(y[:, None])

        (posterior, belief), seconds = timed(engine, repeats=1)
        ours.append(seconds)
        theirs.append(timed(peer, repeats=1)[1])
        sweeps.append(posterior.n_sweeps)
        settled += posterior.converged
        gap = np.abs(np.sort(belief.mean) - mixture.em(y, centres))
        right += bool((gap < np.sqrt(k / n)).all())  # a posterior sd
    ratio = goal(np.median(ours) / np.median(theirs), 8, "x", settled == 10)
    row(
        f"mixture K = {k}, n = {n}, 10 seeds",
        f"converged {settled}, right {right} of 10 (goal: all); sweeps {sweeps};",
        f"{np.median(ours):.3f} s; scikit-learn {np.median(theirs):.3f} s, {ratio}",
    )


SECTIONS = {
    "gp": bench_gp,
    "trueskill": bench_trueskill,
    "chain": bench_chain,
    "mixed": bench_mixed,
    "grid": bench_grid,
    "mixture": bench_mixture,
    "logistic": bench_logistic,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", choices=SECTIONS, default=list(SECTIONS))
    parser.add_argument("--most", type=int, default=100_000, help="rows of the largest logistic regression")
    options = parser.parse_args()
    with threadpool_limits(1):
        for name in options.only:
            SECTIONS[name](options.most)


if __name__ == "__main__":
    main()
