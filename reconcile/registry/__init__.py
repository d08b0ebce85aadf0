"""The registry of tools as people work with it: measured, checked, previewed, taken in and out."""
