"""Adapters: policies of other libraries, run in this process, as policies of vlmcore."""

from vlmcore_robotics.adapters.lerobot import FrameSize, LeRobotPolicy

__all__ = ["FrameSize", "LeRobotPolicy"]
