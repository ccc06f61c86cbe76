"""WITH RECURSIVE over the rows of a relation, which are taken for the edges of a graph; it ends by a counter."""

from __future__ import annotations

from tests.properties.generator.dice import Around
from tests.properties.generator.subqueries import Subqueries
from tests.properties.tree import Call, Item, Join, Named, Recursion, Ref, Scalar, Select


class Recursions(Subqueries):
    def recursion(self, around: Around) -> Recursion | None:
        """What can be reached in a few steps, with the number of steps; None where there are no numbers."""
        # of the many rows of another recursion, far too many would be made
        edges_known = [known for known in around.relations if known.name not in self.recursions]
        tables = [known for known in edges_known if any(column.type == "int" for column in known.columns)]
        if not tables:
            return None
        self.relations_left -= 2
        edges = self.choice(tables)
        name, start, edge, found = self.fresh("r"), self.fresh("m"), self.fresh("m"), self.fresh("m")
        self.recursions.add(name)
        columns = (Ref("", self.fresh("n"), "int"), Ref("", self.fresh("n"), "int"))
        here, steps = (Ref(found, column.name, "int") for column in columns)
        starts = tuple(Ref(start, column.name, column.type) for column in edges.columns)
        ends = tuple(Ref(edge, column.name, column.type) for column in edges.columns)
        first = self.choice([field for field in starts if field.type == "int"])
        where = (self.predicate(starts),) if self.chance(0.5) else ()
        items = (Item(first, self.fresh("c")), Item(Call("0", "int"), self.fresh("c")))
        anchor = Select(items, Named(edges.name, start), where)
        from_, to = self.ends([field for field in ends if field.type == "int"])
        onwards = Join(
            Named(name, found), Named(edges.name, edge), "JOIN", (Call("({} = {})", "boolean", (here, from_)),)
        )
        step = Select(
            (Item(to, self.fresh("c")), Item(Call("({} + 1)", "int", (steps,)), self.fresh("c"))),
            onwards,
            (Call(f"({{}} < {self.few(1, 2, 2)})", "boolean", (steps,)),),
        )
        return Recursion(name, columns, anchor, step)

    def ends(self, integers: list[Ref]) -> tuple[Scalar, Scalar]:
        if len(integers) > 1 and self.chance(0.7):
            return integers[0], integers[-1]
        return integers[0], Call("(({} + 1) % 4)", "int", (integers[0],))
