"""Draws of a posterior and of what it predicts.

`draws` draws the variables of a run, jointly where a block is joint. `forward` carries such draws down a graph, factor by factor;
`predict` writes the model anew for new data and asks `forward` for one variable of it. `prediction` is what the user gets.
`likelihood` says how probable each observed value is under the posterior. Why it is done so is in docs/decisions/0051.
"""

from heliograph.engine.predicting.draws import drawn
from heliograph.engine.predicting.likelihood import pointwise_log_likelihood
from heliograph.engine.predicting.predict import (
    Seed,
    Source,
    check_draws,
    predicted,
    predicted_in,
    sampled,
    summed,
)
from heliograph.engine.predicting.prediction import Prediction, joined_predictions
from heliograph.engine.predicting.script import Script

__all__ = [
    "Prediction",
    "Script",
    "Seed",
    "Source",
    "check_draws",
    "summed",
    "drawn",
    "joined_predictions",
    "pointwise_log_likelihood",
    "predicted",
    "predicted_in",
    "sampled",
]
