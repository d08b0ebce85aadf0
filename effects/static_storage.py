"""How static files are kept: under names that change with their contents, and gzipped."""

from typing import Any, override

from whitenoise.compress import Compressor
from whitenoise.storage import CompressedManifestStaticFilesStorage


class GzippedManifestStorage(CompressedManifestStaticFilesStorage):  # type: ignore[misc] # untyped.
    """Leaves Brotli out: where its package is installed, it adds half a minute to a start."""

    @override
    def create_compressor(self, **kwargs: Any) -> Compressor:
        return Compressor(**{**kwargs, "use_brotli": False})
