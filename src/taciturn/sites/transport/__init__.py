"""Publish, ask, deliver: how the frames of the protocol travel, in the world or in memory."""
