"""Decisions of the default operator: every tolerance, limit and reason to ask, with the reason for each number.

`tolerance` is what the whole posterior may be wrong by. The errors of n messages that reach the same unknowns add between
two limits: independent ones to ``sum kl``, ones that all pull the same way to ``sum kl_i / h_i``, where h_i (the leverage)
is the share of the belief's information that the message itself brings. That is a bound for Gaussian beliefs to first
order, since the leverages of rows that share d unknowns sum to d at most (docs/decisions/0016). The errors of one
regression do pull the same way.

A row is asked about when its expected KL is above a limit chosen so that what is left is within the tolerance together,
when no similar row has a label, when its message would certainly be improper, or as an audit
(docs/decisions/0017). The functions here are pure: records and arrays in, records and arrays out.
"""

from __future__ import annotations

import math

import numpy as np

from heliograph.families import Family
from heliograph.families.charts import chart_of
from heliograph.operators.learned.records import ALONE, Beside, Decision, Limit, Prediction, Trust, View
from heliograph.operators.protocol import Setting

__all__ = [
    "RARE",
    "audited_rows",
    "audits_allowed",
    "batch_size",
    "decide",
    "improper_answers",
    "improper_rows",
    "joint_error",
    "label_precision",
    "least_error",
    "leverage",
    "leverage_of",
    "limit_of",
    "overdue",
    "shared_unknowns",
    "slow_reference",
    "stated_kl",
    "surprised",
    "tolerance_of_one",
    "usual_error",
]

# ---- what errors may add up to ---------------------------------------------------------------------------------------
RARE = 2.71  # times its mean a squared normal error is below in 90 % of cases; the sum is near its limit besides
# equal shares of a plate's tolerance that one row may take: one bad row must not hide among good ones
MOST_SHARES = 10.0
FINEST_SHARE = 0.1  # of a message's tolerance: smaller rounding, or a smaller doubt of a reference, changes no decision
LABEL_SHARE = 0.5  # of a message's tolerance: the error of a label at which the oracle may stop drawing
# of an answer's own error: the regression averages noise down to this; below it another answer does not help
AVERAGED = 0.2
LATEST = 64  # latest answers whose median is the usual noise: enough for a median, few enough to follow changes
# ---- when to ask besides ---------------------------------------------------------------------------------------------
SEEN = 0.25  # share of the prior variance left by all labels together, below which a place counts as seen
PLAUSIBLE = 4.0  # deviations: a prediction that is improper by less may belong to a proper truth
IMPROPER = 6.0  # deviations of its own noise by which an answer must be improper to count as improper
IMPROPER_ROUNDING = 1e-9  # and this much, for the rounding of the log variance of an exact answer
AUDITED_SHARE = 0.1  # audits at most, for every label: they must not cost as much as learning did
LONG_RUN = 10_000  # trusted messages, beyond which each tenfold allows one audit more: they never stop for good
SURPRISE = 5.0  # realised over expected KL of a batch, above which the widths are wrong and not only unlucky
GUESS = 1.0  # nats stated for a row that could not be asked because the time was over
# comparisons, before which a direction is compared with answers to questions about others, too: those are about
CHECKED = 10
# unusual rows, on which a direction looks worse than on its own questions
CONTRADICTED = 2.0  # the same of labels, each predicted from the others: twenty honest ones seldom give more than 1.5
SURPRISED_BY = 4  # new labels since the widths were chosen, before that is done again: fewer would not change them
LEAST_BATCH = 8  # rows asked at once, at the least, if so many are uncertain: each call has a fixed cost
BATCH_SHARE = 2  # labels per row of a larger batch: after half of the questions the other rows may be certain
# ---- when a reference, or a lattice, serves --------------------------------------------------------------------------
SLOW_CALL = 2.0  # seconds of processor time for the reference of one message: unusable at every message
# seconds per evaluation; far from typical values on both sides, so that a busy machine changes no decision
SLOW_EVALUATION = 1e-4
LEAST_DOUBT = 1e-6  # nats: the least doubt of a reference (docs/decisions/0015)
CERTAIN = 1e-6  # nats of doubt above which a reference is not trusted: half of the nodes give another result
ROUNDED = 1e-15  # nats: a KL is a difference of numbers near 1, and cannot be measured below that
EXACT = 1e-22  # nats: what rounding does to a sum of a hundred numbers, and what lies outside eight deviations, are worth less
BLOCK = 8192  # rows seen at once: memory is bounded, and a call for fewer costs more per row
SETTLED_ROWS = 3000  # rows sent without asking before a lattice is laid: its first cells cost as much as they save
SETTLED_LITTLE, SETTLED_CALLS = 400, 10  # or so many rows in so many calls, for small plates that recur
LATTICE_SHARE = 0.05  # of what a message may be wrong by, that interpolation may add
LATTICE_SURE = 0.3  # of the same: cells that are better than this are kept when labels are added
LATTICE_WORSE = 1.1  # the calibration factor over what it was, above which a lattice is laid anew
# Runs that were settled without asking, before a digest is begun. The rows made for one cost as much as some twenty runs of a
# known plate of 200 rows, so a problem that is solved twice is faster without. (3 was chosen on the demonstration.)
DIGEST_RUNS = 3
DIGEST_ROWS = 1  # as many rows for each label: while much is asked, what a digest learns does not last
DIGEST_PLATE = 1000  # rows; on larger plates hundreds of labels cost more than references do, and are not enough
DIGEST_SHARE = 0.05  # of what a message may be wrong by, that a digest may add to the error of the process
DIGEST_NOVELTY = 0.3  # less than for the process, because only its labels are known of a digest
LATTICE_LEFT = 0.25  # of a plate: if a lattice does not know more than that, the process takes all of it

BUDGET_REACHED = (
    "a learned operator has reached its budget of {} answers for one direction and learns no more: what it does not know is "
    "asked every time; raise the tolerance, or the budget with operator=Learned(budget=...)"
)

_NEVER_ZERO = 1e-300  # keeps a quotient finite where no unknowns are shared


# ---- how errors add --------------------------------------------------------------------------------------------------
def leverage(message: Family, cavity: Family) -> np.ndarray:
    """The share of each belief's information that its message brings, ``(n,)``.

    For a vector it is the mean over its directions; a table of categories has one share per category, ``(n, k)``.
    Improper messages count by their size.

    >>> from heliograph.families import Gaussian
    >>> leverage(Gaussian([0.0], 1.0), Gaussian([0.0], 3.0))
    array([0.75])
    """
    with np.errstate(all="ignore"):
        share = chart_of(message).information_share(message, cavity)
    return np.where(np.isfinite(share), np.minimum(share, 1.0), 1.0)


def leverage_of(view: View, prediction: Prediction) -> np.ndarray | None:
    """The share of each predicted belief that its message would bring, ``(n,)``; None where nobody can say."""
    if prediction.log_ratio is not None:
        return np.abs(np.expm1(np.minimum(prediction.log_ratio, 0.0)))
    if view.to is None:
        return None
    if view.cavity is None:
        return np.ones(len(prediction.mean))  # nothing came in, so the message is the belief
    return leverage(view.chart.belief(prediction.mean, view.base) / view.cavity, view.cavity)


def shared_unknowns(share: np.ndarray | None, n: int, setting: Setting) -> float:
    """How many unknowns n messages share: the sum of their leverages, as far as the graph has so many.

    One message counts for at least one part in the number of messages that are connected with it at all.
    """
    most = setting.share * n
    if share is None:
        return max(most, n / setting.together)
    return min(max(float(share.sum()), n / setting.together), max(most, _NEVER_ZERO))


def joint_error(kl: np.ndarray, unknowns: float | None = None) -> float:
    """What n predicted messages, each expected to be wrong by its `kl`, may do to a posterior, in nats.

    `unknowns` is how many they share: n where each has its own (the default), 1 where all speak of one number.

    >>> round(joint_error(np.full(100, 1e-6)), 6), round(joint_error(np.full(100, 1e-6), 5.0), 6)
    (0.000271, 0.00542)
    """
    d = len(kl) if unknowns is None else unknowns
    return RARE * max(float(kl.sum()), float(np.sqrt(kl).sum()) ** 2 / max(d, _NEVER_ZERO))


def tolerance_of_one(setting: Setting) -> float:
    """What one message may be wrong by, if all are and all errors pull the same way.

    >>> round(tolerance_of_one(Setting(tolerance=1e-3, share=0.1, together=10)), 8)
    3.69e-05
    """
    return setting.tolerance * max(setting.share, 1 / setting.together) / RARE


# ---- what is trusted -------------------------------------------------------------------------------------------------
def least_error(trust: Trust) -> float:
    """The expected KL below which another answer would not help: labels, even averaged, are no better."""
    return AVERAGED * max(trust.label_kl, trust.nugget_kl)


def limit_of(kl: np.ndarray, share: np.ndarray | None, trust: Trust, setting: Setting, beside: Beside = ALONE) -> Limit:
    """The expected KL above which a row is asked about, so that the rest together is within the tolerance.

    Never less than `least_error`, which more answers would not get below.

    Parameters
    ----------
    kl : ``(n,)``, what each row is expected to be wrong by
    share : ``(n,)``, the leverage of each row, where it is known
    trust : what was found of labels and predictions so far
    setting : the tolerance of a message, and what the messages share
    beside : rows that share the tolerance and are settled already
    """
    unknowns = shared_unknowns(share, len(kl), setting)
    if len(beside.kl):
        unknowns += beside.unknowns
        kl = np.concatenate([kl, beside.kl])
    n = len(kl)
    allowed = setting.tolerance * n
    top = min(allowed, MOST_SHARES * allowed * min(unknowns / n, 1.0) / (RARE * n) if n else 0.0)
    if joint_error(kl, unknowns) > allowed:
        ordered = np.sort(kl)
        joint = RARE * np.maximum(np.cumsum(ordered), np.cumsum(np.sqrt(ordered)) ** 2 / unknowns)
        n_kept = int(np.searchsorted(joint, allowed, side="right"))
        top = min(top, float(ordered[n_kept - 1]) if n_kept else 0.0)
    least, warning = least_error(trust), None
    if trust.label_kl >= trust.nugget_kl and least > tolerance_of_one(setting) and top < float(kl.max(initial=0.0)):
        warning = _noise_warning(least, tolerance_of_one(setting))  # all rows at that would be too much
    return Limit(max(top, least), warning)


def _noise_warning(least: float, tolerance: float) -> str:
    return (
        f"the answers of an oracle, even averaged, are wrong by about {least:.0e} nats, more than the "
        f"{tolerance:.0e} that a message may be here: posterior.error_estimate says what was reached; "
        "give the oracle more draws, or raise the tolerance"
    )


def decide(view: View, prediction: Prediction, trust: Trust, setting: Setting, beside: Beside = ALONE) -> Decision:
    """Decide which predicted rows can be trusted: expected errors within the limit, places seen before, proper messages."""
    kl = prediction.kl * trust.factor
    limit = limit_of(kl, leverage_of(view, prediction), trust, setting, beside)
    doubtful = kl > limit.kl
    improper = improper_rows(prediction, trust)
    if improper is not None:
        doubtful |= improper
    return Decision(kl, limit, doubtful, prediction.unseen)


def overdue(decision: Decision) -> Decision:
    """A decision without time to ask: rows unlike all labels count as wrong by a nat."""
    return decision._replace(kl=np.where(decision.unseen, np.maximum(decision.kl, GUESS), decision.kl))


def improper_rows(prediction: Prediction, trust: Trust) -> np.ndarray | None:
    """Rows whose message would certainly be improper, though no answer was so far; None if some were."""
    if prediction.log_ratio is None or not trust.always_proper:
        return None
    return prediction.log_ratio > PLAUSIBLE * np.sqrt(prediction.variance[:, 1])


def stated_kl(kl: np.ndarray, trust: Trust) -> np.ndarray:
    """The stated errors of predictions that were decided by `kl`: smaller where predictions did better than expected.

    Their good record does not reduce the noise of labels, which all of them share (docs/decisions/0035).
    """
    if trust.stated < trust.factor:
        return np.maximum(kl * (trust.stated / trust.factor), np.minimum(kl, trust.label_kl))
    return kl * (trust.stated / trust.factor)


# ---- what is asked ---------------------------------------------------------------------------------------------------
def label_precision(tolerance: float) -> float | None:
    """The relative standard error wished for in a label of a message that may be wrong by `tolerance`; None: any."""
    return float(np.sqrt(2 * LABEL_SHARE * tolerance)) if tolerance > 0 else None


def batch_size(n_labels: int, due: int) -> int:
    """How many rows are asked at once at most: when widths are chosen anew at `due` labels, who is uncertain changes.

    >>> batch_size(20, 40), batch_size(39, 40), batch_size(100, 160)
    (10, 1, 50)
    """
    return min(max(1, due - n_labels), max(LEAST_BATCH, n_labels // BATCH_SHARE))


def audits_allowed(n_audits: int, n_labels: int, n_trusted: int) -> bool:
    """Whether there may be one more audit: a share of the labels, and one for every tenfold of trusted messages."""
    long_run = int(math.log10(n_trusted / LONG_RUN)) if n_trusted > LONG_RUN else 0
    return n_audits < int(AUDITED_SHARE * n_labels) + long_run


def audited_rows(
    rng: np.random.Generator, n: int, share: float, *, n_audits: int, n_labels: int, n_trusted: int
) -> np.ndarray:
    """Choose rows to audit among n that would be trusted: each with probability `share`, if an audit is allowed."""
    if not audits_allowed(n_audits, n_labels, n_trusted) or not rng.random() < share * n:
        return np.zeros(0, dtype=int)
    return rng.choice(n, 1)


def surprised(ratio: float, n_labels: int, n_fitted: int) -> bool:
    """Whether answers were so far from their predictions that the widths must be chosen anew."""
    return ratio > SURPRISE and n_labels >= n_fitted + SURPRISED_BY


def slow_reference(seconds: float, n_evaluations: int) -> bool:
    """Whether a reference that took so long would cost more at every message than it saves."""
    return seconds > max(SLOW_CALL, SLOW_EVALUATION * n_evaluations)


# ---- what labels show ------------------------------------------------------------------------------------------------
def usual_error(kl: np.ndarray) -> float:
    """The usual error of an answer, from the errors of those so far, the latest last."""
    return float(np.median(kl[-LATEST:])) if len(kl) else 0.0


def improper_answers(log_ratio: np.ndarray, noise: np.ndarray) -> int:
    """How many answers gave an improper message beyond their own noise, by the log variance of belief over cavity."""
    return int((log_ratio > IMPROPER * np.sqrt(noise) + IMPROPER_ROUNDING).sum())
