"""The protocol of plates: a run uses nothing else of a plate, and every kind of plate is chosen by what the graph says."""

import inspect
from dataclasses import fields

import numpy as np
import pytest

import heliograph as hg
from heliograph.engine.compiled import compile_model
from heliograph.engine.contradictions import check_possible
from heliograph.engine.evidence import log_evidence
from heliograph.engine.options import InferOptions, StepOptions
from heliograph.engine.plates import PlateKind
from heliograph.engine.run import Run

PROTOCOL = {name for name in [*vars(PlateKind), *PlateKind.__annotations__] if not name.startswith("_")}


class OnlyTheProtocol:
    """A plate of which everything outside the protocol is hidden."""

    def __init__(self, kind):
        object.__setattr__(self, "_kind", kind)

    def __getattribute__(self, name):
        if name == "__class__":  # which isinstance asks for
            return OnlyTheProtocol
        if name not in PROTOCOL:
            raise AttributeError(f"{name} is no part of the protocol")
        return getattr(object.__getattribute__(self, "_kind"), name)


def regression(vector=False):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((30, 2))
    model = hg.Model()
    if vector:
        z = x @ model.gaussian("w", np.zeros(2), covariance=np.eye(2))
    else:
        w = model.gaussian("w", 0.0, variance=1.0, size=2)
        z = x[:, 0] * w[0] + x[:, 1] * w[1]
    model.bernoulli("y", logit=z, observed=(rng.random(30) < 0.5).astype(float))
    return model


def black_box():
    @hg.factor(output=hg.Gaussian)
    def bend(z):
        return np.tanh(z)

    model = hg.Model()
    z = model.gaussian("z", 0.5, variance=1.0, size=4)
    model.gaussian("y", bend(z), variance=0.1, observed=[0.1, 0.2, 0.3, 0.4])
    return model


@pytest.mark.parametrize("schedule", ["parallel", "sequential"])
@pytest.mark.parametrize("write", [regression, black_box])
def test_a_run_and_its_posterior_use_only_the_protocol_of_a_plate(write, schedule):
    options = StepOptions(operator="ask", oracle="quadrature", schedule=schedule, damping=0.3, max_sweeps=60)
    found = []
    for hide in (lambda kind: kind, OnlyTheProtocol):
        compiled = compile_model(write().graph.snapshot(), "factorised")  # of a block more is read: its joint belief
        run = Run(compiled._replace(plates=tuple(hide(kind) for kind in compiled.plates)), options)
        *_, (info, converged) = run.sweeps()
        check_possible(run.compiled.graph, run.compiled.plates, run.tables)
        posterior = run.posterior(info, converged)
        found.append([posterior.log_evidence, *(posterior[n.name].mean for n in compiled.watched())])
    for plain, hidden in zip(*found, strict=True):
        np.testing.assert_array_equal(plain, hidden)


def test_the_kind_of_a_plate_follows_from_its_edges_and_its_factor():
    assert {type(k).__name__ for k in compile_model(regression().graph, "factorised").plates} == {"PlainPlate"}
    for structure in ("auto", "factorised"):  # the rows of one vector are never apart from it
        kinds = {type(k).__name__ for k in compile_model(regression(vector=True).graph, structure).plates}
        assert kinds == {"PlainPlate", "BlockPlate"}
    kinds = [type(k).__name__ for k in compile_model(black_box().graph).plates]
    assert kinds.count("LearnedPlate") == 1


def test_the_evidence_is_a_sum_over_plates_and_nodes():
    """A plate that is left out leaves its terms out: the protocol's `log_evidence` is all that the sum looks at."""
    model = hg.Model()
    model.gaussian("x", 0.0, variance=2.0, observed=1.5)
    compiled = compile_model(model.graph.snapshot())
    run = Run(compiled, StepOptions())
    *_, (info, converged) = run.sweeps()
    exchange = run.posterior(info, converged)._exchange
    whole = log_evidence(compiled.graph, compiled.plates, exchange)
    assert whole == pytest.approx(-0.5 * np.log(4 * np.pi) - 1.5**2 / 4)
    assert log_evidence(compiled.graph, (), exchange) == 0.0


def test_the_settings_of_infer_are_listed_in_its_signature_and_a_wrong_one_is_named():
    listed = inspect.signature(hg.Model.infer).parameters
    assert {"operator", "damping", "tolerance", "seed", "progress"} < set(listed)
    of_infer_alone = {f.name for f in fields(InferOptions)} - {f.name for f in fields(StepOptions)}
    assert set(inspect.signature(hg.steps).parameters) == {"model", *listed} - {"self"} - of_infer_alone
    with pytest.raises(TypeError, match=r"infer\(\) has no setting 'dampening'; there are operator, "):
        hg.Model().infer(dampening=0.5)
