"""The modelling language as a user sees it: one class with a method for every kind of variable and statement.

What each method does is in `graph.language`, a file per subject; here are its name, its arguments and what it promises.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heliograph.errors import ModelError
from heliograph.factors import Factor
from heliograph.families import Family
from heliograph.graph import count_words, noise_words, structures
from heliograph.graph.data import Data
from heliograph.graph.draft import Draft
from heliograph.graph.draw import draw_graph, render_dot, render_html, render_line, render_png, render_summary
from heliograph.graph.gates import gate_lines, when
from heliograph.graph.hyper_words import flat, half_cauchy, half_normal, lkj, log_normal, wishart
from heliograph.graph.language import continuous, counts, discrete, functions, linear, noise, statements
from heliograph.graph.language.children import Entries, from_message
from heliograph.graph.language.continuous import Around
from heliograph.graph.language.noise import Censoring
from heliograph.graph.language.spread import Spread
from heliograph.graph.observing import give, name_data
from heliograph.graph.other_words import as_known, no_attribute
from heliograph.graph.quantity import Argument
from heliograph.graph.records import Graph
from heliograph.graph.structures import chain, gp, mixture
from heliograph.graph.variable import Variable, build, state

__all__ = ["Builder"]


class Builder:
    """A factor graph under construction.

    Every method takes variables of this model only, and either succeeds or leaves the model as it was. Where variables
    are made, `size` is their shape (a whole number or a tuple) and `observed` holds their values, with NaN in it, or
    True in `missing`, where a value is missing.

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
        self.draft = Draft()  # for the functions of `graph.language`, and not for users

    @property
    def graph(self) -> Graph:
        """Nodes and plates so far."""
        return self.draft.graph

    # ---- continuous variables -----------------------------------------------------------------------------------
    def gaussian(
        self,
        name: str,
        mean: Argument = 0.0,
        variance: Argument | None = None,
        *,
        sd: Argument | None = None,
        precision: Argument | None = None,
        covariance: Any = None,
        size: Any = None,
        observed: Any = None,
        missing: Any = None,
        censored: Any = None,
        until: Any = None,
    ) -> Variable:
        """A Gaussian variable: scalars with `variance`, `sd` or `precision`, a vector with `covariance`.

        `mean` is a number, an array, a variable, or a Gaussian message (for example a posterior) that becomes the prior.
        `precision` may be a Gamma variable, or a matrix (of numbers, or a `wishart`) for a vector. Observed values may be
        `censored` or known up to `until`, as in `exponential`.
        """
        spread = Spread(variance, sd, precision, covariance)
        if censored is not None or until is not None:
            entries = Entries(size, observed, missing)
            return build(self, noise.censored_gaussian, name, mean, spread, entries, Censoring(censored, until))
        return build(self, continuous.gaussian, name, mean, spread, Entries(size, observed, missing))

    def gamma(
        self,
        name: str,
        shape: Argument,
        rate: Argument | None = None,
        *,
        size: Any = None,
        observed: Any = None,
        missing: Any = None,
    ) -> Variable:
        """A Gamma variable (shape, rate); `rate` may be a Gamma variable (compound gamma)."""
        return build(self, continuous.gamma, name, shape, rate, Entries(size, observed, missing))

    def beta(
        self,
        name: str,
        a: Argument | None = None,
        b: Argument | None = None,
        *,
        mean: Argument | None = None,
        concentration: Any = None,
        size: Any = None,
        observed: Any = None,
        missing: Any = None,
    ) -> Variable:
        """A Beta variable with fixed `a` and `b`, or with a `mean` (a number or a Beta variable) and a `concentration`.

        A mean m and a concentration k are ``a = m k`` and ``b = (1 - m) k``; k is a number or a hyper-parameter.
        """
        around = Around(a, b, mean, as_known(self, concentration))
        return build(self, continuous.beta, name, around, Entries(size, observed, missing))

    def variable(self, name: str, prior: Family, *, observed: Any = None, missing: Any = None) -> Variable:
        """A variable of any family whose prior is a message, for example a posterior of an earlier batch."""
        return build(self, from_message, name, prior, (Family,), Entries(None, observed, missing))

    # ---- structures: what arranges variables ----------------------------------------------------------------------
    chain = chain
    mixture = mixture
    when = when

    # ---- hyper-parameters: numbers to be integrated over --------------------------------------------------------
    half_normal, half_cauchy, log_normal, flat = half_normal, half_cauchy, log_normal, flat
    lkj, wishart, gp = lkj, wishart, gp

    # ---- discrete variables and counts --------------------------------------------------------------------------
    def bernoulli(
        self,
        name: str,
        p: Argument | None = None,
        *,
        logit: Variable | None = None,
        probit: Variable | None = None,
        given: Variable | Sequence[Variable] | None = None,
        size: Any = None,
        observed: Any = None,
        missing: Any = None,
    ) -> Variable:
        """A Bernoulli variable from a probability `p` (number or Beta variable), `logit=z` or `probit=z` (Gaussian).

        With `given`, a Bernoulli or Categorical variable or several, `p` is a table of numbers with an axis for each of them.
        """
        return build(self, discrete.bernoulli, name, p, logit, probit, given, Entries(size, observed, missing))

    def categorical(
        self,
        name: str,
        p: Argument | None = None,
        *,
        given: Variable | Sequence[Variable] | None = None,
        logits: Variable | None = None,
        size: Any = None,
        observed: Any = None,
        missing: Any = None,
    ) -> Variable:
        """A Categorical variable from probabilities (an array whose last axis sums to 1) or a Dirichlet variable.

        With `given`, a Categorical or Bernoulli variable, `p` is a table whose row k holds the probabilities when `given` is
        k; with several variables it has an axis for each of them before its last. With `logits`, Gaussian scores along the
        last axis, probabilities are their softmax.
        """
        entries = Entries(size, observed, missing)
        if logits is not None and p is None and given is None:
            return build(self, counts.softmax, name, logits, entries)
        if p is None or logits is not None:
            raise ModelError(f"variable {name!r}: a Categorical needs exactly one of p and logits=")
        return build(self, discrete.categorical, name, p, given, entries)

    def dirichlet(
        self, name: str, concentration: Argument, *, size: Any = None, observed: Any = None, missing: Any = None
    ) -> Variable:
        """A Dirichlet variable with fixed concentration (last axis: categories)."""
        return build(self, discrete.dirichlet, name, concentration, Entries(size, observed, missing))

    # ---- noise, counts and lifetimes ----------------------------------------------------------------------------
    student_t, laplace, uniform = noise_words.student_t, noise_words.laplace, noise_words.uniform
    exponential, weibull = noise_words.exponential, noise_words.weibull
    truncated_gaussian = noise_words.truncated_gaussian
    poisson, binomial, negative_binomial = count_words.poisson, count_words.binomial, count_words.negative_binomial
    multinomial, ordinal = count_words.multinomial, count_words.ordinal

    # ---- variables from variables -------------------------------------------------------------------------------
    exp, log, sigmoid = structures.exp, structures.log, structures.sigmoid
    maximum, minimum = structures.maximum, structures.minimum

    def between(self, x: Variable, lower: Any, upper: Any) -> Variable:
        """The event ``lower < x < upper`` as a Bernoulli variable; the bounds may be infinite."""
        return build(self, functions.between, x, lower, upper)

    def select(self, switch: Variable, a: Argument, b: Argument) -> Variable:
        """``a`` where the Bernoulli `switch` is 1, else ``b``."""
        return build(self, functions.select, switch, a, b)

    def stack(self, x: Variable) -> Variable:
        """The last axis of scalar Gaussian variables as one vector, so that their posterior is joint."""
        return build(self, linear.stack, x)

    def _black_box(self, factor: Factor, arguments: dict[str, Any], observed: Any = None) -> Any:
        """The output of a black-box factor (a tuple of several), which calls this when it is called on variables."""
        if len(factor.children) == 1:
            return build(self, functions.black_box, factor, arguments, observed)
        seen = functions.observed_outputs(factor, observed)
        first = build(self, functions.black_box, factor, arguments, seen[0])
        rest = zip(factor.children[1:], seen[1:], strict=True)
        return (first, *(build(self, functions.further_output, first, port, values) for port, values in rest))

    # ---- statements ---------------------------------------------------------------------------------------------
    def constrain(self, event: Variable) -> None:
        """State that an event such as ``a > b`` happened."""
        state(self, statements.constrain, event)

    def equal(self, a: Variable, b: Variable) -> None:
        """State that two variables of one family are the same."""
        state(self, statements.equal, a, b)

    def attach(self, x: Variable, message: Family) -> None:
        """Soft evidence: multiply any message of the variable's own family into it."""
        state(self, statements.attach, x, message)

    def data(self, name: str, values: Any) -> Data:
        """Name an array, so that ``model.observe(name=...)`` can give another one, of another length too.

        It is used like the array: ``X @ w``, ``np.log(X)``, ``X[:, 0]``. Its ``rows`` is the length as a ``size=`` that follows it.

        >>> model = Builder()
        >>> t = model.data("t", [0.0, 1.0, 2.0])
        >>> slope = model.gaussian("slope", 0.0, variance=1.0)
        >>> y = model.gaussian("y", slope * t, variance=1.0, observed=[0.1, 0.9, 2.1])
        >>> model.observe(t=[0.0, 1.0], y=[0.5, 1.5])
        >>> y
        Variable('y', Gaussian, shape=(2,))
        """
        return name_data(self.draft, name, values)

    def observe(
        self, variable: Variable | None = None, values: Any = None, missing: Any = None, /, **data: Any
    ) -> None:
        """Give observed values, or new data, to a model that is written already.

        ``observe(y, values)`` sets the values of one variable. ``observe(y=..., X=...)`` gives new values, of any length, to
        observed variables and to arrays named with `data`, and is the same as to write the whole model again with them;
        ``observe(y=None)`` makes y unobserved. Posteriors computed before stay as they are.
        """
        if variable is None and values is None:
            give(self, data)
            return
        if data.keys() - {"missing"}:
            raise ModelError("observe takes one variable and its values, or new data by name, but not both")
        state(self, statements.observe, variable, values, data.get("missing", missing))

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
        return render_summary(self.graph, self.draft.hypers, gate_lines(self))

    if not TYPE_CHECKING:  # for which every word would then be one
        __getattr__ = no_attribute

    def __repr__(self) -> str:
        return render_line(self.graph, gate_lines(self))

    def _repr_html_(self) -> str:
        return render_html(self.graph, gate_lines(self))

    def to_dot(self) -> str:
        """The graph in graphviz' language, plates as boxes."""
        return render_dot(self.graph)

    def plot(self, ax: Any = None) -> Any:
        """Draw the factor graph with matplotlib, parents above children; returns the axes."""
        return draw_graph(self.graph, ax)

    def to_png(self, path: str | Path) -> Path:
        """Draw the graph with graphviz' ``dot`` program, where it is installed."""
        return render_png(self.graph, path)
