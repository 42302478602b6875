"""Saved factors: the same bits back, and never anything but a clear error from a file that is not whole."""

from __future__ import annotations

import json
import os
import struct
import zipfile

import numpy as np
import pytest
from scipy.special import expit

from heliograph import storage
from heliograph.errors import FileFormatError, ModelError
from heliograph.factors.black_box import RunOptions, factor, load_factor
from heliograph.families import Beta, Gaussian
from heliograph.operators import Kjit
from heliograph.oracles import ImportanceOracle
from heliograph.paper.rivals.forest import Forest
from heliograph.paper.rivals.neural import Neural

QUICK = ImportanceOracle(256, adapt=False, min_ess=1.0, k_threshold=np.inf)
KJIT = Kjit(20, 30, minibatch=40)
FOREST = Forest(4, minibatch=60, n_candidates=10)
NEURAL = Neural((5,), max_iter=20)


def sigmoid(z):
    return expit(z)


def rows(n=70, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n)
    return {"z": Gaussian(rng.normal(0, 2, n), rng.uniform(0.5, 4, n)), "out": Beta(1.0 + y, 2.0 - y)}


def learned():
    """A factor that learned with every operator, one of them still waiting for its minibatch."""
    logistic = factor(sigmoid, output=Beta, name="logistic")
    logistic.train(np.random.default_rng(1), rows(), NEURAL, oracle=QUICK)
    for operator in (KJIT, FOREST, "ask"):
        for to in ("z", "out"):
            logistic.send(to, rows(), RunOptions(np.random.default_rng(2), operator, QUICK))
    logistic.send("z", rows(10), RunOptions(np.random.default_rng(2), "kjit", QUICK))
    return logistic


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "logistic.hg"
    logistic = learned()
    logistic.save(path)
    return logistic, path, path.read_bytes()


def predictions(which):
    """Every operator's messages about a plate it has never seen."""
    out = []
    for operator in (KJIT, FOREST, NEURAL, "kjit"):
        for to in ("z", "out"):
            reply = which.send(to, rows(90, 5), RunOptions(np.random.default_rng(4), operator, QUICK))
            out += [*reply.message.naturals, reply.asked]
    return out


def test_what_comes_back_predicts_and_goes_on_learning_with_the_same_bits(whole):
    _, path, _ = whole
    original, copy = learned(), load_factor(path, sigmoid)
    assert list(copy.operators) == list(original.operators)
    assert (copy.n_asked, copy.n_messages, copy.n_evaluations) == (
        original.n_asked,
        original.n_messages,
        original.n_evaluations,
    )
    for a, b in zip(predictions(original), predictions(copy), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_factor_can_stand_for_its_function_and_is_left_alone(whole):
    logistic, path, _ = whole
    bare = factor(sigmoid, output=Beta, name="other name")
    copy = load_factor(path, bare)
    assert not bare.operators and list(copy.operators) == list(logistic.operators) and copy.name == "other name"


def test_loading_into_a_factor_replaces_what_it_knew(whole):
    logistic, path, _ = whole
    other = factor(sigmoid, output=Beta)
    other.send("z", rows(), RunOptions(np.random.default_rng(0), Kjit(8, 9, minibatch=5), QUICK))
    other.load(path)
    assert list(other.operators) == list(logistic.operators)


def test_the_same_knowledge_is_the_same_bytes(whole, tmp_path):
    _, path, content = whole
    again = tmp_path / "again.hg"
    load_factor(path, sigmoid).save(again)
    assert again.read_bytes() == content


def test_two_hundred_random_corruptions_are_all_noticed_and_change_nothing(whole, tmp_path):
    _, path, content = whole
    rng = np.random.default_rng(0)
    broken = tmp_path / "broken.hg"
    bystander = factor(sigmoid, output=Beta)
    bystander.load(path)
    before = dict(bystander.operators)
    kinds = ("flip", "cut", "grow", "zero", "shuffle", "swap", "drop")
    for k in range(200):
        data = bytearray(content)
        kind = kinds[k % len(kinds)]
        at = int(rng.integers(len(data))) if k % 3 else int(rng.integers(80))  # a third of them in the first bytes
        if kind == "flip":
            data[at] ^= 1 << int(rng.integers(8))
        elif kind == "cut":
            del data[at:]
        elif kind == "grow":
            data += rng.bytes(int(rng.integers(1, 100)))
        elif kind == "zero":
            data[at : at + 16] = bytes(len(data[at : at + 16]))
        elif kind == "shuffle":
            data[at : at + 64] = rng.bytes(len(data[at : at + 64]))
        elif kind == "swap":
            data = data[at:] + data[:at]
        else:
            del data[at : at + int(rng.integers(1, 50))]
        if bytes(data) == content:
            continue
        broken.write_bytes(data)
        with pytest.raises(FileFormatError):
            bystander.load(broken)
        with pytest.raises(FileFormatError):
            load_factor(broken, sigmoid)
        assert bystander.operators == before and all(bystander.operators[key] is before[key] for key in before)


def resealed(content, change):
    """The file with its inside changed and its checksum made right again: what a bad writer would write."""
    import hashlib
    import io

    body = content[storage.HEAD.size :]
    with zipfile.ZipFile(io.BytesIO(body)) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    change(files)
    inside = io.BytesIO()
    with zipfile.ZipFile(inside, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    body = inside.getvalue()
    digest = hashlib.sha256(struct.pack("<IQ", storage.FORMAT, len(body)) + body).digest()
    return storage.HEAD.pack(storage.MAGIC, storage.FORMAT, len(body), digest) + body


def test_contents_that_make_no_sense_are_noticed_behind_a_right_checksum(whole, tmp_path):
    _, _, content = whole
    names = json.loads(zipfile_of(content)["names.json"])
    broken = tmp_path / "broken.hg"
    bystander = factor(sigmoid, output=Beta)
    rng = np.random.default_rng(0)

    def header_with(edit):
        def change(files):
            header = json.loads(files["header.json"])
            edit(header)
            files["header.json"] = json.dumps(header).encode()

        return change

    changes = [
        lambda files: files.pop("header.json"),
        lambda files: files.pop("names.json"),
        lambda files: files.update({"header.json": b"{"}),
        lambda files: files.update({"header.json": b"[]"}),
        header_with(lambda h: h.pop("operators")),
        header_with(lambda h: h["operators"][0].update(name="witchcraft")),
        header_with(lambda h: h["operators"][0].update(settings={"colour": "red"})),
        header_with(lambda h: h["operators"][1]["state"]["directions"][0].pop("to")),
        header_with(lambda h: h["factor"].update(counts=None)),
        header_with(lambda h: h["factor"].update(output="Cauchy")),
    ]
    for k in rng.choice(len(names), 20, replace=False):
        changes.append(lambda files, k=k: files.pop(f"{k}.npy"))
        changes.append(lambda files, k=k: files.update({f"{k}.npy": b"not an array"}))
    for change in changes:
        broken.write_bytes(resealed(content, change))
        with pytest.raises(FileFormatError):
            load_factor(broken, sigmoid)
        with pytest.raises(FileFormatError):
            bystander.load(broken)
        assert not bystander.operators


def zipfile_of(content):
    import io

    with zipfile.ZipFile(io.BytesIO(content[storage.HEAD.size :])) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_an_array_of_objects_is_refused_and_no_code_is_run(whole, tmp_path):
    import io

    class Bomb:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "ran"),)

    _, _, content = whole
    data = io.BytesIO()
    np.save(data, np.array([Bomb()], dtype=object), allow_pickle=True)
    path = tmp_path / "bomb.hg"
    path.write_bytes(resealed(content, lambda files: files.update({"0.npy": data.getvalue()})))
    with pytest.raises(FileFormatError):
        load_factor(path, sigmoid)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "content", [b"", b"x", b"PK\x03\x04 some zip", b"heliogr\x00", np.random.default_rng(0).bytes(4000)]
)
def test_a_foreign_file_is_called_one(content, tmp_path):
    path = tmp_path / "foreign"
    path.write_bytes(content)
    with pytest.raises(FileFormatError, match="is not a saved factor"):
        load_factor(path, sigmoid)


def test_a_truncated_file_says_so(whole, tmp_path):
    _, _, content = whole
    path = tmp_path / "half.hg"
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(FileFormatError, match="is truncated or has grown"):
        load_factor(path, sigmoid)


def test_a_file_of_a_newer_format_says_so(whole, tmp_path):
    _, _, content = whole
    path = tmp_path / "newer.hg"
    path.write_bytes(content[:8] + struct.pack("<I", storage.FORMAT + 1) + content[12:])
    with pytest.raises(FileFormatError, match=f"format {storage.FORMAT + 1}, .* reads up to {storage.FORMAT}"):
        load_factor(path, sigmoid)


def test_another_function_is_refused_by_its_signature(whole):
    _, path, _ = whole
    for wrong in (
        factor(lambda x: expit(x), output=Beta, name="f"),
        factor(lambda z, shift: expit(z + shift), output=Beta, name="f"),
        factor(lambda z: expit(z), output=Gaussian, name="f"),
        factor(lambda z, rng: expit(z), output=Beta, name="f"),
    ):
        with pytest.raises(FileFormatError, match=r"the file was learned by a factor logistic\(z\) -> Beta"):
            wrong.load(path)
        assert not wrong.operators


def test_writing_is_all_or_nothing(whole, tmp_path, monkeypatch):
    logistic, _, content = whole
    path = tmp_path / "logistic.hg"
    path.write_bytes(b"what was there before")

    def full_disk(*_):
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "replace", full_disk)
    with pytest.raises(OSError, match="no space"):
        logistic.save(path)
    assert path.read_bytes() == b"what was there before"
    assert [p.name for p in tmp_path.iterdir()] == ["logistic.hg"]
    monkeypatch.undo()
    logistic.save(path)
    assert path.read_bytes() == content and [p.name for p in tmp_path.iterdir()] == ["logistic.hg"]


def test_an_operator_that_cannot_be_saved_is_named():
    class Mine:
        def send(self, rng, to, incoming, ask, setting):
            answer = ask(incoming)
            from heliograph.operators import Reply

            return Reply(answer.beliefs[to] / incoming[to], answer.failed, ~answer.failed)

    logistic = factor(sigmoid, output=Beta)
    logistic.send("z", rows(3), RunOptions(np.random.default_rng(0), Mine(), QUICK))
    with pytest.raises(ModelError, match=r"operator 'Mine at .*' of factor 'sigmoid' has no state"):
        logistic.save("nowhere")


def test_a_missing_file_is_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        load_factor(tmp_path / "none.hg", sigmoid)
