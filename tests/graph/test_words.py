"""The keywords that most words share are declared once; users and their tools see them as if each word listed them."""

import inspect

import numpy as np
import pytest

import heliograph as hg

SIZED = [
    "gaussian",
    "gamma",
    "beta",
    "student_t",
    "laplace",
    "uniform",
    "bernoulli",
    "categorical",
    "dirichlet",
    "ordinal",
    "exponential",
]
SEEN = [
    "variable",
    "mixture",
    "truncated_gaussian",
    "poisson",
    "binomial",
    "negative_binomial",
    "multinomial",
    "weibull",
]


@pytest.mark.parametrize("word", SIZED + SEEN)
def test_a_misspelt_keyword_is_refused_by_its_name_before_anything_is_written(word):
    model = hg.Model()
    with pytest.raises(TypeError, match=rf"^{word}\(\) got an unexpected keyword argument 'oberved'$"):
        getattr(model, word)("x", 1.0, oberved=[1.0])
    assert not model.variables


@pytest.mark.parametrize("word", SIZED + SEEN)
def test_signatures_list_the_shared_keywords_one_by_one(word):
    parameters = inspect.signature(getattr(hg.Model, word)).parameters
    shared = [name for name in ("size", "observed", "missing") if name in parameters]
    assert shared == (["size", "observed", "missing"] if word in SIZED else ["observed", "missing"])
    assert all(parameters[name].kind is inspect.Parameter.KEYWORD_ONLY for name in shared)
    assert parameters["missing"].default is None
    assert not any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())


@pytest.mark.parametrize("word", SEEN)
def test_a_word_whose_shape_is_that_of_its_data_takes_no_size(word):
    with pytest.raises(TypeError, match="unexpected keyword argument 'size'"):
        getattr(hg.Model(), word)("x", 1.0, size=2)


def test_a_misspelt_keyword_of_a_component_is_refused_in_the_same_words():
    model = hg.Model()
    rate = model.gamma("rate", 1.0, [1.0, 0.05])
    which = model.categorical("which", [0.5, 0.5], size=2)
    with pytest.raises(TypeError, match=r"poisson\(\) got an unexpected keyword argument 'mising'"):
        model.mixture("y", which, lambda k: model.poisson("y", rate[k], mising=[True, False]), observed=[1, 30])


def test_a_model_takes_new_data_by_a_shared_keyword_that_was_left_out():
    def means(later):
        model = hg.Model()
        rate = model.gamma("rate", 2.0, 1.0)
        model.poisson("count", rate, **({} if later else {"observed": [3.0, 5.0]}))
        if later:
            model.observe(count=[3.0, 5.0])
        return model.infer()[rate].mean

    assert np.array_equal(means(later=True), means(later=False))
