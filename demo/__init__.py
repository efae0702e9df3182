"""The layer at work on this machine: python -m demo."""
