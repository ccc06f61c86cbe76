"""From the text of a query to the plan that maintains it: parse, lower, differentiate, optimize, bind, render."""
