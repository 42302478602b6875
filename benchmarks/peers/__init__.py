"""Algorithms written by hand for one model each, to be compared with the engine: time, sweeps and numbers."""
