"""Data sets of robot episodes: LeRobotDataset, version 3.0, read and written."""

from vlmcore_robotics.datasets.lerobot_reader import LeRobotDatasetReader

__all__ = ["LeRobotDatasetReader"]
