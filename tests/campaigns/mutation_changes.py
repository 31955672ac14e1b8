"""Makes the changes of the campaign of mutants: one small mistake at a time in a module's syntax tree."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

_COMPARISONS: Final[Mapping[type[ast.cmpop], tuple[type[ast.cmpop], ...]]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
_OPERATORS: Final[Mapping[type[ast.operator], type[ast.operator]]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
_FUNCTIONS: Final = {"min": "max", "max": "min", "any": "all", "all": "any"}
_ONLY_SAID: Final = frozenset({"strict", "init", "repr", "compare"})
"""Arguments of zip, which checks what holds anyway, and of the fields of dataclasses."""
_ALREADY_TURNED: Final = (ast.Compare, ast.BoolOp, ast.UnaryOp)
"""Conditions that are changed as what they are."""


class Change(NamedTuple):
    """One mistake: a node of the tree becomes another."""

    number: int
    """Among those of the module."""
    line: int
    code: str
    """The line as it is, without indentation."""
    what: str
    run: range
    """The lines of its statement, without those of a body: a test that runs none of them does not see it."""


class _Place(NamedTuple):
    parent: ast.AST
    field: str
    index: int | None
    node: ast.AST
    run: range

    def put(self, node: ast.AST) -> None:
        if self.index is None:
            setattr(self.parent, self.field, node)
        else:
            getattr(self.parent, self.field)[self.index] = node


def changes(source: str) -> list[Change]:
    """Return all changes that are made to a module, in the order of its nodes."""
    lines = source.splitlines()
    return [
        Change(number, line, lines[line - 1].strip(), _told(place.node, new), place.run)
        for number, (place, new) in enumerate(_changes(ast.parse(source)))
        for line in [getattr(place.node, "lineno", 1)]
    ]


def changed(source: str, number: int) -> ast.Module:
    """Return the tree of a module with one of its changes made."""
    tree = ast.parse(source)
    place, new = [*_changes(tree)][number]
    place.put(ast.copy_location(new, place.node))
    return ast.fix_missing_locations(tree)


def _changes(tree: ast.Module) -> Iterator[tuple[_Place, ast.AST]]:
    for place in _places(tree):
        for new in _alternatives(place.node):
            yield place, new
        is_condition = place.field in {"test", "ifs"} and not isinstance(place.parent, ast.Assert)
        if is_condition and not isinstance(place.node, _ALREADY_TURNED):
            yield place, ast.UnaryOp(ast.Not(), place.node)


def _places(parent: ast.AST, run: range = range(0)) -> Iterator[_Place]:
    """Go through what is run, and not through what is only said of it: annotations, decorators, kinds of fields."""
    if isinstance(parent, ast.AnnAssign) and ast.unparse(parent.annotation) == "TypeAlias":
        return
    for field, value in ast.iter_fields(parent):
        if field in {"annotation", "returns", "decorator_list"}:
            continue
        for index, node in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if not isinstance(node, ast.AST) or (isinstance(node, ast.keyword) and node.arg in _ONLY_SAID):
                continue
            own = _header(node) if isinstance(node, ast.stmt) else run
            yield _Place(parent, field, index, node, own)
            yield from _places(node, own)


def _header(node: ast.stmt) -> range:
    body = getattr(node, "body", None)
    return range(node.lineno, max(node.lineno + 1, body[0].lineno) if body else (node.end_lineno or node.lineno) + 1)


def _alternatives(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.expr():
            yield from _other_expressions(node)
        case ast.Return(value=value) if value is not None and not _is_none(value):
            yield ast.Return(ast.Constant(None))
        case ast.AugAssign(target=target, op=op, value=value):
            yield ast.AugAssign(target, _OPERATORS[type(op)](), value)
            yield ast.Pass()
        case ast.Expr(value=value) if not isinstance(value, ast.Constant):
            yield ast.Pass()
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield ast.Pass()
        case ast.Raise() | ast.Continue() | ast.Break() | ast.Delete():
            yield ast.Pass()


def _other_expressions(node: ast.expr) -> Iterator[ast.expr]:
    match node:
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            for index, op in enumerate(ops):
                for other in _COMPARISONS[type(op)]:
                    yield ast.Compare(left, [*ops[:index], other(), *ops[index + 1 :]], comparators)
        case ast.BoolOp(op=op, values=values):
            yield ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values)
        case ast.UnaryOp(operand=operand):
            yield operand
        case ast.BinOp(left=left, op=op, right=right):
            yield ast.BinOp(left, _OPERATORS[type(op)](), right)
        case ast.Constant(value=bool() as value):
            yield ast.Constant(not value)
        case ast.Constant(value=int() | float() as value):
            yield ast.Constant(value + 1)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=keywords) if name in _FUNCTIONS:
            yield ast.Call(ast.Name(_FUNCTIONS[name], ast.Load()), args, keywords)


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _told(old: ast.AST, new: ast.AST) -> str:
    was, becomes = (ast.unparse(ast.fix_missing_locations(node)).partition("\n")[0] for node in (old, new))
    return f"without {was}" if isinstance(new, ast.Pass) else f"{was} -> {becomes}"
