#pragma omp declare reduction(largest : float, double : \
    omp_out = max_propagate_nan(omp_out, omp_in)) initializer(omp_priv = omp_orig)
