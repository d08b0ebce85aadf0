"""Whether the installation does its work, part by part, as people can see and act on it."""
