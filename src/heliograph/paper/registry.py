"""Every experiment by its name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from heliograph.paper import exp1, exp2, exp3, exp4, exp5, features
from heliograph.paper.report.claims import Claim
from heliograph.paper.report.tables import Table
from heliograph.paper.running.parts import Experiment

__all__ = ["EXPERIMENTS", "claims_of", "sentences_of", "tables_of"]


def _experiment(package: Any, seeds: float = 1.0, first_seed_only: tuple[str, ...] = ()) -> Experiment:
    """The experiment that a package's three files make: its parts, its text, and its figures."""
    parts, words, name = package.parts, package.words, package.__name__.rsplit(".", 1)[1]
    run = parts.QUICK, parts.FULL, parts.parts_of, parts.assemble, parts.headlines
    said = words.tables, words.sentences, words.claims
    return Experiment(name, words.TITLE, words.LEAD, *run, *said, package.figures.draw, seeds, first_seed_only)


_ALL = (
    _experiment(exp1, seeds=0.5),
    _experiment(exp2, seeds=0.5),
    _experiment(exp3, first_seed_only=("sampling",)),
    _experiment(exp4),
    _experiment(exp5, first_seed_only=("sampling",)),
    _experiment(features, seeds=0.5),
)
EXPERIMENTS: dict[str, Experiment] = {experiment.name: experiment for experiment in _ALL}


def tables_of(result: Mapping[str, Any]) -> list[Table]:
    """The tables of one experiment, from its JSON; none for an experiment that has no finished method yet."""
    return EXPERIMENTS[result["experiment"]].tables(result) if result.get("methods") else []


def sentences_of(result: Mapping[str, Any]) -> list[str]:
    """Two or more sentences on an experiment's JSON; one that says so if nothing of it has finished."""
    if not result.get("methods"):
        return ["No method has finished yet."]
    return EXPERIMENTS[result["experiment"]].sentences(result)


def claims_of(result: Mapping[str, Any]) -> list[Claim]:
    """The paper's claims on an experiment, with what its JSON says of them."""
    return EXPERIMENTS[result["experiment"]].claims(result) if result.get("methods") else []
