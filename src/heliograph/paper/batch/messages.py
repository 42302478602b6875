"""Messages to z of the logistic factor as real EP runs have them, with labels, for learning in batch: experiments 1 and 2."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy.special import log_expit

from heliograph.engine import Model, after, steps
from heliograph.factors import Logistic
from heliograph.factors.black_box import factor
from heliograph.families import Beta, Family, Gaussian, concatenate
from heliograph.operators.protocol import NOTHING_MORE, Ask, Incoming, Reply, Setting
from heliograph.paper.datasets import logistic_regression_problem

__all__ = [
    "Labelled",
    "Recorder",
    "exact_beliefs",
    "labelled_messages",
    "log_kl_of",
    "recorded_messages",
    "sampled_beliefs",
]


PROPOSAL_VARIANCE = 200.0  # of the authors' sampler, whose mean is 0
_DRAWS = 500_000  # at a time: a few arrays of 4 MB
_LEAST = 1e-17  # KL below the rounding of its own formula counts as this


class Labelled(NamedTuple):
    """Tuples of incoming messages with the belief of z that each should give."""

    incoming: dict[str, Any]  # z -> Gaussian (n,), out -> Beta (n,)
    belief: Gaussian  # (n,) the label
    exact: Gaussian  # (n,) by quadrature
    noise: np.ndarray  # (n, 2) variances of the label's mean and log variance; 0 if it is exact

    def __len__(self) -> int:
        return len(self.belief)

    def rows(self, rows: Any) -> Labelled:
        """Some of them."""
        incoming = {port: m[rows] for port, m in self.incoming.items()}
        return Labelled(incoming, self.belief[rows], self.exact[rows], self.noise[rows])


def log_kl_of(truth: Gaussian, prediction: Gaussian) -> np.ndarray:
    """``log KL(truth || prediction)`` of each message; NaN where nothing was predicted."""
    return np.log(np.maximum(truth.kl(prediction), _LEAST))


def exact_beliefs(incoming: dict[str, Any]) -> Gaussian:
    """The projected beliefs of z by quadrature."""
    belief = Logistic().belief("z", {"z": incoming["z"], "p": incoming["out"]})
    assert isinstance(belief, Gaussian)
    return belief


def sampled_beliefs(
    rng: np.random.Generator, incoming: dict[str, Any], particles: int
) -> tuple[Gaussian, np.ndarray, np.ndarray]:
    """Beliefs of z by plain importance sampling from N(0, 200), eq. (2), fresh draws for every message.

    The same numbers as the general oracle gives, without its diagnostics, some thirty times faster. Also the
    variances (n, 2) of mean and log variance (delta method), and where the weights left no belief.
    """
    z, out = incoming["z"], incoming["out"]
    assert isinstance(z, Gaussian) and isinstance(out, Beta)
    n = len(z)
    mean, variance, noise = np.empty(n), np.empty(n), np.empty((n, 2))
    block = max(1, _DRAWS // particles)
    for start in range(0, n, block):
        rows = slice(start, min(start + block, n))
        m, v = z.mean[rows, None], z.variance[rows, None]
        a, b = (k[rows, None] for k in out.naturals)
        x = rng.standard_normal((m.shape[0], particles))
        log_w = 0.5 * x**2  # one over the proposal's density
        x *= np.sqrt(PROPOSAL_VARIANCE)
        up = log_expit(x)
        log_w += a * up + b * (up - x) - 0.5 * (x - m) ** 2 / v  # log sigmoid(-x) = log sigmoid(x) - x
        w = np.exp(log_w - log_w.max(axis=1, keepdims=True))
        w /= w.sum(axis=1, keepdims=True)
        centre = (w * x).sum(axis=1, keepdims=True)
        d2 = (x - centre) ** 2
        spread = (w * d2).sum(axis=1, keepdims=True)
        safe = np.maximum(spread, 1e-300)  # one draw may hold all the weight
        w2 = w * w
        mean[rows], variance[rows] = centre[:, 0], spread[:, 0]
        noise[rows, 0] = (w2 * d2).sum(axis=1)
        noise[rows, 1] = (w2 * (d2 / safe - 1) ** 2).sum(axis=1)
    fine = variance > 1e-12
    return Gaussian(mean, np.where(fine, variance, 1.0)), noise, ~fine


@lru_cache(maxsize=4)
def labelled_messages(
    seed: int, n_problems: int, d: int, n: int, sweeps: int, keep_sweeps: int, n_train: int, n_test: int, particles: int
) -> tuple[Labelled, Labelled]:
    """Training and test messages of EP runs; labels are exact, or sampled if there are `particles`.

    Kept in memory, since every method of an experiment starts from the same ones.
    """
    incoming = recorded_messages(seed, n_problems, n_train + n_test, d, n, sweeps, keep_sweeps)
    exact = exact_beliefs(incoming)
    if particles:
        belief, noise, failed = sampled_beliefs(np.random.default_rng([seed, 77]), incoming, particles)
    else:
        belief, noise, failed = exact, np.zeros((len(exact), 2)), np.zeros(len(exact), dtype=bool)
    all_ = Labelled(incoming, belief, exact, noise)
    rows = np.arange(len(exact))
    n_train = min(n_train, len(rows) * n_train // (n_train + n_test))  # small problems give fewer than were asked for
    parts = rows[:n_train], rows[n_train:]
    return all_.rows(parts[0][~failed[parts[0]]]), all_.rows(parts[1][~failed[parts[1]]])


class Recorder:
    """An operator for the logistic black box that answers exactly and writes down every tuple that came in."""

    name = "recorder"

    def __init__(self, keep_sweeps: int) -> None:
        self.keep_sweeps = keep_sweeps
        self.seen: list[tuple[Family, Family]] = []

    def send(
        self, rng: np.random.Generator, to: str, incoming: Incoming, ask: Ask, setting: Setting = NOTHING_MORE
    ) -> Reply:
        """The exact message, by quadrature."""
        z, out = incoming["z"], incoming["out"]
        if to == "z" and len(self.seen) < self.keep_sweeps:
            self.seen.append((z, out))
        message = Logistic().message("p" if to == "out" else "z", {"z": z, "p": out})
        none = np.zeros(len(z), dtype=bool)
        return Reply(message, none, none)


def recorded_messages(
    seed: int, n_problems: int, most: int, d: int = 20, n: int = 300, sweeps: int = 10, keep_sweeps: int = 5
) -> dict[str, Any]:
    """At most `most` incoming tuples, in random order, of the first sweeps of EP on problems of the paper's model."""
    tuples: list[tuple[Family, Family]] = []
    for k in range(n_problems):
        problem = logistic_regression_problem(np.random.default_rng([seed, k]), d=d, n=n, n_test=1)
        recorder = Recorder(keep_sweeps)

        @factor(output=Beta)
        def logistic(z: np.ndarray) -> np.ndarray:
            return 1 / (1 + np.exp(-z))

        model = Model()
        w = model.gaussian("w", np.zeros(d), covariance=np.eye(d))
        model.bernoulli("y", logistic(problem.X @ w), observed=problem.y)
        for _ in steps(model, operator=recorder, stop=after(sweeps)):
            pass
        tuples += recorder.seen
    z, out = (concatenate([t[j] for t in tuples]) for j in range(2))
    order = np.random.default_rng([seed, n_problems]).permutation(len(z))[:most]
    return {"z": z[order], "out": out[order]}
