"""Telegram: the daemon's channel for it, one noun a module. Only `channel` is used from outside."""
