"""Measurements of totune's speed, as ratios taken side by side in one process."""
