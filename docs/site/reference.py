"""The reference of the Python package, as Markdown: every public name, with the signature that is made from
the declared options, and its docstring."""

import enum
import inspect
import re
import types
import typing

import shardloader as sl

# Page, heading, names in this order. A name that is on no page is on the last one.
PAGES = (
    (
        "loading",
        "Loading",
        "Loader Epoch Batch Stats Sampling MemoryOptions RemoteOptions buckets Tensor doctor Diagnosis "
        "cuda_device_count has_cuda",
    ),
    (
        "datasets",
        "Data sets",
        "Dataset Source ImageCache CacheProgress concat mix Mix Fields Field RaggedArray Columns Keys Sheet "
        "Finding to_parquet",
    ),
    (
        "converting",
        "Converting",
        "convert Conversion Progress Writer write ImageField Ragged Text plan Plan convert_shard ShardResult "
        "finish",
    ),
    ("augmentation", "Augmentation", "Augment MixPairs ops Operation Instruction"),
    ("targets", "Targets", "Pixels Boxes Keypoints Geometry"),
    ("jpeg", "JPEG files", "decode_jpeg DecodedImages"),
    ("errors", "Errors and the rest", "ShardError ConversionWarning"),
)
ITEM = re.compile(r"^(\w+(?:, \w+)*): (.*)")


def escaped(text):
    """Text whose code is in backticks: nothing else of it is markup."""
    parts = re.split(r"(``?[^`]+``?)", text)
    return "".join(
        part if i % 2 else re.sub(r"([*_<>\[\]|\\])", r"\\\1", part) for i, part in enumerate(parts)
    )


def block_of(lines):
    """One paragraph of a docstring, which may have items (`name: text`, continued by indented lines)."""
    if all(line.startswith("    ") for line in lines):
        return "```python\n" + "\n".join(line[4:] for line in lines) + "\n```\n"
    out, in_item = [], False
    for line in lines:
        item = ITEM.match(line)
        if item and not item.group(1)[0].isupper():
            names = ", ".join(f"`{name}`" for name in item.group(1).split(", "))
            out.append(f"- {names}: {escaped(item.group(2))}")
            in_item = True
        elif in_item and line.startswith("    "):
            out.append("  " + escaped(line.strip()))
        else:
            if in_item:
                out.append("")
            in_item = False
            out.append(escaped(line.strip()))
    text, before = [], ""
    for line in out:  # a list begins after an empty line
        if line.startswith("- ") and before and not before.startswith(("- ", "  ")):
            text.append("")
        text.append(line)
        before = line
    return "\n".join(text) + "\n"


def markdown_of(docstring):
    blocks, block = [], []
    for line in [*inspect.cleandoc(docstring or "").splitlines(), ""]:
        if line.strip():
            block.append(line)
        elif block:
            blocks.append(block_of(block))
            block = []
    return "\n".join(blocks)


def shown(value):
    return re.sub(r"<(?:class|function) '?([\w.]+)'?.*?>", r"\1", repr(value))


def kind_of(annotation):
    """A type as one writes it."""
    if isinstance(annotation, str):
        text = annotation
    elif typing.get_origin(annotation) in (typing.Union, types.UnionType):
        text = " | ".join(kind_of(part) for part in typing.get_args(annotation))
    else:
        text = inspect.formatannotation(annotation)
    return re.sub(r"\b(?:collections\.abc|typing|shardloader(?:\._\w+(?:\.\w+)?)?)\.", "", text).replace(
        "NoneType", "None"
    )


def signature_of(name, thing):
    try:
        signature = inspect.signature(thing)
    except (TypeError, ValueError):
        return name
    parameters, before = [], None
    for parameter in signature.parameters.values():
        if parameter.name == "self":
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and before not in (
            parameter.KEYWORD_ONLY,
            parameter.VAR_POSITIONAL,
        ):
            parameters.append("*")
        before = parameter.kind
        text = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(
            parameter.kind, ""
        ) + parameter.name
        if parameter.annotation is not parameter.empty:
            text += f": {kind_of(parameter.annotation)}"
        if parameter.default is not parameter.empty:
            text += f" = {shown(parameter.default)}"
        parameters.append(text)
    line = f"{name}({', '.join(parameters)})"
    if len(line) > 90:
        line = f"{name}(\n" + "".join(f"    {text},\n" for text in parameters) + ")"
    return line


def signature_and_text(name, thing):
    return f"```python\n{signature_of(name, thing)}\n```\n\n{markdown_of(thing.__doc__)}\n"


def members_of(kind):
    """Public members in the order of their definition: (name, member as it is in the class)."""
    found = {}
    for one in reversed([base for base in kind.__mro__ if base.__module__.startswith("shardloader")]):
        found.update(vars(one))
    special = ("__getitem__", "__len__", "__iter__", "__call__", "__enter__")
    return [
        (name, member)
        for name, member in found.items()
        if (not name.startswith("_") or name in special)
        and (getattr(member, "__doc__", None) or not name.startswith("__"))
    ]


def entry_of_member(owner, name, member):
    if isinstance(member, (classmethod, staticmethod)):
        member = member.__func__ if isinstance(member, staticmethod) else getattr(owner, name)
        return f"{owner.__name__}.{name}", member, True
    return name, member, callable(member)


def entry(name, thing, level=2):
    """The text about one name."""
    head = "#" * level + f" {escaped(name)}\n\n"
    doc = thing.__doc__ if inspect.isclass(thing) or callable(thing) or name == "ops" else None
    if name == "ops":
        text = head + markdown_of(inspect.getdoc(thing) or "The operations of augmentation.") + "\n"
        for one in sorted(part for part in dir(thing) if not part.startswith("_")):
            operation = getattr(thing, one)
            if callable(operation):
                text += f"### ops.{escaped(one)}\n\n" + signature_and_text(f"ops.{one}", operation)
        return text
    if not (inspect.isclass(thing) or callable(thing)):
        return head + f"`{name}`: {escaped(repr(thing))}\n\n"
    text = head
    if inspect.isclass(thing) and issubclass(thing, (Exception, enum.Enum)):
        bases = ", ".join(
            f"`{base.__name__}`"
            for base in thing.__mro__[1:]
            if base not in (object, BaseException, Exception)
        )
        return text + (f"Also a {bases}.\n\n" if bases else "") + markdown_of(doc) + "\n"
    text += signature_and_text(name, thing)
    if not inspect.isclass(thing):
        return text
    rows = []
    for member_name, member in members_of(thing):
        title, member, is_method = entry_of_member(thing, member_name, member)
        if is_method and not isinstance(member, property):
            text += f"{'#' * (level + 1)} {name}.{escaped(member_name)}\n\n" + signature_and_text(
                title, member
            )
        elif isinstance(member, property):
            rows.append((member_name, " ".join((member.__doc__ or "").split())))
    if rows:
        text += (
            f"**Attributes of {name}**\n\n"
            + "".join(f"- `{attribute}`: {escaped(doc)}\n" for attribute, doc in rows)
            + "\n"
        )
    return text


def named_thing(name):
    """How one writes it behind `sl.`, and what it is."""
    if name in sl.__all__:
        return name, getattr(sl, name)
    return f"types.{name}", getattr(sl.types, name)


def pages():
    """{page: its text}"""
    named = {name for _, _, names in PAGES for name in names.split()}
    public = [name for name in (*sl.__all__, *sl.types.__all__) if name != "types"]
    rest = [name for name in public if name not in named]
    found = {}
    for page, heading, names in PAGES:
        listed = [name for name in names.split() if name in public]
        if page == PAGES[-1][0]:
            listed += rest
        found[page] = f"# {heading}\n\n" + "".join(entry(*named_thing(name)) for name in listed)
    found["index"] = (
        "# Reference\n\nThe Python package `shardloader`, version "
        f"{sl.__version__}: `import shardloader as sl`. Signatures are made from the declared options.\n\n"
        "```{toctree}\n" + "\n".join(page for page, _, _ in PAGES) + "\n```\n"
    )
    return found
