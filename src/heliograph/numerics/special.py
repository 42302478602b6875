"""The special functions of SciPy that messages need, with types: SciPy ships none."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from scipy import special

__all__ = ["betaln", "entr", "expit", "gammaln", "log_expit", "logsumexp", "psi", "softmax", "xlog1py", "xlogy"]

Elementwise: TypeAlias = Callable[..., np.ndarray]

betaln: Elementwise = special.betaln
entr: Elementwise = special.entr
expit: Elementwise = special.expit
gammaln: Elementwise = special.gammaln
log_expit: Elementwise = special.log_expit
logsumexp: Elementwise = special.logsumexp  # type: ignore[assignment]
psi: Elementwise = special.psi
softmax: Elementwise = special.softmax
xlog1py: Elementwise = special.xlog1py
xlogy: Elementwise = special.xlogy
