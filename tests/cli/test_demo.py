"""The command's demonstration, at its quick size."""

import pytest
from typer.testing import CliRunner

from heliograph.cli import app
from heliograph.paper.demo import TOLERANCE, run_demo


def test_the_demo_prints_its_table_and_writes_its_picture(tmp_path):
    picture = tmp_path / "demo.png"
    result = CliRunner().invoke(app, ["demo", "--quick", "--picture", str(picture)])
    assert result.exit_code == 0, result.output
    assert "traps" in result.output and "sampling" in result.output
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.fixture(scope="module")
def rows():
    return run_demo(3, 2, lambda what, sweep, asked: None)


def test_learned_posteriors_are_within_the_tolerance_and_later_problems_ask_less(rows):
    learned = [r for r in rows if r.way.startswith("learned")]
    assert all(r.posterior_kl <= TOLERANCE for r in learned)
    first, second = (r for r in learned if r.problem.startswith("logistic"))
    assert second.n_asked < first.n_asked / 2
    again = [r for r in learned if r.problem == "traps"]
    assert again[1].n_asked < again[0].n_asked / 2
