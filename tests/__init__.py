"""Tests of dsh-audit."""
