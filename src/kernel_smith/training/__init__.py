"""SFT and RL on those data sets. Needs the extra `[train]`."""
