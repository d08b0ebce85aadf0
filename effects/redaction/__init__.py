"""What is hidden before it is stored: the rules of a workspace, kept and read."""
