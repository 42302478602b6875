"""The modelling language as a user sees it: one class with a method for every kind of variable and statement.

Most methods are functions of `graph.language`, a file per subject, which say what they take, promise and do. `word` and
`statement` make methods of them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heliograph.errors import ModelError
from heliograph.factors import Factor
from heliograph.families import Family
from heliograph.graph.data import Data
from heliograph.graph.draft import Draft
from heliograph.graph.draw import draw_graph, render_dot, render_html, render_line, render_png, render_summary
from heliograph.graph.gates import gate_lines, when
from heliograph.graph.hyper_words import flat, half_cauchy, half_normal, lkj, log_normal, wishart
from heliograph.graph.language import (
    boxes,
    chains,
    continuous,
    counts,
    discrete,
    functions,
    lifetimes,
    linear,
    noise,
    ordered,
    processes,
    statements,
)
from heliograph.graph.language.children import Entries
from heliograph.graph.language.mixture import mixture
from heliograph.graph.observing import give, name_data
from heliograph.graph.other_words import no_attribute
from heliograph.graph.records import Graph
from heliograph.graph.variable import Variable, build, state
from heliograph.graph.words import statement, word

__all__ = ["Builder"]


class Builder:
    """A factor graph under construction: the modelling language.

    Every method takes variables of this model only, and either succeeds or leaves the model as it was. Methods that
    make variables share these arguments:

    - `name` is the name of the new variable, and no other may have it;
    - `size` is its shape, a whole number or a tuple;
    - `observed` holds its values, with NaN (or True in `missing`) where a value is missing.

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
    gaussian = word(continuous.gaussian, "variance", "sd")
    gamma = word(continuous.gamma)
    beta = word(continuous.beta, "concentration")
    variable = word(continuous.variable)
    student_t = word(noise.student_t, "scale", "dof")
    laplace = word(noise.laplace, "scale")
    uniform = word(noise.uniform)
    truncated_gaussian = statement(lifetimes.truncated_gaussian, "variance", "sd")

    # ---- structures: what arranges variables ----------------------------------------------------------------------
    mixture = word(mixture, "variance", "sd")
    gp = word(processes.gp)
    when = when

    def chain(
        self,
        name: str,
        n: int,
        start: Family | Callable[[], Any],
        step: Callable[..., Any],
        *,
        observed: Any = None,
        missing: Any = None,
    ) -> Variable:
        """A variable of n entries in a row, each made from the one before (or the several before) by `step`.

        Both `start` and `step` call a builder with the chain's name. They are called once, for all entries:
        ``model.chain("x", 1000, hg.Gaussian(0.0, 1.0), lambda before: model.gaussian("x", 0.9 * before,
        variance=0.19))``.

        Parameters
        ----------
        name
            The name of the variable.
        n
            The number of entries, along its first axis.
        start
            The distribution of the first entry: a message, or a function that makes it.
        step
            A function of the entry before, or of the several entries before: as many as it has arguments, the
            latest first.
        observed, missing
            Observed values, with NaN or a mask where they are missing.
        """
        entries = Entries(None, observed, missing)
        return build(self, chains.chain, name, n, start, step, lambda x: Variable(self, x.node, x.index), entries)

    # ---- hyper-parameters: numbers to be integrated over --------------------------------------------------------
    half_normal, half_cauchy, log_normal, flat = half_normal, half_cauchy, log_normal, flat
    lkj, wishart = lkj, wishart

    # ---- discrete variables, counts and lifetimes -----------------------------------------------------------------
    bernoulli = word(discrete.bernoulli)
    categorical = word(discrete.categorical)
    dirichlet = word(discrete.dirichlet)
    ordinal = word(ordered.ordinal)
    poisson = statement(counts.poisson)
    binomial = statement(counts.binomial)
    negative_binomial = statement(counts.negative_binomial, "dispersion")
    multinomial = statement(counts.multinomial)
    exponential = word(lifetimes.exponential)
    weibull = statement(lifetimes.weibull, "shape")

    # ---- variables from variables -------------------------------------------------------------------------------
    exp, log, sigmoid = word(functions.exp), word(functions.log), word(functions.sigmoid)
    maximum, minimum = word(functions.maximum), word(functions.minimum)
    between, select, stack = word(functions.between), word(functions.select), word(linear.stack)

    def _black_box(self, factor: Factor, arguments: dict[str, Any], observed: Any = None) -> Any:
        """The output of a black-box factor (a tuple of several), which calls this when it is called on variables."""
        if len(factor.children) == 1:
            return build(self, boxes.black_box, factor, arguments, observed)
        seen = boxes.observed_outputs(factor, observed)
        first = build(self, boxes.black_box, factor, arguments, seen[0])
        rest = zip(factor.children[1:], seen[1:], strict=True)
        return (first, *(build(self, boxes.further_output, first, port, values) for port, values in rest))

    # ---- statements ---------------------------------------------------------------------------------------------
    constrain = statement(statements.constrain)
    equal = statement(statements.equal)
    attach = statement(statements.attach)

    def data(self, name: str, values: Any) -> Data:
        """Name an array, so that ``model.observe(name=...)`` can replace it by another one, of any length.

        The result is used like the array: ``X @ w``, ``np.log(X)``, ``X[:, 0]``. Pass its ``rows`` as ``size=``
        where a variable has one entry per row, so that its length follows that of the data.

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
        """Give observed values, or new data, to a model that has been written.

        ``observe(y, values)`` sets the values of one variable. ``observe(y=..., X=...)`` gives new values, of any
        length, to observed variables and to arrays named with `data`; the result is the same as writing the whole
        model again with them. ``observe(y=None)`` makes y unobserved. Posteriors computed before stay as they are.

        Parameters
        ----------
        variable, values, missing
            One variable with its values, NaN or a mask where one is missing.
        **data
            New values by the name of an observed variable, or of an array.
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
