"""Explores every interleaving of contenders over one record, with the real engine."""
