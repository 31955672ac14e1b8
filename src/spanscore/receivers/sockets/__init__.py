"""Listening sockets and the HTTP/1.1 that is spoken on them."""
