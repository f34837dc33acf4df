"""The library's errors by what a caller can do about them.
Messages name path or sample, value, bound, and what to do next."""


class ShardError(Exception):
    """The base of all errors that the library reports."""


class InvalidArgumentError(ShardError, ValueError):
    """An option or argument is out of its bounds: change it."""


class NotFoundError(ShardError, FileNotFoundError):
    """A path does not exist, or is no finished data set."""


class IoError(ShardError, OSError):
    """The system refused a read or write, or the device failed: free space, fix rights, try again."""


class CorruptError(ShardError, RuntimeError):
    """The bytes break the format or a checksum: restore the file or convert again."""


class UnsupportedError(ShardError, RuntimeError):
    """Valid, but of a kind that this build, platform or process (after fork) does not handle."""


class ResourceError(ShardError, RuntimeError):
    """A stated or system limit would be exceeded: memory, descriptors,
    or all batches of a loader are held."""


class ConversionWarning(UserWarning):
    """A conversion did what it was asked to, and something should be known: inputs that are not in the data
    set, classes that other data beside the images number in another way, images that are enlarged.
    `warnings.simplefilter("error", sl.ConversionWarning)` makes it an error."""


class CancelledError(ShardError, RuntimeError):
    """Loader.cancel() or Loader.close() was called."""
