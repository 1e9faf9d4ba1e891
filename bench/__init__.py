"""One program per published claim."""
