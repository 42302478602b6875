"""Kernels by name, and from their plain description back; nothing random is stored but the seed."""

from __future__ import annotations

from typing import Any

from heliograph.errors import FileFormatError
from heliograph.kernels.expected_product import ExpectedProduct
from heliograph.kernels.features import FeatureMap
from heliograph.kernels.joint_gaussian import JointGaussian
from heliograph.kernels.mean_variance import MeanVariance
from heliograph.kernels.product import Product
from heliograph.kernels.sum import Sum

__all__ = ["KERNELS", "feature_map_from_state", "kernel_from_state"]

KERNELS = {kernel.name: kernel for kernel in (JointGaussian, MeanVariance, ExpectedProduct, Sum, Product)}


def kernel_from_state(state: dict[str, Any]) -> Any:
    """The kernel that `state()` described.

    >>> k = JointGaussian(width2=(1.0, 2.0), gamma2=0.5)
    >>> kernel_from_state(k.state()) == k
    True
    """
    try:
        fields = {key: _tuples(value) for key, value in state.items() if key != "name"}
        return KERNELS[state["name"]](**fields)
    except (KeyError, TypeError, AttributeError) as error:
        raise FileFormatError(f"this is not the description of a kernel: {error!r}") from error


def feature_map_from_state(state: dict[str, Any]) -> FeatureMap:
    """The feature map that `state()` described, coefficient by coefficient the same."""
    try:
        kernel, seed, sizes = state["kernel"], int(state["seed"]), tuple(int(s) for s in state["sizes"])
    except (KeyError, TypeError, ValueError) as error:
        raise FileFormatError(f"this is not the description of a feature map: {error!r}") from error
    return FeatureMap(kernel_from_state(kernel), seed, sizes)


def _tuples(value: Any) -> Any:
    return tuple(_tuples(v) for v in value) if isinstance(value, list) else value
