"""The functions of the modelling language, a file per subject: each writes to a `Draft` and gives a `Quantity`.

`continuous` and `discrete` make variables with a distribution of their own, `mixture` the one with components; `linear` and
`functions` make variables from variables; `statements` records what was observed or holds. `children` is the common ground:
a node, its plate, and its observed values. Start there. The methods of `graph.builder.Builder` call these functions one for
one.
"""
