"""A contract for import-linter: no package imports what another one keeps to itself."""

from __future__ import annotations

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, output


class PrivateModules(Contract):
    """A module whose name begins with an underscore is imported only from the package that it lies in."""

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:  # noqa: FBT001 - import-linter's signature
        """Look at every import."""
        broken = sorted(
            (importer, imported)
            for importer in graph.modules
            for imported in graph.find_modules_directly_imported_by(importer)
            if _is_foreign(importer, imported)
        )
        return ContractCheck(kept=not broken, metadata={"broken": broken})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Name the imports."""
        for importer, imported in check.metadata["broken"]:
            output.print_error(f"{importer} imports {imported}", bold=True)


def _is_foreign(importer: str, imported: str) -> bool:
    package, private, _ = imported.partition("._")
    return bool(private) and not imported.startswith("spanscore.__") and not f"{importer}.".startswith(f"{package}.")
