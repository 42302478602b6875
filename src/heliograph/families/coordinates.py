"""Members of each family as rows of numbers, and back: the two coordinate systems that beliefs are learned in.

`statistics` are the expected sufficient statistics, as in the paper's text; `logs` are (mean, log variance), (log a,
log b), (log shape, log rate) and the like, as in its authors' program. Back-maps never raise: they say which rows are
members of the family, and put a placeholder where a row is none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from heliograph.errors import UnsupportedError
from heliograph.families import Bernoulli, Beta, Categorical, Dirichlet, Family, Gamma, Gaussian, MultivariateGaussian

__all__ = ["Coordinates", "event_size", "logs_of", "naturals_of", "statistics_of"]

_LARGE = 1e150  # its square is still a number
_FAR = 600.0  # exp(600) squared is still a finite number; no message has a logarithm of a parameter beyond it


class Coordinates(NamedTuple):
    """One coordinate system on one family."""

    encode: Callable[[Any], np.ndarray]  # members (n,) -> (n, q); anything where they are not proper
    decode: Callable[[np.ndarray, int], tuple[Family, np.ndarray]]  # (n, q) and event size -> members, valid (n,)


def event_size(message: Family) -> int:
    """The length of a vector's or a table's event axis; 1 for scalars."""
    a, rank = message.naturals[0], message.ranks[0]
    return a.shape[-1] if rank else 1


def _rows(*columns: np.ndarray) -> np.ndarray:
    return np.stack(columns, axis=-1)


def _small(y: np.ndarray) -> np.ndarray:
    return np.asarray((np.abs(y) < _FAR).all(axis=-1))


def _safe(y: np.ndarray, valid: Any, instead: Any) -> np.ndarray:
    return np.where(valid[:, None], y, instead)


# ---- scalars ---------------------------------------------------------------------------------------------------------
def _gaussian_statistics(y: np.ndarray, d: int) -> tuple[Gaussian, np.ndarray]:
    finite = (np.abs(y) < _LARGE).all(axis=-1)
    y = _safe(y, finite, (0.0, 1.0))
    variance = y[:, 1] - y[:, 0] ** 2
    valid = finite & (variance > 0)
    return Gaussian.from_mean_variance(y[:, 0], np.where(valid, variance, 1.0)), valid


def _gaussian_logs(y: np.ndarray, d: int) -> tuple[Gaussian, np.ndarray]:
    valid = np.isfinite(y[:, 0]) & (np.abs(y[:, 1]) < _FAR)
    y = _safe(y, valid, 0.0)
    return Gaussian.from_mean_variance(y[:, 0], np.exp(y[:, 1])), valid


def _beta_statistics(y: np.ndarray, d: int) -> tuple[Beta, np.ndarray]:
    valid = (y < 0).all(axis=-1) & (y > -_FAR).all(axis=-1)
    y = _safe(y, valid, -1.0)
    valid &= np.exp(y).sum(axis=-1) < 1 - 1e-12  # the two exponentials of a Beta's statistics add to less than 1
    return Beta.from_statistics(*_safe(y, valid, -1.0).T), valid


def _gamma_statistics(y: np.ndarray, d: int) -> tuple[Gamma, np.ndarray]:
    valid = np.isfinite(y).all(axis=-1) & (y[:, 0] > 0)
    y = _safe(y, valid, (1.0, -1.0))
    valid &= np.log(y[:, 0]) - y[:, 1] > 1e-12  # Jensen
    y = _safe(y, valid, (1.0, -1.0))
    return Gamma.from_statistics(y[:, 0], y[:, 1]), valid


def _pair_of_logs(family: Any) -> Callable[[np.ndarray, int], tuple[Family, np.ndarray]]:
    def decode(y: np.ndarray, d: int) -> tuple[Family, np.ndarray]:
        valid = _small(y)
        return family(*np.exp(_safe(y, valid, 0.0)).T), valid

    return decode


def _bernoulli_statistics(y: np.ndarray, d: int) -> tuple[Bernoulli, np.ndarray]:
    valid = (y[:, 0] > 0) & (y[:, 0] < 1)
    return Bernoulli(np.where(valid, y[:, 0], 0.5)), valid


def _bernoulli_logs(y: np.ndarray, d: int) -> tuple[Bernoulli, np.ndarray]:
    valid = _small(y)
    return Bernoulli.from_log_odds(np.where(valid, y[:, 0], 0.0)), valid


# ---- vectors ---------------------------------------------------------------------------------------------------------
def _upper(square: np.ndarray) -> np.ndarray:
    i, j = np.triu_indices(square.shape[-1])
    return square[:, i, j]


def _square(upper: np.ndarray, d: int) -> np.ndarray:
    out = np.empty((len(upper), d, d))
    i, j = np.triu_indices(d)
    out[:, i, j] = out[:, j, i] = upper
    return out


def _vector_statistics(message: MultivariateGaussian) -> np.ndarray:
    first, second = message.expected_statistics()
    return np.concatenate([first, _upper(second)], axis=-1)


def _vector_from_statistics(y: np.ndarray, d: int) -> tuple[MultivariateGaussian, np.ndarray]:
    finite = (np.abs(y) < _LARGE).all(axis=-1)
    y = _safe(y, finite, 0.0)
    mean = y[:, :d]
    covariance = _square(y[:, d:], d) - mean[:, :, None] * mean[:, None, :]
    variance = np.einsum("nii->ni", covariance)
    valid = finite & (variance > 0).all(axis=-1)
    unit = np.sqrt(_safe(variance, valid, 1.0))  # every component has a unit of its own
    bound = unit[:, :, None] * unit[:, None, :]
    valid &= (np.abs(covariance) <= (1 + 1e-9) * bound).all(
        axis=(1, 2)
    )  # else no correlation; the quotient may overflow
    correlation = np.where(valid[:, None, None], covariance, bound) / unit[:, :, None] / unit[:, None, :]
    valid &= np.linalg.eigvalsh(correlation)[:, 0] > 1e-13
    return MultivariateGaussian(mean, np.where(valid[:, None, None], covariance, np.eye(d))), valid


def _vector_logs(message: MultivariateGaussian) -> np.ndarray:
    covariance = message.covariance
    good = message.proper & ~message.is_point
    values, vectors = np.linalg.eigh(np.where(good[:, None, None], covariance, np.eye(covariance.shape[-1])))
    good &= values[:, 0] > 0
    log = (vectors * np.log(np.where(good[:, None], values, 1.0))[:, None, :]) @ np.swapaxes(vectors, -1, -2)
    y = np.concatenate([message.mean, _upper(log)], axis=-1)
    return np.where(good[:, None], y, np.nan)


def _vector_from_logs(y: np.ndarray, d: int) -> tuple[MultivariateGaussian, np.ndarray]:
    valid = np.isfinite(y[:, :d]).all(axis=-1) & _small(y[:, d:])
    y = _safe(y, valid, 0.0)
    values, vectors = np.linalg.eigh(_square(y[:, d:], d))
    # a condition beyond 1e12 is not a covariance that can be inverted
    valid &= (values[:, -1] - values[:, 0] < np.log(1e12)) & (np.abs(values) < _FAR).all(axis=-1)
    values = np.where(valid[:, None], values, 0.0)
    covariance = (vectors * np.exp(values)[:, None, :]) @ np.swapaxes(vectors, -1, -2)
    return MultivariateGaussian(y[:, :d], 0.5 * (covariance + np.swapaxes(covariance, -1, -2))), valid


def _categorical_statistics(y: np.ndarray, d: int) -> tuple[Categorical, Any]:
    valid = np.isfinite(y).all(axis=-1) & (y > 0).all(axis=-1)
    y = _safe(y, valid, 1.0)
    return Categorical(y / y.sum(axis=-1, keepdims=True)), valid


def _categorical_encode(message: Categorical) -> np.ndarray:
    p = message.p
    log_p = np.log(p, out=np.full(p.shape, -np.inf), where=p > 0)
    possible = (p > 0).all(axis=-1, keepdims=True)
    return np.where(possible, log_p - np.where(possible, log_p, 0.0).mean(axis=-1, keepdims=True), np.nan)


def _categorical_logs(y: np.ndarray, d: int) -> tuple[Categorical, Any]:
    small = _small(y)
    y = _safe(y, small, 0.0)
    y = y - y.max(axis=-1, keepdims=True)
    valid = small & _small(y)
    p = np.exp(_safe(y, valid, 0.0))
    return Categorical(p / p.sum(axis=-1, keepdims=True)), valid


def _dirichlet_statistics(y: np.ndarray, d: int) -> tuple[Dirichlet, np.ndarray]:
    valid = (y < 0).all(axis=-1) & (y > -_FAR).all(axis=-1)
    valid &= np.exp(_safe(y, valid, -np.log(2 * d))).sum(axis=-1) < 1 - 1e-12
    return Dirichlet.from_statistics(_safe(y, valid, -np.log(2 * d))), valid


def _dirichlet_logs(y: np.ndarray, d: int) -> tuple[Dirichlet, np.ndarray]:
    valid = _small(y)
    return Dirichlet(np.exp(_safe(y, valid, 0.0))), valid


def _statistics(message: Family) -> np.ndarray:
    return _rows(*message.expected_statistics())


def _log(x: np.ndarray) -> np.ndarray:
    return np.log(x, out=np.full(np.shape(x), np.nan), where=(x > 0) & np.isfinite(x))


def _gaussian_encode(message: Gaussian) -> np.ndarray:
    return _rows(message.mean, _log(message.variance))


def _beta_encode(message: Beta) -> np.ndarray:
    return _rows(_log(message.a), _log(message.b))


def _gamma_encode(message: Gamma) -> np.ndarray:
    return _rows(_log(message.shape_parameter), _log(message.rate))


def _bernoulli_encode(message: Bernoulli) -> np.ndarray:
    return _rows(message.log_odds)


def _categorical_p(message: Categorical) -> np.ndarray:
    return message.p


def _dirichlet_mean_log(message: Dirichlet) -> np.ndarray:
    return message.expected_statistics()[0]


def _dirichlet_encode(message: Dirichlet) -> np.ndarray:
    return _log(message.naturals[0] + 1.0)


_STATISTICS: dict[type[Family], Coordinates] = {
    Gaussian: Coordinates(_statistics, _gaussian_statistics),  # E x, E x^2
    Beta: Coordinates(_statistics, _beta_statistics),  # E log p, E log(1-p)
    Gamma: Coordinates(_statistics, _gamma_statistics),  # E x, E log x
    Bernoulli: Coordinates(_statistics, _bernoulli_statistics),  # E x
    MultivariateGaussian: Coordinates(_vector_statistics, _vector_from_statistics),  # means, E xx of the upper triangle
    Categorical: Coordinates(_categorical_p, _categorical_statistics),  # p of every category
    Dirichlet: Coordinates(_dirichlet_mean_log, _dirichlet_statistics),  # E log p of every category
}
_LOGS: dict[type[Family], Coordinates] = {
    Gaussian: Coordinates(_gaussian_encode, _gaussian_logs),  # mean, log variance
    Beta: Coordinates(_beta_encode, _pair_of_logs(Beta)),  # log a, log b
    Gamma: Coordinates(_gamma_encode, _pair_of_logs(Gamma)),  # log shape, log rate
    Bernoulli: Coordinates(_bernoulli_encode, _bernoulli_logs),  # log odds
    MultivariateGaussian: Coordinates(_vector_logs, _vector_from_logs),  # means, log covariance of the upper triangle
    Categorical: Coordinates(_categorical_encode, _categorical_logs),  # log p of every category
    Dirichlet: Coordinates(_dirichlet_encode, _dirichlet_logs),  # log concentration of every category
}


def _find(table: dict[type[Family], Coordinates], family: type[Family]) -> Coordinates:
    if family not in table:
        raise UnsupportedError(
            f"no operator learns messages of {family.__name__}; there are {sorted(f.__name__ for f in table)}"
        )
    return table[family]


def statistics_of(family: type[Family]) -> Coordinates:
    """Expected sufficient statistics as coordinates.

    >>> statistics_of(Gaussian).encode(Gaussian([1.0, 0.0], 2.0))
    array([[1., 3.],
           [0., 2.]])
    """
    return _find(_STATISTICS, family)


def logs_of(family: type[Family]) -> Coordinates:
    """Coordinates of the real line each: a prediction can be anything and is still a member of the family.

    >>> member, valid = logs_of(Beta).decode(np.array([[0.0, np.log(2.0)]]), 1)
    >>> member, valid
    (Beta[a 1., b 2.], array([ True]))
    """
    return _find(_LOGS, family)


def naturals_of(message: Family) -> np.ndarray:
    """The natural parameters of each entry in one row, the upper triangle of a symmetric matrix."""
    parts: list[np.ndarray] = []
    for a, rank in zip(message.naturals, message.ranks, strict=True):
        parts.append(a[:, None] if rank == 0 else a if rank == 1 else _upper(a))
    return np.concatenate(parts, axis=-1)
