"""An observed output of which the user gave the log density: the integral of ``p(y | inputs)``.

In the new form the function is ``v = sqrt(2 (c - log p))`` with a ceiling c that no log density was seen above, and the message
on its output is a standard Gaussian: its logarithm is ``log p - c``, so every oracle and every reference weighs by the density
and needs no draw to equal the observation. (A message ``exp(log p)`` would be simpler and has no largest value, by which
oracles bound what they have not seen; docs/decisions/0053.) A log density above the ceiling raises it, and the rows in question
are asked again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from heliograph.errors import FactorError
from heliograph.families import Family, Gaussian
from heliograph.oracles.answer import Answer, Oracle, replace_rows
from heliograph.oracles.answering import blank, exact, fields_of
from heliograph.oracles.calling import as_array, call
from heliograph.oracles.problem import continuous_columns, groups_of, stand_in, take_incoming, take_rows
from heliograph.oracles.sampler import Sampler

__all__ = ["DensityForm", "ask_density"]

_CEILING = "ceiling of log_density"
_MARGIN = 0.5  # nats above the highest log density seen: a root of 0 has no slope
_DEEPEST = 1e5  # the root where nothing can be: 5e9 nats below the ceiling
_LOOKS = 65  # places of a row at which a ceiling is looked for first
_WIDE = 6.0  # deviations of the messages that these places cover
_ROUNDS = 12  # times that a ceiling may turn out too low


class _Depth:
    """How far below its ceiling a log density lies, as a root; it can be sent to a worker if the log density can."""

    def __init__(self, name: str, log_density: Callable[..., Any], value: str) -> None:
        self.name, self.log_density, self.value = name, log_density, value
        self.raised: dict[float, float] = {}  # ceiling -> what was found above it

    def log_p(self, given: Mapping[str, Any]) -> np.ndarray:
        """The user's log density; -inf where nothing can be."""
        inputs = {k: a for k, a in given.items() if k not in (self.value, _CEILING)}
        found = as_array(self.name, self.log_density(given[self.value], **inputs))
        if found.dtype.kind not in "fiu":
            raise FactorError(f"log_density of factor {self.name!r} returned {found.dtype} where numbers are needed")
        return found.astype(float)

    def __call__(self, **given: Any) -> np.ndarray:
        ceiling = np.asarray(given[_CEILING])
        log_p = self.log_p(given)
        depth = ceiling - log_p  # NaN stays: an error, where there is mass
        if (depth < 0).any():
            self._raise(np.broadcast_to(ceiling, depth.shape), log_p, depth < 0)
        return np.minimum(np.sqrt(2 * np.maximum(depth, 0.0)), _DEEPEST)

    def _raise(self, ceiling: np.ndarray, log_p: np.ndarray, above: np.ndarray) -> None:
        for c in np.unique(ceiling[above]):
            highest = float(log_p[above & (ceiling == c)].max())
            self.raised[float(c)] = max(self.raised.get(float(c), -np.inf), highest)


class DensityForm:
    """Rows whose output is observed, as integrals of the given log density."""

    def __init__(self, sampler: Sampler, incoming: Mapping[str, Any]) -> None:
        assert sampler.log_density is not None
        self.original, self.seen = sampler, incoming[sampler.child]  # messages, or rows of numbers in their place
        value, inputs = f"observed {sampler.child}", sampler.inputs
        if sampler.counted is not None:  # the value is at an input already, and the output says that it was found
            value = sampler.counted
        else:
            inputs = (*inputs, value)
        self.depth = _Depth(sampler.name, sampler.log_density, value)
        ways = sampler.vectorized, sampler.expensive
        drawn = sampler.stochastic and not isinstance(self.seen, Family)
        self.sampler = Sampler(sampler.name, self.depth, (*inputs, _CEILING), Gaussian, drawn, False, *ways)
        n = len(self.seen)
        self.incoming: dict[str, Any] = {p: incoming[p] for p in sampler.inputs}
        if sampler.counted is None:
            self.incoming[value] = np.asarray(self.seen.point if isinstance(self.seen, Family) else self.seen)
        self.incoming[self.sampler.child] = Gaussian.from_mean_variance(np.zeros(n), np.ones(n))
        self.ceiling = self.incoming[_CEILING] = self._first_ceiling(n)

    def _first_ceiling(self, n: int) -> np.ndarray:
        """The highest log density at a few places of each row, and a margin."""
        plain = self.sampler._replace(function=self._plain, inputs=self.sampler.inputs[:-1])
        highest = np.full(n, -np.inf)
        for rows, problem in groups_of(plain, self.incoming):
            u = _places(problem)
            some = take_rows(problem, np.repeat(np.arange(problem.n), u.shape[1]))
            flat = u.reshape(-1, u.shape[2])
            inputs = {p.name: p.axis.value(flat[:, p.columns]) for p in problem.inputs} | some.constants
            log_p = call(np.random.default_rng(0), plain, inputs, len(flat))
            if log_p.shape != (len(flat),):
                raise FactorError(
                    f"log_density of factor {plain.name!r} returned shape {log_p.shape} for {len(flat)} samples; give one number "
                    "for each sample"
                )
            log_p = np.where(np.isfinite(log_p), log_p, -np.inf).reshape(problem.n, -1)
            highest[rows] = log_p.max(axis=1)
        return np.where(np.isfinite(highest), highest, 0.0) + _MARGIN

    def _plain(self, **given: Any) -> np.ndarray:
        return self.depth.log_p(given)

    def raise_ceiling(self) -> np.ndarray:
        """Rows whose log density was seen above the ceiling, which is higher from now on."""
        higher = self.depth.raised
        rows = np.flatnonzero(np.isin(self.ceiling, list(higher)))
        if len(rows):
            raised = self.ceiling.copy()
            raised[rows] = [higher[float(c)] + _MARGIN for c in self.ceiling[rows]]
            self.ceiling = self.incoming[_CEILING] = raised
        self.depth.raised = {}
        return rows

    def back(self, answer: Answer, failed: np.ndarray) -> Answer:
        """The answer about the factor itself, with the output as it was observed; rows fail too where that is said."""
        failed = answer.failed | failed
        log_z = np.where(failed, -np.inf, answer.log_z + self.ceiling + 0.5 * np.log(2 * np.pi))
        inputs, child = self.original.inputs, self.original.child
        mine = {child: exact(self.seen, failed)} if isinstance(self.seen, Family) else {}
        kept: dict[str, Any] = {}
        for field, own in fields_of(mine).items():
            of_port = {p: a for p, a in getattr(answer, field).items() if p in inputs} | own
            kept[field] = {p: of_port[p] for p in self.original.ports if p in of_port}
        kept["expected_kl"] = {p: blank(a, failed, False) for p, a in kept["expected_kl"].items()}
        return answer._replace(**kept, log_z=log_z, failed=failed)


def ask_density(oracle: Oracle, rng: np.random.Generator, sampler: Sampler, incoming: Mapping[str, Any]) -> Answer:
    """The beliefs of every direction where the output is observed and has a log density."""
    form = DensityForm(sampler, incoming)
    answer = oracle.ask(rng, form.sampler, form.incoming)
    rows = form.raise_ceiling()
    for _ in range(_ROUNDS):
        if not len(rows):
            break
        again = oracle.ask(rng, form.sampler, take_incoming(form.incoming, rows))
        answer = replace_rows(answer, rows, again)
        rows = form.raise_ceiling()
    lost = np.zeros(len(answer.failed), dtype=bool)
    lost[rows] = True
    return form.back(answer, lost)


def _places(problem: Any) -> np.ndarray:
    """A few coordinates (n, s, D) of each row: along the line of an only number, else draws, the same for rows that are alike."""
    columns = continuous_columns(problem)
    mean, covariance = stand_in(problem, 10.0)
    rng = np.random.default_rng(0)
    u = np.zeros((problem.n, _LOOKS, problem.n_coordinates))
    if len(columns) == 1:
        steps = np.linspace(-_WIDE, _WIDE, _LOOKS)[:, None]
    else:
        steps = rng.standard_normal((_LOOKS, len(columns))) * np.linspace(0, 2, _LOOKS)[:, None]
    root = np.linalg.cholesky(0.5 * covariance)
    u[..., columns] = mean[:, None] + steps @ np.swapaxes(root, 1, 2)
    for port in problem.discrete:
        u[..., port.columns.start] = rng.integers(port.axis.n_values, size=_LOOKS)
    return u
