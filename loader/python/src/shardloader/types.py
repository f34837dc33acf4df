"""Classes of what the package returns, for annotations and isinstance(). Nobody makes their objects by hand.

def train_step(batch: sl.types.Batch) -> float: ...
"""

from ._augment import Instruction
from ._batch import Batch
from ._cache import CacheProgress, ImageCache
from ._convert import Conversion
from ._core import Tensor
from ._dataset import Columns, Finding, Keys, Mix
from ._diagnosis import Diagnosis
from ._fields import Field, Fields, RaggedArray
from ._jpeg import DecodedImages
from ._loader import Epoch
from ._operations import Operation
from ._plan import Plan, ShardResult
from ._progress import Progress
from ._show import Sheet
from ._statistics import Stats
from ._targets import Geometry

__all__ = [
    "Batch",
    "CacheProgress",
    "Columns",
    "Conversion",
    "DecodedImages",
    "Diagnosis",
    "Epoch",
    "Field",
    "Fields",
    "Finding",
    "Geometry",
    "ImageCache",
    "Instruction",
    "Keys",
    "Mix",
    "Operation",
    "Plan",
    "Progress",
    "RaggedArray",
    "ShardResult",
    "Sheet",
    "Stats",
    "Tensor",
]
