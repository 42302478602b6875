"""The sentences a user reads when a setting of `infer` or `steps` is wrong, each raised before any sweep."""

from __future__ import annotations

import numbers
from typing import TypeGuard

import numpy as np

from heliograph.engine.options import InferOptions, StepOptions
from heliograph.engine.posterior import Posterior
from heliograph.engine.properness import POLICIES
from heliograph.errors import ModelError
from heliograph.factors.black_box import oracle_named
from heliograph.numerics.checks import check_seed, in_words
from heliograph.operators.registry import make_operator, operator_names

__all__ = ["check_options"]


def check_options(options: StepOptions) -> None:
    """Raise a `ModelError` that names the setting and what it may be; every setting is looked at, used or not."""
    _check_numbers(options.damping, options.power, options.tolerance, options.max_sweeps, options.seed)
    _check_words(options.schedule, options.improper, options.structure)
    if options.seconds is not None and not (_is_number(options.seconds) and options.seconds > 0):
        raise ModelError(f"seconds must be a positive number, or None for no limit, not {in_words(options.seconds)}")
    if not (_is_number(options.budget) and 0 < options.budget < np.inf):
        raise ModelError(f"budget must be a positive number of seconds, not {in_words(options.budget)}")
    _check_objects(options.stop, options.executor)
    if not isinstance(options.operator, str) or options.operator not in operator_names():
        make_operator(options.operator)  # raises unless it is an object that can send
    oracle_named(options.oracle)
    if options.start is not None and not isinstance(options.start, Posterior):
        raise ModelError(
            f"start must be a posterior of an earlier run of this model, not {type(options.start).__name__}; leave it "
            "out to begin anew"
        )
    if isinstance(options, InferOptions):
        _check_progress(options.progress)
        if not isinstance(options.correct, (bool, np.bool_)) and options.correct != "auto":
            raise ModelError(f"correct must be 'auto', True or False, not {in_words(options.correct)}")
        if not isinstance(options.audit, (bool, np.bool_)):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ModelError(f"audit must be True or False, not {in_words(options.audit)}")


def _check_words(schedule: object, improper: object, structure: object) -> None:
    if not isinstance(structure, str) or structure not in ("auto", "joint", "factorised"):
        raise ModelError(f"structure must be 'auto', 'joint' or 'factorised', not {in_words(structure)}")
    if not isinstance(schedule, str) or schedule not in ("parallel", "sequential"):
        raise ModelError(f"schedule must be 'parallel' or 'sequential', not {in_words(schedule)}")
    if not isinstance(improper, str) or improper not in POLICIES:
        raise ModelError(f"improper must be one of {POLICIES}, not {in_words(improper)}")


def _check_numbers(damping: object, power: object, tolerance: object, max_sweeps: object, seed: object) -> None:
    if damping is not None and not (_is_number(damping) and 0 <= damping < 1):
        raise ModelError(f"damping must lie in [0, 1) (0: none), or be None to adapt, not {in_words(damping)}")
    if not (_is_number(power) and 0 < power < np.inf):
        raise ModelError(f"power must be a positive number (1: plain EP), not {in_words(power)}")
    if not (_is_number(tolerance) and 0 <= tolerance < np.inf):
        raise ModelError(f"tolerance must be 0 or more nats, not {in_words(tolerance)}")
    if not (_is_whole(max_sweeps) and max_sweeps >= 1):
        raise ModelError(f"max_sweeps must be a whole number of 1 or more, not {in_words(max_sweeps)}")
    check_seed(seed)


def _check_objects(stop: object, executor: object) -> None:
    if stop is not None and not (callable(stop) and callable(getattr(stop, "converged", None))):
        raise ModelError(
            f"stop must be a stopping rule such as hg.changed_less_than(1e-6) | hg.after(50), not {type(stop).__name__}"
        )
    if executor is not None and not callable(getattr(executor, "submit", None)):
        raise ModelError(
            f"executor must be one of concurrent.futures, such as ThreadPoolExecutor(4), not {type(executor).__name__}"
        )


def _check_progress(progress: object) -> None:
    if progress is not None and not isinstance(progress, (bool, np.bool_)):
        raise ModelError(f"progress must be True, False, or None (shown on a terminal only), not {in_words(progress)}")


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_))


def _is_whole(value: object) -> TypeGuard[int]:
    return isinstance(value, numbers.Integral) and not isinstance(value, (bool, np.bool_))
