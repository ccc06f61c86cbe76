"""What a query is: relational operators over named columns, with scalars inside them."""
