"""Files: an archive of JSON and arrays, written in one step, checksummed, and read by one reader.

Start with `archive`, which is the file format; `trees` puts nested results with arrays inside into one, and `whole`
writes any bytes so that a file is there whole or not at all. What an archive means is said by those who write it:
learned factors (`factors.black_box.saving`) and finished parts of experiments (`paper.running.parts`).
"""

from heliograph.storage.archive import FORMAT, HEAD, MAGIC, Archive, below, read_archive, understanding, write_archive
from heliograph.storage.trees import flatten, unflatten
from heliograph.storage.whole import write_whole

__all__ = [
    "FORMAT",
    "HEAD",
    "MAGIC",
    "Archive",
    "below",
    "flatten",
    "read_archive",
    "understanding",
    "unflatten",
    "write_archive",
    "write_whole",
]
