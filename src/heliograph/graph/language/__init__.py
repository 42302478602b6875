"""The words of the modelling language, a file per subject: functions that write to a `Draft` and give a `Quantity`.

`continuous` and `discrete` make variables with a distribution of their own, `mixture` the one with components; `linear` and
`functions` make variables from variables; `statements` says what was seen or holds. `children` is what they all come down
to: a node, its plate, and what was observed. The methods of `graph.builder.Builder` call these functions one for one.
"""
