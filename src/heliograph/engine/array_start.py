"""The start of a regression, on arrays: Newton's method, and rough sweeps from there.

A likelihood whose log is smooth says its slope and its curvature at any value, as its message to a point mass there. So the way to
the mode needs neither variances nor messages in tables, only one linear system in every step. Where a likelihood can say roughly
what its message is, sweeps on arrays follow until what is left to go is small.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from typing import Any, NamedTuple

import numpy as np

from heliograph.engine.blocks.dense import DenseSystem
from heliograph.engine.blocks.plate import BlockFactor, Joint
from heliograph.engine.blocks.system import Sites
from heliograph.engine.compiled import CompiledModel
from heliograph.engine.convergence import Motion, motion
from heliograph.engine.plates.block import BlockPlate
from heliograph.engine.properness import keeps_enough
from heliograph.engine.schedule import Task
from heliograph.engine.tables import Tables
from heliograph.families import Family, Gaussian
from heliograph.graph.records import Node, Plate

__all__ = ["Early", "start_on_arrays"]

_STEPS = 10  # of Newton's method, at most
_CLOSE = 0.1  # of a standard deviation, in any direction: a step this short is the last
_SWEEPS = 8  # rough ones, at most
# both were chosen on nine regressions; of 60 others with fresh seeds 57 take as many sweeps as without arrays, 3 at most one more
_SLOW = 0.3  # a change over the one before it, above which sweeps are left to the run, which can jump
_SHARE = 0.9  # of the limit on changes: what the next sweep is expected to change


class _Smooth(NamedTuple):
    """A plate of likelihoods of the scalars of a block, with all that they read but these."""

    task: Task
    plate: Plate
    given: dict[str, Any]
    at: slice  # of the block's sites


class Early(NamedTuple):
    """What a run tells of sweeps on arrays, which it counts as its own."""

    limit: float  # on the change of a sweep, at which beliefs have settled
    # the beliefs before and after a sweep, and how far it moved them; returns whether to stop
    note: Callable[[list[Family], list[Family], Motion], bool]


class _State(NamedTuple):
    """Sites of a block, and its joint belief under them."""

    sites: Sites
    joint: Joint


def start_on_arrays(compiled: CompiledModel, tables: Tables, early: Early | None) -> bool:
    """Store sites near the mode, or with `early` near the fixed point, where every likelihood is smooth.

    Return False, and store nothing, where that is not so or a step fails.
    """
    found = _smooth_sites(compiled, tables)
    if found is None:
        return False
    ends: list[tuple[BlockPlate, list[_Smooth], _State]] = []
    for block, sites in zip(compiled.blocks, found, strict=True):
        if block.starts_uniform:
            continue
        joint = block.joint(tables)
        state = None if joint is None else _near_mode(block.factor, sites, joint.mean[: block.factor.n_sites])
        if state is None:
            return False
        watched = compiled.watched()
        if early is not None and len(found) == 1 and all(node.position in block.factor.block.rows for node in watched):
            state = _rough_sweeps(tables, block.factor, sites, state, watched, early)
        ends.append((block, sites, state))
    for _, sites, state in ends:
        _store(tables, sites, state.sites)
    for block, _, state in ends:
        block.take(tables, state.joint)
    return True


def _smooth_sites(compiled: CompiledModel, tables: Tables) -> list[list[_Smooth]] | None:
    """What is said to every block in a sweep, where each of its scalars hears one smooth likelihood; None of other models."""
    graph, joint = compiled.graph, set(compiled.joint_tasks)
    met = graph.meetings()
    ports = {p.node: (k, p.start) for k, b in enumerate(compiled.blocks) for p in b.factor.at.values()}
    found: list[list[_Smooth]] = [[] for _ in compiled.blocks]
    for task in compiled.schedule.sweep:
        if task in joint:
            continue
        plate = graph.plates[task.plate]
        edge = plate.edges[task.to]
        others = [port for port in plate.edges if port != task.to]
        known = all(graph.nodes[plate.edges[port].node].fully_observed for port in others)
        alone = edge.index is None and plate.times is None and edge.node in ports and len(met[edge.node]) == 2
        if not (plate.factor.smooth and known and alone):
            return None
        k, start = ports[edge.node]
        given = {**plate.data, **{port: tables.incoming(plate, port, None) for port in others}}
        found[k].append(_Smooth(task, plate, given, slice(start, start + plate.size)))
    heard = [sum(s.at.stop - s.at.start for s in sites) for sites in found]
    whole = all(
        n == b.factor.n_sites and not b.factor.vector_sites for n, b in zip(heard, compiled.blocks, strict=True)
    )
    return found if whole else None


def _near_mode(factor: BlockFactor, sites: list[_Smooth], z: np.ndarray) -> _State | None:
    """A state near the mode of a block, by Newton's method from values of its scalars; None where a step fails."""
    said = None
    for _ in range(_STEPS):
        said = _slopes(sites, z)
        centre = _centre(factor, said) if _fine(said) else None
        if centre is None:
            return None
        before, z = z, centre
        # the squared length in units of the belief, but for the prior's share
        if said.tau @ (z - before) ** 2 <= _CLOSE**2:
            break
    joint = None if said is None else factor.under(said)
    return None if said is None or joint is None else _State(said, joint)


def _rough_sweeps(
    tables: Tables, factor: BlockFactor, sites: list[_Smooth], state: _State, watched: list[Node], early: Early
) -> _State:
    """The state after some sweeps from this one, by rough messages, which are stored as well.

    They end where the next sweep is expected to end below the limit, where they are slow, and where a message or a belief is not
    what it should be; the run goes on from there.
    """
    last = np.inf
    beliefs = [factor.belief_of(node, state.joint) for node in watched]
    for _ in range(_SWEEPS):
        following = _swept(factor, sites, state) if state.joint.plain else None
        if following is None:
            break
        state, before, beliefs = following, beliefs, [factor.belief_of(node, following.joint) for node in watched]
        _store(tables, sites, state.sites)
        moved = motion(watched, beliefs, before)
        stop, rate = early.note(before, beliefs, moved), moved.change / last
        if stop or rate > _SLOW or 0.0 < moved.change * rate < _SHARE * early.limit:
            break
        last = moved.change
    return state


def _swept(factor: BlockFactor, sites: list[_Smooth], state: _State) -> _State | None:
    """The state after one more sweep; None where a rule for messages that are not what they should be would have to step in."""
    n, (shift, tau, *_) = factor.n_sites, state.sites
    p = 1.0 / state.joint.variance[:n]
    rest = p - tau
    v = 1.0 / rest
    said = _rough(sites, (state.joint.mean[:n] * p - shift) * v, v)
    if said is None or not _fine(said) or not keeps_enough(said.tau, tau, rest):
        return None
    joint = factor.under(said)
    return None if joint is None else _State(said, joint)


def _slopes(sites: list[_Smooth], z: np.ndarray) -> Sites:
    """Slopes and curvatures at z, as messages."""
    nothing = np.zeros(len(z))
    said = _rough(sites, z, nothing)
    if said is not None:
        return said
    shift, tau = np.empty(len(z)), np.empty(len(z))
    for task, plate, given, at in sites:
        here = Gaussian.from_naturals((nothing[at], nothing[at]), z[at])
        shift[at], tau[at] = plate.factor.message(task.to, {**given, task.to: here}).naturals
    return Sites(shift, tau)


def _centre(factor: BlockFactor, said: Sites) -> np.ndarray | None:
    """The means of the scalars under sites; None where there is no joint belief."""
    system = factor.system
    if isinstance(system, DenseSystem):
        return system.centre(said)
    solution = system.solve(said)
    return None if solution is None else system.means(system.site_rows, solution)


def _rough(sites: list[_Smooth], m: np.ndarray, v: np.ndarray) -> Sites | None:
    """Rough messages from cavities N(m, v); None where a likelihood has none."""
    shift, tau = np.empty(len(m)), np.empty(len(m))
    for _, plate, given, at in sites:
        said = plate.factor.rough_site(given, m[at], v[at])
        if said is None:
            return None
        shift[at], tau[at] = said
    return Sites(shift, tau)


def _store(tables: Tables, sites: list[_Smooth], said: Sites) -> None:
    """Record messages; what blocks say of them is left as it was."""
    for task, plate, _, at in sites:
        tables.store(plate, task.to, Gaussian.from_naturals((said.shift[at], said.tau[at])), None)


def _fine(said: Sites) -> bool:
    """Whether no message is improper, and all could be computed."""
    return said.tau.min(initial=0.0) >= 0.0 and isfinite(said.shift.sum() + said.tau.sum())
