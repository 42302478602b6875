"""How the benchmark of blocks runs, times and prints."""

import time
import warnings

import numpy as np

MOST_SWEEPS = 60  # a run that needs more has missed its goal anyway


def timed(run, repeats=20, enough=0.5):
    """The result and the least processor time of several runs: other people's work on the machine only ever adds."""
    best, total, result = np.inf, 0.0, None
    for _ in range(repeats):
        start = time.process_time()
        result = run()
        seconds = time.process_time() - start
        best, total = min(best, seconds), total + seconds
        if total > enough:
            break
    return result, best


def infer(model, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # whether a run converged is in the table
        return model.infer(progress=False, **{"max_sweeps": MOST_SWEEPS, **settings})


def row(name, *figures):
    print(f"{name:<52}" + "  ".join(str(f) for f in figures), flush=True)


def goal(figure, most, unit="", converged=True):
    """A figure beside its goal; the time of a run that did not converge meets none."""
    verdict = ("met" if figure <= most else "MISSED") if converged else "MISSED, not converged"
    return f"{figure:.2f}{unit} (goal at most {most:g}{unit}: {verdict})"


def ended(posterior, most=None):
    said = f"{posterior.n_sweeps} sweeps, {'converged' if posterior.converged else 'NOT converged'}"
    return (
        said if most is None else f"{said} (goal at most {most}: {'met' if within_goal(posterior, most) else 'MISSED'})"
    )


def within_goal(posterior, most):
    """Whether a run converged in at most so many sweeps."""
    return posterior.converged and posterior.n_sweeps <= most


def worst(belief, mean, sd):
    """The largest error of a mean in sds, and the range of sd ratios."""
    ratio = np.sqrt(np.asarray(belief.variance)) / sd
    return f"z {np.abs((belief.mean - mean) / sd).max():.1e}, sd ratio {ratio.min():.4f}-{ratio.max():.4f}"
