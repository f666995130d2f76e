"""`totune analyze`: why one way of adapting an encoder beats another."""
