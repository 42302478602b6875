"""What the paper printed or drew, for experiments whose results do not carry it with them.

Numbers of experiments 3 and 5 were read off the authors' vector figures.
"""

from __future__ import annotations

from typing import Any

__all__ = ["EXP3", "EXP5", "paper_of"]

EXP3: dict[str, dict[str, float]] = {
    "exact": {"disagreement": 0.0711, "seconds": 1.4},
    "sampling": {"disagreement": 0.0712, "seconds": 1260.0},
    "kjit": {
        "disagreement": 0.0712,
        "seconds_first": 371.0,
        "seconds_later": 42.6,
        "seconds_last": 30.9,
        "level": -8.8,
        "calls_first": 487.0,  # at least: 300 of the minibatch and 187 visible in the trace
        "calls_second": 66.0,
    },
}
_SAMPLING = {"banknote": 0.0308, "blood_transfusion": 0.3494, "fertility": 0.5600, "ionosphere": 0.1335}
EXP5: dict[str, dict[str, dict[str, float]]] = {
    "exact": {"disagreement": _SAMPLING},
    "sampling": {"disagreement": _SAMPLING},
    "kjit": {
        "disagreement": {**_SAMPLING, "blood_transfusion": 0.3166},
        "speed_up": {"banknote": 1.30, "blood_transfusion": 2.27, "fertility": 2.35, "ionosphere": 1.55},
    },
}


def paper_of(result: dict[str, Any], method: str, key: str) -> Any:
    """The paper's number that a result carries for a method, or None.

    >>> paper_of({"paper": {"kjit": {"mean_log_kl": -8.97}}}, "kjit", "mean_log_kl")
    -8.97
    """
    return result.get("paper", {}).get(method, {}).get(key)
