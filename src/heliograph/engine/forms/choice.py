"""One of several components, chosen by a category, where parameters of the components are jointly Gaussian.

Only one component holds, so that log Z and every other message need the marginals of the parameters alone. The message to the
vector of them is a mixture over the components: each moves one number, and the others with it by their covariance (decision 0060).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from heliograph.engine.forms.messages import proper_moments
from heliograph.factors import Factor, Incoming, Mixture, OneOf
from heliograph.families import Family, Gamma, Gaussian, MultivariateGaussian

__all__ = ["JointChoice", "can_join", "chooser_of"]

_SURE = 0.999  # of a component's probability: such a row needs no check
# rows that may be of several components: with more of them the posterior of a few numbers is nearly Gaussian
_MANY = 100


def can_join(factor: OneOf | Mixture, ports: tuple[str, ...]) -> tuple[str, ...]:
    """The ports among these that may be one vector: parents of which every component has one at most."""
    joined = tuple(p for p in ports if p not in ("s", factor.child))
    once = all(len([p for p, _ in factor.parents(k) if p in joined]) <= 1 for k in range(factor.n))
    return joined if once else ()


def chooser_of(factor: Factor) -> OneOf | Mixture | None:
    """The mixture that a factor is, or is a form of."""
    plain = factor.factor if isinstance(factor, JointChoice) else factor
    return plain if isinstance(plain, (OneOf, Mixture)) else None


class JointChoice(Factor):
    """A `OneOf` or `Mixture` with a vector port for some of its Gaussian numbers.

    With the cavity N(m, V), and component k, of probability r_k, saying ``exp(s z - t z^2 / 2)`` of the number z at place j, write
    ``alpha_k = (s - t m_j) / (1 + t V_jj)`` and ``c_k = t / (1 + t V_jj)``. The mixture of the beliefs has the mean ``m + V a``
    and the covariance ``V - V D V``, with ``a = sum r_k alpha_k e_j`` and ``D = sum r_k (c_k - alpha_k^2) e_j e_j' + a a'``.
    """

    def __init__(self, factor: OneOf | Mixture, joined: tuple[str, ...]) -> None:
        self.factor, self.joined = factor, joined
        self.port = "+".join(joined)
        rest = tuple(p for p in factor.ports if p not in joined)
        vars(self).update(
            name=factor.name,
            n=factor.n,
            ports=(rest[0], self.port, *rest[1:]),
            families={
                **{p: f for p, f in factor.families.items() if p not in joined},
                self.port: (MultivariateGaussian,),
            },
            how=dict.fromkeys((self.port, *rest), "as its components"),
            data_ranks=factor.data_ranks,
            ignores_own=factor.ignores_own,
        )

    def message(self, to: str, incoming: Incoming, power: float = 1.0) -> Family:
        """The factor's own message given the marginals; to the vector, the mixture of the components' messages."""
        alone = self.alone(incoming)
        if to != self.port:
            return self.factor.message(to, alone)
        cavity = incoming[self.port]
        probability = self.factor.probabilities(alone)
        messages = [
            (k, self.joined.index(port), self.factor.message_if_chosen(k, inner, alone))
            for k in range(self.factor.n)
            for port, inner in self.factor.parents(k)
            if port in self.joined
        ]
        return _mixed(cavity, probability, messages)

    def log_z(self, incoming: Incoming, power: float = 1.0) -> np.ndarray:
        """The factor's own, of the marginals."""
        return self.factor.log_z(self.alone(incoming))

    def mean_field(self, to: str, incoming: Incoming, beliefs: Incoming) -> Family | None:
        """The factor's own rule, number by number."""
        alone, whole = self.alone(incoming), self.alone(beliefs)
        if to != self.port:
            return self.factor.mean_field(to, alone, whole)
        return self.together([self.factor.mean_field(p, alone, whole) for p in self.joined])

    def bends(self, incoming: Incoming) -> bool:
        """Return whether the belief of the vector should be checked, because some rows may be of several components.

        With many such rows it is nearly Gaussian, and where precisions are unknown as well, every check would need an integral.
        """
        alone = self.alone(incoming)
        exact = all(m.is_point.all() for m in alone.values() if isinstance(m, Gamma))
        return exact and 0 < len(self._doubtful(alone)) <= _MANY

    def log_at(self, incoming: Incoming, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """``log`` of the factor at draws (n, S, d) of the vector, and of which components it is a function: all.

        -inf in rows whose component is known, which need no check.
        """
        n, draws, d = values.shape
        rows = self._doubtful(self.alone(incoming))
        many = np.repeat(rows, draws)
        at = {p: m[many] for p, m in incoming.items() if p != self.port}
        at |= {p: Gaussian.point_mass(values[rows, :, k].reshape(-1)) for k, p in enumerate(self.joined)}
        log_t = np.full((n, draws), -np.inf)
        log_t[rows] = self.factor.log_z(at).reshape(len(rows), draws)
        return log_t, np.arange(d)  # pyright: ignore[reportUnknownVariableType]

    def _doubtful(self, alone: Incoming) -> np.ndarray:
        return np.flatnonzero(self.factor.probabilities(alone).max(axis=1) < _SURE)

    def alone(self, incoming: Incoming) -> dict[str, Any]:
        """What comes in, the vector as its marginals."""
        vector = incoming[self.port]
        good = vector.proper & ~vector.is_point
        mean = np.where(good[:, None], vector.mean, 0.0)
        variance = np.where(good[:, None], vector.variance, 1.0)
        ports: dict[str, Any] = {p: incoming[p] for p in self.ports if p != self.port}
        for j, port in enumerate(self.joined):
            one = Gaussian.from_mean_variance(mean[:, j], variance[:, j])
            ports[port] = one.where(good, one.as_uniform())
        return ports

    def together(self, messages: list[Any]) -> MultivariateGaussian:
        """Messages to the numbers as one to the vector."""
        shift = np.stack([m.naturals[0] for m in messages], axis=-1)
        precision = np.stack([m.naturals[1] for m in messages], axis=-1)
        return MultivariateGaussian.from_naturals((shift, precision[..., None] * np.eye(len(messages))))


def _mixed(
    cavity: MultivariateGaussian, probability: np.ndarray, messages: list[tuple[int, int, Any]]
) -> MultivariateGaussian:
    d = cavity.dimension
    good, m, v = proper_moments(cavity)
    a, own = np.zeros(m.shape), np.zeros(m.shape)
    for k, j, said in messages:
        r = np.where(good, probability[..., k], 0.0)
        s, t = said.naturals
        grow = 1.0 + t * v[:, j, j]
        fine = grow > 0
        good = good & (fine | (r <= 0))
        grow = np.where(fine, grow, 1.0)
        alpha, c = (s - t * m[:, j]) / grow, t / grow
        if said.point is not None:  # an equality
            at = said.is_point
            alpha = np.where(at, (np.where(at, said.point, 0.0) - m[:, j]) / v[:, j, j], alpha)
            c = np.where(at, 1.0 / v[:, j, j], c)
        a[:, j] += np.where(r > 0, r * alpha, 0.0)
        own[:, j] += np.where(r > 0, r * (c - alpha**2), 0.0)
    spread = own[:, :, None] * np.eye(d) + a[:, :, None] * a[:, None, :]
    left = np.eye(d) - v @ spread  # the belief's covariance is left @ v
    precision = np.swapaxes(np.linalg.solve(np.swapaxes(left, 1, 2), spread), 1, 2)
    precision = 0.5 * (precision + np.swapaxes(precision, 1, 2))
    step = m + np.einsum("nij,nj->ni", v, a)
    shift = a + np.einsum("nij,nj->ni", precision, step)
    return MultivariateGaussian.from_naturals(
        (np.where(good[:, None], shift, 0.0), np.where(good[:, None, None], precision, 0.0))
    )
