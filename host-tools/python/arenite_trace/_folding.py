"""Parametrized weights, such as those of weight norm: computed once, so that the layer has the weight that inference reads."""

from __future__ import annotations

import copy
import importlib

import torch
from torch.nn.utils import parametrize


def copied(module: torch.nn.Module) -> torch.nn.Module:
    """A copy. A tensor that a hook computed of parameters has no copy of its own in PyTorch, and gets its values."""
    known: dict[int, object] = {}
    for part in module.modules():
        for value in vars(part).values():
            if isinstance(value, torch.Tensor) and not value.is_leaf:
                known[id(value)] = value.detach().clone()
    return copy.deepcopy(module, known)


def fold_parametrizations(network: torch.nn.Module) -> None:
    """Those of ``torch.nn.utils.parametrizations``, and the hooks of ``weight_norm`` and ``spectral_norm`` before them."""
    # torch.nn.utils has functions of the same names.
    hooks = [
        (importlib.import_module(f"torch.nn.utils.{name}"), kind)
        for name, kind in (("weight_norm", "WeightNorm"), ("spectral_norm", "SpectralNorm"))
    ]
    with torch.no_grad():
        for part in list(network.modules()):
            if parametrize.is_parametrized(part):
                _plain(part)
            for key, hook in list(part._forward_pre_hooks.items()):
                if any(isinstance(hook, getattr(source, kind, ())) for source, kind in hooks):
                    hook.remove(part)
                    del part._forward_pre_hooks[key]


def _plain(part: torch.nn.Module) -> None:
    """As ``parametrize.remove_parametrizations``, which would also take the parametrization from the class that the copy shares."""
    values = {name: getattr(part, name).detach() for name in part.parametrizations}  # type: ignore[union-attr, operator]
    part.__class__ = part.__class__.__bases__[0]
    del part._modules["parametrizations"]
    for name, value in values.items():
        part.register_parameter(name, torch.nn.Parameter(value, requires_grad=False))
