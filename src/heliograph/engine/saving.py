"""A posterior in a file, and what is read back: the beliefs, without the model.

The file is an archive of `storage`: JSON and arrays, no code. It holds the belief of every variable that the user named and that
was not observed, and the joint covariance of those that were kept joint, as long as they are not too many.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from heliograph.engine.nested.marginal import Marginal
from heliograph.engine.predicting import check_draws
from heliograph.engine.priors import Correlation, Priors, correlation_of, lengths_of
from heliograph.engine.readable import ReadablePosterior, checked_names
from heliograph.engine.trace import Trace
from heliograph.errors import FileFormatError, ModelError
from heliograph.families import Family, Gaussian, Mixture
from heliograph.families.packing import pack, unpack
from heliograph.graph.records import Graph, Node
from heliograph.numerics.checks import generator_of
from heliograph.storage import read_archive, understanding, write_archive

__all__ = ["SavedPosterior", "load_posterior", "save_posterior"]

_WHAT = "saved posterior"


def save_posterior(posterior: Any, path: str | os.PathLike[str], joint: tuple[list[str], np.ndarray] | None) -> None:
    """Write a posterior to `path`, replacing what was there in one step.

    Parameters
    ----------
    posterior
        Any posterior.
    path
        The file.
    joint
        The names of Gaussian variables whose joint covariance is known, and that covariance.
    """
    beliefs: dict[str, Any] = {}
    described: list[dict[str, Any]] = []
    arrays: dict[str, np.ndarray] = {}
    nodes = {n.name: n for n in posterior.graph.nodes}
    for k, name in enumerate(posterior):
        belief, labels = posterior[name], getattr(nodes.get(name), "labels", None)
        if isinstance(belief, Marginal):
            arrays[f"values {k}"], arrays[f"weights {k}"] = belief.values, belief.weights
            described.append({"name": name, "kind": "marginal", "shape": [], "labels": None})
            continue
        kept = belief.components if isinstance(belief, Mixture) else belief
        beliefs[str(k)] = kept.reshape((kept.size,))
        kind = "mixture" if isinstance(belief, Mixture) else "member"
        described.append({"name": name, "kind": kind, "shape": list(kept.shape), "labels": labels})
        if isinstance(belief, Mixture):
            arrays[f"weights {k}"] = belief.weights
    inside, families = pack(beliefs)
    arrays |= inside
    if joint is not None:
        arrays["joint"] = joint[1]
    header = {
        "posterior": described,
        "families": families,
        "joint": None if joint is None else joint[0],
        "run": {
            key: getattr(posterior, key)
            for key in ("log_evidence", "converged", "status", "error_estimate", "n_sweeps")
        },
        "structure": posterior.structure,
        "digests": posterior.digests(),
    }
    write_archive(path, arrays, header, allow_nan=True)


class SavedPosterior(ReadablePosterior):
    """The beliefs of a posterior that was read from a file, by name. They can be drawn, compared and used as priors."""

    def __init__(self, beliefs: Mapping[str, Any], header: Mapping[str, Any], joint: np.ndarray | None) -> None:
        self._beliefs = dict(beliefs)
        run = header["run"]
        self.log_evidence = float(run["log_evidence"])
        self.converged = bool(run["converged"])
        self.status = str(run["status"])
        self.error_estimate = float(run["error_estimate"])
        self.n_sweeps = int(run["n_sweeps"])
        self.structure: dict[str, str] = {str(k): str(v) for k, v in header["structure"].items()}
        self.trace = Trace()
        self._digests = {str(k): str(v) for k, v in header["digests"].items()}
        self._joint_names: list[str] = list(header["joint"] or ())
        self._joint = joint
        self._graph = _graph(self._beliefs, header["posterior"])

    @property
    def graph(self) -> Graph:
        """The variables, without factors."""
        return self._graph

    def digests(self) -> dict[str, str]:
        """What was observed, as checksums by name."""
        return dict(self._digests)

    def __getitem__(self, variable: Any) -> Any:
        name = variable if isinstance(variable, str) else getattr(variable, "name", None)
        if name not in self._beliefs:
            raise ModelError(f"no variable is called {name!r} in this file; there are {list(self._beliefs)}")
        return self._beliefs[name]

    def as_prior(self) -> Mapping[str, Family]:
        """The beliefs by name, to be the priors of the next batch; mixtures by their means and variances."""
        read = {k: b.projected() if isinstance(b, Mixture) else b for k, b in self._beliefs.items()}
        return Priors({k: b for k, b in read.items() if isinstance(b, Family)}, self._correlation)

    def _correlation(self) -> Correlation | None:
        if self._joint is None:
            return None
        lengths = lengths_of({k: self._beliefs[k] for k in self._joint_names})
        return correlation_of(self._joint, {k: (np.size(self._beliefs[k].mean), d) for k, d in lengths.items()})

    def covariance(self, a: str, b: str) -> np.ndarray:
        """The joint covariance of two variables by name, each flattened."""
        if self._joint is None or a not in self._joint_names or b not in self._joint_names:
            raise ModelError(
                f"the file holds no joint covariance of {a!r} and {b!r}; it has those of {self._joint_names}"
            )
        rows, columns = (self._place(name) for name in (a, b))
        return self._joint[rows, columns]

    def _place(self, name: str) -> slice:
        sizes = [np.size(self._beliefs[k].mean) for k in self._joint_names]
        at = self._joint_names.index(name)
        return slice(sum(sizes[:at]), sum(sizes[: at + 1]))

    def sample(
        self, size: int = 1000, variables: Sequence[str] | None = None, *, seed: Any = 0
    ) -> dict[str, np.ndarray]:
        """Draws by name, joint where the file holds a joint covariance.

        The arguments are those of `Posterior.sample`.
        """
        rng, size = generator_of(seed), check_draws(size)
        names = list(self._beliefs) if variables is None else checked_names(variables, list(self._beliefs))
        found: dict[str, np.ndarray] = {}
        if self._joint is not None:
            mean = np.concatenate([np.reshape(self._beliefs[k].mean, -1) for k in self._joint_names])
            draws = mean + rng.standard_normal((size, len(mean))) @ _root(self._joint).T
            for name in self._joint_names:
                found[name] = draws[:, self._place(name)].reshape(size, *np.shape(self._beliefs[name].mean))
        for name, belief in self._beliefs.items():
            if name not in found:
                found[name] = belief.sample(rng, size)
        return {name: found[name] for name in names}

    def __repr__(self) -> str:
        return f"SavedPosterior({', '.join(self._beliefs)}; {'converged' if self.converged else 'not converged'})"


def _root(covariance: np.ndarray) -> np.ndarray:
    """A square root of a covariance whose entries may be known, or equal to one another, and of any unit."""
    sd = np.sqrt(np.diagonal(covariance))
    unit = np.where(sd > 0, sd, 1.0)
    values, vectors = np.linalg.eigh(covariance / unit[:, None] / unit)
    return sd[:, None] * vectors * np.sqrt(np.maximum(values, 0.0))  # below 0 by rounding alone


def _graph(beliefs: Mapping[str, Any], described: Sequence[Mapping[str, Any]]) -> Graph:
    nodes: list[Node] = []
    for k, (name, belief) in enumerate(beliefs.items()):
        one = belief.components if isinstance(belief, Mixture) else belief
        labels = described[k]["labels"]
        event = one.naturals[0].shape[one.ndim :] if isinstance(one, Family) else ()
        family = type(one) if isinstance(one, Family) else Gaussian  # a marginal has no family; nobody asks
        node = Node(k, name, family, belief.shape, event[0] if event else None)
        node.labels = None if labels is None else tuple(str(v) for v in labels)
        nodes.append(node)
    return Graph(nodes)


def load_posterior(path: str | os.PathLike[str]) -> SavedPosterior:
    """Read a posterior that ``posterior.save(path)`` wrote; a `FileFormatError` says what is wrong with a file."""
    arrays, header = read_archive(path, _WHAT)
    with understanding(path):
        if "posterior" not in header:
            raise FileFormatError(f"{os.path.basename(path)} is a file of Heliograph, but no {_WHAT}")
        packed = unpack(arrays, header["families"])
        beliefs: dict[str, Any] = {}
        for k, one in enumerate(header["posterior"]):
            beliefs[str(one["name"])] = _read_back(k, one, packed, arrays)
        return SavedPosterior(beliefs, header, arrays.get("joint"))


def _read_back(k: int, one: Mapping[str, Any], packed: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Any:
    """The belief of one variable of a file."""
    if one["kind"] == "marginal":
        return Marginal(str(one["name"]), arrays[f"values {k}"], arrays[f"weights {k}"])
    belief = packed[str(k)].reshape(tuple(int(n) for n in one["shape"]))
    return Mixture(arrays[f"weights {k}"], belief) if one["kind"] == "mixture" else belief
