"""Which form a factor takes when several of its ports are jointly Gaussian."""

from __future__ import annotations

from typing import NamedTuple

from heliograph.engine.forms.choice import JointChoice, can_join
from heliograph.engine.forms.conditioning import ConditionedForm
from heliograph.engine.forms.product import JointProduct
from heliograph.factors import Factor, Maximum, Mixture, OneOf, Product, Select
from heliograph.factors.black_box import BlackBox, JointBox
from heliograph.families import Gaussian
from heliograph.graph.records import Graph, Plate

__all__ = ["Form", "joint_form"]

_CONDITIONED = (Maximum, Select)  # factors of two Gaussian numbers whose messages are exact when one of them is known
_ROWS = 3000  # of a mixture: with more, vectors for every row take three times as long, and stay apart (`infer` warns)


class Form(NamedTuple):
    """A factor with a vector port."""

    factor: Factor
    port: str
    joined: tuple[str, ...]  # the ports that the vector stands for


def joint_form(graph: Graph, plate: Plate, ports: tuple[str, ...]) -> Form | None:
    """The factor of a plate with the scalars at some ports as one vector; None where it has no such form."""
    factor = plate.factor
    if isinstance(factor, BlackBox):
        # the oracles know vectors of inputs only: an output on the loop is left out, and `infer` warns of what remains
        inputs = tuple(p for p in ports if p not in factor.children)
        if len(inputs) < 2 or len(factor.children) > 1:
            return None
        box = JointBox(factor, inputs)
        return Form(box, box.port, inputs)
    if isinstance(factor, Product) and _all_open(graph, plate):
        form = JointProduct(ports)
        return Form(form, form.port, ports)
    if isinstance(factor, (OneOf, Mixture)) and plate.size <= _ROWS:
        joined = can_join(factor, ports)
        choice = JointChoice(factor, joined)
        return Form(choice, choice.port, joined) if len(joined) > 1 else None
    if isinstance(factor, _CONDITIONED) and len(ports) == 2:
        # the second of the two is integrated over: an argument, since a value that is known may have mass at one place
        first, second = sorted(ports, key=lambda p: p not in factor.children)
        conditioned = ConditionedForm(factor, (first, second))
        return Form(conditioned, conditioned.port, conditioned.joined)
    return None


def _all_open(graph: Graph, plate: Plate) -> bool:
    """Whether no Gaussian number at the plate's ports is known exactly."""
    nodes = [graph.nodes[e.node] for e in plate.edges.values()]
    return set(plate.factor.ports) == set(plate.edges) and all(
        n.observed is None or not n.observed.is_point.any() for n in nodes if n.family is Gaussian
    )
