"""The default operator itself, given labelled messages in batch: trained on all of them, or asking for a few of its own choosing.

The labels are the oracle. Afterwards it predicts without asking, whatever it expects to be wrong by.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np

from heliograph.errors import OracleWarning
from heliograph.families import Gaussian
from heliograph.operators.learned import Learned
from heliograph.operators.learned.view import kinds_of
from heliograph.operators.protocol import Setting
from heliograph.oracles import Answer
from heliograph.oracles.references import reference_of
from heliograph.paper.batch.messages import Labelled
from heliograph.paper.sequences.logistic import logistic_factor

__all__ = ["LearnedInBatch", "Prediction", "learned"]


class Prediction(NamedTuple):
    """Beliefs of z and their expected errors."""

    belief: Gaussian  # (n,)
    expected_kl: np.ndarray  # (n,) nats


class LearnedInBatch(NamedTuple):
    """An operator that has learned."""

    operator: Learned

    @property
    def n_labels(self) -> int:
        """How many labels it has for messages to z."""
        return sum(len(directions["z"]) for directions in self.operator.kinds.values())

    def predict(self, incoming: dict[str, Any]) -> Prediction:
        """Predict beliefs without asking."""
        # the logistic function draws nothing, so these numbers are never used
        # with no error tolerated, all is in double precision; with no time to ask, nothing is asked
        setting = _setting(0.0)._replace(deadline=-np.inf)
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", OracleWarning
            )  # the warning that sampled labels are too noisy for a tolerance of 0 is expected
            reply = self.operator.send(np.random.default_rng(0), "z", incoming, _nobody, setting)
        belief = reply.message * incoming["z"]
        assert isinstance(belief, Gaussian) and reply.expected_kl is not None
        return Prediction(belief, reply.expected_kl)


def learned(data: Labelled, n_labels: int | None = None, reference: str = "auto") -> LearnedInBatch:
    """Teach the operator all labels; or let it ask for `n_labels`, by its own first design. Nothing is random."""
    # set, not measured: whether a reference is used must not depend on how busy the machine is
    refer = reference_of(logistic_factor().sampler) if reference == "auto" else reference
    # off here: audits, which take more labels, and the refusal to predict far from all labels
    operator = Learned(reference=refer, start=n_labels or 20, audit=0.0, novelty=np.inf)
    rng = np.random.default_rng(0)
    if n_labels is None:
        for kind, some in kinds_of(data.incoming):
            own = data if some is None else data.rows(some)
            operator.memory.learn(rng, kind, own.incoming, _answer(own), _setting(np.inf), refer != "none")
        return LearnedInBatch(operator)
    z, out = data.incoming["z"], data.incoming["out"]
    rows = {key: k for k, key in enumerate(zip(*z.naturals, *out.naturals, strict=True))}

    def ask(incoming: Any, precision: float | None = None) -> Any:
        keys = zip(*incoming["z"].naturals, *incoming["out"].naturals, strict=True)
        return _answer(data.rows(np.array([rows[key] for key in keys])))

    operator.send(rng, "z", data.incoming, ask, _setting(np.inf))
    return LearnedInBatch(operator)


def _setting(tolerance: float) -> Setting:
    sampler = logistic_factor().sampler
    return Setting(tolerance, sampler=sampler, reference=reference_of(sampler))


def _answer(data: Labelled) -> Answer:
    """Labels as an oracle's answer about z alone."""
    n, v = len(data), data.belief.variance
    kl = 0.5 * data.noise[:, 0] / v + 0.25 * data.noise[:, 1]
    return Answer(
        beliefs={"z": data.belief},
        log_z=np.full(n, np.nan),  # unknown, and therefore not learned
        standard_errors={},
        covariances={},
        chart_covariances={"z": data.noise[:, :, None] * np.eye(2)},
        expected_kl={"z": kl},
        log_z_error=np.full(n, np.inf),
        ess=np.full(n, np.inf),
        pareto_k=np.zeros(n),
        failed=np.zeros(n, dtype=bool),
        n_evaluations=0,
    )


def _nobody(incoming: Any, precision: float | None = None) -> Any:
    raise RuntimeError("the operator asked although there was no time to ask")
