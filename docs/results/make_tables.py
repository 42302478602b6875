"""Write docs/results/README.md from the JSON files beside it: ``python docs/results/make_tables.py``."""

import json
from pathlib import Path

HERE = Path(__file__).parent


def _table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(str(c) for c in row) + " |" for row in rows])


def _mean(values):
    return sum(values) / len(values)


def _sequence(result):
    rows = []
    n = max(len(row["disagreement"]) for row in result["methods"].values())
    for name, row in result["methods"].items():
        each = row["disagreement"]
        if len(each) < n:
            name = f"{name} ({len(each)} of {n} problems)"
        shown = " ".join(f"{e:.4f}" for e in each) if len(each) <= 4 else f"{_mean(each):.4f}"
        worst, calls, evaluations = max(row["posterior_kl"]), row["total_oracle_calls"], row["total_evaluations"]
        rows.append(
            (name, shown, f"{worst:.2g}", calls, f"{evaluations:,}", sum(row["improper"]), sum(row["messages"]))
        )
    head = ("method", "disagreement", "worst posterior KL", "oracle calls", "evaluations", "improper", "messages to z")
    return _table(head, rows)


def _exp1(result):
    sampled = result["against_sampled"]["methods"]
    rows = [
        (name, *(f"{r[k]:.2f}" for k in ("mean_log_kl", "sd_log_kl", "p99_log_kl", "worst_log_kl")), *(
            f"{sampled[name][k]:.2f}" if name in sampled else "" for k in ("mean_log_kl", "sd_log_kl")))
        for name, r in result["methods"].items()
    ]  # fmt: skip
    head = ("method", "exact: mean log KL", "sd", "99 %", "worst", "sampled: mean log KL", "sd")
    return _table(head, rows)


def _exp2(result):
    rows = [
        (
            name,
            *(f"{v:.1f}" for v in r["total_variation"]),
            *(f"{v:.2f}" for v in r["biggest_jump"]),
            r["certain_and_wrong"],
            r["certain_above"]["0.01"],
        )
        for name, r in result["methods"].items()
    ]
    return _table(
        (
            "method",
            "total variation, set 1",
            "set 2",
            "biggest jump, set 1",
            "set 2",
            "certain, above .1 nats",
            "above .01",
        ),
        rows,
    )


def _exp4(result):
    rows = [
        (
            name,
            f"{r['correlation_log_shape']:.6f}",
            f"{r['correlation_log_rate']:.6f}",
            " ".join(str(v) for v in r["oracle_calls_after"].values()),
            f"{r['worst_posterior_kl']:.2g}",
        )
        for name, r in result["methods"].items()
        if "oracle_calls_after" in r
    ]
    return _table(
        ("method", "corr. log shape", "corr. log rate", "calls after 50 100 200 500 1000 1500", "worst KL"), rows
    )


def _features(result):
    rows = [
        (name, *(f"{v:.3f}" for v in r["mean_abs_error"]))
        for name, r in result["methods"].items()
        if "mean_abs_error" in r
    ]
    return _table(("mean error of the kernel at D =", *map(str, result["settings"]["D"])), rows)


TABLES = {"exp1": _exp1, "exp2": _exp2, "exp3": _sequence, "exp4": _exp4, "exp5": _sequence, "features": _features}

if __name__ == "__main__":
    text = (HERE / "introduction.md").read_text()
    for name, table in TABLES.items():
        path = HERE / f"{name}.json"
        if path.exists():
            result = json.loads(path.read_text())
            text += f"\n## {name}\n\n{table(result)}\n"
            for figure in sorted((HERE / "figures").glob(f"{name}_*.png")):
                text += f"\n![{figure.stem.replace('_', ' ')}](figures/{figure.name})\n"
    (HERE / "README.md").write_text(text)
