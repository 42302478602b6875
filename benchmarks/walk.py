"""The walk of one message: from `BlackBox.send` to the user's function, in frames, functions and files.

    python -m benchmarks.walk             # the counts
    python -m benchmarks.walk --frames    # and the deepest stack, frame by frame

Runs the logistic model of the README. Each time the user's function is called below `BlackBox.send`, the frames of Heliograph
between the two are counted, and the files that they are in: once for calls that an oracle made, once for calls that made a
reference. A second run counts the distinct functions and files that were entered on the way, until an oracle's first call.
"""

import argparse
import itertools
import sys
from types import FrameType
from typing import Any, NamedTuple

import numpy as np

import heliograph as hg

ROOM = "/heliograph/"  # what marks a file of the package


class Place(NamedTuple):
    """A function of the package."""

    file: str
    name: str


def place_of(frame: FrameType) -> Place | None:
    """Where a frame is, or None outside the package."""
    path = frame.f_code.co_filename.replace("\\", "/")
    return Place(path.rsplit(ROOM, 1)[1], frame.f_code.co_qualname) if ROOM in path else None


def stack_below_send(frame: FrameType | None) -> list[Place] | None:
    """The package's frames from the outermost `BlackBox.send` down to `frame`; None where there is no such call."""
    found: list[Place] = []
    while frame is not None:
        place = place_of(frame)
        if place is not None:
            found.append(place)
            if place.name == "BlackBox.send":
                return found[::-1]
        frame = frame.f_back
    return None


def asked(stack: list[Place]) -> bool:
    """Whether an oracle made the call, and not a reference."""
    return any(p.name.startswith("OracleCalls") for p in stack)


def solve(watch: Any) -> None:
    """Infer the README's model; `watch` is called in the user's function."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((300, 5))
    y = rng.random(300) < 1 / (1 + np.exp(-x @ np.array([1.0, -2.0, 0.5, 0.0, 1.5])))

    @hg.factor(output=hg.Beta)
    def logistic(z):
        watch(sys._getframe(1))
        return 1 / (1 + np.exp(-z))

    model = hg.Model()
    w = model.gaussian("w", mean=np.zeros(5), covariance=np.eye(5))
    model.bernoulli("y", logistic(x @ w), observed=y)
    model.infer(seed=0, progress=False)


def deepest_stacks() -> dict[str, list[Place]]:
    """The deepest stack of an oracle's calls of the user's function, and of a reference's."""
    deepest: dict[str, list[Place]] = {}

    def watch(frame: FrameType) -> None:
        stack = stack_below_send(frame)
        if stack is not None:
            who = "oracle" if asked(stack) else "reference"
            deepest[who] = max(deepest.get(who, []), stack, key=len)

    solve(watch)
    return deepest


def entered() -> list[Place]:
    """Every function entered from the first `BlackBox.send` until an oracle first calls the user's function, in order."""
    calls: list[Place] = []

    def profile(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            place = place_of(frame)
            if place is not None and (calls or place.name == "BlackBox.send"):
                calls.append(place)

    def watch(frame: FrameType) -> None:
        stack = stack_below_send(frame)
        if stack is not None and asked(stack):
            sys.setprofile(None)

    sys.setprofile(profile)
    try:
        solve(watch)
    finally:
        sys.setprofile(None)
    return calls


def main() -> None:
    """Print the counts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--frames", action="store_true", help="print the deepest stacks")
    options = parser.parse_args()
    for who, stack in sorted(deepest_stacks().items()):
        files = {p.file for p in stack}
        rooms = [p.file.split("/")[0] for p in stack]
        changes = sum(a != b for a, b in itertools.pairwise(rooms))
        print(f"deepest stack of {who}: {len(stack)} frames, {len(files)} files, {changes} changes of room")
        if options.frames:
            print("\n".join(f"    {p.file}: {p.name}" for p in stack))
    calls = entered()
    files = {p.file for p in calls}
    own = {p.file for p in calls if p.file.startswith("operators/")}
    print(f"entered on the way: {len(set(calls))} functions, {len(files)} files, {len(own)} of them in operators")


if __name__ == "__main__":
    main()
