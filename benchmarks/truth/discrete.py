"""Random graphs of categories, and their posterior by enumeration of every configuration."""

from __future__ import annotations

import numpy as np

from benchmarks.truth.world import Truth, World, literal, rounded

__all__ = ["discrete_loop", "discrete_tree"]


class Program:
    """A model being written, as source and as a table of log weights over all configurations."""

    def __init__(self) -> None:
        self.lines = ["m = hg.Model()"]
        self.cards: list[int] = []  # of every scalar variable
        self.factors: list[tuple[tuple[int, ...], np.ndarray]] = []
        self.named: dict[str, np.ndarray] = {}  # name -> the scalars it holds, in its shape
        self.bernoulli: set[str] = set()

    def _new(self, name: str, card: int, shape: tuple[int, ...]) -> np.ndarray:
        n = int(np.prod(shape))
        self.named[name] = np.arange(len(self.cards), len(self.cards) + n).reshape(shape)
        self.cards += [card] * n
        return self.named[name]

    def observe(self, who: np.ndarray, values: np.ndarray) -> None:
        """Put all weight on the seen value."""
        for i, v in zip(who.ravel(), values.ravel(), strict=True):
            if not np.isnan(v):
                self.factors.append(((int(i),), (np.arange(self.cards[i]) == v).astype(float)))

    def root(self, rng: np.random.Generator, n: int | None) -> str:
        """A variable with a prior."""
        name, shape = f"v{len(self.lines)}", () if n is None else (n,)
        size = "" if n is None else f", size={n}"
        if rng.random() < 0.25:
            p1 = rounded(rng.uniform(0.02, 0.98), 3)
            self.lines.append(f'{name} = m.bernoulli("{name}", {p1}{size})')
            p = np.array([1 - p1, p1])
            self.bernoulli.add(name)
        else:
            p = _simplex(rng, (int(rng.integers(2, 5)),))
            self.lines.append(f'{name} = m.categorical("{name}", {literal(p)}{size})')
        for i in self._new(name, len(p), shape).ravel():
            self.factors.append(((int(i),), p))
        return name

    def child(self, rng: np.random.Generator, parent: str, index: np.ndarray | None, observed: float) -> str | None:
        """A category with a table given another, seen at a share of its entries."""
        if parent in self.bernoulli:
            return None
        name, who = f"v{len(self.lines)}", self.named[parent]
        who = who if index is None else who[index]
        given = parent if index is None else f"{parent}[{literal(index)}]"
        k, l = self.cards[int(np.ravel(who)[0])], int(rng.integers(2, 5))
        table = _simplex(rng, (k, l))
        values = np.where(rng.random(who.shape) < observed, rng.integers(0, l, who.shape).astype(float), np.nan)
        seen = "" if np.isnan(values).all() else f", observed={literal(values)}"
        self.lines.append(f'{name} = m.categorical("{name}", {literal(table)}, given={given}{seen})')
        mine = self._new(name, l, who.shape)
        for i, j in zip(who.ravel(), mine.ravel(), strict=True):
            self.factors.append(((int(i), int(j)), table))
        self.observe(mine, values)
        return name

    def equal(self, a: str, b: str) -> None:
        """Two variables are the same."""
        self.lines.append(f"m.equal({a}, {b})")
        for i, j in zip(self.named[a].ravel(), self.named[b].ravel(), strict=True):
            self.factors.append(((int(i), int(j)), np.eye(self.cards[i])))

    def attach(self, rng: np.random.Generator, a: str) -> None:
        """Soft evidence, which counts as a density of the variable."""
        card = self.cards[int(self.named[a].ravel()[0])]
        p = _simplex(rng, (card,))
        if a in self.bernoulli:
            p = np.array([1 - p[1], p[1]])
        family = f"hg.Bernoulli({literal(p[1])})" if a in self.bernoulli else f"hg.Categorical({literal(p)})"
        self.lines.append(f"m.attach({a}, {family})")
        for i in self.named[a].ravel():
            self.factors.append(((int(i),), p))

    def truth(self) -> Truth:
        """Enumerate."""
        n = len(self.cards)
        weight = np.ones(self.cards)
        for who, table in self.factors:
            shape = [1] * n
            for i, k in zip(who, table.shape, strict=True):
                shape[i] = k
            order = np.argsort(who)
            weight = weight * np.transpose(table, order).reshape(shape)
        total = weight.sum()
        marginal = [weight.sum(axis=tuple(k for k in range(n) if k != i)) / total for i in range(n)]
        probability = {}
        for name, who in self.named.items():
            rows = np.array([marginal[i] for i in who.ravel()])
            probability[name] = (
                rows[:, 1].reshape(who.shape) if name in self.bernoulli else rows.reshape(*who.shape, -1)
            )
        return Truth(probability=probability, log_evidence=float(np.log(total)))

    def world(self, kind: str, seed: int, claim: str) -> World:
        """The record; impossible if no configuration has weight."""
        with np.errstate(divide="ignore"):
            possible = self.truth().log_evidence != -np.inf
        return World(kind, seed, "\n".join(self.lines), claim, self.truth if possible else None)


def _simplex(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Probabilities with three digits that sum to exactly one as rationals."""
    spread = np.full(shape[-1], rng.choice([0.3, 1.0, 5.0]))
    p = np.maximum(np.floor(1000 * rng.dirichlet(spread, shape[:-1])), 1.0)
    largest = np.argmax(p, axis=-1)[..., None]
    rest = 1000 - p.sum(axis=-1, keepdims=True) + np.take_along_axis(p, largest, axis=-1)
    np.put_along_axis(p, largest, rest, axis=-1)
    return p / 1000


def _small(p: Program, extra: int, card: int = 4) -> bool:
    return float(np.prod([float(c) for c in p.cards])) * card**extra < 3e5


def discrete_tree(rng: np.random.Generator, kind: str, seed: int) -> World:
    """Roots, children of entries of earlier variables, soft evidence, data at some of the leaves."""
    p = Program()
    names = [p.root(rng, None if rng.random() < 0.5 else int(rng.integers(1, 4)))]
    for _ in range(int(rng.integers(1, 7))):
        parent = names[rng.integers(len(names))]
        size = p.named[parent].size
        index = None
        if p.named[parent].ndim and rng.random() < 0.5:
            index = rng.integers(0, size, int(rng.integers(1, 4)))
        if not _small(p, size if index is None else len(index)):
            break
        name = p.child(rng, parent, index, rng.choice([0.0, 0.5, 1.0]))
        if name is None:
            name = p.root(rng, None)
        names.append(name)
    if rng.random() < 0.5:
        p.attach(rng, names[rng.integers(len(names))])
    return p.world(kind, seed, "exact discrete")


def discrete_loop(rng: np.random.Generator, kind: str, seed: int) -> World:
    """Two children of one root (or of a chain from it) that are equal, once or several times over."""
    p = Program()
    n = None if rng.random() < 0.6 else 2
    names = [p.root(rng, n)]
    while names[0] in p.bernoulli:
        p = Program()
        names = [p.root(rng, n)]
    for _ in range(int(rng.integers(2, 6))):
        if not _small(p, 1 if n is None else n):
            break
        child = p.child(rng, names[rng.integers(len(names))], None, 0.0)
        assert child is not None
        names.append(child)
        if rng.random() < 0.3:
            p.child(rng, child, None, 1.0)
    card = {name: p.cards[int(p.named[name].ravel()[0])] for name in names}
    pairs = [(a, b) for a in names for b in names if a < b and card[a] == card[b]]
    rng.shuffle(pairs)
    for a, b in pairs[: int(rng.integers(1, 4))]:
        p.equal(a, b)
    return p.world(kind, seed, "exact discrete")
