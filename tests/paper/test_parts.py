"""Parts of experiments: kept when finished, reused, the same with any number of jobs."""

import numpy as np
import pytest

from heliograph.paper.running.parts import Part, Store, run_parts


def square(x, seed=0):
    if x == 13:
        raise RuntimeError("unlucky")
    return {"x": x, "square": x * x, "draws": np.random.default_rng(seed).standard_normal(3), "list": [1.5, None]}


def _parts(n):
    return [Part(f"part {k}", square, {"x": k, "seed": k}) for k in range(n)]


def test_a_result_reads_back_as_it_was_written(tmp_path):
    store, part = Store(tmp_path), _parts(1)[0]
    store.write(part, square(3, seed=5))
    kept = store.read(part)
    assert kept["square"] == 9 and kept["list"] == [1.5, None]
    assert np.array_equal(kept["draws"], square(3, seed=5)["draws"])


@pytest.mark.parametrize("jobs", [1, 2])
def test_any_number_of_jobs_gives_the_same_results(tmp_path, jobs):
    results = {part.name: r for part, r in run_parts(_parts(4), Store(tmp_path), jobs)}
    assert [results[f"part {k}"]["square"] for k in range(4)] == [0, 1, 4, 9]
    assert np.array_equal(results["part 2"]["draws"], square(2, seed=2)["draws"])


def test_finished_parts_are_reused_and_damaged_ones_run_again(tmp_path):
    store, heard = Store(tmp_path), []
    list(run_parts(_parts(3), store))
    store.path(_parts(3)[1]).write_bytes(b"half a file")
    list(run_parts(_parts(3), store, tell=lambda part, reused: heard.append((part.name, reused))))
    assert heard == [("part 0", True), ("part 2", True), ("part 1", False)]


def test_what_was_finished_before_a_failure_is_kept(tmp_path):
    store = Store(tmp_path)
    parts = [*_parts(2), Part("bad", square, {"x": 13})]
    with pytest.raises(RuntimeError, match="unlucky"):
        list(run_parts(parts, store))
    assert store.read(parts[0]) is not None and store.read(parts[2]) is None


def test_other_settings_make_another_name():
    a, b = Part("p", square, {"x": 1}), Part("p", square, {"x": 2})
    assert a.key != b.key and a.key == Part("p", square, {"x": 1}).key


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_part_that_fails_is_told_and_the_others_go_on(tmp_path, jobs):
    told = {}
    parts = [Part("bad", square, {"x": 13}), *_parts(2)]
    heard = run_parts(parts, Store(tmp_path), jobs, fail=lambda part, error: told.update({part.name: str(error)}))
    results = {part.name: result for part, result in heard}
    assert told == {"bad": "unlucky"}
    assert results["bad"] is None and results["part 1"]["square"] == 1


def test_a_folder_of_splits_counts_by_what_is_in_it(tmp_path):
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        folder.mkdir()
        (folder / "blood_train.csv").write_text("1,2\n")
    first, second = (Part("p", square, {"splits": str(folder)}).key for folder in folders)
    assert first == second
    (folders[1] / "blood_train.csv").write_text("1,3\n")
    assert Part("p", square, {"splits": str(folders[1])}).key != first
