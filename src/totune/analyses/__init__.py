"""Why one way of adapting beats another: each analysis is a file of its own."""
