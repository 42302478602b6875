"""A wrong argument of the command is said in a sentence, before any work, and never in a traceback."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from heliograph.cli import app


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("reproduce nosuch", "no experiment 'nosuch'"),
        ("reproduce exp4 --seed -1", "--seed"),
        ("reproduce exp4 --seeds 0", "--seeds"),
        ("reproduce exp4 --jobs 0", "--jobs"),
        ("reproduce exp4 --methods nosuch", "no method 'nosuch'"),
        ("reproduce exp4 --methods ,", "names no method"),
        ("reproduce exp4 --problems 0", "at least 1"),
        ("reproduce exp4 --splits HERE/nowhere --out HERE/out", "--splits"),
        ("reproduce exp4 --json HERE/nowhere/x.json --out HERE/out", "there is no folder"),
        ("reproduce exp4 --json HERE --out HERE/out", "is a folder"),
        ("reproduce exp4 --out HERE/file/below", "cannot be made"),
        ("demo --seed -1", "--seed"),
        ("demo --picture HERE/x.nosuch", "choose one of"),
        ("demo --picture HERE/nowhere/x.png", "there is no folder"),
        ("report HERE/nowhere", "no results in the folder"),
    ],
)
def test_it_says_what_is_wrong(words, said, tmp_path):
    (tmp_path / "file").write_text("")
    result = CliRunner(env={"COLUMNS": "400"}).invoke(app, words.replace("HERE", str(tmp_path)).split())
    assert result.exit_code == 2, result.output
    assert said in " ".join(result.output.split())
    assert "Traceback" not in result.output


def test_the_version_is_the_packages():
    result = CliRunner().invoke(app, ["--version"])
    assert result.exit_code == 0
    assert result.output.strip()[0].isdigit()
