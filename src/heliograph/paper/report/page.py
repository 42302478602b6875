"""The report: one HTML file with everything in it, readable on a phone, on paper and without a network.

The page is a template with autoescaping: whatever a file of results holds, it is shown as text and never becomes markup.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from heliograph.paper.columns import settings_table
from heliograph.paper.registry import EXPERIMENTS, claims_of, sentences_of, tables_of
from heliograph.paper.report.style import Picture, label, look, number
from heliograph.paper.report.tables import Cell, Table
from heliograph.paper.results import read_results
from heliograph.paper.running.parts import Outcome

__all__ = ["build", "column_tables", "page_of"]


def build(folder: Path) -> Path:
    """Write ``report.html`` and ``figures/`` from the results in a folder, and give the page's path."""
    results = read_results(folder)
    figures = folder / "figures"
    figures.mkdir(exist_ok=True)
    page = folder / "report.html"
    with look():
        pictures = {name: EXPERIMENTS[name].draw(outcome.json, outcome.series) for name, outcome in results.items()}
        for picture in (p for some in pictures.values() for p in some):
            picture.figure.savefig(figures / f"{picture.name}.png", dpi=150)
            picture.figure.set_layout_engine("none")  # the layout is computed, which is half of the work
            picture.figure.savefig(figures / f"{picture.name}.pdf", metadata={"CreationDate": None}, dpi=150)
    page.write_text(page_of(results, pictures, figures), encoding="utf-8")
    return page


def page_of(results: dict[str, Outcome], pictures: dict[str, list[Picture]], figures: Path) -> str:
    """The whole page, with the figures' PNG files from a folder put into it."""
    from jinja2 import Environment, StrictUndefined  # with the drawing, only when a page is made

    here = files("heliograph.paper.report")
    template = Environment(autoescape=True, undefined=StrictUndefined, keep_trailing_newline=True).from_string(
        here.joinpath("page.html.j2").read_text(encoding="utf-8")
    )
    return template.render(
        css=here.joinpath("page.css").read_text(encoding="utf-8"),
        columns=column_tables(),
        spread=any(len(o.json.get("spread", {}).get("seeds", ())) > 1 for o in results.values()),
        sections=[_section(name, outcome.json, pictures[name], figures) for name, outcome in results.items()],
    )


def column_tables() -> list[Table]:
    """Every setting of every column of KJIT, from the one record of them."""
    made = []
    for name in ("exp3", "exp4", "exp5"):
        names, rows = settings_table(name)
        shown = [(key.replace("_", " "), [Cell(_plain(v)) for v in values]) for key, values in rows]
        made.append(Table(f"Experiment {name[3:]}", ("setting", *names), shown))
    return made


def _section(name: str, result: dict[str, Any], pictures: list[Picture], figures: Path) -> dict[str, Any]:
    experiment = EXPERIMENTS[name]
    head = f"Experiment {name[3:]}" if name.startswith("exp") else "Features"
    return {
        "name": name,
        "title": f"{head}: {experiment.title[0].lower()}{experiment.title[1:]}",
        "lead": experiment.lead,
        "notes": _notes(result),
        "sentences": sentences_of(result),
        "claims": claims_of(result),
        "tables": tables_of(result),
        "pictures": [_shown(picture, figures) for picture in pictures],
        "settings": [(key.replace("_", " "), _plain(value)) for key, value in _settings(result).items()],
    }


def _notes(result: dict[str, Any]) -> list[str]:
    """Sentences on what is missing in the run."""
    notes = []
    if not result.get("complete", True):
        done, of = result["parts"]
        what = "Some parts failed" if result.get("failed") else "This run was interrupted"
        notes.append(
            f"{what}: {done} of {of} parts are finished, and only these are shown. The same command goes on from here."
        )
    return notes + [f"{part} failed with {error}" for part, error in result.get("failed", {}).items()]


def _shown(picture: Picture, figures: Path) -> dict[str, Any]:
    width, height = (round(150 * x) for x in picture.figure.get_size_inches())
    data = base64.b64encode((figures / f"{picture.name}.png").read_bytes()).decode()
    words = {"alt": picture.alt, "caption": picture.caption, "wide": picture.wide}
    return {**words, "width": width, "height": height, "data": data}


def _settings(result: dict[str, Any]) -> dict[str, Any]:
    shown = {"size": result.get("size"), **_flat(result["settings"])}
    if "spread" in result:
        shown["seeds"] = result["spread"]["seeds"]
    made_on = result.get("machine", {})
    if made_on:
        shown["machine"] = f"{made_on['system']}, {made_on['cpus']} CPUs, Python {made_on['python']}"
        shown["versions"] = ", ".join(f"{k} {v}" for k, v in made_on["versions"].items())
    return shown


def _flat(settings: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in settings.items():
        flat |= _flat(value, f"{before}{key}: ") if isinstance(value, dict) else {f"{before}{key}": value}
    return flat


def _plain(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(label(v) if isinstance(v, str) else _plain(v) for v in value)
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "none"}[value]
    return number(value) if isinstance(value, (int, float)) else str(value)
