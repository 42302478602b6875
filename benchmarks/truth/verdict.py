"""Right, or says so: a model is run as a user would run it, and what it says is compared with the truth."""

from __future__ import annotations

import signal
import time
import traceback
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import heliograph as hg
from benchmarks.truth.claims import CLAIMS
from benchmarks.truth.world import Truth, World

__all__ = ["CRASHED", "REFUSED", "RIGHT", "SAID", "SILENT", "Result", "errors_of", "judge"]

RIGHT, SAID, REFUSED, SILENT, CRASHED = "right", "said so", "refused", "SILENTLY WRONG", "CRASHED"
OURS = (hg.AccuracyWarning, hg.ConvergenceWarning, hg.OracleWarning)
TOLERANCE = 1e-3  # the default of `infer`, in nats
SECONDS = 120  # of processor time; a model that takes longer hangs


@dataclass(frozen=True)
class Result:
    """What became of one model."""

    kind: str
    seed: int
    claim: str
    verdict: str
    errors: dict[str, float] = field(default_factory=dict)
    worst: float = 0.0  # the largest error over its limit; right is at most 1
    said: tuple[str, ...] = ()
    stray: tuple[str, ...] = ()  # warnings that are not ours: a user can do nothing with them
    seconds: float = 0.0  # of processor time, the truth included
    note: str = ""


class _TookTooLong(Exception):
    pass


def judge(world: World) -> Result:
    """Run one model and give the verdict."""
    start = time.process_time()
    said: list[str] = []
    stray: list[str] = []

    def result(verdict: str, errors: dict[str, float] | None = None, worst: float = 0.0, note: str = "") -> Result:
        seconds = time.process_time() - start
        return Result(
            world.kind, world.seed, world.claim, verdict, errors or {}, worst, tuple(said), tuple(stray), seconds, note
        )

    with warnings.catch_warnings(record=True) as caught, _limited(SECONDS):
        warnings.simplefilter("always")
        try:
            posterior, beliefs, log_evidence = answer_of(world)
        except hg.HeliographError as error:
            said.append(f"{type(error).__name__}: {error}")
            return result(RIGHT if world.truth is None else REFUSED, note=said[-1])
        except Exception:
            return result(CRASHED, note=traceback.format_exc(limit=-3))
    for w in caught:
        (said if issubclass(w.category, OURS) else stray).append(f"{w.category.__name__}: {w.message}")
    if not posterior.converged and not said:
        said.append("converged is False")
    estimate = posterior.error_estimate
    if not estimate <= TOLERANCE:  # NaN: the operator gives no estimate, and says that
        said.append(f"error_estimate is {estimate:.2g}")
    if world.truth is None:
        return result(RIGHT if said else SILENT, note="" if said else f"impossible, yet {posterior!r}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        truth = world.truth()
    _check(world, truth)
    errors = errors_of(truth, beliefs, log_evidence)
    limits = CLAIMS[world.claim].limits
    ratios = {k: errors[k] / limits[k] for k in limits if k in errors}
    worst = max(ratios.values(), default=0.0)
    if worst <= 1:
        return result(RIGHT, errors, worst)
    which = max(ratios, key=lambda k: ratios[k])
    note = f"{which} is off by {errors[which]:.3g} (limit {limits[which]:.3g}), {errors.get('at', '')}"
    return result(SAID if said else SILENT, errors, worst, note)


def answer_of(world: World) -> tuple[hg.Posterior, dict[str, Any], float]:
    """The posterior, the belief of every variable of the source by name, and the log evidence."""
    scope: dict[str, Any] = {"hg": hg, "np": np, "__name__": "world"}
    exec(compile(world.source, f"<{world.kind} {world.seed}>", "exec"), scope)
    scope["posterior"] = scope["m"].infer(**world.settings)
    before = set(scope)
    exec(compile(world.after, f"<after {world.kind} {world.seed}>", "exec"), scope)
    posterior = scope["posterior"]
    asked = {name: value for name, value in scope.items() if name not in before}
    beliefs = {name: posterior[v] for name, v in scope.items() if isinstance(v, hg.Variable) and v.model is scope["m"]}
    return posterior, beliefs | asked, posterior.log_evidence


def errors_of(truth: Truth, beliefs: dict[str, Any], log_evidence: float) -> dict[str, float]:
    """The largest error of each sort; one that is not a number counts as infinite.

    mean: in true sds. spread: log of the ratio of the sds. nats: the sum of KL(truth || belief), both as Gaussians.
    probability: absolute. evidence: in nats, beyond the rounding of its own size.
    """
    errors: dict[str, float] = {}

    def note(which: str, values: Any) -> None:
        largest = float(np.max(np.where(np.isnan(values), np.inf, np.abs(values)), initial=0.0))
        errors[which] = max(errors.get(which, 0.0), largest)

    for name, mean in truth.mean.items():
        sd, belief = truth.sd[name], beliefs[name]
        got, spread = np.asarray(belief.mean), np.sqrt(np.asarray(belief.variance))
        if got.shape != np.shape(mean):
            raise ValueError(f"{name}: the belief has shape {got.shape}, the truth {np.shape(mean)}")
        with np.errstate(all="ignore"):
            ratio = spread / sd
            note("mean", (got - mean) / sd)
            note("spread", np.log(ratio))
            kl = np.log(ratio) + 0.5 * (1 + ((got - mean) / sd) ** 2) / ratio**2 - 0.5
            errors["nats"] = errors.get("nats", 0.0) + float(np.sum(np.where(np.isnan(kl), np.inf, kl)))
    for name, covariance in truth.covariance.items():
        got = np.asarray(beliefs[name].covariance)
        sd = np.sqrt(np.diagonal(covariance, axis1=-2, axis2=-1))
        note("correlation", (got - covariance) / (sd[..., :, None] * sd[..., None, :]))
    for name, probability in truth.probability.items():
        belief = beliefs[name]
        note("probability", np.asarray(belief.p if hasattr(belief, "p") else belief.probabilities) - probability)
    if truth.log_evidence is not None:
        note("evidence", log_evidence - truth.log_evidence)
        errors["evidence"] = max(errors["evidence"] - 1e-9 * abs(truth.log_evidence), 0.0)
    return errors


def _check(world: World, truth: Truth) -> None:
    """A truth that is not a number is a fault of this machine, and no verdict."""
    values = [*truth.mean.values(), *truth.sd.values(), *truth.probability.values(), *truth.covariance.values()]
    if truth.log_evidence is not None:
        values.append(truth.log_evidence)
    if not all(np.isfinite(v).all() for v in values) or any((np.asarray(s) <= 0).any() for s in truth.sd.values()):
        raise ArithmeticError(f"the truth of {world.kind!r}, seed {world.seed}, was not found")


class _limited:
    """A time limit for what runs inside, where the platform has one."""

    def __init__(self, seconds: int) -> None:
        self.seconds = seconds

    def __enter__(self) -> None:
        if hasattr(signal, "SIGPROF"):
            self.before = signal.signal(signal.SIGPROF, self._stop)
            signal.setitimer(
                signal.ITIMER_PROF, self.seconds
            )  # processor time: a busy machine is no fault of the model

    def __exit__(self, *_: Any) -> None:
        if hasattr(signal, "SIGPROF"):
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.signal(signal.SIGPROF, self.before)

    def _stop(self, *_: Any) -> None:
        raise _TookTooLong(f"took longer than {self.seconds} s")
