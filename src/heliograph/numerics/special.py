"""The special functions of SciPy that messages need, with types: SciPy ships none."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from scipy import special

__all__ = [
    "betainc",
    "betaincinv",
    "betaln",
    "entr",
    "expit",
    "gammainc",
    "gammaincinv",
    "gammaln",
    "log_expit",
    "logsumexp",
    "ndtr",
    "ndtri",
    "psi",
    "softmax",
    "xlog1py",
    "xlogy",
]

Elementwise: TypeAlias = Callable[..., np.ndarray]

betainc: Elementwise = special.betainc
betaincinv: Elementwise = special.betaincinv
betaln: Elementwise = special.betaln
entr: Elementwise = special.entr
expit: Elementwise = special.expit
gammainc: Elementwise = special.gammainc
gammaincinv: Elementwise = special.gammaincinv
gammaln: Elementwise = special.gammaln
log_expit: Elementwise = special.log_expit
logsumexp: Elementwise = special.logsumexp  # type: ignore[assignment]
ndtr: Elementwise = special.ndtr
ndtri: Elementwise = special.ndtri
psi: Elementwise = special.psi
softmax: Elementwise = special.softmax
xlog1py: Elementwise = special.xlog1py
xlogy: Elementwise = special.xlogy
