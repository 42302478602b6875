"""The report: one HTML file with everything in it, readable on a phone, on paper and without a network."""

from __future__ import annotations

import base64
import html
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from heliograph.paper.registry import EXPERIMENTS
from heliograph.paper.report.batch import draw_exp1, draw_exp2, draw_features
from heliograph.paper.report.sentences import sentences_of
from heliograph.paper.report.sequences import draw_exp3, draw_exp4, draw_exp5
from heliograph.paper.report.style import Picture, label, look, number
from heliograph.paper.report.tables import Cell, Table, tables_of
from heliograph.paper.reproduce import read_results
from heliograph.paper.running.experiment import Outcome

__all__ = ["build", "page_of"]

_DRAW = {
    "exp1": draw_exp1,
    "exp2": draw_exp2,
    "exp3": draw_exp3,
    "exp4": draw_exp4,
    "exp5": draw_exp5,
    "features": draw_features,
}
_LEADS = {
    "exp1": "A message operator is trained on messages of finished EP runs and asked about others. The error is "
    "KL(label || prediction) of the belief sent to z.",
    "exp2": "How doubt behaves along two curves through the space of messages, and whether small doubt means small error.",
    "exp3": "Logistic regressions, one after another, while the operator learns the logistic factor's messages as it goes and asks "
    "an oracle when it is in doubt.",
    "exp4": "The precision of a Gaussian under a compound gamma prior: one message a problem, over many problems.",
    "exp5": "Four real data sets in a row: the messages change with each, and the operator should notice and ask.",
    "features": "How many random features the kernel on messages needs.",
}
_CSS = """
:root{color-scheme:light;--ink:#1b1f24;--soft:#59636e;--line:#d8dee4;--back:#f6f8fa;--link:#0550ae}
*{box-sizing:border-box}
body{margin:0;color:var(--ink);background:#fff;font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",sans-serif;
overflow-wrap:break-word}
main,header,footer{max-width:72rem;margin:0 auto;padding:0 1rem}
header{padding-top:1.5rem}h1{font-size:1.7rem;line-height:1.2;margin:0 0 .5rem}
h2{font-size:1.3rem;line-height:1.25;margin:2.5rem 0 .5rem;padding-top:1rem;border-top:1px solid var(--line)}
p{margin:.5rem 0;max-width:46rem}a{color:var(--link)}
nav ul{display:flex;flex-wrap:wrap;gap:.25rem 1rem;padding:0;margin:.75rem 0;list-style:none}
.said{border-left:4px solid #0072B2;background:var(--back);padding:.5rem 1rem .5rem 2rem;margin:1rem 0;max-width:60rem}
.said li{margin:.25rem 0}.note{background:#fff8e1;border-left:4px solid #E69F00;padding:.5rem 1rem}
.pictures{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,26rem),1fr));gap:1.25rem;margin:1rem 0;
grid-auto-flow:dense}
figure{margin:0;min-width:0}figure.wide{grid-column:1/-1}
figure img{display:block;width:100%;height:auto}
figcaption{color:var(--soft);font-size:.9rem;margin-top:.25rem}
.scroll{overflow-x:auto;max-width:100%;-webkit-overflow-scrolling:touch}
.table{margin:1.25rem 0}.table>p{font-weight:600;margin-bottom:.25rem}
table{border-collapse:collapse;font-size:.875rem;font-variant-numeric:tabular-nums}
th,td{padding:.35rem .6rem;border-bottom:1px solid var(--line);text-align:right;vertical-align:top;white-space:nowrap}
thead th{vertical-align:bottom;white-space:normal;min-width:4.5rem;background:var(--back);font-weight:600}
th:first-child{text-align:left;position:sticky;left:0;background:#fff;white-space:normal;min-width:7rem;max-width:11rem}
thead th:first-child{background:var(--back)}
td small{display:block;color:var(--soft);font-size:.75rem}
details{margin:1rem 0}summary{cursor:pointer;color:var(--link)}
dl{display:grid;grid-template-columns:minmax(0,max-content) minmax(0,1fr);gap:.2rem 1rem;font-size:.875rem;margin:.5rem 0}
dt{color:var(--soft)}dd{margin:0;min-width:0;overflow-wrap:anywhere}
footer{color:var(--soft);font-size:.875rem;border-top:1px solid var(--line);margin-top:3rem;padding-top:1rem;padding-bottom:2rem}
@media (max-width:40rem){figure.wide img{width:44rem;max-width:none}h1{font-size:1.4rem}main,header,footer{padding-left:.75rem;
padding-right:.75rem}th,td{padding:.3rem .45rem}th:first-child{max-width:8rem}}
@media print{@page{size:A4;margin:12mm}body{font-size:9pt}nav{display:none}.pictures{display:block;orphans:1;widows:1}
figure{break-inside:avoid;width:48%;display:inline-block;vertical-align:top;margin:0 1% 4mm 0}figure.wide{width:100%}
figure.wide img{width:100%}.scroll{overflow:visible}table{font-size:6pt}
td small{font-size:5.5pt}figcaption,dl{font-size:7.5pt}dl{gap:0 3mm}h2{margin-top:6mm}
details::details-content{content-visibility:visible;block-size:auto}
thead th{min-width:0}th,td{padding:1mm;white-space:normal}
th:first-child{position:static;min-width:0}tr,.said{break-inside:avoid}h2{break-after:avoid}summary{list-style:none}}
""".strip()


def build(folder: Path) -> Path:
    """Write ``report.html`` and ``figures/`` from the results in a folder, and give the page's path."""
    results = read_results(folder)
    figures = folder / "figures"
    figures.mkdir(exist_ok=True)
    page = folder / "report.html"
    with look():
        pictures = {name: _DRAW[name](outcome.json, outcome.series) for name, outcome in results.items()}
        for picture in (p for some in pictures.values() for p in some):
            picture.figure.savefig(figures / f"{picture.name}.png", dpi=150)
            picture.figure.set_layout_engine("none")  # the layout is found, and finding it is half of the work
            picture.figure.savefig(figures / f"{picture.name}.pdf", metadata={"CreationDate": None}, dpi=150)
    page.write_text(page_of(results, pictures, figures), encoding="utf-8")
    return page


def page_of(results: dict[str, Outcome], pictures: dict[str, list[Picture]], figures: Path) -> str:
    """The whole page, with the figures' PNG files from a folder put into it."""
    return "".join(_page(results, pictures, figures))


def _page(results: dict[str, Outcome], pictures: dict[str, list[Picture]], figures: Path) -> Iterator[str]:
    yield '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
    yield "<title>Heliograph: the paper's experiments</title>\n"
    yield f'<link rel="icon" href="data:,">\n<style>\n{_CSS}\n</style>\n</head>\n'
    yield "<body>\n<header>\n<h1>Kernel-based just-in-time learning for expectation propagation, done again</h1>\n"
    yield "<p>Every table and figure of the paper, with its own numbers beside ours, and the comparison it did not make: "
    yield "how far is each posterior from that of exact EP? Numbers in small print under ours are the paper's.</p>\n<nav><ul>\n"
    for name in results:
        yield f'<li><a href="#{name}">{html.escape(_title(name))}</a></li>\n'
    yield "</ul></nav>\n</header>\n<main>\n"
    for name, outcome in results.items():
        yield from _section(name, outcome.json, pictures[name], figures)
    yield "</main>\n<footer>\n<p>Written by <code>heliograph reproduce</code>; <code>heliograph report</code> draws it again "
    yield "from the saved results. Figures are also in the folder <code>figures</code>, as PNG and PDF.</p>\n"
    yield "</footer>\n</body>\n</html>\n"


def _title(name: str) -> str:
    head = f"Experiment {name[3:]}" if name.startswith("exp") else "Features"
    return f"{head}: {EXPERIMENTS[name].title[0].lower()}{EXPERIMENTS[name].title[1:]}"


def _section(name: str, result: dict[str, Any], pictures: list[Picture], figures: Path) -> Iterator[str]:
    yield f'<section id="{name}">\n<h2>{html.escape(_title(name))}</h2>\n<p>{html.escape(_LEADS[name])}</p>\n'
    if not result.get("complete", True):
        done, of = result["parts"]
        what = "Some parts failed" if result.get("failed") else "This run was interrupted"
        yield f'<p class="note">{what}: {done} of {of} parts are finished, and only these are shown. '
        yield "The same command goes on from here.</p>\n"
    for part, error in result.get("failed", {}).items():
        yield f'<p class="note"><b>{html.escape(part)}</b> failed with {html.escape(error)}</p>\n'
    yield '<ul class="said">\n'
    for sentence in sentences_of(result):
        yield f"<li>{html.escape(sentence)}</li>\n"
    yield '</ul>\n<div class="pictures">\n'
    for picture in pictures:
        yield from _figure(picture, figures)
    yield "</div>\n"
    for table in tables_of(result):
        yield from _table(table)
    yield from _settings(result)
    yield "</section>\n"


def _figure(picture: Picture, figures: Path) -> Iterator[str]:
    width, height = (round(150 * x) for x in picture.figure.get_size_inches())
    data = base64.b64encode((figures / f"{picture.name}.png").read_bytes()).decode()
    image = (
        f'<img alt="{html.escape(picture.alt)}" width="{width}" height="{height}" src="data:image/png;base64,{data}">'
    )
    if picture.wide:
        image = f'<div class="scroll" tabindex="0" role="group" aria-label="wide figure">{image}</div>'
    kind = ' class="wide"' if picture.wide else ""
    yield f"<figure{kind}>{image}<figcaption>{html.escape(picture.caption)}</figcaption></figure>\n"


def _table(table: Table) -> Iterator[str]:
    yield f'<div class="table"><p>{html.escape(table.caption)}</p>\n'
    yield f'<div class="scroll" tabindex="0" role="region" aria-label="{html.escape(table.caption)}">'
    heads = "".join(f'<th scope="col">{html.escape(c)}</th>' for c in table.columns)
    yield f"<table><thead><tr>{heads}</tr></thead><tbody>\n"
    for name, cells in table.rows:
        yield f'<tr><th scope="row">{html.escape(name)}</th>{"".join(map(_td, cells))}</tr>\n'
    yield "</tbody></table></div></div>\n"


def _td(cell: Cell) -> str:
    paper = "" if cell.paper is None else f"<small>paper {html.escape(cell.paper)}</small>"
    return f"<td>{html.escape(cell.ours)}{paper}</td>"


def _settings(result: dict[str, Any]) -> Iterator[str]:
    yield "<details><summary>Settings, seed and machine</summary>\n<dl>\n"
    shown = {"size": result.get("size"), **_flat(result["settings"])}
    made_on = result.get("machine", {})
    if made_on:
        shown["machine"] = f"{made_on['system']}, {made_on['cpus']} CPUs, Python {made_on['python']}"
        shown["versions"] = ", ".join(f"{k} {v}" for k, v in made_on["versions"].items())
    for key, value in shown.items():
        yield f"<dt>{html.escape(key.replace('_', ' '))}</dt><dd>{html.escape(_plain(value))}</dd>\n"
    yield "</dl>\n</details>\n"


def _flat(settings: dict[str, Any], before: str = "") -> dict[str, Any]:
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
