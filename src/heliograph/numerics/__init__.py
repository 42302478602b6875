"""Mathematics that knows no message: arrays in, arrays out. The first room; it imports none of the others.

Start with `checks` (what is a real number), then by need:

- special functions: `special` (SciPy's, with types), `gamma_function`, `excess`, `logarithms`, `count_masses`, and the
  inverses `inverse_digamma`, `inverse_dirichlet`, `inverse_logit_moments`;
- integrals of plates of one-dimensional densities: `panels` (fixed Gauss-Legendre panels), `adaptive_quadrature`,
  and `truncated_normal` (closed forms);
- linear algebra: `triangular` (batches of Cholesky factors), `symmetric` (functions of symmetric matrices),
  `polynomial_roots`, and `sparse` (Gaussians over many variables with a sparse precision);
- `joined_sets` (which numbers belong together), `assignment` (which row takes which column), `k_means`;
- running: `blas_threads` (BLAS on one thread), `chunks` (rows in blocks that fit the cache).
"""
