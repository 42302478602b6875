"""How right each sort of model must be, and why not more: the sizes of EP's own errors, named and bounded.

A claim is a table of limits. `docs/accuracy.md` shows it, so a limit that is raised here is raised in public.
The limits of EP's own errors are about one and a half times the largest error of hundreds of models; the same
models against our own EP, or against a projection, are held to "exact" and "projected".
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["CLAIMS", "Claim"]


class Claim(NamedTuple):
    """Limits on the errors of `verdict.errors_of`, and the reason."""

    limits: dict[str, float]
    reason: str


CLAIMS = {
    "exact": Claim(
        {"mean": 0.01, "spread": 0.01, "correlation": 0.01, "evidence": 0.01},
        "EP is exact here, or the truth is our own EP; what remains is where the loop stopped",
    ),
    "projected": Claim(
        {"mean": 0.002, "spread": 0.002, "probability": 1e-3, "evidence": 0.01},
        "one factor per unknown: the belief is the projection of the exact posterior; what remains is quadrature in factors",
    ),
    "exact discrete": Claim(
        {"probability": 1e-3, "evidence": 1e-2}, "chains, trees and small loops are summed exactly"
    ),
    "unknown tables": Claim(
        {"probability": 0.15, "evidence": 0.4}, "Dirichlet rows and categories are dependent, and EP factorises them"
    ),
    "tolerance": Claim(
        {"nats": 1e-3},
        "black boxes against the projection of the exact posterior, or our own EP on grids: the default `tolerance`, in all",
    ),
    "sampled": Claim(
        {"nats": 1e-3},
        "stochastic boxes against the likelihood with the noise integrated out: the default `tolerance`, in all",
    ),
    "regression: logit": Claim(
        # until two or three strong labels, or labels that all agree, showed .0502 and .202: .05 and .1
        {"mean": 0.08, "spread": 0.2, "correlation": 0.35, "evidence": 0.25},
        "rows share two coefficients: EP's sds are too small where few strong labels decide, its evidence where all agree",
    ),
    "regression: probit": Claim({"mean": 0.08, "spread": 0.2, "correlation": 0.35, "evidence": 0.25}, "as for logit"),
    "regression: log_rate": Claim(
        # an evidence of .05 until .0585 was seen (seed 150000)
        {"mean": 0.03, "spread": 0.1, "correlation": 0.2, "evidence": 0.09},
        "as for logit, with counts",
    ),
    "random effects": Claim(
        # those of regression with labels; tighter ones were tried, and labels that all agree showed a spread of .15
        {"mean": 0.08, "spread": 0.2, "evidence": 0.25},
        "as for logit, with every likelihood of the language; a scale, where it is unknown, is integrated over",
    ),
    "mean and precision, n < 10": Claim(
        {"mean": 0.3, "spread": 0.3, "evidence": 0.25},
        "mean and precision are dependent, and EP factorises them",  # .2 until .216 was seen, n = 3
    ),
    "mean and precision, n >= 10": Claim(
        {"mean": 0.08, "spread": 0.12, "evidence": 0.1}, "the same, with less to depend on"
    ),
    "mixture": Claim(
        {"mean": 0.5, "spread": 0.8, "probability": 0.15, "evidence": 0.3},
        "a posterior of several modes gets one Gaussian a mean; below .01 unless few points overlap",
    ),
    "shared product or maximum": Claim(
        # chosen after seeing .143 of a spread, for which the check warns beyond .13, and .117 of an evidence, beyond .2
        {"mean": 0.16, "spread": 0.16, "evidence": 0.25},
        "two scalars that meet in several rows are joint, but their posterior is bent: beyond this limit a warning must say so",
    ),
    "program": Claim(
        # what the run's own check by weighted draws says of itself, .1 beyond its noise, and the noise of the truth's own draws
        {"mean": 0.2, "spread": 0.2, "evidence": 0.35},
        "statements of every kind about up to four numbers: beyond these limits a warning must say so",
    ),
    "functions": Claim(
        {"mean": 0.2, "spread": 0.2, "evidence": 0.35},  # those of programs: of each row the first two, of all the last
        "a Gaussian message at every link of a function of a function: beyond these limits a warning must say so",
    ),
    "answers": Claim(
        # of means and spreads, those of regressions and a tenth for the noise of 20,000 draws
        {"mean": 0.1, "spread": 0.22, "evidence": 0.25},
        "regressions of two unknowns: what is predicted, drawn, computed and run again is as right as they are",
    ),
    "switches": Claim(
        {"mean": 0.2, "spread": 0.2, "probability": 0.1, "evidence": 0.35},  # those of programs
        "one switch over statements of every kind, or rows that are about either of two numbers",
    ),
    "rewritten": Claim({"nats": 2e-3}, "each of the two forms may be off by the default `tolerance`"),
    "hierarchical: groups": Claim(
        {"mean": 0.1, "spread": 0.12, "evidence": 0.12}, "an unknown precision over three to six effects"
    ),
    "hierarchical: noisy_line": Claim(
        {"mean": 0.1, "spread": 0.12, "evidence": 0.1}, "coefficients and noise precision are factorised"
    ),
    "hierarchical: counts": Claim({"mean": 0.02, "spread": 0.02, "evidence": 0.02}, "EP is close to exact"),
    "hierarchical: heavy_tails": Claim({"mean": 0.02, "spread": 0.03, "evidence": 0.02}, "EP is close to exact"),
    "hierarchical: items": Claim({"mean": 0.1, "spread": 0.1, "evidence": 0.1}, "EP is close to exact"),
    "hierarchical: rank_one": Claim(
        {"mean": 0.1, "spread": 0.1, "evidence": 0.1}, "products of two unknowns: joint, and a warning where they bend"
    ),
    "impossible": Claim({}, "no answer is right; to say so is"),
}
