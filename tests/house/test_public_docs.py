"""What `help` shows of the functions that a user calls: the parameters are listed where there are three or more."""

import inspect

import pytest

import heliograph as hg

ELSEWHERE = ("The arguments are those of `", "as `Posterior.predict` does")  # where another function lists them


def _functions():
    for name in hg.__all__:
        value = getattr(hg, name)
        if inspect.isfunction(value):
            yield name, value
    for kind in (hg.Model, hg.Posterior, hg.IntegratedPosterior, hg.GatedPosterior, hg.SavedPosterior, hg.Trace):
        for name, value in inspect.getmembers(kind, inspect.isfunction):
            if not name.startswith("_"):
                yield f"{kind.__name__}.{name}", value


FUNCTIONS = dict(_functions())


@pytest.mark.parametrize("name", FUNCTIONS)
def test_three_parameters_or_more_are_listed(name):
    taken = [p for p in inspect.signature(FUNCTIONS[name]).parameters if p not in ("self", "draft")]
    shown = inspect.getdoc(FUNCTIONS[name]) or ""
    if len(taken) < 3 or any(words in shown for words in ELSEWHERE):
        return
    _, heading, listed = shown.replace("Attributes\n", "Parameters\n").partition("Parameters\n")
    assert heading, f"help({name}) lists no parameters"
    assert not [p for p in taken if p not in listed], f"help({name}) leaves out parameters"
