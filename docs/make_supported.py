"""Write docs/supported.md anew from the code: ``python docs/make_supported.py``."""

from pathlib import Path

import heliograph as hg

INTRODUCTION = """# What is supported

The table lists every factor, every direction in which it sends messages, the families that it takes, and how the message is
computed. It is the output of `heliograph.supported()`, written by `python docs/make_supported.py`; a test compares the two.

Black-box factors (`@hg.factor`) are not in it: they take any of these families at their inputs and as their output.

"""

if __name__ == "__main__":
    Path(__file__).with_name("supported.md").write_text(INTRODUCTION + hg.supported().markdown() + "\n")
