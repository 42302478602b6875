"""The modelling language: builders that turn what a user writes into nodes and plates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse

from heliograph.errors import ModelError, UnsupportedError
from heliograph.factors import (
    BernoulliBeta,
    Between,
    Binomial,
    CategoricalDirichlet,
    ConditionalTable,
    Difference,
    Dot,
    Equal,
    Exp,
    Factor,
    GammaRate,
    GaussianFactor,
    GaussianPrecision,
    Logistic,
    LogisticBernoulli,
    Maximum,
    MultivariateGaussianFactor,
    Poisson,
    PoissonLog,
    Positive,
    Prior,
    ProbitBernoulli,
    Product,
    Scale,
    Select,
    Shift,
    Stack,
    Sum,
)
from heliograph.families import (
    Bernoulli,
    Beta,
    Categorical,
    Dirichlet,
    Family,
    Gamma,
    Gaussian,
    MultivariateGaussian,
)
from heliograph.graph.check import (
    check_counts,
    check_covariance,
    check_number,
    check_observed,
    check_positive,
    check_probability,
)
from heliograph.graph.draw import render_dot, render_png, render_summary
from heliograph.graph.mixture import build_mixture
from heliograph.graph.records import Edge, Graph, Node, Plate
from heliograph.graph.variable import Variable

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Builder"]


class Builder:
    """A factor graph under construction.

    >>> model = Builder()
    >>> mean = model.gaussian("mean", 0.0, variance=100.0)
    >>> x = model.gaussian("x", mean, variance=1.0, observed=[1.0, 2.0, 3.0])
    >>> print(model.summary())
    variable  family    shape  observed
    mean      Gaussian  ()
    x         Gaussian  (3,)   3 of 3
    <BLANKLINE>
    factor    elements  between
    prior     1         mean
    gaussian  3         mean -> x
    """

    def __init__(self) -> None:
        self.graph = Graph()
        self._names: set[str] = set()

    # ---- variables ----------------------------------------------------------------------------------------------
    def gaussian(
        self,
        name: str,
        mean: Any = 0.0,
        variance: Any = None,
        *,
        precision: Any = None,
        covariance: Any = None,
        size: Any = None,
        observed: Any = None,
        missing: Any = None,
    ) -> Variable:
        """A Gaussian variable: scalars with `variance` or `precision`, a vector with `covariance`.

        `mean` is a number, an array, a variable, or a Gaussian message (for example a posterior) that becomes the prior.
        `precision` may be a Gamma variable.
        """
        if isinstance(mean, Family):
            return self._from_message(name, mean, (Gaussian, MultivariateGaussian), size, observed, missing)
        if sum(v is not None for v in (variance, precision, covariance)) != 1:
            raise ModelError(
                f"variable {name!r}: a Gaussian needs exactly one of variance=, precision= and covariance=, "
                "for example model.gaussian('x', 0.0, variance=1.0)"
            )
        if covariance is not None:
            return self._vector_gaussian(name, mean, covariance, size, observed, missing)
        if isinstance(variance, Variable):
            raise UnsupportedError(
                f"variable {name!r}: a random variance ({variance.name!r}) has no factor; "
                "give a Gamma variable as precision= instead"
            )
        if isinstance(precision, Variable):
            self._want(name, "precision", precision, Gamma)
            if isinstance(mean, Variable):
                self._want(name, "mean", mean, Gaussian)
            else:
                mean = check_number(name, "mean", mean)
            ports = {"mean": mean, "precision": precision}
            return self._child(name, GaussianPrecision(), ports, {}, Gaussian, size, observed, missing)
        if precision is not None:
            variance = 1.0 / check_positive(name, "precision", precision)
        else:
            variance = check_positive(name, "variance", variance)
        if isinstance(mean, Variable):
            self._want(name, "mean", mean, Gaussian)
            return self._child(
                name, GaussianFactor(), {"mean": mean}, {"variance": variance}, Gaussian, size, observed, missing
            )
        mean = check_number(name, "mean", mean)
        return self._from_parameters(name, Gaussian, (mean, variance), size, observed, missing)

    def _vector_gaussian(
        self, name: str, mean: Any, covariance: Any, size: Any, observed: Any, missing: Any
    ) -> Variable:
        if isinstance(mean, Variable):
            if mean.family is Gaussian:
                mean = self.stack(mean)
            self._want(name, "mean", mean, MultivariateGaussian)
            d = mean.node.dimension or 0
            covariance = check_covariance(name, "covariance", covariance, d)
            return self._child(
                name, MultivariateGaussianFactor(), {"mean": mean}, {"covariance": covariance},
                MultivariateGaussian, size, observed, missing, dimension=d,
            )  # fmt: skip
        mean = check_number(name, "mean", mean)
        if mean.ndim == 0:
            raise ModelError(
                f"variable {name!r}: with covariance= the mean must be a vector; use variance= for scalars"
            )
        d = mean.shape[-1]
        covariance = check_number(name, "covariance", covariance)
        if covariance.shape[-2:] != (d, d):
            check_covariance(name, "covariance", covariance, d)
        plate = np.broadcast_shapes(mean.shape[:-1], covariance.shape[:-2])
        shape = self._shape(name, plate, size)
        try:
            message = MultivariateGaussian(
                np.broadcast_to(mean, (*shape, d)), np.broadcast_to(covariance, (*shape, d, d))
            )
        except ModelError:
            check_covariance(name, "covariance", covariance, d)  # the same, in a sentence that names the variable
            raise
        return self._with_prior(name, message, shape, d, observed, missing)

    def gamma(
        self, name: str, shape: Any, rate: Any = None, *, size: Any = None, observed: Any = None, missing: Any = None
    ) -> Variable:
        """A Gamma variable (shape, rate); `rate` may be a Gamma variable (compound gamma)."""
        if isinstance(shape, Family):
            return self._from_message(name, shape, (Gamma,), size, observed, missing)
        if isinstance(shape, Variable):
            raise UnsupportedError(f"variable {name!r}: a random shape ({shape.name!r}) has no factor; fix the shape")
        if rate is None:
            raise ModelError(f"variable {name!r}: a Gamma needs a shape and a rate")
        shape = check_positive(name, "shape", shape)
        if isinstance(rate, Variable):
            self._want(name, "rate", rate, Gamma)
            return self._child(name, GammaRate(), {"rate": rate}, {"shape": shape}, Gamma, size, observed, missing)
        rate = check_positive(name, "rate", rate)
        return self._from_parameters(name, Gamma, (shape, rate), size, observed, missing)

    def beta(
        self, name: str, a: Any, b: Any = None, *, size: Any = None, observed: Any = None, missing: Any = None
    ) -> Variable:
        """A Beta variable with fixed `a` and `b`."""
        if isinstance(a, Family):
            return self._from_message(name, a, (Beta,), size, observed, missing)
        for what, value in (("a", a), ("b", b)):
            if isinstance(value, Variable):
                raise UnsupportedError(f"variable {name!r}: a random {what} of a Beta has no factor; fix it")
        if b is None:
            raise ModelError(f"variable {name!r}: a Beta needs a and b")
        a, b = check_positive(name, "a", a), check_positive(name, "b", b)
        return self._from_parameters(name, Beta, (a, b), size, observed, missing)

    def bernoulli(
        self,
        name: str,
        p: Any = None,
        *,
        logit: Any = None,
        probit: Any = None,
        size: Any = None,
        observed: Any = None,
        missing: Any = None,
    ) -> Variable:
        """A Bernoulli variable from a probability `p` (number or Beta variable), `logit=z` or `probit=z` (Gaussian)."""
        if sum(v is not None for v in (p, logit, probit)) != 1:
            raise ModelError(f"variable {name!r}: a Bernoulli needs exactly one of p, logit= and probit=")
        if isinstance(p, Family):
            return self._from_message(name, p, (Bernoulli,), size, observed, missing)
        for z, factor, what in ((logit, LogisticBernoulli, "logit"), (probit, ProbitBernoulli, "probit")):
            if z is not None:
                if not isinstance(z, Variable):
                    raise ModelError(f"variable {name!r}: {what}= takes a Gaussian variable; give a number as p")
                self._want(name, what, z, Gaussian)
                return self._child(name, factor(), {"z": z}, {}, Bernoulli, size, observed, missing)
        if isinstance(p, Variable):
            self._want(name, "p", p, Beta, " (a Gaussian goes to logit= or probit=)")
            return self._child(name, BernoulliBeta(), {"p": p}, {}, Bernoulli, size, observed, missing)
        return self._from_parameters(name, Bernoulli, (check_probability(name, "p", p),), size, observed, missing)

    def categorical(
        self,
        name: str,
        p: Any,
        *,
        given: Variable | None = None,
        size: Any = None,
        observed: Any = None,
        missing: Any = None,
    ) -> Variable:
        """A Categorical variable from probabilities (an array whose last axis sums to 1) or a Dirichlet variable.

        With `given`, a Categorical variable, `p` is a table whose row k holds the probabilities when `given` is k.
        """
        if given is not None:
            return self._given_category(name, p, given, size, observed, missing)
        if isinstance(p, Family):
            return self._from_message(name, p, (Categorical,), size, observed, missing)
        if isinstance(p, Variable):
            self._want(name, "p", p, Dirichlet)
            return self._child(
                name, CategoricalDirichlet(), {"p": p}, {}, Categorical, size, observed, missing,
                dimension=p.node.dimension,
            )  # fmt: skip
        p = check_probability(name, "p", p)
        if p.ndim == 0 or not np.allclose(p.sum(axis=-1), 1.0):
            raise ModelError(f"variable {name!r}: its probabilities must sum to 1 along the last axis")
        shape = self._shape(name, p.shape[:-1], size)
        message = Categorical(np.broadcast_to(p, (*shape, p.shape[-1])))
        return self._with_prior(name, message, shape, p.shape[-1], observed, missing)

    def _given_category(
        self, name: str, table: Any, given: Variable, size: Any, observed: Any, missing: Any
    ) -> Variable:
        self._want(name, "given", given, Categorical)
        table = check_probability(name, "table", table)
        if table.ndim < 2 or table.shape[-2] != given.node.dimension or not np.allclose(table.sum(axis=-1), 1.0):
            raise ModelError(
                f"variable {name!r}: its table has shape {table.shape}; it needs one row of probabilities (summing to 1) for each "
                f"of the {given.node.dimension} categories of {given.name!r}"
            )
        return self._child(
            name, ConditionalTable(), {"parent": given}, {"table": table}, Categorical, size, observed, missing,
            dimension=table.shape[-1],
        )  # fmt: skip

    def dirichlet(
        self, name: str, concentration: Any, *, size: Any = None, observed: Any = None, missing: Any = None
    ) -> Variable:
        """A Dirichlet variable with fixed concentration (last axis: categories)."""
        if isinstance(concentration, Family):
            return self._from_message(name, concentration, (Dirichlet,), size, observed, missing)
        concentration = check_positive(name, "concentration", concentration)
        if concentration.ndim == 0 or concentration.shape[-1] < 2:
            raise ModelError(f"variable {name!r}: a Dirichlet needs at least two concentrations")
        k = concentration.shape[-1]
        shape = self._shape(name, concentration.shape[:-1], size)
        message = Dirichlet(np.broadcast_to(concentration, (*shape, k)))
        return self._with_prior(name, message, shape, k, observed, missing)

    def poisson(self, name: str, rate: Any = None, *, log_rate: Any = None, observed: Any) -> None:
        """Observed counts with a Gamma variable as `rate` or a Gaussian one as `log_rate`; NaN entries say nothing."""
        if (rate is None) == (log_rate is None):
            raise ModelError(f"variable {name!r}: a Poisson needs exactly one of rate and log_rate=")
        what, z = ("rate", rate) if log_rate is None else ("log_rate", log_rate)
        if not isinstance(z, Variable):
            raise ModelError(f"variable {name!r}: {what} must be a variable; a fixed rate leaves nothing to infer")
        self._want(name, what, z, Gamma if what == "rate" else Gaussian)
        factor: Factor = Poisson() if what == "rate" else PoissonLog()
        counts = check_counts(name, "observed", observed)
        self._likelihood(name, factor, "rate" if what == "rate" else "z", z, {"count": counts})

    def binomial(self, name: str, n: Any, p: Variable, *, observed: Any) -> None:
        """Observed counts of successes in `n` trials with a Beta variable `p`; NaN entries say nothing."""
        if not isinstance(p, Variable):
            raise ModelError(f"variable {name!r}: p must be a variable; a fixed p leaves nothing to infer")
        self._want(name, "p", p, Beta)
        trials, counts = check_counts(name, "n", n), check_counts(name, "observed", observed)
        if np.isnan(trials).any():
            raise ModelError(f"variable {name!r}: n holds NaN; NaN means 'missing' only in observed=")
        try:
            over = counts > trials
        except ValueError:
            raise ModelError(
                f"variable {name!r}: n of shape {trials.shape} does not fit observed of shape {counts.shape}"
            ) from None
        if over.any():
            raise ModelError(f"variable {name!r}: more successes were observed than there were trials")
        self._likelihood(name, Binomial(), "p", p, {"count": counts, "n": trials})

    def variable(self, name: str, prior: Family, *, observed: Any = None, missing: Any = None) -> Variable:
        """A variable of any family whose prior is a message, for example a posterior of an earlier batch."""
        return self._from_message(name, prior, (Family,), None, observed, missing)

    # ---- expressions --------------------------------------------------------------------------------------------
    def exp(self, z: Variable) -> Variable:
        """``exp(z)``, a positive variable with Gamma messages."""
        self._want("exp", "argument", z, Gaussian)
        return self._derive(f"exp({z.name})", Exp(), {"z": z}, {}, Gamma)

    def sigmoid(self, z: Variable) -> Variable:
        """``1 / (1 + exp(-z))``, a probability with Beta messages."""
        self._want("sigmoid", "argument", z, Gaussian)
        return self._derive(f"sigmoid({z.name})", Logistic(), {"z": z}, {}, Beta)

    def maximum(self, a: Variable, b: Variable) -> Variable:
        """The larger of two Gaussian variables."""
        a, b = self._as_gaussian("maximum", a), self._as_gaussian("maximum", b)
        return self._derive(f"max({a.name}, {b.name})", Maximum(), {"a": a, "b": b}, {}, Gaussian)

    def between(self, x: Variable, lower: Any, upper: Any) -> Variable:
        """The event ``lower < x < upper`` as a Bernoulli variable; the bounds may be infinite."""
        self._want("between", "x", x, Gaussian)
        lower, upper = np.asarray(lower, dtype=float), np.asarray(upper, dtype=float)
        if np.isnan(lower).any() or np.isnan(upper).any() or not (lower < upper).all():
            raise ModelError(f"between({x.name!r}): every lower bound must be below its upper bound")
        data = {"lower": lower, "upper": upper}
        return self._derive(f"lower < {x.name} < upper", Between(), {"x": x}, data, Bernoulli)

    def select(self, switch: Variable, a: Variable, b: Variable) -> Variable:
        """``a`` where the Bernoulli `switch` is 1, else ``b``."""
        self._want("select", "switch", switch, Bernoulli)
        a, b = self._as_gaussian("select", a), self._as_gaussian("select", b)
        return self._derive(
            f"{a.name} if {switch.name} else {b.name}", Select(), {"a": a, "b": b, "s": switch}, {}, Gaussian
        )

    def stack(self, x: Variable | Sequence[Variable]) -> Variable:
        """The last axis of scalar Gaussian variables as one vector, so that their posterior is joint."""
        if not isinstance(x, Variable):
            raise ModelError("stack takes one array-shaped variable")
        self._want("stack", "argument", x, Gaussian)
        if not x.shape:
            raise ModelError(f"stack({x.name!r}): a scalar has no axis to stack")
        k, shape = x.shape[-1], x.shape[:-1]
        ports = {f"x{i}": x[..., i] for i in range(k)}
        return self._derive(f"stack({x.name})", Stack(k), ports, {}, MultivariateGaussian, dimension=k, shape=shape)

    def mixture(
        self,
        name: str,
        selector: Variable,
        means: Variable,
        variance: Any = None,
        *,
        precision: Any = None,
        observed: Any = None,
        missing: Any = None,
    ) -> Variable:
        """A Gaussian variable whose component (mean, and variance or precision) is chosen by a Categorical or Bernoulli.

        `means` is an array of K scalar Gaussian variables; `precision` may be one of K Gamma variables. A Bernoulli
        selector chooses component 1 when it is true and component 0 otherwise.
        """
        return build_mixture(self, name, selector, means, variance, precision, observed, missing)

    def constrain(self, event: Variable) -> None:
        """Say that an event such as ``a > b`` happened."""
        if not isinstance(event, Variable) or event.family is not Bernoulli:
            raise ModelError("constrain takes an event such as a > b, abs(d) < 1 or model.between(x, lower, upper)")
        if event.node.observed is not None:
            raise ModelError(f"the event {event.name!r} is observed already")
        values = np.full(event.node.size, np.nan)
        values[event.entries().ravel()] = 1.0
        event.node.observed = Bernoulli.point_mass(values)

    def equal(self, a: Variable, b: Variable) -> None:
        """Say that two variables of one family are the same."""
        if a.family is not b.family or a.node.dimension != b.node.dimension:
            raise UnsupportedError(
                f"{a.name!r} ({a.family.__name__}) cannot equal {b.name!r} ({b.family.__name__}): "
                "both must have one family"
            )
        self._plate(f"{a.name} = {b.name}", Equal(), {"a": a, "b": b}, {})

    def attach(self, x: Variable, message: Family) -> None:
        """Soft evidence: multiply any message of the variable's own family into it."""
        if type(message) is not x.family:
            raise UnsupportedError(
                f"variable {x.name!r} takes {x.family.__name__} messages; a {type(message).__name__} was attached"
            )
        try:
            message = message.broadcast_to(x.shape)
        except ValueError:
            raise ModelError(
                f"variable {x.name!r} of shape {x.shape} cannot take a message of shape {message.shape}"
            ) from None
        self._plate(f"evidence on {x.name}", Prior(message.reshape((x.size,))), {"x": x}, {})

    def observe(self, x: Variable, values: Any, missing: Any = None) -> None:
        """Set the observed values of a whole variable after it was made."""
        if x.index is not None:
            raise ModelError(f"variable {x.name!r}: observe the whole variable, with NaN where it is missing")
        x.node.observed = check_observed(x.name, x.family, x.shape, x.node.dimension, values, missing)

    # ---- looking ------------------------------------------------------------------------------------------------
    @property
    def variables(self) -> list[Variable]:
        """The variables the user named."""
        return [Variable(self, n) for n in self.graph.nodes if n.given]

    def __getitem__(self, name: str) -> Variable:
        for node in self.graph.nodes:
            if node.name == name:
                return Variable(self, node)
        raise KeyError(f"no variable is called {name!r}; there are {[n.name for n in self.graph.nodes]}")

    def summary(self) -> str:
        """The variables and factors as a table."""
        return render_summary(self.graph)

    def to_dot(self) -> str:
        """The graph in graphviz' language, plates as boxes."""
        return render_dot(self.graph)

    def to_png(self, path: str | Path) -> Path:
        """Draw the graph with graphviz' ``dot`` program, where it is installed."""
        return render_png(self.graph, path)

    def _black_box(self, factor: Factor, arguments: dict[str, Any]) -> Variable:
        """The output of a black-box factor called on variables; plain arrays are data."""
        ports, data = {}, {}
        for port, value in arguments.items():
            if isinstance(value, Variable):
                families = factor.families.get(port, ())
                self._want(factor.name, port, value, families)
                ports[port] = value
            else:
                data[port] = check_number(factor.name, port, value)
        out = factor.families[factor.child][0]
        return self._derive(f"{factor.name}({', '.join(v.name for v in ports.values())})", factor, ports, data, out,
                            dimension=getattr(factor, "dimension", None))  # fmt: skip

    # ---- operators used by `Variable` ---------------------------------------------------------------------------
    def _add(self, a: Any, b: Any) -> Variable:
        if not isinstance(b, Variable):
            return self._constant(a, b, Shift, "+")
        return self._linear(a, b, Sum(), "+")

    def _subtract(self, a: Any, b: Any) -> Variable:
        if not isinstance(b, Variable):
            return self._constant(a, -np.asarray(b, dtype=float), Shift, "+")
        return self._linear(a, b, Difference(), "-")

    def _linear(self, a: Variable, b: Variable, factor: Factor, sign: str) -> Variable:
        for x in (a, b):
            self._want(f"{a.name} {sign} {b.name}", "argument", x, (Gaussian, MultivariateGaussian))
        if a.family is not b.family or a.node.dimension != b.node.dimension:
            raise UnsupportedError(f"{a.name!r} {sign} {b.name!r}: both must be scalars or vectors of one dimension")
        return self._derive(
            f"({a.name} {sign} {b.name})", factor, {"a": a, "b": b}, {}, a.family, dimension=a.node.dimension
        )

    def _scale(self, a: Variable, constant: Any) -> Variable:
        return self._constant(a, constant, Scale, "*")

    def _constant(self, a: Variable, constant: Any, kind: Any, sign: str) -> Variable:
        label = f"({a.name} {sign} constant)"
        self._want(label, "argument", a, (Gaussian, MultivariateGaussian))
        constant = check_number(label, "constant", constant)
        if kind is Scale and (constant == 0).any():
            raise ModelError(f"variable {a.name!r} is multiplied by zero; leave such entries out of the model")
        d = a.node.dimension
        if d is not None and kind is Scale and constant.ndim:
            raise ModelError(f"vector {a.name!r} can be scaled by a number only; use a matrix product for more")
        factor = kind()
        if d is not None and kind is Shift:
            constant = np.broadcast_to(constant, np.broadcast_shapes(constant.shape, (d,)))
            factor.data_ranks = {"constant": 1}  # type: ignore[misc]  # one vector per element
        return self._derive(label, factor, {"x": a}, {"constant": constant}, a.family, dimension=d)

    def _multiply(self, a: Variable, b: Any) -> Variable:
        if not isinstance(b, Variable):
            return self._scale(a, b)
        a, b = self._as_gaussian("*", a), self._as_gaussian("*", b)
        return self._derive(f"({a.name} * {b.name})", Product(), {"a": a, "b": b}, {}, Gaussian)

    def _greater(self, a: Any, b: Any) -> Variable:
        gap = a - b
        self._want("comparison", "argument", gap, Gaussian)
        left, right = (x.name if isinstance(x, Variable) else "constant" for x in (a, b))
        return self._derive(f"{left} > {right}", Positive(), {"x": gap}, {}, Bernoulli)

    def _dot(self, x: Any, w: Variable) -> Variable:
        if w.family is Gaussian and w.shape:
            w = self.stack(w)
        self._want("X @ w", "right side", w, MultivariateGaussian)
        if w.shape not in ((), (1,)):
            raise ModelError(f"X @ {w.name!r}: the right side must be one vector, not an array of shape {w.shape}")
        d = w.node.dimension
        if scipy.sparse.issparse(x):
            x = scipy.sparse.csr_array(x).astype(float)
            finite = np.isfinite(x.data).all()
        else:
            x = np.asarray(x, dtype=float)
            finite = np.isfinite(x).all()
        if not finite:
            raise ModelError(f"X @ {w.name!r}: X holds NaN or infinite values; fill them in or drop those rows")
        rows = x if x.ndim == 2 else x.reshape(1, -1) if x.ndim == 1 else None
        if rows is None or rows.shape[1] != d:
            raise ModelError(
                f"X @ {w.name!r}: X has shape {x.shape}, but {w.name!r} has {d} entries; X must be (n, {d})"
            )
        shape = x.shape[:-1]
        out = self._node(f"X @ {w.name}", Gaussian, shape, None, given=False)
        index = np.asarray(w.entries().ravel())
        edges = {
            "w": Edge(w.node.position, None if w.node.size == 1 else index, True),
            "out": Edge(out.position, None, True),
        }
        self.graph.plates.append(Plate(len(self.graph.plates), "dot", Dot(), shape, edges, {"x": rows}))
        return Variable(self, out)

    # ---- making nodes and plates --------------------------------------------------------------------------------
    def _node(
        self, name: str, family: type[Family], shape: tuple[int, ...], dimension: int | None, given: bool
    ) -> Node:
        if given:
            if not isinstance(name, str) or not name:
                raise ModelError("a variable needs a name, for example model.gaussian('w', ...)")
            if name in self._names:
                raise ModelError(f"a variable called {name!r} exists already; choose another name")
        else:
            base, k = name, 2
            while name in self._names:
                name, k = f"{base} #{k}", k + 1
        self._names.add(name)
        node = Node(len(self.graph.nodes), name, family, shape, dimension, given)
        self.graph.nodes.append(node)
        return node

    def _plate(
        self, name: str, factor: Factor, ports: dict[str, Any], data: dict[str, Any], shape: Any = None
    ) -> Plate:
        """One plate over the broadcast shape of its ports; constants at a family's port become point masses."""
        label = f"factor {factor.name!r} ({name})"
        shapes = [v.shape for v in ports.values() if isinstance(v, Variable)]
        shapes += [
            self._data_shape(factor, port, v) for port, v in {**ports, **data}.items() if not isinstance(v, Variable)
        ]
        try:
            full = np.broadcast_shapes(*shapes, *(() if shape is None else (shape,)))
        except ValueError:
            told = {p: getattr(v, "shape", np.shape(v)) for p, v in {**ports, **data}.items()}
            raise ModelError(f"{label}: shapes do not fit together: {told}") from None
        edges: dict[str, Edge] = {}
        constants: dict[str, Any] = {}
        for port, value in ports.items():
            if isinstance(value, Variable):
                if value.model is not self:
                    raise ModelError(f"{label}: variable {value.name!r} belongs to another model")
                edges[port] = _edge(value, full)
            else:
                kind = factor.families[port][0]
                constants[port] = kind.point_mass(np.broadcast_to(value, full).reshape(-1))  # type: ignore[attr-defined]
        for port, value in data.items():
            value = np.asarray(value)
            rank = value.ndim - len(self._data_shape(factor, port, value))
            event = value.shape[value.ndim - rank :]
            constants[port] = np.ascontiguousarray(np.broadcast_to(value, (*full, *event)).reshape(-1, *event))
        plate = Plate(len(self.graph.plates), factor.name, factor, full, edges, constants)
        self.graph.plates.append(plate)
        return plate

    @staticmethod
    def _data_shape(factor: Factor, port: str, value: Any) -> tuple[int, ...]:
        rank = factor.data_ranks.get(port, 0)
        shape = np.shape(value)
        return shape[: len(shape) - rank]

    def _derive(
        self,
        label: str,
        factor: Factor,
        ports: dict[str, Any],
        data: dict[str, Any],
        family: type[Family],
        dimension: int | None = None,
        shape: Any = None,
    ) -> Variable:
        """A node that is the result of an expression, and the plate that makes it."""
        return self._attach_child(label, factor, ports, data, family, dimension, shape, given=False)

    def _child(
        self,
        name: str,
        factor: Factor,
        ports: dict[str, Any],
        data: dict[str, Any],
        family: type[Family],
        size: Any,
        observed: Any,
        missing: Any,
        dimension: int | None = None,
    ) -> Variable:
        """A named node whose parents are variables."""
        shape = None if size is None else _as_shape(name, size)
        if observed is not None and shape is None:
            event = 1 if family.point_rank else 0
            seen = np.shape(observed)
            shape = seen[: len(seen) - event]
        x = self._attach_child(name, factor, ports, data, family, dimension, shape, given=True)
        if observed is not None:
            x.node.observed = check_observed(name, family, x.shape, dimension, observed, missing)
        return x

    def _attach_child(
        self,
        name: str,
        factor: Factor,
        ports: dict[str, Any],
        data: dict[str, Any],
        family: type[Family],
        dimension: int | None,
        shape: Any,
        given: bool,
    ) -> Variable:
        n_plates = len(self.graph.plates)
        plate = self._plate(name, factor, ports, data, shape)
        try:
            node = self._node(name, family, plate.shape, dimension, given)
        except ModelError:
            del self.graph.plates[n_plates:]
            raise
        plate.edges[factor.child] = Edge(node.position, None, True)
        return Variable(self, node)

    def _likelihood(self, name: str, factor: Factor, port: str, x: Variable, data: dict[str, np.ndarray]) -> None:
        """Counts observed on a variable; entries where the count is missing say nothing and are left out."""
        if name in self._names:
            raise ModelError(f"a variable called {name!r} exists already; choose another name")
        counts = data["count"]
        try:
            full = np.broadcast_shapes(x.shape, *(v.shape for v in data.values()))
        except ValueError:
            raise ModelError(
                f"variable {name!r}: observed has shape {counts.shape}, but {x.name!r} has shape {x.shape}"
            ) from None
        seen = ~np.isnan(np.broadcast_to(counts, full))
        self._names.add(name)
        part = Variable(self, x.node, np.broadcast_to(x.entries(), full)[seen]) if not seen.all() else x
        if not seen.all():
            data = {k: np.broadcast_to(v, full)[seen] for k, v in data.items()}
        self._plate(name, factor, {port: part}, data)

    def _from_parameters(
        self, name: str, family: Any, parameters: tuple[np.ndarray, ...], size: Any, observed: Any, missing: Any
    ) -> Variable:
        try:
            plate = np.broadcast_shapes(*(p.shape for p in parameters))
        except ValueError:
            raise ModelError(
                f"variable {name!r}: parameters of shapes {[p.shape for p in parameters]} do not fit together"
            ) from None
        if observed is not None and size is None:
            plate = np.broadcast_shapes(plate, np.shape(observed)) if plate == () else plate
        shape = self._shape(name, plate, size)
        message = family(*(np.broadcast_to(p, shape) for p in parameters))
        return self._with_prior(name, message, shape, None, observed, missing)

    def _from_message(
        self, name: str, message: Family, families: tuple[type[Family], ...], size: Any, observed: Any, missing: Any
    ) -> Variable:
        if not isinstance(message, families):
            wanted = " or ".join(f.__name__ for f in families)
            raise UnsupportedError(
                f"variable {name!r}: a {type(message).__name__} message cannot be its prior; give a {wanted}"
            )
        if not np.all(message.proper):
            raise ModelError(f"variable {name!r}: its prior message is improper; multiply it with a proper one first")
        shape = self._shape(name, message.shape, size)
        event = message.naturals[0].shape[len(message.shape) :]
        return self._with_prior(
            name, message.broadcast_to(shape), shape, event[0] if event else None, observed, missing
        )

    def _with_prior(
        self, name: str, message: Family, shape: tuple[int, ...], dimension: int | None, observed: Any, missing: Any
    ) -> Variable:
        seen = None
        if observed is not None:
            seen = check_observed(name, type(message), shape, dimension, observed, missing)
        node = self._node(name, type(message), shape, dimension, given=True)
        node.observed = seen
        x = Variable(self, node)
        self._plate(name, Prior(message.reshape((node.size,))), {"x": x}, {})
        return x

    def _shape(self, name: str, plate: tuple[int, ...], size: Any) -> tuple[int, ...]:
        if size is None:
            return plate
        shape = _as_shape(name, size)
        try:
            fits = np.broadcast_shapes(plate, shape) == shape
        except ValueError:
            fits = False
        if not fits:
            raise ModelError(f"variable {name!r}: its parameters have shape {plate}, which does not fit size={size}")
        return shape

    def _want(self, name: str, what: str, x: Any, families: Any, hint: str = "") -> None:
        families = families if isinstance(families, tuple) else (families,)
        wanted = " or ".join(f.__name__ for f in families)
        if not isinstance(x, Variable):
            raise ModelError(f"{name!r}: its {what} must be a {wanted} variable, not {type(x).__name__}")
        if x.family not in families:
            raise UnsupportedError(
                f"{name!r}: its {what} must be a {wanted} variable, but {x.name!r} is {x.family.__name__}{hint}; "
                "heliograph.supported() lists every combination"
            )

    def _as_gaussian(self, name: str, x: Any) -> Variable:
        """A Gaussian variable; a plain number becomes an observed one."""
        if isinstance(x, Variable):
            self._want(name, "argument", x, Gaussian)
            return x
        value = check_number(name, "argument", x)
        node = self._node(
            f"constant {value}" if value.ndim == 0 else "constant", Gaussian, value.shape, None, given=False
        )
        node.observed = Gaussian.point_mass(value.reshape(-1))
        return Variable(self, node)


def _as_shape(name: str, size: Any) -> tuple[int, ...]:
    shape = tuple(size) if isinstance(size, (tuple, list)) else (size,)
    if not all(isinstance(n, (int, np.integer)) and n > 0 for n in shape):
        raise ModelError(f"variable {name!r}: size must be a positive whole number or a tuple of them, not {size!r}")
    return tuple(int(n) for n in shape)


def _edge(x: Variable, shape: tuple[int, ...]) -> Edge:
    """How a variable meets a plate of that shape."""
    if x.index is None and x.shape == shape:
        return Edge(x.node.position, None, True)
    index = np.broadcast_to(x.entries(), shape).reshape(-1)
    if index.size == x.node.size and np.array_equal(index, np.arange(x.node.size)):
        return Edge(x.node.position, None, True)
    return Edge(x.node.position, np.ascontiguousarray(index), len(np.unique(index)) == index.size)
