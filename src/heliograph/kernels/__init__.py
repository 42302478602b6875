"""Kernels on tuples of incoming messages: exact, and as random features."""

from heliograph.kernels.embeddings import Embedding, embed, embeddable
from heliograph.kernels.expected_product import ExpectedProduct
from heliograph.kernels.features import FeatureMap, Kernel
from heliograph.kernels.joint_gaussian import JointGaussian
from heliograph.kernels.mean_variance import MeanVariance
from heliograph.kernels.product import Product
from heliograph.kernels.registry import KERNELS, feature_map_from_state, kernel_from_state
from heliograph.kernels.sum import Sum
from heliograph.kernels.widths import heuristic, joint_grid, mean_variances, median_distance2, median_heuristic

__all__ = [
    "KERNELS",
    "Embedding",
    "ExpectedProduct",
    "FeatureMap",
    "JointGaussian",
    "Kernel",
    "MeanVariance",
    "Product",
    "Sum",
    "embed",
    "embeddable",
    "feature_map_from_state",
    "heuristic",
    "joint_grid",
    "kernel_from_state",
    "mean_variances",
    "median_distance2",
    "median_heuristic",
]
