"""Data sets of robot episodes: LeRobotDataset, version 3.0, read and written."""

from vlmcore_robotics.datasets.lerobot_export import Pictures, RowsOf, export_lerobot
from vlmcore_robotics.datasets.lerobot_reader import LeRobotDatasetReader

__all__ = ["LeRobotDatasetReader", "Pictures", "RowsOf", "export_lerobot"]
