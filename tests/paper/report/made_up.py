"""Results that nobody measured, for tests of the report."""

import numpy as np

from heliograph.paper.running.parts import Outcome

SEQUENCE = ("disagreement", "posterior_kl", "oracle_calls", "evaluations", "improper", "messages", "seconds",
            "seconds_oracle", "seconds_learning", "seconds_prediction", "seconds_rest")  # fmt: skip


def _row(n, error, kl, calls, seconds, names):
    row = {key: [0] * n for key in SEQUENCE}
    row |= {
        "disagreement": list(error),
        "posterior_kl": list(kl),
        "oracle_calls": list(calls),
        "seconds": list(seconds),
    }
    row |= {"evaluations": [2000 * c for c in calls], "messages": [50] * n, "names": names}
    row |= {"seconds_oracle": [0.5 * s for s in seconds], "seconds_rest": [0.5 * s for s in seconds]}
    row |= {"asked_per_sweep": [[c, 0] for c in calls]}
    return {**row, "total_oracle_calls": sum(calls), "total_evaluations": sum(row["evaluations"])}


def _trace(rng, n_problems):
    n = 100 * n_problems
    level = np.where(np.arange(n) < 30, np.nan, -8.8 + 0.1 * rng.standard_normal(n)).astype(np.float32)
    return {
        "log_variance": level,
        "asked": np.arange(n) < 40,
        "sweep": np.arange(n) % 10,
        "problem": np.arange(n) // 100,
    }


def _common(name, settings, complete=True):
    machine = {"system": "Linux x86_64", "cpus": 2, "python": "3.12.1", "versions": {"numpy": "2.0"}}
    told = {"experiment": name, "settings": {**settings, "seed": 3}, "size": "quick", "complete": complete}
    return {**told, "parts": [2, 2] if complete else [1, 2], "machine": machine}


def exp3(n=3):
    names = [f"problem {k + 1}" for k in range(n)]
    methods = {
        "exact": _row(n, [0.07] * n, [0.0] * n, [0] * n, [0.1] * n, names),
        "kjit (text)": _row(n, [0.071] * n, [0.5, 0.1, 0.2][:n], [400, 40, 4][:n], [4.0, 1.0, 0.5][:n], names),
        "sampling": _row(n, [0.07] * n, [0.01] * n, [100] * n, [20.0] * n, names),
        "neural": _row(n, [0.2] * n, [None, 1e30, 2.0][:n], [0] * n, [0.2] * n, names),
    }
    rng = np.random.default_rng(1)
    return Outcome(
        {**_common("exp3", {"particles": 2000, "sweeps": 2}), "methods": methods}, {"kjit (text)": _trace(rng, n)}
    )


def exp5():
    names = ["banknote", "blood_transfusion", "fertility", "ionosphere"]
    methods = {
        "exact": _row(4, [0.0307, 0.3492, 0.56, 0.1333], [0.0] * 4, [0] * 4, [0.1] * 4, names),
        "kjit (text)": _row(
            4, [0.0307, 0.31, 0.56, 0.1333], [0.1, 60.0, 0.1, 0.02], [500, 60, 5, 30], [4, 2, 1, 1], names
        ),
        "learned": _row(4, [0.0307, 0.3492, 0.56, 0.1333], [1e-5] * 4, [30, 5, 0, 3], [0.4] * 4, names),
        "sampling": _row(4, [0.0307, 0.35, 0.56, 0.1333], [0.1] * 4, [100] * 4, [8.0] * 4, names),
    }
    rng = np.random.default_rng(2)
    incoming = {
        "mean": rng.normal(size=80),
        "log_precision": rng.normal(size=80),
        "problem": np.repeat(np.arange(4), 20),
    }
    told = {**_common("exp5", {"splits": "given", "columns": {"kjit (text)": {"threshold": -9.0}}}), "methods": methods}
    return Outcome({**told, "datasets": names}, {"kjit (text)": _trace(rng, 4), "incoming": incoming})


def exp1():
    rng = np.random.default_rng(3)

    def row(mean):
        keys = {"mean_log_kl": mean, "sd_log_kl": 1.5, "p99_log_kl": mean + 3, "worst_log_kl": mean + 4}
        return {**keys, "seconds_training": 1.0, "seconds_prediction": 0.1, "chosen": None, "n_train": 9, "n_test": 9,
                "n_no_belief": 0}  # fmt: skip

    def kept(mean):
        four = np.ones(4)
        return {"log_kl": rng.normal(mean, 1.5, 300), "percentile": np.array([10.0, 50, 90, 99]), "true_mean": 0 * four,
                "true_variance": four, "predicted_mean": 0.1 * four, "predicted_variance": four,
                "example_log_kl": mean * four}  # fmt: skip

    exact = {
        "kjit (house)": -15.2,
        "kjit (program)": -8.9,
        "mean variance": -8.0,
        "sum of expected products": -1.2,
        "eslami forest": -7.0,
        "learned": -20.0,
    }
    sampled = {
        "kjit (house)": -9.0,
        "kjit (program)": -8.8,
        "mean variance": -6.5,
        "sum of expected products": -1.0,
        "eslami forest": -6.0,
        "learned": -9.1,
    }
    told = {
        **_common("exp1", {"n_train": 9}),
        "methods": {m: row(x) for m, x in exact.items()},
        "against": "exact",
        "against_sampled": {"methods": {m: row(x) for m, x in sampled.items()}, "label_noise": row(-9.2)},
    }
    series = {"exact": {m: kept(x) for m, x in exact.items()}, "sampled": {m: kept(x) for m, x in sampled.items()}}
    return Outcome(told, series)


def exp2():
    rng = np.random.default_rng(4)

    def row(tv, wrong):
        return {"total_variation": [tv, 2 * tv], "biggest_jump": [0.4, 0.8], "threshold": -8.5, "wrong_log_kl": -4.6,
                "certain_and_wrong": wrong, "n_certain": 90, "n_test": 100, "rank_correlation": 0.7,
                "uncertainty": "log predictive variance", "mean_log_uncertainty": [-5.0, -7.0],
                "mean_log_kl": -9.0, "train_mean_log_kl": -9.1, "certain_worst_log_kl": -5.0,
                "certain_above": {"0.01": 1}}  # fmt: skip

    m = np.linspace(-13, 13, 50)
    methods = {"kjit (text)": row(20.0, 0), "eslami forest": row(100.0, 7)}
    kept = {
        name: {"log_uncertainty": rng.normal(size=(2, 50)), "test_log_uncertainty": rng.normal(-9, 1, 100),
               "test_log_kl": rng.normal(-9, 1, 100), "train_log_uncertainty": rng.normal(-9, 1, 90),
               "train_log_kl": rng.normal(-9, 1, 90)}
        for name in methods
    }  # fmt: skip
    series = {"curves": {"mean": m, "log_precision": np.stack([0.02 * m + 2.6, -0.02 * m**2 + 1.6])}, "methods": kept,
              "training": {"mean": rng.normal(size=40), "log_precision": rng.normal(size=40)}}  # fmt: skip
    return Outcome({**_common("exp2", {"n_train": 9}), "methods": methods}, series)


def exp4(n=60):
    rng = np.random.default_rng(5)
    shape, rate = 5 + 50 * rng.random(n), np.exp(3 * rng.standard_normal(n))

    def row(calls):
        keys = dict.fromkeys(
            ("seconds", "seconds_oracle", "seconds_learning", "seconds_prediction", "seconds_rest"), 0.1
        )
        return {**keys, "correlation_log_shape": 1.0, "correlation_log_rate": 0.9999, "oracle_calls": calls,
                "oracle_calls_after": {"50": calls}, "worst_posterior_kl": 0.01, "mean_posterior_kl": 0.001, "improper": 0,
                "evaluations": 100, "seconds_when_asked": 0.1, "seconds_when_certain": None}  # fmt: skip

    methods = {"exact": row(0), "kjit (program)": row(28), "learned": row(20)}
    series = {
        m: {"shape": shape, "rate": rate, "asked": np.arange(n) < 20, "seconds": 0.01 + rng.random(n)} for m in methods
    }
    return Outcome({**_common("exp4", {"n_problems": n}), "methods": methods}, series)


def features():
    D = [50, 500, 5000]
    row = {
        "D": D,
        "mean_abs_error": [0.1 * (50 / d) ** 0.5 for d in D],
        "max_abs_error": [0.3] * 3,
        "frobenius": [1.0] * 3,
    }
    grid = {"D_in": [100, 400], "D_out": [100, 400, 1600], "frobenius": [[3.0, 2.0, 1.0], [2.5, 1.5, 0.5]],
            "mean_log_kl": [[-5.0, -7.0, -8.5], [-5.5, -7.4, -9.0]]}  # fmt: skip
    beyond = {"sampled": {"D_out": [500, 1000, 2000], "mean_log_kl": [[-8.5], [-8.9], [-8.95]]}}
    return Outcome({**_common("features", {}), "methods": {"joint gaussian": row}, "grid": grid, "beyond": beyond}, {})


ALL = {"exp1": exp1, "exp2": exp2, "exp3": exp3, "exp4": exp4, "exp5": exp5, "features": features}
