"""Kernels on tuples of incoming messages: how alike two tuples are, exactly and as random features.

Start with `embeddings`, a tuple as a kernel sees it, and `joint_gaussian`, the paper's kernel; `mean_variance`,
`expected_product`, `sum` and `product` are the alternatives of its appendix, one file each. `features` makes a map of any
of them, `widths` chooses their parameters, `registry` finds them by name. `inner_products` and `characteristic` are
the mathematics below.
"""

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
