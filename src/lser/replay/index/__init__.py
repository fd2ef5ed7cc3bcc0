"""The index behind LSER: code -> bucket -> slots in order of reward."""
