"""The daemon: channels, the turn, the model, tools and commands."""
