"""A hidden Markov chain whose table of steps and table of outputs are both unknown.

EP treats rows and states as independent. With ten outputs, against a sum over all 1,024 paths: probabilities of states within
.06 (they are too certain), means of the tables within .02.
"""

import numpy as np

import heliograph as hg

seen = np.array([0, 0, 1, 0, 0, 2, 2, 1, 2, 2])
steps, outputs = np.array([[4.0, 1.0], [1.0, 4.0]]), np.array([[3.0, 1.0, 1.0], [1.0, 1.0, 3.0]])

model = hg.Model()
step, output = model.dirichlet("step", steps), model.dirichlet("output", outputs)
state = model.chain(
    "state", len(seen), hg.Categorical([0.5, 0.5]), lambda before: model.categorical("state", step, given=before)
)
model.categorical("seen", output, given=state, observed=seen)
posterior = model.infer()

if __name__ == "__main__":
    print(posterior.summary())
