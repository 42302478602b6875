"""The command that runs experiments: its wishes, its files, and that neither jobs nor a kill change what it finds."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from typer.testing import CliRunner

import heliograph.paper.exp4.parts as exp4
from heliograph.cli import app
from heliograph.errors import ModelError
from heliograph.paper.registry import EXPERIMENTS
from heliograph.paper.report.page import build
from heliograph.paper.reproduce import choose, outcome_of, plan, run
from heliograph.paper.results import read_results, write_outcome
from heliograph.paper.running.parts import Outcome, Store, run_parts

TINY = ["reproduce", "exp4", "--methods", "exact,kjit (text)", "--json", "-"]  # one message a problem


def without_timings(value):
    """The JSON without what differs from run to run of the same seed: every key that speaks of seconds."""
    if isinstance(value, dict):
        return {k: without_timings(v) for k, v in value.items() if "seconds" not in k}
    return [without_timings(v) for v in value] if isinstance(value, list) else value


def _start(out, *more, problems=40):
    code = "from heliograph.cli import app; app()"
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, "-c", code, *TINY, "--problems", str(problems), "--out", str(out), *more],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
    )  # fmt: skip


def _finished(process):
    said, noise = process.communicate(timeout=600)
    assert process.returncode == 0, noise
    return json.loads(said)  # nothing but JSON on standard output


def _stop_after_exact(process, out, how):
    # with two workers it is a matter of luck which of the two quick parts is kept first
    while not all(list((out / "parts").glob(f"*{part}*.part")) for part in ("data", "exact")):
        assert process.poll() is None, "it ended before it could be stopped"
        time.sleep(0.01)
    process.send_signal(how)
    return process.communicate(timeout=600)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    out = tmp_path_factory.mktemp("undisturbed")
    return _finished(_start(out)), out


def test_the_json_on_standard_output_is_the_one_in_the_folder_and_a_report_is_beside_it(undisturbed):
    told, out = undisturbed
    assert told == json.loads((out / "exp4.json").read_text())
    assert list(told["methods"]) == ["exact", "kjit (text)"] and told["complete"]
    assert told["settings"]["n_problems"] == 40 and told["methods"]["kjit (text)"]["oracle_calls"] > 0
    assert (out / "report.html").exists() and list((out / "figures").glob("*.png"))


def test_two_jobs_give_the_same_as_one(undisturbed, tmp_path):
    assert without_timings(_finished(_start(tmp_path, "--jobs", "2"))) == without_timings(undisturbed[0])


def test_killed_half_way_and_run_again_it_ends_where_an_undisturbed_run_does(undisturbed, tmp_path):
    process = _start(tmp_path)
    _stop_after_exact(process, tmp_path, signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL and not (tmp_path / "exp4.json").exists()
    first = next((tmp_path / "parts").glob("*exact*.part"))
    before = first.stat().st_mtime_ns
    again = _finished(_start(tmp_path))
    assert without_timings(again) == without_timings(undisturbed[0])
    assert first.stat().st_mtime_ns == before  # reused, not done again


def test_ctrl_c_leaves_a_readable_report_of_what_was_finished_and_ends_its_workers(tmp_path):
    process = _start(tmp_path, "--jobs", "2", problems=5000)  # with 1,500 kjit once ended before the signal came
    said, noise = _stop_after_exact(process, tmp_path, signal.SIGINT)
    assert process.returncode == 130, noise
    told = json.loads(said)
    assert not told["complete"] and list(told["methods"]) == ["exact"] and told["parts"] == [2, 3]
    assert "2 of 3 parts are finished" in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "goes on from there" in noise and "Warning" not in noise


# ---- without a process of its own ------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["reproduce", "exp9"], "There is no experiment 'exp9'; choose one of exp1"),
        (["reproduce", "exp3", "--methods", "kjitt"], "There is no method 'kjitt' here; choose from exact"),
        (["reproduce", "exp3", "--problems", "0"], "at least 1, not 0"),
        (["reproduce", "exp1", "--problems", "3"], "exp1 has no number of problems"),
        (["reproduce", "exp3", "--splits", "."], "read by exp5 only"),
        (["report", "."], "There are no results in the folder"),
    ],
)
def test_a_wrong_wish_is_answered_in_one_sentence(tmp_path, monkeypatch, arguments, sentence):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2 and sentence in " ".join(result.output.split())
    assert not list(tmp_path.iterdir())


def test_wishes_change_the_settings_that_have_them():
    [five] = plan(choose("exp5"), problems=2, methods=["exact"])
    assert five.settings["names"] == ("banknote", "blood_transfusion") and five.settings["methods"] == ("exact",)
    everything = {one.experiment.name: one for one in plan(choose("all"), seed=4, problems=2, methods=["sampling"])}
    assert set(everything) == {name for name, e in EXPERIMENTS.items() if "sampling" in e.quick.get("methods", ())}
    assert everything["exp3"].settings["n_problems"] == 2 and everything["exp3"].seed == 4
    [full] = plan(choose("exp3"), full=True)
    assert full.settings == EXPERIMENTS["exp3"].full
    with pytest.raises(ModelError, match="no experiment"):
        choose("exp0")


def test_every_experiment_has_an_outcome_before_any_part_is_finished():
    for one in plan(choose("all")):
        told = outcome_of(one, {}).json
        assert told["complete"] is False and told["methods"] == {} and told["parts"][0] == 0


def test_a_folder_of_given_splits_is_named_without_its_path(tmp_path):
    [one] = plan(choose("exp5"), splits=tmp_path / "authors")
    assert outcome_of(one, {}).json["settings"]["splits"] == "authors"
    assert str(tmp_path) not in json.dumps(outcome_of(one, {}).json)


def test_steps_tell_what_is_running_and_what_was_kept(tmp_path):
    runs = plan(choose("exp3"), problems=1, methods=["exact"])
    first = [step for step, _ in run(runs, Store(tmp_path))]
    assert [(s.n_done, s.running) for s in first] == [(0, ("exp3 exact",)), (1, ())]
    again = [step for step, _ in run(runs, Store(tmp_path))]
    assert again[0].running == () and again[1].reused and not first[1].reused


def test_an_outcome_reads_back_as_it_was_written(tmp_path):
    series = {"kjit, a/b": {"level": np.array([np.nan, 1.0]), "names": np.array(["x", "y"])}, "n": np.arange(3)}
    write_outcome(
        tmp_path, Outcome({"experiment": "exp3", "methods": {"kjit": {"posterior_kl": [np.inf, 0.5]}}}, series)
    )
    back = read_results(tmp_path)["exp3"]
    assert back.json["methods"]["kjit"]["posterior_kl"] == [None, 0.5]
    assert np.array_equal(back.series["kjit, a/b"]["level"], [np.nan, 1.0], equal_nan=True)
    assert list(back.series["kjit, a/b"]["names"]) == ["x", "y"] and list(back.series["n"]) == [0, 1, 2]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["exp3.json", "exp3.series.npz"]


def test_a_part_that_fails_leaves_a_report_of_the_others_that_says_so(tmp_path, monkeypatch):
    good = exp4.solve_problems

    def solve(method, **settings):
        if method == "kjit (text)":
            raise ValueError("the oracle is <out> of order")
        return good(method, **settings)

    monkeypatch.setattr(exp4, "solve_problems", solve)
    ended = CliRunner().invoke(app, [*TINY[:4], "--problems", "5", "--out", str(tmp_path)])
    assert ended.exit_code == 1
    assert "exp4 kjit (text) failed with ValueError: the oracle is <out> of order" in ended.stderr
    told = json.loads((tmp_path / "exp4.json").read_text())
    assert list(told["methods"]) == ["exact"] and not told["complete"]
    assert told["failed"] == {"exp4 kjit (text)": "ValueError: the oracle is <out> of order"}
    assert "failed with ValueError: the oracle is &lt;out&gt; of order" in (tmp_path / "report.html").read_text()
    monkeypatch.setattr(exp4, "solve_problems", good)
    assert CliRunner().invoke(app, [*TINY[:4], "--problems", "5", "--out", str(tmp_path)]).exit_code == 0
    assert "failed" not in json.loads((tmp_path / "exp4.json").read_text())


def test_several_seeds_give_a_spread_and_the_numbers_of_the_first(tmp_path):
    runs = plan(choose("exp4"), 3, methods=["exact", "kjit (text)"], problems=30, seeds=2)
    results = {step.part.key: r for step, r in run(runs, Store(tmp_path)) if step.part is not None}
    both, (first, second) = outcome_of(runs, results).json, [outcome_of(one, results).json for one in runs]
    assert both["spread"]["seeds"] == [3, 4] and both["settings"]["seed"] == 3 and both["parts"] == [6, 6]
    calls = [one["methods"]["kjit (text)"]["oracle_calls"] for one in (first, second)]
    assert both["spread"]["methods"]["kjit (text)"]["oracle calls"] == calls
    assert without_timings(both["methods"]) == without_timings(first["methods"])
    write_outcome(tmp_path, Outcome(both, {}))
    page = build(tmp_path).read_text(encoding="utf-8")
    assert "Over seeds 3 to 4: median" in page and "medians\nover seeds" in page


def test_an_interrupted_spread_is_still_shown(tmp_path):
    runs = plan(choose("exp4"), 0, methods=["exact", "kjit (text)"], problems=60, seeds=2)
    kept = list(runs[0].parts) + [p for p in runs[1].parts if "kjit" not in p.name]
    results = {p.key: r for p, r in run_parts(kept, Store(tmp_path))}
    told = outcome_of(runs, results).json
    assert not told["complete"] and told["parts"] == [5, 6]
    lengths = {m: len(v["oracle calls"]) for m, v in told["spread"]["methods"].items()}
    assert lengths == {"exact": 2, "kjit (text)": 1}
    write_outcome(tmp_path, Outcome(told, {}))
    assert "kjit (text) (1 seed)" in build(tmp_path).read_text(encoding="utf-8")


def test_slow_experiments_have_half_of_the_seeds_and_sampling_the_first():
    runs = plan([EXPERIMENTS["exp1"], EXPERIMENTS["exp3"]], 0, seeds=4)
    assert [(r.experiment.name, r.seed) for r in runs] == [("exp1", 0), ("exp1", 1), *(("exp3", s) for s in range(4))]
    sampled = [any("sampling" in p.name for p in r.parts) for r in runs[2:]]
    assert sampled == [True, False, False, False]
    with pytest.raises(ModelError, match="number of seeds must be at least 1"):
        plan([EXPERIMENTS["exp3"]], seeds=0)
