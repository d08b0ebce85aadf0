"""Cases from other people's bug reports, and the runner that judges a folder of them."""
