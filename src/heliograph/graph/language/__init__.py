"""The functions of the modelling language, a file per subject: each writes to a `Draft` and gives a `Quantity`.

`continuous`, `noise`, `discrete`, `counts` and `lifetimes` make variables with a distribution of their own, `mixture` the one with
components, `chains` and `processes` whole rows of them; `linear` and `functions` make variables from variables; `statements`
records what was observed or holds. `children` is the common ground: a node, its plate, and its observed values. Start there.
`keywords` has the keywords that most words share.
`graph.builder.Builder` makes a method of each of these functions, whose arguments and docstring are what users see.
"""
