/*
 * Row norms by OpenBLAS: for the n rows g of G and a symmetric d×d matrix P,
 * the forms gᵀPg. It prints a line "method n d nanoseconds" for
 *
 *   dgemm       T = G P alone
 *   dgemm+dots  T = G P, and the products of the rows of T and G
 *   dtrmm+dots  G copied to T, T = T L for a triangular L, and the squares of
 *               the rows of T (P = L Lᵀ is there already)
 *
 * the smallest of repeated calls, in double precision. One thread is up to the
 * caller: OPENBLAS_NUM_THREADS=1.
 */
#include <cblas.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

char *openblas_get_config(void);
char *openblas_get_corename(void);

static double now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return 1e9 * t.tv_sec + t.tv_nsec;
}

static double *random_matrix(size_t n) {
	double *a = aligned_alloc(64, (8 * n + 63) / 64 * 64);
	for (size_t i = 0; i < n; i++) {
		a[i] = drand48() - 0.5;
	}
	return a;
}

static double *g, *p, *t, *q;
static int n, d;

static void dots(const double *restrict a, const double *restrict b) {
	for (int i = 0; i < n; i++) {
		double s = 0;
		for (int j = 0; j < d; j++) {
			s += a[(size_t)i * d + j] * b[(size_t)i * d + j];
		}
		q[i] = s;
	}
}

static void dgemm(void) {
	cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, d, d, 1, g, d, p, d, 0, t, d);
}

static void dgemm_dots(void) {
	dgemm();
	dots(t, g);
}

static void dtrmm_dots(void) {
	memcpy(t, g, sizeof(double) * n * d);
	cblas_dtrmm(CblasRowMajor, CblasRight, CblasLower, CblasNoTrans, CblasNonUnit, n, d, 1, p, d, t, d);
	dots(t, t);
}

static void race(const char *name, void (*call)(void)) {
	double best = 1e300, start = now();
	for (int i = 0; i < 10 || now() - start < 1e9; i++) {
		double before = now();
		call();
		double took = now() - before;
		best = took < best ? took : best;
	}
	printf("%s %d %d %.0f\n", name, n, d, best);
}

int main(int argc, char **argv) {
	fprintf(stderr, "%s, kernels %s\n", openblas_get_config(), openblas_get_corename());
	for (int i = 1; i + 1 < argc; i += 2) {
		n = atoi(argv[i]), d = atoi(argv[i + 1]);
		g = random_matrix((size_t)n * d), p = random_matrix((size_t)d * d);
		t = random_matrix((size_t)n * d), q = random_matrix(n);
		race("dgemm", dgemm);
		race("dgemm+dots", dgemm_dots);
		race("dtrmm+dots", dtrmm_dots);
		free(g), free(p), free(t), free(q);
	}
}
