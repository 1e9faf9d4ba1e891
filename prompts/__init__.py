"""Every text the model sees, and the language packs: plain files, no code."""
