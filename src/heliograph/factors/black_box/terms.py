"""A black box and a term that is added to its output: ``c + f(a, b)`` as one function of a, b and c.

Where c depends on the inputs, as it does in a regression with an offset, messages between ``f(a, b)`` and the sum would treat
them as independent. As inputs of one function they come with their joint cavity.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from heliograph.factors.black_box.box import BlackBox
from heliograph.families import Gaussian

__all__ = ["TERMS", "BoxWithTerm"]

TERMS: dict[str, tuple[float, float]] = {  # name of the new input -> signs of the function and of that input
    "added": (1.0, 1.0),
    "subtracted": (1.0, -1.0),
    "minuend": (-1.0, 1.0),
}


class BoxWithTerm(BlackBox):
    """A black box with one more input c, whose output is ``f + c``, ``f - c`` or ``c - f``.

    What it learns is kept with the box, under the name of the new port.

    >>> from heliograph.factors.black_box import factor
    >>> @factor(output=Gaussian)
    ... def square(x):
    ...     return x**2
    >>> made = BoxWithTerm(square, "minuend")
    >>> made.ports, made.sampler.function(x=3.0, minuend=1.0)
    (('x', 'minuend', 'out'), -8.0)
    """

    def __init__(self, box: BlackBox, port: str) -> None:
        self.box, self.term = box, port
        sampler = box.sampler
        super().__init__(
            sampler._replace(
                function=_WithTerm(sampler.function, port),
                inputs=(*sampler.inputs, port),
                log_density=None,
                derivative=None,
            ),
            dimension=box.dimension,
            data_ranks=box.data_ranks,
            oracle=box.oracle,
        )
        vars(self)["families"] = {**vars(self)["families"], port: (Gaussian,)}
        self.form_operators = box.form_operators
        self.operators = box.form_operators.setdefault((port,), {})
        self.account = box.account
        self.root, self.form = box.root, (*box.form, port)
        self.form_values = box.form_values

    def __reduce__(self) -> Any:
        """From the box, which is found by its name."""
        return BoxWithTerm, (self.box, self.term)


class _WithTerm:
    """The function and its term; it can be sent to a worker if the function can."""

    def __init__(self, function: Callable[..., Any], port: str) -> None:
        self.function, self.port = function, port
        self.__name__ = getattr(function, "__name__", "factor")
        self.__qualname__ = getattr(function, "__qualname__", "factor")
        self.__doc__ = function.__doc__

    def __call__(self, **given: Any) -> Any:
        term = given.pop(self.port)
        own, other = TERMS[self.port]
        return own * self.function(**given) + other * term
