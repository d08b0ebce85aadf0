"""What to tell the customer: texts that admins edit, never sent by us."""
