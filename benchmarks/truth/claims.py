"""How right each sort of model must be, and why not more: the sizes of EP's own errors, named and bounded.

A claim is a table of limits. `docs/accuracy.md` shows it, so a limit that is raised here is raised in public.
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
        "EP is exact; what remains is where the loop stopped",
    ),
    "projected": Claim(
        {"mean": 0.01, "spread": 0.01, "probability": 2e-3, "evidence": 0.01},
        "one factor per unknown: EP's belief is the projection of the exact posterior; what remains is quadrature inside factors",
    ),
    "regression: logit": Claim({"mean": 0.05, "spread": 0.05, "correlation": 0.05, "evidence": 0.05}, "EP's own error"),
    "regression: probit": Claim({"mean": 0.05, "spread": 0.05, "correlation": 0.05, "evidence": 0.05}, "EP's own error"),
    "regression: log_rate": Claim({"mean": 0.05, "spread": 0.05, "correlation": 0.05, "evidence": 0.05}, "EP's own error"),
    "mean and precision, n < 10": Claim({"mean": 0.3, "spread": 0.3, "evidence": 0.5}, "EP's own error"),
    "mean and precision, n >= 10": Claim({"mean": 0.05, "spread": 0.1, "evidence": 0.2}, "EP's own error"),
    "mixture": Claim({"mean": 0.1, "spread": 0.1, "probability": 0.05, "evidence": 0.1}, "EP's own error"),
    "shared product or maximum": Claim({"mean": 0.1, "spread": 0.1, "evidence": 0.1}, "EP's own error"),
    "exact discrete": Claim(
        {"probability": 1e-3, "evidence": 1e-2}, "belief propagation on a tree is exact; what remains is the stopping rule"
    ),
    "loopy discrete": Claim({"probability": 0.05}, "loopy belief propagation"),
    "tolerance": Claim(
        {"nats": 1e-3}, "the fixed point of EP is known (one factor per unknown, or our own EP on grids); "
        "what remains is the default `tolerance` of learned and sampled messages, 1e-3 nats in all"
    ),
    "sampled": Claim({"nats": 1e-3}, "as tolerance, with draws only"),
    "impossible": Claim({}, "no answer is right"),
}  # fmt: skip
