"""Wire formats of both makers: facts of a request, of a response and of a stream. Import ``wire.base``."""
