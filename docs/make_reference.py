"""Write docs/reference.md anew from the docstrings: ``python docs/make_reference.py``.

Every public name has its signature, its docstring and an example: the docstring's own, or one of `reference_examples.py`.
The tests run all examples, and check that the page is up to date and that no name is missing.
"""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from reference_examples import EXAMPLES, SETUP

import heliograph as hg

HERE = Path(__file__).parent
CLASSES = ("Model", "Posterior", "Variable", "BlackBox", "Family")  # whose methods are listed too
HEAD = f"""# Reference

Everything that `import heliograph as hg` gives, made from the docstrings by `python docs/make_reference.py`.
[The guide](guide/README.md) shows how the parts go together. Each example runs after this:

```python
{SETUP.strip()}
```
"""


def public_methods(cls: type) -> list[str]:
    """The names that a class shows to users, `_` and inherited plumbing left out."""
    found = []
    for name, value in inspect.getmembers(cls):
        if name.startswith("_") or not (callable(value) or isinstance(value, property) or hasattr(value, "func")):
            continue
        found.append(name)
    return found


def names() -> list[str]:
    """Every name that the reference must have."""
    every = list(hg.__all__)
    for cls in CLASSES:
        every += [f"{cls}.{m}" for m in public_methods(getattr(hg, cls)) if f"{cls}.{m}" not in INTERNAL]
    return every


# for contributors: seams between the rooms, described in docs/architecture.md
INTERNAL = {
    *(f"Model.{m}" for m in ("graph",)),
    *(f"Posterior.{m}" for m in ("graph", "digests", "messages", "notes", "source")),
    *(f"Variable.{m}" for m in ("apply", "entries", "flat_entries", "part", "node", "model", "index")),
    *(
        f"BlackBox.{m}"
        for m in (
            "ask", "begins", "belief", "calibration", "check_port", "child", "children", "data_ranks", "depends", "draw",
            "evaluate", "families", "forget", "how", "ignores_own", "learns", "log_z", "log_z_slopes", "mean_field", "name",
            "exact_given", "operator", "parts",
            "ports", "powers", "rough_site", "send", "smooth", "joined",
        )
    ),
    *(
        f"Family.{m}"
        for m in (
            "as_uniform", "broadcast_to", "chart_moments", "describe", "discrete", "expected_statistics", "from_chart_moments",
            "from_naturals", "from_statistics", "in_support", "log_normaliser", "marginals", "parameters_text", "point_like",
            "somewhere", "statistics", "with_points", "with_points_at", "without", "finite", "join", "where", "mode", "ndim",
            "is_uniform", "is_point", "from_mean_variance", "size",
        )
    ),
}  # fmt: skip


RESULTS = {  # classes that users get from functions, and do not make themselves
    "Posterior", "IntegratedPosterior", "GatedPosterior", "SavedPosterior", "Variable", "Symbol", "BlackBox", "Trace", "Step",
    "SweepInfo", "StopRule", "Comparison",
}  # fmt: skip

CONTENTS = {  # what a model has, by subject; everything else is listed under its class
    "Continuous variables": "gaussian gamma beta uniform student_t laplace truncated_gaussian variable",
    "Labels and categories": "bernoulli categorical dirichlet ordinal",
    "Counts and lifetimes": "poisson binomial negative_binomial multinomial exponential weibull",
    "Hyper-parameters": "half_normal half_cauchy log_normal flat lkj wishart",
    "Structures": "mixture chain gp when",
    "Functions of variables": "exp log sigmoid maximum minimum between select stack",
    "Statements and data": "constrain equal attach observe data",
    "Running and looking": "infer summary variables plot to_dot to_png",
}

SAME_SETTINGS = {
    "infer": "The settings are those of [`Model.infer`](#modelinfer).",
    "steps": "The settings are those of [`Model.infer`](#modelinfer), without `progress`, `integrate`, `correct` and `audit`.",
}


def value_of(name: str) -> Any:
    """The object of that name."""
    first, _, rest = name.partition(".")
    value = getattr(hg, first)
    return inspect.getattr_static(value, rest) if rest else value


def example_of(name: str) -> str | None:
    """The example of a name as a block of Python, from its docstring or from `EXAMPLES`."""
    if name in EXAMPLES:
        return EXAMPLES[name].strip()
    lines = re.findall(r"^\s*(?:>>>|\.\.\.) ?(.*)$", inspect.getdoc(_function(value_of(name))) or "", re.MULTILINE)
    return "\n".join(lines) if lines else None


def _function(value: Any) -> Any:
    if isinstance(value, property):
        return value.fget
    return getattr(value, "func", getattr(value, "__func__", value))


def _signature(name: str, value: Any) -> str:
    if isinstance(value, property) or hasattr(value, "func") or inspect.ismodule(value):
        return name
    try:
        text = str(inspect.signature(_function(value)))
    except (TypeError, ValueError):
        return name
    text = re.sub(r"(?<![\w'])heliograph\.[\w.]+\.", "", text)
    text = re.sub(r"(: |-> )'([^']*)'", r"\1\2", text)  # annotations without their quotes
    if name in RESULTS:
        return name
    text = re.sub(r"^\((self(?:: \w+)?|cls|model: [^,)]*)(, )?", "(", text)
    return f"{name}{text}" if len(text) < 400 else f"{name}(...)"


def _text(name: str, value: Any) -> str:
    """The docstring as Markdown: its paragraphs, and its arguments as a list; examples are left to `example_of`."""
    doc = re.sub(r"^>>> .*?(?:\n\n|\Z)", "", inspect.getdoc(_function(value)) or "", flags=re.MULTILINE | re.DOTALL)
    prose, *sections = re.split(r"^(Parameters|Attributes|Returns|Examples)\n-+\n", doc, flags=re.MULTILINE)
    parts = [prose.strip()]
    for title, body in zip(sections[::2], sections[1::2], strict=True):
        if title != "Examples" and name not in SAME_SETTINGS:
            parts.append(f"{title}:\n\n{_listed(body, code=title != 'Returns')}")
    if name in SAME_SETTINGS:
        parts.append(SAME_SETTINGS[name])
    if hasattr(value, "_fields"):
        parts.append(f"Fields:\n\n{_fields(value)}")
    return "\n\n".join(p.replace("``", "`") for p in parts)


def _fields(record: Any) -> str:
    """The fields of a record, each with the comment behind it."""
    found = re.findall(r"^    (\w+): [^#\n]+(?:# (.*))?$", inspect.getsource(record).split("    def ")[0], re.MULTILINE)
    return "\n".join(f"- `{name}`" + (f": {comment}" if comment else "") for name, comment in found)


def _listed(body: str, code: bool) -> str:
    """The arguments of a section, each a line of its name and an indented text, as a list."""
    found = re.findall(r"^(\S.*)\n((?:[ ]{4}.*\n?|\n)*)", body, flags=re.MULTILINE)
    names = ((", ".join(f"`{n}`" for n in head.split(", ")) if code else head, text) for head, text in found)
    return "\n".join(f"- {head}: {' '.join(text.split())}" for head, text in names)


def entry(name: str) -> str:
    """One name of the page."""
    value = value_of(name)
    level = "####" if "." in name else "###"
    example = example_of(name)
    block = f"\n```python\n{example}\n```\n" if example else ""
    signature = _signature(name, value)
    shown = f"`{signature}`\n\n" if signature != name else ""
    return f"{level} `{name}`\n\n{shown}{_text(name, value)}\n{block}"


def contents(every: list[str]) -> str:
    """The names of the page, by subject, with links."""
    groups = {title: [f"Model.{m}" for m in words.split()] for title, words in CONTENTS.items()}
    missing = {n for n in every if n.startswith("Model.")} ^ {n for group in groups.values() for n in group}
    if missing:
        raise ValueError(f"CONTENTS and the methods of Model differ by {sorted(missing)}")
    for cls in CLASSES[1:]:
        groups[f"`{cls}`"] = [cls, *(n for n in every if n.startswith(f"{cls}."))]
    rest = [n for n in every if "." not in n and n not in CLASSES]
    classes = [n for n in rest if inspect.isclass(value_of(n))]
    groups["Functions"] = [n for n in rest if n not in classes]
    groups["Messages"] = [n for n in classes if issubclass(value_of(n), hg.Family)]
    groups["Errors and warnings"] = [n for n in classes if issubclass(value_of(n), Exception)]
    groups["Results and more"] = [n for n in classes if n not in groups["Messages"] + groups["Errors and warnings"]]
    rows = (f"| {title} | {', '.join(map(_link, group))} |" for title, group in groups.items())
    return "\n".join(["| | |", "|---|---|", *rows]) + "\n"


def _link(name: str) -> str:
    return f"[{name.split('.')[-1]}](#{name.replace('.', '').lower()})"


def page() -> str:
    """The whole page: classes with their methods first, then the other names."""
    every = names()
    parts = [HEAD, contents(every)]
    for cls in CLASSES:
        parts.append(entry(cls))
        parts += [entry(n) for n in every if n.startswith(f"{cls}.")]
    parts += [entry(n) for n in every if "." not in n and n not in CLASSES]
    return "\n".join(parts)


if __name__ == "__main__":
    (HERE / "reference.md").write_text(page())
