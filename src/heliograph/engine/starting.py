"""Where a run begins: near the mode, if many sites say much about few unknowns."""

from __future__ import annotations

import numpy as np

from heliograph.engine.compiled import CompiledModel
from heliograph.engine.plates import Exchange

__all__ = ["start_near_the_mode"]

_STEPS = 8  # of Newton's method, at most
_CLOSE = 0.3  # of a narrow cavity's standard deviation: a step this short is the last


def start_near_the_mode(compiled: CompiledModel, exchange: Exchange) -> None:
    """Give the sites of blocks the messages of narrow cavities at the mode of the whole model.

    From uniform sites, a hundred thousand labels that answer to a broad prior all overshoot at once. The messages are an
    ordinary state of the run: whatever they are, the sweeps that follow have the same fixed points. Black boxes are spared
    (their operators would learn messages that no sweep sends), and where a step fails the sites start uniform.
    """
    blocks, tables = compiled.blocks, exchange.tables
    if not blocks or compiled.learning_plates:
        return
    kept = tables.snapshot(copy=False)
    joint = set(compiled.joint_tasks)
    others = [task for task in compiled.schedule.sweep if task not in joint]
    before: list[np.ndarray | None] = [None] * len(blocks)
    for _ in range(_STEPS):
        found = [block.narrow(tables) for block in blocks]
        if all(f is None for f in found):
            tables.restore(kept, copy=False)
            return
        moving = False
        for k, f in enumerate(found):
            old = before[k]
            if f is not None:
                moving |= old is None or bool((np.abs(f.mean - old) > _CLOSE * np.sqrt(f.variance)).any())
                before[k] = f.mean
        if not moving:
            break
        for task in others:
            compiled.send(exchange, task)
    if any(block.joint(tables) is None for block in blocks):
        tables.restore(kept, copy=False)
        return
    for task in compiled.joint_tasks:
        compiled.send(exchange, task)
