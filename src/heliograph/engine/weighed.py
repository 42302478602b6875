"""Whether a belief of few unknowns can be trusted: draws of it, weighed by the model itself (docs/decisions/0066).

EP replaces every factor that is not Gaussian by a site. Where few strong factors decide, where unknowns meet in products, maxima,
squares or scales, or where a statement is made twice, its fixed point is off by tenths of a standard deviation. A settled run of
few unknowns and rows therefore draws from its own belief, weighs every draw by the joint density of the model over that of the
belief, and compares the moments. Functions of unknowns are followed through to what is said of their values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from heliograph.engine.blocks.dense import DenseSystem
from heliograph.engine.blocks.grouping import is_linear
from heliograph.engine.compiled import CompiledModel
from heliograph.engine.curved import Curved, curved_sites
from heliograph.engine.plates.block import BlockPlate
from heliograph.engine.tables import Snapshot, Tables
from heliograph.engine.weighed_plates import makes_values, scalar_form
from heliograph.engine.weighed_rounds import Weighed, weigh
from heliograph.factors import Between, Positive, Prior
from heliograph.families import Bernoulli, Beta, Gamma, Gaussian, MultivariateGaussian
from heliograph.graph.records import Node, Plate
from heliograph.numerics.special import logsumexp

__all__ = ["FinishedRun", "bent_beliefs", "weighed_beliefs"]

_MOST_UNKNOWN = 20  # numbers: with more of them the draws would have to be many
_MOST_ROWS = 200  # of factors: beyond them each says little, and looking would cost more than the run
_OFF = 0.1  # of a standard deviation, or of its logarithm: a difference worth a warning, beyond its noise
_NATS = 0.2  # of the evidence
_NOISE = 2.5  # standard errors of a difference, as the draws tell it
_MOST_NOISE = 1.5  # over the root of the effective number of draws: more is not taken for noise in the end
_SIGMAS = 3.0  # standard errors of the evidence of the draws
_LOW = 0.03  # of the draws: with an effective number below this, and below the next, nothing was found out
# draws that count: sixteen unknowns between cuts leave 2 % of the draws, and these tell an sd to a tenth
_ENOUGH = 40.0
_STRONG = 0.15  # of a belief's precision that comes from one factor's site: with less, a site is as good as its factor
_ROUNDING = 1e-10  # of a mean: a standard deviation below this is none


class FinishedRun(NamedTuple):
    """A run that has settled, as far as its check looks at it."""

    compiled: CompiledModel
    tables: Tables
    messages: Callable[[], Snapshot]  # gives all of them, those that only a reader needs included
    log_evidence: Callable[[], float]


def bent_beliefs(run: FinishedRun, boxes: bool = True) -> list[Curved]:
    """The unknowns whose belief weighted draws do not confirm; `boxes`: those of black boxes too."""
    weighed = weighed_beliefs(run, boxes)
    if weighed is not None and not run.compiled.learning_plates:
        return weighed
    return [*(weighed or ()), *curved_sites(run.compiled, run.tables, boxes)]


def weighed_beliefs(run: FinishedRun, boxes: bool = False) -> list[Curved] | None:
    """The unknowns whose moments weighted draws do not confirm; None where the model is not one that is looked at.

    `boxes`: whether black boxes may be evaluated.
    """
    compiled, tables = run.compiled, run.tables
    plates = [scalar_form(p) for p in _plates(compiled)]
    made = {p.position for p in plates if makes_values(compiled.graph, p, boxes)}
    others = _others(compiled, made)
    if others is None:
        return None
    read = {n.position for n in others} | {k for b in compiled.blocks for k in b.factor.block.rows}
    unheard: frozenset[int] = frozenset()  # nodes whose belief is not known before somebody reads it
    if not compiled.late.isdisjoint(read) and not compiled.learning_plates:
        tables = tables.view(copy=False)
        tables.restore(run.messages(), copy=False)
    elif _lacks_messages(compiled, read - _children(compiled, made)):
        return None  # computing all messages would ask oracles about some that may never be read
    else:
        unheard = compiled.late
    if not _worth_a_look(compiled, tables) or not all(tables.belief(node).proper.all() for node in others):
        return None
    named = [n for n in compiled.graph.nodes if n.given and not n.family.discrete]

    def known(weighed: Weighed) -> list[Node]:
        return [n for n in named if n.position not in unheard or weighed.drawn.redrawn(n.position) is None]

    def decided(weighed: Weighed) -> bool:
        may, does = (_differences(weighed, known(weighed), run.log_evidence, doubt) for doubt in (-1.0, 1.0))
        return not may or bool(does)  # either way beyond the noise: one lucky draw of another mode decides nothing

    with np.errstate(all="ignore"):
        weighed = weigh(compiled, tables, others, plates, decided, boxes)
    if weighed is None or not np.isfinite(weighed.log_model).any():
        return None
    if weighed.effective < min(_LOW * len(weighed.log_model), _ENOUGH):
        return [Curved(_names(weighed, named), np.nan, np.nan)]
    return _differences(weighed, known(weighed), run.log_evidence, None)


def _names(weighed: Weighed, named: list[Node]) -> str:
    return ", ".join([n.name for n in named if n.position in weighed.drawn.values][:3])


def _differences(
    weighed: Weighed, named: list[Node], log_evidence: Callable[[], float], doubt: float | None
) -> list[Curved]:
    """What differs by more than its limit and `doubt` times its noise: -1 for all that may differ, 1 for what surely does.

    None: what is said to differ in the end, for which not all of the noise of few draws is allowed.
    """
    weight, own = (np.exp(w - logsumexp(w)) for w in (weighed.log_model, weighed.log_own))
    values = weighed.drawn.values
    drawn = [n for n in named if n.position in values]
    found = [_judge(n, values[n.position], weighed.known_moments(n.position), weight, own, doubt) for n in drawn]
    off, noise = _evidence(weighed, weight, own) if weighed.complete else (0.0, 0.0)
    off -= log_evidence() if weighed.complete else 0.0
    judged = [c for c in found if c is not None]
    if not judged and not abs(off) <= _NATS + (1.0 if doubt is None else doubt) * _SIGMAS * noise:
        judged = [Curved(_names(weighed, named), 1.0, 0.0)]
    return [c._replace(evidence=off) for c in judged]


def _evidence(weighed: Weighed, weight: np.ndarray, own: np.ndarray) -> tuple[float, float]:
    """The logarithm of the mean weight, and its error; beside the belief's own weights, whose mean is 1, if that is less."""
    alone = np.sqrt(max(np.sum(weight**2) - 1.0 / len(weight), 0.0))
    beside = np.sqrt(np.sum((weight - own) ** 2))
    if alone <= beside:
        return weighed.log_evidence, alone
    return weighed.log_evidence - float(logsumexp(weighed.log_own) - np.log(len(own))), beside


# ---- which models -------------------------------------------------------------------------------------------------------
def _others(compiled: CompiledModel, made: set[int]) -> list[Node] | None:
    """The unknowns to draw that are in no block; None where the model is too large, or of a kind that is not looked at.

    `made` are the plates that compute values, which are no further numbers.
    """
    inside = {e.node for b in compiled.blocks for e in b.plate.edges.values()} | compiled.hidden
    inside |= compiled.late - _arguments(compiled, made)  # nothing else depends on what only readers hear of
    nodes = compiled.graph.nodes
    free = [n for n in nodes if not n.fully_observed and n.position not in inside and not _unused(compiled, n)]
    numbers = [n for n in free if n.family in (Gaussian, Gamma, Beta) or _is_drawn_switch(compiled, n, made)]
    computed = _children(compiled, made)
    n_numbers = sum(n.size for n in numbers if n.position not in computed)
    for block in (b.factor.block for b in compiled.blocks):
        inner = sum(int((np.reshape(block.base[k], -1) >= 0).sum()) for k in computed & block.base.keys())
        n_numbers += block.n_columns - inner
    fine = all(isinstance(b.factor.system, DenseSystem) and b.factor.refused is None for b in compiled.blocks)
    vectors = any(n.family is MultivariateGaussian for n in free)
    n_rows = sum(p.size for p in _plates(compiled))
    if vectors or not fine or not 0 < n_numbers <= _MOST_UNKNOWN or not 0 < n_rows <= _MOST_ROWS:
        return None
    return numbers


def _is_drawn_switch(compiled: CompiledModel, node: Node, made: set[int]) -> bool:
    """Whether a switch is drawn with the numbers: it chooses a value that nobody saw, or too many factors speak of it to sum."""
    meets = [p for p, _ in compiled.graph.edges_of(node.position)]
    if node.family is not Bernoulli or any(p.parts is not None for p in meets):
        return False
    return len(meets) > 2 or any(p.position in made for p in meets)


def _children(compiled: CompiledModel, made: set[int]) -> set[int]:
    """The nodes that plates which compute values make."""
    return {p.edges[p.factor.child].node for p in compiled.graph.plates if p.position in made}


def _arguments(compiled: CompiledModel, made: set[int]) -> set[int]:
    """The nodes that drawn values are made of; what a black box says that is not evaluated has messages in its place."""
    nodes, learned = compiled.graph.nodes, set(compiled.learning_plates) - made
    found: set[int] = set()
    for plate in _plates(compiled):
        child = plate.factor.child
        if plate.position in learned or child not in plate.edges or nodes[plate.edges[child].node].fully_observed:
            continue
        found |= {e.node for port, e in plate.edges.items() if port != child}
    return found


def _lacks_messages(compiled: CompiledModel, read: set[int]) -> bool:
    """Whether a message to what the draws begin with is sent only when somebody reads."""
    graph = compiled.graph
    late = (t for t in compiled.schedule.final if not isinstance(compiled.plates[t.plate], BlockPlate))
    return any(graph.plates[t.plate].edges[t.to].node in read for t in late)


def _plates(compiled: CompiledModel) -> list[Plate]:
    """The plates besides the blocks, and besides the priors of what nothing else speaks of."""
    plates = [p for p in compiled.graph.plates if not isinstance(compiled.plates[p.position], BlockPlate)]
    nodes = compiled.graph.nodes
    return [p for p in plates if not (isinstance(p.factor, Prior) and _unused(compiled, nodes[p.edges["x"].node]))]


def _unused(compiled: CompiledModel, node: Node) -> bool:
    """Whether nothing but its prior speaks of a node."""
    meets = compiled.graph.edges_of(node.position)
    return len(meets) == 1 and isinstance(meets[0][0].factor, Prior)


def _worth_a_look(compiled: CompiledModel, tables: Tables) -> bool:
    """Whether EP may be off: unknowns meet in a factor, one hears of several and of one much, or through a function's value."""
    nodes = compiled.graph.nodes
    heard: dict[int, np.ndarray] = {}  # rows that speak of each entry of a node, or of all of a block
    doubtful: set[int] = set()
    made: set[int] = set()  # parts that hold values of functions
    bent: set[int] = set()  # parts of which a factor speaks that is not Gaussian
    for plate in _plates(compiled):
        if isinstance(plate.factor, Prior):
            continue
        free = [(port, nodes[e.node]) for port, e in plate.edges.items() if not nodes[e.node].fully_observed]
        free = [(port, node) for port, node in free if not node.family.discrete]
        for port, node in free:
            part = _part(compiled, node)
            if len(free) > 1 and port == plate.factor.child:
                made.add(part)
                continue  # what is made of others hears of them as if of a prior
            rows = np.bincount(plate.edges[port].entries(plate.size), minlength=node.size)
            heard[part] = heard.get(part, 0) + (rows if part == node.position else np.array(plate.size))
            if not is_linear(compiled.graph, plate):
                bent.add(part)
            if len(free) > 1 or _is_strong(plate, port, node, tables):
                doubtful.add(part)
    return any(np.max(heard[part]) > 1 for part in doubtful) or not made.isdisjoint(bent)


def _part(compiled: CompiledModel, node: Node) -> int:
    """A number for the block of a node, or for the node by itself."""
    for k, block in enumerate(compiled.blocks):
        if node.position in block.factor.block.rows:
            return -1 - k
    return node.position


def _is_strong(plate: Plate, port: str, node: Node, tables: Tables) -> bool:
    """Whether one factor that is not Gaussian, or not conjugate, makes up much of what is known of an unknown."""
    if node.dimension is not None:
        return True
    if node.family is not Gaussian:
        return not plate.factor.how.get(port, "").startswith("closed form")
    edge, sent = plate.edges[port], tables.sent[plate.position, port].naturals[-1]
    variance = tables.belief(node).variance[edge.entries(plate.size)[: len(sent)]]
    with np.errstate(invalid="ignore"):  # nothing times an infinite variance
        share = np.abs(sent) * variance
        # bounds that say almost the same are each weak, and too much together
        return bool(share.sum() > _STRONG if isinstance(plate.factor, (Between, Positive)) else (share > _STRONG).any())


# ---- judging ------------------------------------------------------------------------------------------------------------
def _judge(
    node: Node, values: np.ndarray, known: np.ndarray, weight: np.ndarray, own: np.ndarray, doubt: float | None
) -> Curved | None:
    """The worst entry of a node whose moments are not those of its belief, beyond `doubt` times the noise of these draws.

    `known` (2, m) are the belief's mean and sd of entries that were drawn given others, NaN for all that were drawn of the belief.
    """
    values = values.reshape(-1, values.shape[-1])
    (mean, sd), (new_mean, new_sd) = (_moments(node, values, w) for w in (own, weight))
    drawn = np.isnan(known[0]) & np.ones(len(values), dtype=bool)
    mean, sd = np.where(drawn, mean, known[0]), np.where(drawn, sd, known[1])
    live = (sd > _ROUNDING * np.abs(mean)) & (new_sd > _ROUNDING * np.abs(mean))  # others were observed
    if not live.any():
        return None
    values, mean, sd, new_mean, new_sd, drawn = (a[live] for a in (values, mean, sd, new_mean, new_sd, drawn))
    shift, log_ratio = np.abs(new_mean - mean) / sd, np.log(new_sd / sd)
    z, new_z = ((values - m[:, None]) / s[:, None] for m, s in ((mean, sd), (new_mean, new_sd)))
    own = np.where(drawn[:, None], own, 0.0)
    # what every draw adds to either difference: of two modes one may be of a few draws
    shift_noise = np.sqrt(np.sum((weight * new_z * (new_sd / sd)[:, None] - own * z) ** 2, axis=1))
    ratio_noise = 0.5 * np.sqrt(np.sum((weight * (new_z**2 - 1.0) - own * (z**2 - 1.0)) ** 2, axis=1))
    most = _MOST_NOISE * np.sqrt(np.sum(weight**2))
    room = [np.minimum(_NOISE * n, most) if doubt is None else doubt * _NOISE * n for n in (shift_noise, ratio_noise)]
    if not ((shift > _OFF + room[0]) | (np.abs(log_ratio) > _OFF + room[1])).any():
        return None
    return Curved(node.name, float(np.exp(log_ratio[np.abs(log_ratio).argmax()])), float(shift.max()))


def _moments(node: Node, values: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of every entry; of a positive one those of the Gamma with the same E x and E log x."""
    mean = values @ weight
    if issubclass(node.family, Gamma):
        gap = np.maximum(np.log(mean) - np.log(values) @ weight, 1e-12)
        shape = (3.0 - gap + np.sqrt((gap - 3.0) ** 2 + 24.0 * gap)) / (12.0 * gap)
        return mean, mean / np.sqrt(shape)
    return mean, np.sqrt((values - mean[:, None]) ** 2 @ weight)
