#pragma omp declare reduction(smallest : float, double : \
    omp_out = min_propagate_nan(omp_out, omp_in)) initializer(omp_priv = omp_orig)
