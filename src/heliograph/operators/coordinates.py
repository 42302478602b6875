"""Members of each family as rows of numbers; the code is in `families.coordinates`."""

from heliograph.families.coordinates import Coordinates, event_size, logs_of, naturals_of, statistics_of

__all__ = ["Coordinates", "event_size", "logs_of", "naturals_of", "statistics_of"]
