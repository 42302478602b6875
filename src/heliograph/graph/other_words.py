"""Words of other libraries, and what they are called here."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["no_attribute", "no_word"]

_HERE = {
    "normal": "gaussian",
    "multivariate_normal": "gaussian(..., covariance=)",
    "mv_normal": "gaussian(..., covariance=)",
    "halfnormal": "half_normal",
    "halfcauchy": "half_cauchy",
    "lognormal": "log_normal",
    "studentt": "student_t",
    "student": "student_t",
    "inverse_gamma": "gamma, as precision=",
    "lkj_cholesky": "lkj",
    "inverse_wishart": "wishart, as precision=",
    "categorical_logits": "categorical(..., logits=)",
    "discrete": "categorical",
    "cauchy": "student_t(..., dof=1)",
    "deterministic": "a plain expression, such as a + b * x",
    "sample": "infer, and then posterior.sample",
    "fit": "infer",
    "potential": "attach or constrain",
    "factor": "attach or constrain",
    "gaussian_process": "gp",
    "random_walk": "chain",
    "truncated_normal": "truncated_gaussian",
    "truncated": "truncated_gaussian",
    "beta_binomial": "beta(name, mean=, concentration=) as p of a binomial",
    "dirichlet_multinomial": "dirichlet as p of a multinomial",
    "hurdle_poisson": "mixture with a function of k",
    "zero_inflated_binomial": "mixture with a function of k",
    "zero_inflated_negative_binomial": "mixture with a function of k",
    "ordered_logistic": "ordinal(..., link='logit')",
    "ordered_probit": "ordinal",
    "zero_inflated_poisson": "mixture with a function of k",
}


def no_word(name: str) -> str:
    """The sentence for a word that a model does not have."""
    plain = name.lower().replace("_", "")
    here = next((here for word, here in _HERE.items() if word.replace("_", "") == plain), None)
    there = f"; here it is called {here}" if here else ""
    return f"a model has no word {name!r}{there}" + ("" if here else "; docs/reference.md lists them all")


def no_attribute(self: Any, name: str) -> NoReturn:
    """What a model does for an attribute that it does not have."""
    raise AttributeError(no_word(name))
