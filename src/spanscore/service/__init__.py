"""The standalone receiver: its sockets, its event loop, its life from start to a clean end."""
