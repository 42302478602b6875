"""Kernels on tuples of incoming messages: exact, and as random features."""

from heliograph.kernels.embeddings import Embedding, embed, embeddable
from heliograph.kernels.features import FeatureMap
from heliograph.kernels.joint_gaussian import JointGaussian
from heliograph.kernels.widths import joint_grid, mean_variances, median_distance2, median_heuristic

__all__ = [
    "Embedding",
    "FeatureMap",
    "JointGaussian",
    "embed",
    "embeddable",
    "joint_grid",
    "mean_variances",
    "median_distance2",
    "median_heuristic",
]
