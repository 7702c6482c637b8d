"""Tests that run the real harness or its released packages."""
