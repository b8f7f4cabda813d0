"""
Load a checkpoint once, in one way, in this process, and print what it took as JSON.

What the loader needs is imported before the clock starts. At its end every page is in memory: what
a loader maps, it is made to touch. The peak is that of resident memory above what was resident
before; pages of the page cache that are mapped count in it.

    python bench/weights/loads.py "vlmcore copy" FOLDER
"""

from __future__ import annotations

import argparse
import json
import mmap
import os
import queue
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

Load = Callable[[Path], Any]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().splitlines()[0])
    ways = WAYS | GPU_WAYS
    parser.add_argument("way", choices=sorted(ways))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--touch-gigabytes", type=float, default=0.0)
    parser.add_argument("--digest", action="store_true", help="of all tensors, after the clock")
    options = parser.parse_args(arguments)
    load = ways[options.way]()
    before = touch_and_free(int(options.touch_gigabytes * 1e9))
    started, cpu_started = time.perf_counter(), time.process_time()
    tensors = load(options.folder)
    seconds, cpu_seconds = time.perf_counter() - started, time.process_time() - cpu_started
    result = {
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
        "peak_mb": (resident_peak() - before) / 1e6,
        "file_mb": (options.folder / "model.flashpack").stat().st_size / 1e6,
    }
    if options.digest and isinstance(tensors, Mapping):
        result["digest"] = digest(tensors)
    print(json.dumps(result))
    return 0


def resident_peak() -> int:
    """Return the most memory that was resident at once so far, in bytes."""
    with Path("/proc/self/status").open(encoding="ascii") as file:
        return next(1024 * int(line.split()[1]) for line in file if line.startswith("VmHWM"))


def touch_and_free(nbytes: int) -> int:
    """Have the host give memory, free it, and return what is resident then, the new peak."""
    if nbytes:
        resident(nbytes).release()
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return resident_peak()


def digest(tensors: Mapping[str, Any]) -> str:
    """Hash names and bytes of all tensors, in the order of their names."""
    import torch  # noqa: PLC0415
    import xxhash  # noqa: PLC0415

    whole = xxhash.xxh3_128()
    for name in sorted(tensors):
        each = tensors[name]
        if isinstance(each, torch.Tensor):
            each = each.contiguous().view(-1).view(torch.uint8).cpu().numpy()
        whole.update(name.encode())
        whole.update(each.reshape(-1).view("u1"))
    return whole.hexdigest()


def touch(tensors: Mapping[str, Any]) -> Mapping[str, Any]:
    """Read one number of each page."""
    import torch  # noqa: PLC0415

    for each in tensors.values():
        flat = each.view(-1).view(torch.uint8)
        flat[::4096].sum().item()
        flat[-1].item()
    return tensors


def ours(way: str, name: str, *, is_compared: bool = False) -> Load:
    from vlmcore.weights.loading import load_weights  # noqa: PLC0415
    from vlmcore.weights.report import Way  # noqa: PLC0415
    from vlmcore.weights.verifying import Verification  # noqa: PLC0415

    how = Verification.WHOLE if is_compared else Verification.OFF
    if is_compared:
        from vlmcore.weights import _xxhash  # noqa: F401, PLC0415 - the door, opened before

    def load(folder: Path) -> Any:
        weights = load_weights(folder / name, way=Way(way), verification=how)
        arrays = {each: weights.raw(each) for each in weights}
        for array in arrays.values() if way == "views" else ():
            int(array[::4096].sum()) + int(array[-1])
        return arrays

    return load


def ours_on_gpu(name: str) -> Load:
    """Load onto a GPU; what its driver takes of memory and time is taken before."""
    import torch  # noqa: PLC0415

    from vlmcore.weights.modules import load_tensors  # noqa: PLC0415

    torch.zeros(1, device="cuda")

    def load(folder: Path) -> Any:
        tensors = load_tensors(folder / name, device="cuda")
        torch.cuda.synchronize()
        return tensors

    return load


def safetensors_on_gpu() -> Load:
    import torch  # noqa: PLC0415
    from safetensors.torch import load_file  # noqa: PLC0415

    torch.zeros(1, device="cuda")

    def load(folder: Path) -> Any:
        tensors = load_file(folder / "model.safetensors", device="cuda")
        torch.cuda.synchronize()
        return tensors

    return load


def bus_limit() -> Load:
    """Copy as many bytes as the pack has from pinned memory to a GPU, the same again and again."""
    import torch  # noqa: PLC0415

    chunk = 64 << 20
    out_of = torch.empty(chunk, dtype=torch.uint8, pin_memory=True)
    into = torch.empty(chunk, dtype=torch.uint8, device="cuda")

    def load(folder: Path) -> Any:
        for _ in range((folder / "model.flashpack").stat().st_size // chunk):
            into.copy_(out_of, non_blocking=True)
        torch.cuda.synchronize()

    return load


def safetensors_file(*, is_cloned: bool) -> Load:
    from safetensors.torch import load_file  # noqa: PLC0415

    def load(folder: Path) -> Any:
        tensors = load_file(folder / "model.safetensors")
        return {k: v.clone() for k, v in tensors.items()} if is_cloned else touch(tensors)

    return load


def safetensors_read() -> Load:
    from safetensors.torch import load_file  # noqa: PLC0415

    def load(folder: Path) -> Any:
        return load_file(folder / "model.safetensors", backend="pread")

    return load


def safetensors_open() -> Load:
    import torch  # noqa: F401, PLC0415 - which it would import itself, while the clock runs
    from safetensors import safe_open  # noqa: PLC0415

    def load(folder: Path) -> Any:
        with safe_open(folder / "model.safetensors", framework="pt") as file:
            return {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118

    return load


def flashpack(threads: int = 0, mib: int = 0, *, is_cloned: bool = False) -> Load:
    """Map a pack, or read it with *threads* and chunks of *mib*, which FlashPack is told so."""
    if threads:
        os.environ["FLASHPACK_CPU_PARALLEL_READ"] = "1"
        os.environ["FLASHPACK_READ_THREADS"] = str(threads)
        os.environ["FLASHPACK_READ_CHUNK_BYTES"] = str(mib << 20)
    from flashpack import deserialization  # noqa: PLC0415

    def load(folder: Path) -> Any:
        storage, meta = deserialization.read_flashpack_file(str(folder / "model.flashpack"))
        tensors = dict(deserialization.iterate_from_flash_tensor(storage, meta))
        if is_cloned:
            return {name: tensor.clone() for name, tensor in tensors.items()}
        return tensors if threads else touch(tensors)

    return load


def fastsafetensors(*, is_direct: bool = False) -> Load:
    os.environ["FASTSAFETENSORS_ODIRECT"] = str(int(is_direct))
    import torch  # noqa: F401, PLC0415 - as above
    from fastsafetensors import SafeTensorsFileLoader, SingleGroup  # noqa: PLC0415

    def load(folder: Path) -> Any:
        loader = SafeTensorsFileLoader(SingleGroup(), "cpu", nogds=True)
        loader.add_filenames({0: [str(folder / "model.safetensors")]})
        buffers = loader.copy_files_to_device()
        return {name: buffers.get_tensor(name) for name in loader.get_keys()}

    return load


def runai() -> Load:
    from runai_model_streamer import SafetensorsStreamer  # noqa: PLC0415

    def load(folder: Path) -> Any:
        with SafetensorsStreamer() as streamer:
            streamer.stream_file(str(folder / "model.safetensors"))
            return {name: tensor.clone() for name, tensor in streamer.get_tensors()}

    return load


def read_limit(flag: int, threads: int) -> Load:
    """Read the pack into resident memory, in chunks of 8 MiB, the same memory again and again."""
    chunk = 8 << 20
    spare: queue.SimpleQueue[memoryview] = queue.SimpleQueue()
    for _ in range(threads):
        spare.put(resident(chunk))

    def load(folder: Path) -> Any:
        fd = os.open(folder / "model.flashpack", os.O_RDONLY | flag)

        def read(at: int) -> int:
            memory = spare.get()
            count = os.preadv(fd, [memory], at)
            spare.put(memory)
            return count

        with ThreadPoolExecutor(threads) as pool:
            total = sum(pool.map(read, range(0, os.fstat(fd).st_size, chunk)))
        assert total == os.fstat(fd).st_size
        os.close(fd)

    return load


def copy_limit() -> Load:
    """Copy as many bytes as the pack has, from resident memory to resident memory, two threads."""
    chunk = 64 << 20
    pairs = [(resident(chunk), resident(chunk)) for _ in range(2)]

    def load(folder: Path) -> Any:
        left = (folder / "model.flashpack").stat().st_size // chunk

        def copy(i: int) -> None:
            into, out_of = (np.frombuffer(each, np.uint8) for each in pairs[i % 2])
            into[...] = out_of

        with ThreadPoolExecutor(2) as pool:
            list(pool.map(copy, range(left)))

    return load


def resident(nbytes: int) -> memoryview:
    """Allocate memory in large pages, and touch it."""
    memory = mmap.mmap(-1, nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_HUGEPAGE)
    np.frombuffer(memory, np.uint8)[::4096] = 1
    return memoryview(memory)


WAYS: dict[str, Callable[[], Load]] = {
    "limit: direct read": lambda: read_limit(os.O_DIRECT, 8),
    "limit: buffered read": lambda: read_limit(0, 2),
    "limit: copy in memory": copy_limit,
    "vlmcore views, safetensors": lambda: ours("views", "model.safetensors"),
    "vlmcore views, pack": lambda: ours("views", "model.flashpack"),
    "vlmcore copy, safetensors": lambda: ours("copy", "model.safetensors"),
    "vlmcore copy, pack": lambda: ours("copy", "model.flashpack"),
    "vlmcore views, pack, compared": lambda: ours("views", "model.flashpack", is_compared=True),
    "vlmcore copy, pack, compared": lambda: ours("copy", "model.flashpack", is_compared=True),
    "vlmcore views, safetensors, compared": lambda: ours(
        "views", "model.safetensors", is_compared=True
    ),
    "vlmcore copy, safetensors, compared": lambda: ours(
        "copy", "model.safetensors", is_compared=True
    ),
    "safetensors load_file, touched": lambda: safetensors_file(is_cloned=False),
    "safetensors load_file, cloned": lambda: safetensors_file(is_cloned=True),
    "safetensors load_file, pread": safetensors_read,
    "safetensors safe_open, cloned": safetensors_open,
    "flashpack mapped, touched": flashpack,
    "flashpack mapped, cloned": lambda: flashpack(is_cloned=True),
    "flashpack parallel 16 x 64 MiB": lambda: flashpack(16, 64),
    "flashpack parallel 4 x 32 MiB": lambda: flashpack(4, 32),
    "fastsafetensors buffered": fastsafetensors,
    "fastsafetensors direct": lambda: fastsafetensors(is_direct=True),
    "runai-model-streamer": runai,
}
GPU_WAYS: dict[str, Callable[[], Load]] = {
    "limit: bus": bus_limit,
    "vlmcore device, safetensors": lambda: ours_on_gpu("model.safetensors"),
    "vlmcore device, pack": lambda: ours_on_gpu("model.flashpack"),
    "safetensors load_file, device": safetensors_on_gpu,
}

if __name__ == "__main__":
    sys.exit(main())
