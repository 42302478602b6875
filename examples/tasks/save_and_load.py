"""Save a posterior to a file, and read it back without the model."""

import tempfile
from pathlib import Path

import heliograph as hg

model = hg.Model()
p = model.beta("p", 1.0, 1.0)
model.binomial("wins", 20, p, observed=13)
with tempfile.TemporaryDirectory() as folder:
    model.infer().save(Path(folder) / "wins.hg")
    kept = hg.load_posterior(Path(folder) / "wins.hg")
print(kept["p"], kept.log_evidence)
