"""Archives: what goes in comes out, files of earlier versions load, and a file that would fill the memory is refused."""

from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit

import heliograph as hg
import heliograph.storage as archive
from heliograph.errors import FileFormatError
from heliograph.storage import flatten, read_archive, unflatten, write_archive, write_whole


def test_what_is_written_is_read(tmp_path):
    arrays = {"a/b": np.arange(6.0).reshape(2, 3), "empty": np.zeros((0, 2)), "flags": np.array([True, False])}
    write_archive(tmp_path / "x.hg", arrays, {"n": 3, "words": ["one", None]})
    back = read_archive(tmp_path / "x.hg")
    assert back.header == {"n": 3, "words": ["one", None]} and list(back.arrays) == list(arrays)
    for name, a in arrays.items():
        np.testing.assert_array_equal(back.arrays[name], a)
        assert back.arrays[name].dtype == a.dtype


def test_a_tree_of_arrays_and_numbers_comes_back(tmp_path):
    tree = {"x": [np.eye(2), {"y": np.float64(2.5)}], "z": (1, float("inf"))}
    arrays = {}
    header = flatten(tree, arrays)
    write_archive(tmp_path / "x.hg", arrays, header, allow_nan=True)
    kept = read_archive(tmp_path / "x.hg")
    back = unflatten(kept.header, kept.arrays)
    np.testing.assert_array_equal(back["x"][0], np.eye(2))
    assert back["x"][1] == {"y": 2.5} and back["z"] == [1, float("inf")]


def test_numbers_that_json_does_not_know_are_refused_unless_allowed(tmp_path):
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_archive(tmp_path / "x.hg", {}, {"x": float("nan")})
    assert not list(tmp_path.iterdir())


def test_a_file_that_would_unpack_to_more_than_the_bound_is_refused(tmp_path, monkeypatch):
    write_archive(tmp_path / "x.hg", {"zeros": np.zeros(100_000)}, {})
    assert (tmp_path / "x.hg").stat().st_size < 5000
    monkeypatch.setattr(archive, "MOST_BYTES", 100_000)
    with pytest.raises(FileFormatError, match="would unpack to 8"):
        read_archive(tmp_path / "x.hg")


def test_writing_whole_replaces_and_leaves_nothing_behind(tmp_path):
    write_whole(tmp_path / "x", b"old")
    write_whole(tmp_path / "x", b"new")
    assert [p.name for p in tmp_path.iterdir()] == ["x"] and (tmp_path / "x").read_bytes() == b"new"


def test_a_factor_saved_by_the_first_version_still_loads():
    """The file was written by 0.1.0: 30 messages learned by kjit and 12 by the default operator."""

    def sigmoid(z):
        return expit(z)

    factor = hg.load_factor(Path(__file__).with_name("saved_by_0_1_0.hg"), sigmoid)
    assert (factor.n_asked, factor.n_messages) == (36, 42) and len(factor.operators) == 2
