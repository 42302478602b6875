"""The modelling language: a word for every kind of variable, and what is said about variables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from heliograph.errors import ContradictionError, ModelError, UnsupportedError
from heliograph.factors import (
    BernoulliBeta,
    Binomial,
    CategoricalDirichlet,
    ConditionalTable,
    Equal,
    Factor,
    GammaRate,
    GaussianFactor,
    GaussianPrecision,
    LogisticBernoulli,
    MultivariateGaussianFactor,
    Poisson,
    PoissonLog,
    Prior,
    ProbitBernoulli,
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
from heliograph.graph.affine import Affine, take
from heliograph.graph.check import (
    check_counts,
    check_covariance,
    check_number,
    check_observed,
    check_positive,
    check_probability,
)
from heliograph.graph.contradictions import Limits, Statement, bounds_of_event, check_plate, check_possible
from heliograph.graph.draw import render_dot, render_png, render_summary
from heliograph.graph.expressions import Expressions
from heliograph.graph.mixture import build_mixture
from heliograph.graph.records import Node
from heliograph.graph.support import shared_nodes
from heliograph.graph.transaction import building
from heliograph.graph.variable import Variable

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Builder"]


class Builder(Expressions):
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
        super().__init__()
        self._limits = Limits()
        self._statements: list[tuple[Node, Statement]] = []  # and the node whose observed values say so

    # ---- variables ----------------------------------------------------------------------------------------------
    @building
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

    @building
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

    @building
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

    @building
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

    @building
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

    @building
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

    @building
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

    @building
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

    @building
    def variable(self, name: str, prior: Family, *, observed: Any = None, missing: Any = None) -> Variable:
        """A variable of any family whose prior is a message, for example a posterior of an earlier batch."""
        return self._from_message(name, prior, (Family,), None, observed, missing)

    @building
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

    @building
    def constrain(self, event: Variable) -> None:
        """Say that an event such as ``a > b`` happened."""
        if not isinstance(event, Variable) or event.family is not Bernoulli:
            raise ModelError("constrain takes an event such as a > b, abs(d) < 1 or model.between(x, lower, upper)")
        entries = np.unique(event.entries().ravel())
        values = np.full(event.node.size, np.nan)
        if event.node.observed is not None:
            seen = event.node.observed
            values = values if seen.point is None else seen.point.copy()
            if (~np.isnan(values[entries])).any():
                raise ModelError(f"the event {event.name!r} is observed already")
        values[entries] = 1.0
        self._set_observed(event.node, Bernoulli.point_mass(values))
        for statement in bounds_of_event(self.graph, event.node, entries, True):
            self._limit(event.node, statement)
        check_plate(self.graph, event.node.maker)

    @building
    def equal(self, a: Variable, b: Variable) -> None:
        """Say that two variables of one family are the same."""
        for x in (a, b):
            if not isinstance(x, Variable):
                raise ModelError(
                    f"equal takes two variables, not {type(x).__name__}; observe a value with model.observe"
                )
        label = f"{a.name} = {b.name}"
        if a.family is not b.family or a.node.dimension != b.node.dimension:
            raise UnsupportedError(
                f"{a.name!r} ({a.family.__name__}) cannot equal {b.name!r} ({b.family.__name__}): "
                "both must have one family"
            )
        shape = self._fit(label, a.shape, b.shape)
        parts = [(x.node, np.broadcast_to(x.entries(), shape).reshape(-1)) for x in (a, b)]
        if a.family is Gaussian and shared_nodes(parts):
            self._equal_to_itself(label, self._subtract(a, b))
        else:
            self._plate(label, Equal(), {"a": a, "b": b}, {})

    def _equal_to_itself(self, label: str, gap: Variable) -> None:
        """Two expressions of the same quantities are equal: what is left of their difference is 0."""
        known = self._known(gap)
        known = np.full(gap.size, np.nan) if known is None else known
        if np.any(~np.isnan(known) & (known != 0)):
            raise ContradictionError(
                f"{label}: the two sides differ by {known[known != 0][0]:g}, whatever the variables are"
            )
        if not np.isnan(known).any():
            raise ModelError(f"{label}: both sides are the same random quantity, so this says nothing; leave it out")
        self._state(gap, np.zeros(gap.shape), None)

    @building
    def attach(self, x: Variable, message: Family) -> None:
        """Soft evidence: multiply any message of the variable's own family into it."""
        if not isinstance(x, Variable):
            raise ModelError(f"attach takes a variable and a message, not {type(x).__name__}")
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
        check_plate(self.graph, self._plate(f"evidence on {x.name}", Prior(message.reshape((x.size,))), {"x": x}, {}))

    @building
    def observe(self, x: Variable, values: Any, missing: Any = None) -> None:
        """Set the observed values of a whole variable after it was made."""
        if not isinstance(x, Variable):
            raise ModelError(f"observe takes a variable and its values, not {type(x).__name__}")
        if x.index is not None:
            raise ModelError(f"variable {x.name!r}: observe the whole variable, with NaN where it is missing")
        self._state(x, values, missing)

    def _state(self, x: Variable, values: Any, missing: Any) -> None:
        """Observe a variable, and see whether that can be true beside everything else that was said."""
        node = x.node
        seen = check_observed(x.name, x.family, x.shape, node.dimension, values, missing)
        self._place(node)
        constant = self._known(x)
        if constant is not None and not np.isnan(constant).all():
            seen = seen.point_mass(_with_constants(x.name, seen, constant))  # type: ignore[attr-defined]
        again = node.observed is not None
        self._set_observed(node, seen)
        check_possible(self.graph, node)
        if again or node.made is None:
            self._reconsider(node)
        self._limit_by_value(node)

    # ---- what cannot be true together ---------------------------------------------------------------------------
    def _limit(self, node: Node, statement: Statement) -> None:
        """Narrow what is left of the variables by a statement that the observed values of `node` make."""
        self._limits.add(statement, self._record)
        self._statements.append((node, statement))
        self._record(self._statements.pop)

    def _limit_by_value(self, node: Node) -> None:
        """What the observed values of an expression or of an event say of the variables that it is made of."""
        seen = node.observed
        if seen is None or seen.point is None:
            return
        if node.family is Bernoulli:
            for happened in (True, False):
                entries = np.flatnonzero(seen.point == happened)
                for statement in bounds_of_event(self.graph, node, entries, happened) if entries.size else ():
                    self._limit(node, statement)
        elif node.family is Gaussian and isinstance(node.made, Affine):
            rows = np.flatnonzero(~np.isnan(seen.point) & ~node.made.constant_rows)
            value = seen.point[rows]
            text = f"{node.name} = {value[0]:g}" if rows.size == 1 else f"{node.name} = its observed values"
            self._limit(node, Statement(text, take(node.made, rows), value, value))

    def _reconsider(self, node: Node) -> None:
        """Draw all conclusions anew: the values of a node have changed, and with them what other statements say."""
        before = self._limits, self._statements
        self._limits, self._statements = Limits(), []

        def back() -> None:
            self._limits, self._statements = before

        self._record(back)
        for source, statement in before[1]:
            if source is not node:
                self._limit(source, statement)

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


def _with_constants(name: str, seen: Family, constant: np.ndarray) -> np.ndarray:
    """Observed values of an expression together with the entries that are constants; these cannot be anything else."""
    values = np.full(constant.shape, np.nan) if seen.point is None else seen.point
    clash = ~np.isnan(values) & ~np.isnan(constant) & (values != constant)
    if clash.any():
        raise ContradictionError(
            f"variable {name!r}: the value {values[clash][0]:g} was observed, but it is always {constant[clash][0]:g}"
        )
    return np.where(np.isnan(constant), values, constant)
