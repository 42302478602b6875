"""The sparse solver alone: planning, a sweep's numeric work with all variances, and where joint is too expensive.

    python -m benchmarks.bench_solver             # the four models that are solved jointly
    python -m benchmarks.bench_solver --expensive # and the league of 1e4 players, by conjugate gradients
    python -m benchmarks.bench_solver --exact     # and that league jointly, for comparison: minutes, 3 GB

"plan" is `analyse` and `place`, once per model; "sweep" is `gram`, `factorise`, `solve`, `invert` and `variances`, the best of
several; "splu" is SciPy's sparse LU: factorisation and one solve, without variances. One thread, CPU seconds.
"""

import argparse
import time

import numpy as np
from scipy.sparse import csc_array, diags_array
from scipy.sparse.linalg import splu
from threadpoolctl import threadpool_limits

from heliograph.numerics import sparse
from heliograph.numerics.sparse import Rows, make_rows


def differences(n, pairs):
    """Rows ``x_a - x_b``."""
    return make_rows(n, np.repeat(np.arange(len(pairs)), 2), pairs.ravel(), np.tile([1.0, -1.0], len(pairs)))


def singles(n):
    return make_rows(n, np.arange(n), np.arange(n))


def chain(n=100_000):
    at = np.arange(n)
    return [differences(n, np.stack([at[1:], at[:-1]], 1)), singles(n)]


def tracker(length=20_000):
    """States (place and speed in two dimensions) linked by F, known jointly: sites of four rows; two noisy readings each."""
    step = np.kron(np.eye(2), np.array([[1.0, 0.1], [0.0, 1.0]]))
    links = length - 1
    both = np.concatenate([np.eye(4), -step], axis=1)  # s[t + 1] - F s[t]
    row, column = np.nonzero(both)
    state = np.where(column < 4, 4 + column, column - 4)
    rows = (4 * np.arange(links)[:, None] + row).ravel()
    variables = (4 * np.arange(links)[:, None] + state).ravel()
    transitions = make_rows(4 * length, rows, variables, np.tile(both[row, column], links), width=4)
    seen = (4 * np.arange(length)[:, None] + np.array([0, 2])).ravel()
    return [transitions, make_rows(4 * length, np.arange(2 * length), seen)]


def grid(side=100):
    at = np.arange(side * side).reshape(side, side)
    across, down = np.stack([at[:, 1:], at[:, :-1]], -1), np.stack([at[1:], at[:-1]], -1)
    return [
        differences(side * side, np.concatenate([across.reshape(-1, 2), down.reshape(-1, 2)])),
        singles(side * side),
    ]


def cube(side=20):
    at = np.arange(side**3).reshape(side, side, side)
    axes = [np.moveaxis(at, axis, 0) for axis in range(3)]
    pairs = np.concatenate([np.stack([a[1:], a[:-1]], -1).reshape(-1, 2) for a in axes])
    return [differences(side**3, pairs), singles(side**3)]


def league(n_players=3_000, n_games=30_000):
    rng = np.random.default_rng(1)
    pairs = rng.integers(n_players, size=(n_games, 2))
    return [singles(n_players), differences(n_players, pairs[pairs[:, 0] != pairs[:, 1]])]


def weights(rng: np.random.Generator, rows: Rows) -> np.ndarray:
    """Random positive weights of a part."""
    if rows.width == 1:
        return rng.gamma(2.0, size=rows.n_sites)
    root = np.eye(rows.width) + 0.2 * rng.normal(size=(rows.n_sites, rows.width, rows.width))
    return root @ root.transpose(0, 2, 1)


def timed(work, repeats):
    """The shortest of some runs, and the last result."""
    best, result = np.inf, None
    for _ in range(repeats):
        start = time.process_time()
        result = work()
        best = min(best, time.process_time() - start)
    return best, result


def sweep(plan, placed, taus, right):
    """What an EP sweep asks: the mean, and the variances of the last part's rows."""
    factor = sparse.factorise(plan, sum(sparse.gram(p, tau) for p, tau in zip(placed, taus, strict=True)))
    return sparse.solve(factor, right), sparse.variances(sparse.invert(factor), placed[-1])


def precision_of(parts, taus):
    """The same precision for SciPy."""
    total = 0
    for part, tau in zip(parts, taus, strict=True):
        a = sparse.entries(part)
        if part.width == 1:
            total = total + a.T @ diags_array(tau) @ a
        else:
            m, q = part.n_rows, part.width
            row = np.repeat(np.arange(m), q)
            column = (np.arange(m) // q * q)[:, None] + np.arange(q)
            total = total + a.T @ csc_array((tau.ravel(), (row, column.ravel())), shape=(m, m)) @ a
    return csc_array(total)


def joint(name, parts, repeats=7):
    rng = np.random.default_rng(0)
    taus = [weights(rng, part) for part in parts]
    right = rng.normal(size=parts[0].n_variables)
    planning, plan = timed(lambda: sparse.analyse(parts), repeats)
    placing, placed = timed(lambda: [sparse.place(plan, part, queried=part is parts[-1]) for part in parts], repeats)
    numeric, (mean, _) = timed(lambda: sweep(plan, placed, taus, right), repeats)
    precision = precision_of(parts, taus)
    other, theirs = timed(
        lambda: splu(precision, permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True}).solve(right), 1
    )
    error = np.abs(mean - theirs).max() / np.abs(theirs).max()
    print(
        f"{name:28s} {planning:8.3f} {placing:8.3f} {numeric:9.4f} {(planning + placing) / numeric:7.1f} {plan.flops:9.1e}"
        f" {plan.bytes:9.1e} {plan.tail:6d} {plan.n_rounds:7d} {other:8.3f} {error:9.1e}",
        flush=True,
    )


def expensive(exact):
    """The league of 1e4 players and 1e5 games: refused by its plan, then estimated, and on demand solved jointly after all."""
    parts = league(10_000, 100_000)
    rng = np.random.default_rng(0)
    taus = [np.full(parts[0].n_sites, 1 / 9.0), 0.1 * weights(rng, parts[1])]  # as a settled run of TrueSkill has them
    right = rng.normal(size=parts[0].n_variables)
    planning, plan = timed(lambda: sparse.analyse(parts), 3)
    print(
        f"league 10,000 / 100,000: analyse {planning:.3f} s, {plan.flops:.1e} flops, {plan.bytes:.1e} bytes, tail {plan.tail}"
    )
    print(f"  within its budget: {plan.affordable}")
    preparing, prober = timed(lambda: sparse.with_probes(np.random.default_rng(0), sparse.bare_of(plan, parts)), 1)
    cold, found = timed(lambda: sparse.estimate(prober, taus, right), 3)
    near = [taus[0], taus[1] * 1.01]
    warm, again = timed(lambda: sparse.estimate(prober, near, right, previous=found), 3)
    print(f"  prepare {preparing:.3f} s; estimate {cold:.3f} s, {found.n_iterations} iterations", end="")
    print(f" ({warm:.3f} s, {again.n_iterations} from the last sweep's)")
    if not exact:
        return
    compare("league 10,000 / 100,000", parts, taus, right)
    parts = cube()
    taus = [weights(rng, parts[0]), 0.1 * weights(rng, parts[1])]
    compare("cube 20 x 20 x 20", parts, taus, rng.normal(size=parts[0].n_variables))


def compare(name, parts, taus, right, seeds=8):
    """Estimates with 64 and with 128 probes against a joint solve, whatever that costs."""
    plan = sparse.analyse(parts, budget=sparse.Budget(np.inf, np.inf))
    placed = [sparse.place(plan, part) for part in parts]
    start = time.process_time()
    factor = sparse.factorise(plan, sum(sparse.gram(p, tau) for p, tau in zip(placed, taus, strict=True)))
    mean, inverse = sparse.solve(factor, right), sparse.invert(factor)
    truth = np.concatenate([sparse.variances(inverse, part) for part in placed])
    print(f"{name} jointly: {time.process_time() - start:.2f} s, tail {plan.tail}, {plan.bytes:.1e} bytes as planned")
    for n_probes in (64, 128):
        ratios, stated = [], []
        for seed in range(seeds):
            prober = sparse.with_probes(np.random.default_rng(seed), sparse.bare_of(plan, parts), n_probes=n_probes)
            found = sparse.estimate(prober, taus, right)
            ratios.append(np.sqrt(np.concatenate(found.variances) / truth))
            stated.append(np.concatenate(found.errors))
        ratio, error = np.array(ratios), np.array(stated)
        print(f"  {n_probes} probes, {seeds} seeds: sd ratios {ratio.min():.3f} to {ratio.max():.3f}", end="")
        print(f", mean {ratio.mean():.4f}", end="")
        print(f"; rms error {np.sqrt(np.mean((ratio - 1) ** 2)):.4f}, stated {np.sqrt(np.mean(error**2)):.4f}", end="")
        print(f"; means off by {np.abs(found.mean - mean).max() / np.abs(mean).max():.0e} of the largest")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--expensive", action="store_true")
    parser.add_argument("--exact", action="store_true")
    arguments = parser.parse_args()
    print(f"{'':28s}  analyse    place     sweep  plan/sw     flops     bytes   tail  rounds     splu  mean err")
    with threadpool_limits(1):
        joint("chain 1e5", chain())
        joint("tracker 20,000 x 4", tracker())
        joint("grid 100 x 100", grid())
        joint("league 3,000 / 30,000", league())
        if arguments.expensive or arguments.exact:
            expensive(arguments.exact)


if __name__ == "__main__":
    main()
