"""Ids of types: how a spec names the type of an object."""


def type_id(module: str, name: str) -> str:
    """The id of a type in a spec: bare in the core, `paper/Type` in one of our papers, `package/Type` anywhere else."""
    parts = module.split(".")
    owner = parts[0]
    if owner == __name__.split(".")[0]:
        owner = parts[2] if parts[1:2] == ["papers"] and len(parts) > 3 else ""
    return f"{owner.replace('_', '-')}/{name}" if owner else name
