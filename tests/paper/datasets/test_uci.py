"""The four UCI sets: what is in them, how they are split, and that the authors' splits come from them."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from heliograph.errors import FileFormatError, ModelError
from heliograph.paper.datasets import NAMES, Dataset, load, read_splits, split

AUTHORS = Path(os.environ.get("HELIOGRAPH_SHARED", Path(__file__).resolve().parents[3] / "../shared")) / "data/uci"
SIZES = {"banknote": (1372, 4, 610), "blood_transfusion": (748, 4, 178), "fertility": (100, 9, 12)}
SIZES["ionosphere"] = (351, 34, 126)


@pytest.mark.parametrize("name", NAMES)
def test_a_set_has_the_size_and_the_labels_that_its_source_states(name):
    dataset = load(name)
    n, d, n_ones = SIZES[name]
    assert dataset.X.shape == (n, d) and dataset.y.shape == (n,) and len(dataset.feature_names) == d
    assert set(dataset.y) == {0.0, 1.0} and dataset.y.sum() == n_ones
    assert dataset.licence == "CC BY 4.0" and "doi 10.24432/" in dataset.source


@pytest.mark.parametrize("name", NAMES)
def test_the_readme_beside_the_files_names_source_and_licence(name):
    folder = Path(__file__).resolve().parents[3] / "src/heliograph/paper/datasets/uci_files"
    text = (folder / "README.md").read_text()
    n, d, n_ones = SIZES[name]
    assert "CC BY 4.0" in text and f"`{name}.csv.gz` | {n} x {d} |" in text and f"{n_ones} rows" in text
    assert load(name).source.split("doi ")[1] in text


@pytest.mark.parametrize(
    ("name", "n_train"), [("banknote", 201), ("blood_transfusion", 201), ("fertility", 50), ("ionosphere", 201)]
)
def test_a_split_has_the_papers_sizes_and_keeps_the_classes_proportion(name, n_train):
    dataset, s = load(name), split(load(name), 0)
    assert len(s.y_train) == n_train and len(s.y_train) + len(s.y_test) == len(dataset.y)
    for part in (s.y_train, s.y_test):
        assert abs(part.mean() - dataset.y.mean()) < 1 / len(part)
    X = np.vstack([s.X_train, s.X_test])
    np.testing.assert_allclose(X.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(X.std(axis=0, ddof=1), 1, rtol=1e-12)


def test_training_and_test_rows_are_the_set_once_over():
    dataset = load("banknote")
    s = split(dataset, 5, standardise=None)
    together = np.column_stack([np.vstack([s.X_train, s.X_test]), np.concatenate([s.y_train, s.y_test])])
    whole = np.column_stack([dataset.X, dataset.y])
    np.testing.assert_array_equal(together[np.lexsort(together.T)], whole[np.lexsort(whole.T)])


def test_standardising_by_the_training_rows_does_not_look_at_the_test_rows():
    dataset = load("fertility")
    s = split(dataset, 3, standardise="train")
    np.testing.assert_allclose(s.X_train.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(s.X_train.std(axis=0, ddof=1), 1, rtol=1e-12)
    raw = split(dataset, 3, standardise=None)
    is_test = (dataset.X[:, None] == raw.X_test).all(axis=2).any(axis=1) & ~(dataset.X[:, None] == raw.X_train).all(
        axis=2
    ).any(axis=1)
    moved = Dataset("moved", np.where(is_test[:, None], dataset.X + 100, dataset.X), dataset.y, dataset.feature_names)
    assert is_test.any()
    np.testing.assert_array_equal(split(moved, 3, standardise="train").X_train, s.X_train)


def test_columns_that_never_change_are_dropped_with_their_names():
    dataset = load("ionosphere")
    s = split(dataset, 0)
    assert s.X_train.shape[1] == 33 == len(s.feature_names)
    assert set(dataset.feature_names) - set(s.feature_names) == {dataset.feature_names[1]}


def test_the_same_seed_gives_the_same_split_and_another_does_not():
    dataset = load("banknote")
    a, b, c = split(dataset, 1), split(dataset, np.random.default_rng(1)), split(dataset, 2)
    np.testing.assert_array_equal(a.X_train, b.X_train)
    assert (a.X_train != c.X_train).any()


def test_other_sizes_and_plain_sampling_can_be_had():
    dataset = load("banknote")
    assert len(split(dataset, 0, n_train=500, stratified=False).y_train) == 500
    assert abs(len(split(dataset, 0, train_fraction=0.25).y_train) - 343) <= 1


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"n_train": 1372}, "leave nothing"),
        ({"train_fraction": 0.0}, "leave nothing"),
        ({"n_train": 5, "train_fraction": 0.5}, "not both"),
        ({"standardise": "test"}, "must be 'whole'"),
    ],
)
def test_a_split_that_makes_no_sense_is_refused(settings, words):
    with pytest.raises(ModelError, match=words):
        split(load("banknote"), 0, **settings)


def test_an_unknown_set_is_answered_with_the_known_ones():
    with pytest.raises(ModelError, match="banknote, blood_transfusion, fertility, ionosphere"):
        load("iris")


def test_splits_are_read_from_a_folder_as_they_were_written(tmp_path):
    (tmp_path / "a_train.csv").write_text("x0,x1,y\n1.5,2,0\n3,4,1\n")
    (tmp_path / "a_test.csv").write_text("x0,x1,y\n5,6,1\n\n")
    s = read_splits(tmp_path)["a"]
    np.testing.assert_array_equal(s.X_train, [[1.5, 2], [3, 4]])
    np.testing.assert_array_equal(s.y_train, [0, 1])
    np.testing.assert_array_equal(s.X_test, [[5, 6]])
    assert s.y_test.tolist() == [1.0] and s.feature_names == ("x0", "x1")
    assert list(read_splits(tmp_path, names=("a",))) == ["a"]
    with pytest.raises(FileFormatError, match="b_train"):
        read_splits(tmp_path, names=("b",))


@pytest.mark.parametrize(
    ("train", "words"),
    [
        ("x0,y\n", "no rows"),
        ("x0,y\none,1\n", "table of numbers"),
        ("x0,y\n1,1\n2\n", "table of numbers"),
        ("x0,y\n1,2\n", "0 or 1"),
        ("x0,y\nnan,1\n", "finite"),
        ("x0,x1,y\n1,1\n", "finite numbers"),
        ("z0,y\n1,1\n", "differ"),
    ],
)
def test_a_file_that_is_no_split_is_refused_by_name(tmp_path, train, words):
    (tmp_path / "a_train.csv").write_text(train)
    (tmp_path / "a_test.csv").write_text("x0,y\n1,1\n")
    with pytest.raises(FileFormatError, match=words):
        read_splits(tmp_path)


def test_a_folder_without_splits_or_without_test_rows_is_refused(tmp_path):
    with pytest.raises(FileFormatError, match="no folder"):
        read_splits(tmp_path / "nowhere")
    with pytest.raises(FileFormatError, match="no file NAME_train"):
        read_splits(tmp_path)
    (tmp_path / "a_train.csv").write_text("x0,y\n1,1\n")
    with pytest.raises(FileFormatError, match="a_test"):
        read_splits(tmp_path)


@pytest.mark.skipif(not AUTHORS.is_dir(), reason="the authors' splits are not on this machine")
@pytest.mark.parametrize("name", NAMES)
def test_the_authors_splits_are_our_rows_standardised_as_a_whole(name):
    theirs, ours = read_splits(AUTHORS)[name], split(load(name), 0)
    assert (len(theirs.y_train), len(theirs.y_test)) == (len(ours.y_train), len(ours.y_test))
    assert theirs.y_train.sum() == ours.y_train.sum() and theirs.y_test.sum() == ours.y_test.sum()

    def rows(s):
        table = np.vstack([np.column_stack([s.X_train, s.y_train]), np.column_stack([s.X_test, s.y_test])]).round(9)
        return table[np.lexsort(table.T)]

    np.testing.assert_allclose(rows(theirs), rows(ours), atol=2e-9)  # the rounding by which they were sorted
