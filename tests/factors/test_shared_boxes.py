"""One black box in several threads, copies and pickles."""

from __future__ import annotations

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import heliograph as hg


def link(z):
    return 1 / (1 + np.exp(-z))


def _problem(box, seed):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((60, 3))
    seen = rng.random(60) < link(x @ np.ones(3))
    models = []
    for learned in (True, False):
        model = hg.Model()
        w = model.gaussian("w", np.zeros(3), covariance=np.eye(3))
        if learned:
            model.bernoulli("y", box(x @ w), observed=seen)
        else:
            model.bernoulli("y", logit=x @ w, observed=seen)
        models.append(model)
    return models


def test_runs_in_several_threads_learn_one_after_the_other():
    box = hg.factor(output=hg.Beta)(link)
    problems = [_problem(box, seed) for seed in range(6)]
    with ThreadPoolExecutor(6) as threads:
        found = list(threads.map(lambda models: models[0].infer(), problems))
    for posterior, (_, exact) in zip(found, problems, strict=True):
        assert float(exact.infer()["w"].kl(posterior["w"])) < 2e-3


def test_a_box_that_has_another_name_than_its_function_can_be_pickled_with_its_model():
    box = hg.factor(output=hg.Beta)(link)
    model, exact = _problem(box, 0)
    posterior = model.infer()
    again = pickle.loads(pickle.dumps(model)).infer()
    kept = pickle.loads(pickle.dumps(posterior))
    for belief in (again["w"], kept["w"]):
        assert float(exact.infer()["w"].kl(belief)) < 1e-3
    assert copy.copy(box) is box and copy.deepcopy(box) is box  # what it learned is shared
