"""Bytes to messages and back: the frame, the codec, how user values are encoded, the size limits.

Pure: it neither sends nor receives, keeps no connection and decides nothing about the content.
Whatever bytes arrive, decoding returns a message or raises an error of `storm_py.errors`.
`storm_py.transport` moves the bytes; `storm_py.engine` gives the messages their meaning.
"""
