"""Random linear-Gaussian graphs, and their posterior by one QR factorisation.

Every scalar of such a graph is ``A e + b`` with e independent standard normal sources. What is observed says
``A_o e + b_o = y``; with ``A_o' = Q R`` the posterior of e is ``Q R^-T (y - b_o)`` plus a standard normal outside the span of
Q, and the evidence is read off R. No covariance is formed, so units and tiny innovations cost no accuracy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from benchmarks.truth.world import Truth, World, literal, rounded

__all__ = ["chain", "graph", "loop", "regression", "repeated"]


class Expression:
    """Source text, and the same thing as ``A e + b``; the first axis of A and b runs over the flat entries."""

    def __init__(self, text: str, a: np.ndarray, b: np.ndarray, shape: tuple[int, ...]) -> None:
        self.text, self.a, self.b, self.shape = text, a, b, shape


class Program:
    """A model being written, twice: as source for heliograph and as a matrix."""

    def __init__(self) -> None:
        self.lines = ["m = hg.Model()"]
        self.n_sources = 0
        self.asked: dict[str, Expression] = {}
        self.seen: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []

    # ---- variables ----
    def scalars(self, mean: Any, variance: Any, size: int | None) -> Expression:
        """A new array of independent Gaussians, or one of them."""
        n = 1 if size is None else size
        name = f"v{len(self.lines)}"
        variance = np.broadcast_to(variance, (n,)) if np.ndim(variance) else variance
        shape = () if size is None else (n,)
        extra = "" if size is None else f", size={n}"
        self.lines.append(f'{name} = m.gaussian("{name}", {literal(mean)}, variance={literal(variance)}{extra})')
        e = Expression(name, *self._noise(np.broadcast_to(variance, (n,)), np.broadcast_to(mean, (n,))), shape)
        self.asked[name] = e
        return e

    def vector(self, mean: np.ndarray, covariance: np.ndarray) -> Expression:
        """A new jointly Gaussian vector."""
        name, d = f"v{len(self.lines)}", len(mean)
        self.lines.append(f'{name} = m.gaussian("{name}", {literal(mean)}, covariance={literal(covariance)})')
        a = np.zeros((d, self.n_sources + d))
        a[:, self.n_sources :] = np.linalg.cholesky(covariance)
        self.n_sources += d
        e = Expression(name, a, np.array(mean), (d,))
        self.asked[name] = e
        return e

    def child(self, mean: Expression, variance: Any, observed: np.ndarray | None = None) -> Expression:
        """A Gaussian around an expression; NaN in `observed` is missing."""
        name, n = f"v{len(self.lines)}", len(mean.b)
        extra = "" if observed is None else f", observed={literal(observed.reshape(mean.shape))}"
        self.lines.append(f'{name} = m.gaussian("{name}", {mean.text}, variance={literal(variance)}{extra})')
        noise, _ = self._noise(np.broadcast_to(variance, (n,)), np.zeros(n))
        e = Expression(name, self._pad(mean.a) + noise, mean.b, mean.shape)
        if observed is None:
            self.asked[name] = e
        else:
            ok = ~np.isnan(observed.ravel())
            self.seen.append((e.a[ok], e.b[ok], observed.ravel()[ok]))
            if not ok.any():
                self.asked[name] = e
        return e

    def _noise(self, variance: Any, mean: Any) -> tuple[np.ndarray, np.ndarray]:
        n = len(variance)
        a = np.zeros((n, self.n_sources + n))
        a[np.arange(n), self.n_sources + np.arange(n)] = np.sqrt(variance)
        self.n_sources += n
        return a, np.array(mean, dtype=float)

    def _pad(self, a: np.ndarray) -> np.ndarray:
        return np.pad(a, ((0, 0), (0, self.n_sources - a.shape[1])))

    # ---- expressions ----
    def combine(self, x: Expression, y: Expression, sign: str) -> Expression:
        """x + y or x - y, with a scalar broadcast to an array."""
        s = 1.0 if sign == "+" else -1.0
        shape = np.broadcast_shapes(x.shape, y.shape)
        n = int(np.prod(shape))
        a, b = (self._spread(e, n) for e in (x, y))
        return Expression(f"({x.text} {sign} {y.text})", a[0] + s * b[0], a[1] + s * b[1], shape)

    def _spread(self, e: Expression, n: int) -> tuple[np.ndarray, np.ndarray]:
        a = self._pad(e.a)
        return np.broadcast_to(a, (n, a.shape[1])), np.broadcast_to(e.b, (n,))

    def scale(self, x: Expression, c: Any) -> Expression:
        """C * x, c a number or an array."""
        shape = np.broadcast_shapes(x.shape, np.shape(c))
        a, b = self._spread(x, int(np.prod(shape)))
        c1 = np.broadcast_to(np.ravel(c), (len(b),))
        return Expression(f"({literal(c)} * {x.text})", c1[:, None] * a, c1 * b, shape)

    def shift(self, x: Expression, c: Any) -> Expression:
        """X + c."""
        return Expression(f"({x.text} + {literal(c)})", x.a, x.b + np.broadcast_to(c, x.b.shape), x.shape)

    def gather(self, x: Expression, index: Any) -> Expression:
        """x[index], repeats allowed."""
        index = np.asarray(index)
        text = f"{x.text}[{literal(index) if index.ndim else int(index)}]"
        return Expression(text, x.a[index.ravel()], x.b[index.ravel()], index.shape)

    def dot(self, matrix: np.ndarray, w: Expression) -> Expression:
        """Matrix @ w."""
        return Expression(f"({literal(matrix)} @ {w.text})", matrix @ w.a, matrix @ w.b, (len(matrix),))

    # ---- the answer ----
    def draw(self, rng: np.random.Generator, e: Expression) -> np.ndarray:
        """Values such an expression could take before anything is seen."""
        return e.b + self._pad(e.a) @ rng.standard_normal(self.n_sources)

    def truth(self) -> Truth:
        """The posterior of everything that is asked."""
        a = np.concatenate([self._pad(a) for a, _, _ in self.seen]) if self.seen else np.zeros((0, self.n_sources))
        gap = np.concatenate([y - b for _, b, y in self.seen]) if self.seen else np.zeros(0)
        q, r = np.linalg.qr(a.T)
        z = solve_triangular(r, gap, trans=1) if len(gap) else gap
        log_evidence = -0.5 * z @ z - np.log(np.abs(np.diag(r))).sum() - 0.5 * len(z) * np.log(2 * np.pi)
        mean, sd, covariance = {}, {}, {}
        for name, e in self.asked.items():
            full = self._pad(e.a)
            along = full @ q
            rest = full - along @ q.T
            rest -= (rest @ q) @ q.T  # once more: the first pass leaves rounding of the size of the prior
            mean[name] = (e.b + along @ z).reshape(e.shape)
            sd[name] = np.sqrt((rest**2).sum(axis=1)).reshape(e.shape)
            if "covariance=" in self._line(name):
                covariance[name] = rest @ rest.T
        return Truth(mean, sd, covariance=covariance, log_evidence=float(log_evidence))

    def _line(self, name: str) -> str:
        return next(line for line in self.lines if line.startswith(f"{name} = "))

    def world(self, kind: str, seed: int, **settings: Any) -> World:
        """The record of the finished program."""
        return World(kind, seed, "\n".join(self.lines), "exact", self.truth, settings)


def _unit(rng: np.random.Generator) -> float:
    return 1.0 if rng.random() < 0.5 else float(10.0 ** rng.integers(-6, 7))


def _variance(rng: np.random.Generator, unit: float) -> float:
    return rounded(unit**2 * 10 ** rng.uniform(-1.5, 1.0), 3)


def _size(rng: np.random.Generator) -> int:
    return int(rng.choice([1, 2, 3, 5, 8, 12, 20, 21, 22, 40, 60]))


def _settings(rng: np.random.Generator) -> dict[str, Any]:
    return {"schedule": "sequential"} if rng.random() < 0.15 else {}


def chain(rng: np.random.Generator, kind: str, seed: int) -> World:
    """A random walk, written as separate variables or as steps of one array, with innovation variance 1e-6 to 1."""
    p, unit = Program(), _unit(rng)
    n = int(rng.choice([2, 3, 10, 30, 60, 150], p=[0.1, 0.15, 0.25, 0.2, 0.2, 0.1]))
    innovation = rounded(unit**2 * 10 ** rng.uniform(-6, 0), 3)
    noise, prior = _variance(rng, unit), rounded(unit**2 * 10 ** rng.uniform(-1, 3), 2)
    decay = 1.0 if rng.random() < 0.5 else rounded(rng.uniform(0.5, 1.1), 3)
    if rng.random() < 0.4 and n <= 60:  # one variable a step
        x = p.scalars(0.0, prior, None)
        states = [x]
        for _ in range(n - 1):
            states.append(x := p.child(x if decay == 1 else p.scale(x, decay), innovation))
        for x in states:
            if rng.random() < 0.7:
                p.child(x, noise, _seen(rng, p, x, noise))
        return p.world(kind, seed, **_settings(rng))
    x = p.scalars(0.0, prior, n)
    late, early = p.gather(x, np.arange(1, n)), p.gather(x, np.arange(n - 1))
    step = p.combine(late, early if decay == 1 else p.scale(early, decay), "-")
    p.child(step, innovation, np.zeros(n - 1))
    p.child(x, noise, _walk(rng, n, np.sqrt(innovation), np.sqrt(noise), missing=rng.choice([0.0, 0.3, 0.9])))
    settings = {"max_sweeps": 2000} if rng.random() < 0.5 else {}
    return p.world(kind, seed, **settings | (_settings(rng) if n <= 30 else {}))


def _seen(rng: np.random.Generator, p: Program, x: Expression, noise: float) -> np.ndarray:
    """Data around an expression, drawn without adding a source."""
    return rounded(p.draw(rng, x) + np.sqrt(noise) * rng.standard_normal(len(x.b)), 5)


def _walk(rng: np.random.Generator, n: int, step: float, noise: float, missing: float) -> np.ndarray:
    walk = np.cumsum(step * rng.standard_normal(n)) + noise * rng.standard_normal(n)
    walk = rounded(walk, 5)
    hidden = rng.random(n) < missing
    hidden[rng.integers(n)] = False
    return np.where(hidden, np.nan, walk)


def regression(rng: np.random.Generator, kind: str, seed: int) -> World:
    """X @ w with a vector w: exact in one pass, whatever the columns look like."""
    p, unit = Program(), _unit(rng)
    d, n = int(rng.integers(1, 6)), _size(rng)
    root = rng.standard_normal((d, d)) * 10 ** rng.uniform(-1, 1, d)[:, None]
    covariance = rounded(unit**2 * (root @ root.T + 0.1 * np.diag(np.diag(root @ root.T))), 6)
    w = p.vector(rounded(unit * rng.standard_normal(d)), (covariance + covariance.T) / 2)
    for _ in range(int(rng.integers(1, 3))):
        x = rounded(rng.standard_normal((n, d)) * 10 ** rng.uniform(-2, 2, d))
        x[rng.random((n, d)) < 0.2] = 0.0
        if n > 1:
            x[0] = 0.0 if rng.random() < 0.1 else x[0]
        z = p.dot(x, w)
        if rng.random() < 0.3:
            z = p.shift(z, rounded(unit * rng.standard_normal(n)))
        if rng.random() < 0.3:
            z = p.scale(z, rounded(rng.uniform(0.1, 3, n) * rng.choice([-1, 1], n)))
        noise = rounded(unit**2 * 10 ** rng.uniform(-2, 2, n), 3) if rng.random() < 0.5 else _variance(rng, unit)
        y = _seen(rng, p, z, 1.0 * unit**2)
        p.child(z, noise, np.where(rng.random(n) < rng.choice([0.0, 0.3]), np.nan, y))
    return p.world(kind, seed, **_settings(rng))


def repeated(rng: np.random.Generator, kind: str, seed: int) -> World:
    """One variable several times in an expression: 2 x + x, x - y + x, s[i] - s[j] with i = j somewhere."""
    p, unit = Program(), _unit(rng)
    size = None if rng.random() < 0.4 else _size(rng)
    x = p.scalars(rounded(unit * rng.standard_normal()), _variance(rng, unit), size)
    y = p.scalars(0.0, _variance(rng, unit), size if rng.random() < 0.5 else None)
    n = len(x.b)
    c = rounded(rng.uniform(-3, 3, 3))
    forms = [
        lambda: p.combine(p.scale(x, c[0]), x, "+"),
        lambda: p.combine(p.combine(x, y, "-"), x, "+"),
        lambda: p.combine(x, x, "+"),
        lambda: p.combine(p.combine(p.scale(x, c[1]), y, "+"), p.scale(x, c[2]), "-"),
        lambda: p.combine(p.combine(x, y, "+"), p.combine(x, y, "-"), "+"),
        lambda: p.combine(p.combine(x, x, "-"), y, "+"),
    ]
    if size is not None:
        i, j = rng.integers(0, n, (2, n))
        j[0] = i[0]
        forms += 2 * [lambda: p.combine(p.combine(p.gather(x, i), p.gather(x, j), "+"), y, "+")]
    form = forms[rng.integers(len(forms))]
    e, noise = form(), _variance(rng, unit)
    p.child(e, noise, _seen(rng, p, e, noise))
    return p.world(kind, seed, **_settings(rng))


def loop(rng: np.random.Generator, kind: str, seed: int) -> World:
    """Scalars that meet in several rows: a + b x, random effects, differences of pairs, F @ s."""
    p, unit = Program(), _unit(rng)
    n, form = max(2, _size(rng)), int(rng.integers(4))
    noise = _variance(rng, unit)
    if form == 0:  # a line through scalars
        a, b = p.scalars(0.0, _variance(rng, unit), None), p.scalars(0.0, _variance(rng, unit), None)
        e = p.combine(a, p.scale(b, rounded(rng.uniform(-1, 1) * 5 + rng.standard_normal(n))), "+")
    elif form == 1:  # two crossed effects
        k, l = (int(v) for v in rng.integers(1, 7, 2))
        r, s = p.scalars(0.0, _variance(rng, unit), k), p.scalars(0.0, _variance(rng, unit), l)
        e = p.combine(p.gather(r, rng.integers(0, k, n)), p.gather(s, rng.integers(0, l, n)), "+")
        if rng.random() < 0.5:
            e = p.combine(e, p.scalars(0.0, _variance(rng, unit), None), "+")
    elif form == 2:  # games
        k = int(rng.integers(2, 8))
        s = p.scalars(0.0, _variance(rng, unit), k)
        i = rng.integers(0, k, n)
        e = p.combine(p.gather(s, i), p.gather(s, (i + rng.integers(1, k, n)) % k), "-")
    else:  # a matrix times scalars
        k = int(rng.integers(2, 5))
        s = p.scalars(rounded(unit * rng.standard_normal(k)), _variance(rng, unit), k)
        e = p.dot(rounded(rng.standard_normal((n, k))), s)
    p.child(e, noise, _seen(rng, p, e, noise))
    return p.world(kind, seed, **_settings(rng))


def graph(rng: np.random.Generator, kind: str, seed: int) -> World:
    """Anything linear: scalars, arrays, gathers, sums, scalings, children of children, data here and there."""
    p, unit = Program(), _unit(rng)
    n = _size(rng)
    pool = [p.scalars(rounded(unit * rng.standard_normal()), _variance(rng, unit), None if rng.random() < 0.5 else n)]
    for _ in range(int(rng.integers(2, 7))):
        x = pool[rng.integers(len(pool))]
        other = pool[rng.integers(len(pool))]
        move = int(rng.integers(7))
        if move == 0:
            pool.append(p.scalars(rounded(unit * rng.standard_normal()), _variance(rng, unit), n))
        elif move == 1:
            pool.append(p.child(x, _variance(rng, unit)))
        elif move == 2 and x is not other:
            pool.append(p.combine(x, other, rng.choice(["+", "-"])))
        elif move == 3:
            pool.append(p.scale(x, rounded(rng.choice([-1, 1]) * 10 ** rng.uniform(-1, 1))))
        elif move == 4:
            pool.append(p.shift(x, rounded(unit * rng.standard_normal())))
        elif move == 5 and x.shape and x.text in p.asked:
            pool.append(p.gather(x, rng.integers(0, len(x.b), n)))
        else:
            noise = _variance(rng, unit)
            y = _seen(rng, p, x, noise)
            p.child(x, noise, np.where(rng.random(len(y)) < 0.2, np.nan, y))
    x = pool[-1]
    noise = _variance(rng, unit)
    p.child(x, noise, _seen(rng, p, x, noise))
    return p.world(kind, seed, **_settings(rng))
