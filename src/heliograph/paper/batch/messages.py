"""Labelled messages to z of the logistic factor, for learning in batch: experiments 1 and 2."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy.special import log_expit

from heliograph.factors import Logistic
from heliograph.families import Beta, Gaussian
from heliograph.paper.batch.recording import recorded_messages

__all__ = ["Labelled", "exact_beliefs", "labelled_messages", "log_kl_of", "sampled_beliefs"]

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
    n_train = min(n_train, len(rows) * n_train // (n_train + n_test))  # small problems give fewer than were wished for
    parts = rows[:n_train], rows[n_train:]
    return all_.rows(parts[0][~failed[parts[0]]]), all_.rows(parts[1][~failed[parts[1]]])
