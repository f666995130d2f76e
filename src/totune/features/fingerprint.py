"""A hash of the blocks that a cached view depends on, and of nothing above them.

Gradual unfreezing trains upper blocks while the lower stay pretrained; hashing only the prefix lets
every phase find what an earlier one stored, and a changed prefix never find a stale entry.
"""

import hashlib
import json
from collections.abc import Iterator
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from totune.encoders.encoder import Encoder

State = tuple[tuple[int, int, int], ...]  # of each tensor: address, version, checksum

# What a configuration says about its origin or later use, not about what the blocks compute.
_NOT_COMPUTED = {"architectures", "dtype", "id2label", "label2id", "problem_type"}
_NOT_COMPUTED |= {"transformers_version"}

_digests: WeakKeyDictionary[Encoder, dict[int, tuple[State, bytes]]] = WeakKeyDictionary()


def prefix_fingerprint(encoder: Encoder, depth: int) -> str:
    """A SHA-256 of the configuration and of the weights of blocks 0..depth as they are now.

    Blocks are hashed once and looked up after; an in-place change of a weight is noticed.
    """
    known = _digests.setdefault(encoder, {})
    digest = hashlib.sha256(_configuration(encoder).encode())
    for block in range(depth + 1):
        state = tuple(_state(tensor) for _, tensor in _tensors(encoder, block))
        if block not in known or known[block][0] != state:
            known[block] = (state, _block_digest(encoder, block))
        digest.update(known[block][1])
    return digest.hexdigest()


def _configuration(encoder: Encoder) -> str:
    """What decides the blocks' output apart from their weights, as text."""
    from transformers import PretrainedConfig  # takes a second to load

    configs = (getattr(module, "config", None) for module in encoder.modules())
    config = next((found for found in configs if isinstance(found, PretrainedConfig)), None)
    if config is None:
        return f"{encoder.kind} {encoder}"
    facts = {
        name: value
        for name, value in config.to_dict().items()
        if name not in _NOT_COMPUTED and not name.startswith("_")
    }
    return f"{encoder.kind} {json.dumps(facts, sort_keys=True, default=str)}"


def _tensors(encoder: Encoder, block: int) -> Iterator[tuple[str, Tensor]]:
    yield from encoder.block_parameters(block)
    for prefix, module in encoder.block_modules(block).items():
        for name, buffer in module.named_buffers():
            yield f"{prefix}.{name}", buffer


def _state(tensor: Tensor) -> tuple[int, int, int]:
    """Changes whenever the numbers do, at the speed of memory.

    PyTorch's version counter alone is not enough: fused optimizers and edits through `.data` leave
    it as it was (PyTorch 2.13).
    """
    return tensor.data_ptr(), tensor._version, _checksum(tensor)


def _checksum(tensor: Tensor) -> int:
    flat = tensor.detach().contiguous().reshape(-1).view(torch.uint8)
    words = flat.numel() // 8 * 8
    aligned = flat.storage_offset() % 8 == 0
    total = int(flat[:words].view(torch.int64).sum()) if aligned else int(flat[:words].sum())
    return total + int(flat[words:].sum())


def _block_digest(encoder: Encoder, block: int) -> bytes:
    digest = hashlib.sha256()
    for name, tensor in _tensors(encoder, block):
        content = tensor.detach().cpu().contiguous()
        digest.update(f"{name}:{content.dtype}:{tuple(content.shape)}\n".encode())
        digest.update(content.reshape(-1).view(torch.uint8).numpy().data)
    return digest.digest()
