"""Is the default operator honest, and cheap, on black boxes that it was not made for? Learned runs against EP with an oracle alone.

    python benchmarks/bench_unseen.py                          # every factor, three problems, three tolerances
    python benchmarks/bench_unseen.py --quick                  # one tolerance, two problems
    python benchmarks/bench_unseen.py --factors tanh,sir --tolerances 1e-3

Per factor and tolerance: in how many problems the posterior is within the tolerance (KL, summed over the user's variables)
and within its own estimate; the worst error over the tolerance; the median of estimate over error; the calls of the oracle in
each problem; calls of the function in the last; and processor time over that of `operator="ask"` with the same default oracle.
The truth is EP with the oracle alone; its own error (KL of a second run, with other draws or a coarser rule) is printed, and
where it is above a tenth of the tolerance the run is not judged. Problems in which either run did not settle are not judged,
and counted. Errors below a millionth of the tolerance are rounding: they count as covered and have no ratio.
"""

import argparse
import time
import warnings

import numpy as np
from threadpoolctl import threadpool_limits

import heliograph as hg
from benchmarks import unseen_factors, unseen_more, unseen_third
from benchmarks.unseen_factors import EXACT, LIMIT, PLANE, SHARP
from heliograph.oracles import QuadratureOracle

FACTORS = unseen_factors.FACTORS | unseen_more.FACTORS | unseen_third.FACTORS
SETTLED = hg.changed_less_than(1e-10) | hg.after(60)


def beliefs(model, posterior):
    """Of the user's variables, by name."""
    return {v.node.name: posterior[v] for v in model.variables if v.node.observed is None}


def distance(a, b):
    """KL in nats, summed over variables."""
    return sum(float(np.sum(a[name].kl(b[name]))) for name in a if name in b)


def alone(build, oracle, seed, other=False):
    """EP without learning: beliefs, and whether it settled."""
    if oracle == LIMIT:
        model = build(np.random.default_rng(seed), limit=True)
        posterior = model.infer(progress=False, stop=SETTLED)
        return beliefs(model, posterior), posterior.converged
    model = build(np.random.default_rng(seed))
    if oracle is SHARP:
        posterior = model.infer(operator="ask", oracle=oracle, seed=int(other), stop=hg.after(12), progress=False)
        return beliefs(model, posterior), True
    coarser = {EXACT: QuadratureOracle(1e-6), PLANE: QuadratureOracle(1e-4)}[oracle]
    posterior = model.infer(operator="ask", oracle=coarser if other else oracle, stop=SETTLED, progress=False)
    return beliefs(model, posterior), posterior.converged


def one_factor(name, tolerances, n_problems, seed, timed):
    """Rows of the table: a record for each problem and tolerance."""
    box, build, oracle = FACTORS[name]()
    seeds = [[seed, k] for k in range(n_problems)]
    truth = [alone(build, oracle, s) for s in seeds]
    own = 0.0 if oracle == LIMIT else distance(truth[0][0], alone(build, oracle, seeds[0], other=True)[0])
    records = []
    for tolerance in tolerances:
        box.forget()
        for k, s in enumerate(seeds):
            model = build(np.random.default_rng(s))
            started, evaluated = time.process_time(), box.n_evaluations
            posterior = model.infer(tolerance=tolerance, seed=k, stop=SETTLED, progress=False)
            records.append({
                "factor": name, "tolerance": tolerance, "error": distance(truth[k][0], beliefs(model, posterior)),
                "estimate": posterior.error_estimate, "asked": posterior.trace.n_asked, "own": own,
                "evaluations": box.n_evaluations - evaluated, "seconds": time.process_time() - started,
                "judged": bool(truth[k][1] and posterior.converged and own < 0.1 * tolerance), "ask": np.nan,
            })  # fmt: skip
    if timed:
        other, rebuild, _ = FACTORS[name]()
        started = time.process_time()
        rebuild(np.random.default_rng(seeds[-1])).infer(operator="ask", seed=0, stop=SETTLED, progress=False)
        records[-1]["ask"] = time.process_time() - started
        other.forget()
    return records


def verdict(records):
    """In a word, what became of one factor."""
    judged = [r for r in records if r["judged"]]
    if not judged:
        return "not judged"
    broken = [r for r in judged if r["error"] > r["tolerance"]]
    silent = [r for r in broken if r["estimate"] < r["error"]]
    short = [r for r in judged if r["estimate"] < r["error"] > 1e-6 * r["tolerance"]]
    return "SILENTLY WRONG" if silent else "broken, said so" if broken else "estimate short" if short else "kept"


def ratio(record):
    """Estimate over error; NaN for errors below a millionth of the tolerance, which are rounding."""
    return record["estimate"] / record["error"] if record["error"] > 1e-6 * record["tolerance"] else np.nan


def typical(records):
    """The median ratio of those that have one."""
    known = [r for r in map(ratio, records) if not np.isnan(r)]
    return float(np.median(known)) if known else np.nan


def show(name, records):
    """The lines of one factor."""
    for tolerance in sorted({r["tolerance"] for r in records}, reverse=True):
        some = [r for r in records if r["tolerance"] == tolerance]
        judged = [r for r in some if r["judged"]] or some
        kept = sum(r["error"] <= tolerance for r in judged)
        covered = sum(r["estimate"] >= max(r["error"], 0.0) or r["error"] < 1e-6 * tolerance for r in judged)
        last = some[-1]
        print(f"{name:16}{tolerance:7.0e}  kept {kept}/{len(judged)} covered {covered}/{len(judged)} of {len(some)}"
              f"  worst/tol {max(r['error'] for r in judged) / tolerance:8.1e}  ratio {typical(judged):8.1e}"
              f"  asked {' '.join(str(r['asked']) for r in some):14} calls {last['evaluations']:9}"
              f"  s {sum(r['seconds'] for r in some):5.1f}  over ask {last['seconds'] / last['ask']:5.2f}"
              f"  truth to {last['own']:.0e}", flush=True)  # fmt: skip
    print(f"{name:16}{verdict(records)}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--factors", default=",".join(FACTORS))
    parser.add_argument("--tolerances", default="1e-1,1e-2,1e-3")
    parser.add_argument("--problems", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="tolerance 1e-2 only, two problems")
    options = parser.parse_args()
    tolerances = [1e-2] if options.quick else [float(t) for t in options.tolerances.split(",")]
    everything = []
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        for name in options.factors.split(","):
            records = one_factor(
                name, tolerances, 2 if options.quick else options.problems, options.seed, timed=not options.quick
            )
            everything += records
            show(name, records)
    judged = [r for r in everything if r["judged"]]
    kept = np.mean([r["error"] <= r["tolerance"] for r in judged])
    covered = np.mean([r["estimate"] >= r["error"] or r["error"] < 1e-6 * r["tolerance"] for r in judged])
    silent = sum(r["error"] > max(r["tolerance"], r["estimate"]) for r in judged)
    print(f"{len(judged)} of {len(everything)} runs judged: tolerance kept in {100 * kept:.1f} % (goal 95), estimate covers "
          f"{100 * covered:.1f} % (goal 95), median ratio {typical(judged):.3g} (goal < 30), {silent} silently wrong")  # fmt: skip


if __name__ == "__main__":
    main()
