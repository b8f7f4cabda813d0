"""LeRobot where it is installed, on the versions of torch that are had today."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_KEPT = []  # what is registered with torch lasts as long as its library


def import_torchvision() -> Any:
    """
    Import torchvision, also one that was built for another torch, as one for CUDA beside the CPU's.

    Its compiled part then cannot be loaded, and it looks for two operators of it that LeRobot
    never calls: they are declared.
    """
    import torch  # noqa: PLC0415

    try:
        import torchvision  # noqa: PLC0415
    except RuntimeError:
        library = torch.library.Library("torchvision", "FRAGMENT")
        for name in ("nms", "qnms"):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        _KEPT.append(library)
        import torchvision  # noqa: PLC0415

    return torchvision


def import_datasets() -> Any:
    """
    Import ``LeRobotDataset``.

    Newer ones of torchvision have no reader of videos, which LeRobot 0.4 asks for where there is no
    torchcodec: PyAV stands in for it.
    """
    torchvision = import_torchvision()
    if not hasattr(torchvision.io, "VideoReader"):
        torchvision.io.VideoReader = _VideoReader
        torchvision.set_video_backend = lambda _: None
    from lerobot.datasets.lerobot_dataset import LeRobotDataset  # noqa: PLC0415

    return LeRobotDataset


class _VideoReader:
    """What LeRobot asks of the reader of videos that torchvision had."""

    def __init__(self, path: str, _stream: str) -> None:
        import av  # noqa: PLC0415

        self.container = av.open(path)
        self._stream = self.container.streams.video[0]

    def seek(self, at_s: float, *, keyframes_only: bool = False) -> None:  # noqa: ARG002
        at = int(at_s / self._stream.time_base)
        self.container.seek(at, stream=self._stream, backward=True)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        import torch  # noqa: PLC0415

        for frame in self.container.decode(self._stream):
            pixels = torch.from_numpy(frame.to_ndarray(format="rgb24"))
            yield {"pts": frame.time, "data": pixels.permute(2, 0, 1)}
