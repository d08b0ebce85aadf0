"""What a dying stream can cost, and what it has cost already: measured, rolled up and shown.

`measuring` is the arithmetic alone; `rollup` reads the record in ranges and keeps sums; `facts`,
`levels`, `trends` and `weekly` read those sums for the pages.
"""
