"""What is kept about decisions beside the decisions: what was sent, and whether the chain holds."""
