"""Write README.md and reproduced.md beside this file from the JSON files here: ``python docs/results/make_tables.py``.

Copy the JSON files and ``figures/*.png`` of a folder that ``heliograph reproduce all --full --seeds 10`` wrote, and run this.
A test checks that the pages are what this file makes of the JSON.
"""

import json
from pathlib import Path

from heliograph.paper.registry import EXPERIMENTS, claims_of, tables_of
from heliograph.paper.report.page import column_tables

HERE = Path(__file__).parent
# of a shared machine: the JSON has them
TIMED = ("seconds", "of these oracle", "learning", "prediction", "rest", "Times as fast")


def results():
    """Every JSON here, in the paper's order."""
    paths = [(name, HERE / f"{name}.json") for name in EXPERIMENTS]
    return {name: json.loads(path.read_text()) for name, path in paths if path.exists()}


def markdown(table):
    """A table with the paper's numbers in brackets, and without times."""
    keep = [k for k, name in enumerate(table.columns) if k == 0 or not (name.startswith(TIMED) or "seconds" in name)]
    lines = ["| " + " | ".join(table.columns[k] for k in keep) + " |", "|" + "---|" * len(keep)]
    for name, cells in table.rows:
        row = [name, *(c.ours + (f" (paper {c.paper})" if c.paper is not None else "") for c in cells)]
        lines.append("| " + " | ".join(row[k].replace("|", "\\|") for k in keep) + " |")
    return f"**{table.caption}**\n\n" + "\n".join(lines) + "\n"


def made(result):
    """What a result is of: its size, its seeds, and the methods of fewer seeds."""
    seeds = result.get("spread", {}).get("seeds", [result["settings"]["seed"]])
    size = {"full": "the paper's size", "quick": "quick size", "own": "own size"}[result["size"]]
    named = f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {seeds[0]} to {seeds[-1]}"
    return f"*{size}, {named}; {result['parts'][0]} of {result['parts'][1]} parts.*"


def readme(found):
    """The page of tables and figures."""
    text = (HERE / "introduction.md").read_text()
    text += "\n## The columns of KJIT\n\n" + "\n".join(markdown(t) for t in column_tables())
    for name, result in found.items():
        tables = [markdown(t) for t in tables_of(result) if not t.caption.startswith(TIMED)]
        text += f"\n## {name}\n\n{made(result)}\n\n" + "\n".join(tables)
        for figure in sorted((HERE / "figures").glob(f"{name}_*.png")):
            text += f"\n![{figure.stem.replace('_', ' ')}](figures/{figure.name})\n"
    return text


def reproduced(found):
    """The page of claims."""
    text = (HERE / "reproduced_introduction.md").read_text()
    for name, result in found.items():
        claims = claims_of(result)
        if claims:
            text += (
                f"\n## {name}: {EXPERIMENTS[name].title[0].lower()}{EXPERIMENTS[name].title[1:]}\n\n{made(result)}\n\n"
            )
            text += "| the paper, line of its source | here | verdict | reason |\n|---|---|---|---|\n"
        for c in claims:
            cells = (f"{c.said} ({c.line})", c.ours, f"**{c.verdict}**", c.reason)
            text += "| " + " | ".join(x.replace("|", "\\|") for x in cells) + " |\n"
    return text + reasons()


def reasons():
    """What `benchmarks/paper_reasons.py` found, which put reasons and remarks to tests of their own."""
    text = "\n## Reasons and remarks put to the test\n\n"
    text += "By `python -m benchmarks.paper_reasons --json docs/results/reasons.json`, apart from the experiments above.\n\n"
    text += "| name | question | found |\n|---|---|---|\n"
    for row in json.loads((HERE / "reasons.json").read_text()):
        text += f"| {row['name']} | {row['question']} | {'. '.join(row['found'])} |\n"
    return text


if __name__ == "__main__":
    found = results()
    (HERE / "README.md").write_text(readme(found))
    (HERE / "reproduced.md").write_text(reproduced(found))
