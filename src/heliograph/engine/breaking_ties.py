"""First messages where a run would stay as symmetric as it began: mixtures, unknown tables, products."""

from __future__ import annotations

import numpy as np

from heliograph.engine.compiled import CompiledModel
from heliograph.engine.component_start import start_components
from heliograph.engine.mixture_start import start_mixtures
from heliograph.engine.plates import Exchange
from heliograph.engine.product_start import start_products
from heliograph.engine.table_start import start_tables

__all__ = ["break_ties"]


def break_ties(rng: np.random.Generator, compiled: CompiledModel, exchange: Exchange) -> None:
    """Store first messages of all that needs them.

    What is sent once, before the sweeps, is kept: for a mixture that is on no loop it is the answer.
    """
    tables, plates = exchange.tables, compiled.graph.plates
    once = {task: tables.sent[task.plate, task.to] for task in compiled.schedule.once}
    if start_tables(rng, compiled.graph, tables):
        for plate in compiled.plates:
            plate.start(rng, tables)
    if start_mixtures(rng, compiled.graph, tables):
        for block in compiled.blocks:
            block.start(rng, tables)
    start_components(rng, compiled, exchange)
    if start_products(rng, compiled.graph, tables):
        for block in compiled.blocks:
            block.start(rng, tables)
    for task, message in once.items():
        if tables.sent[task.plate, task.to] is not message:
            tables.store(plates[task.plate], task.to, message, None)
