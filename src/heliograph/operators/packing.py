"""Plates of messages as plain arrays and JSON; the code is in `families.packing` and `storage`."""

from heliograph.families.packing import family_named, pack, unpack
from heliograph.families.packing import join_plates as join
from heliograph.storage import below as part

__all__ = ["family_named", "join", "pack", "part", "unpack"]
