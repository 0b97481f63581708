// Prints the most that a core computes, in Gflop/s of float64: fused multiply-adds
// on registers alone, which do not wait for each other.
#include <immintrin.h>
#include <stdio.h>
#include <time.h>

static double now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + 1e-9 * t.tv_nsec;
}

#ifdef __AVX512F__
typedef __m512d vector;
#define SET _mm512_set1_pd
#define FMA _mm512_fmadd_pd
#define LANES 8
#define COUNT 24
#else
typedef __m256d vector;
#define SET _mm256_set1_pd
#define FMA _mm256_fmadd_pd
#define LANES 4
#define COUNT 12
#endif

int main(void) {
	double least = 1e9;
	volatile double sink;
	for (int turn = 0; turn < 200; turn++) {
		vector sum[COUNT], a = SET(0.999999), b = SET(1e-9);
		for (int k = 0; k < COUNT; k++) sum[k] = SET(k);
		double start = now();
		const int times = 20000;
		for (int i = 0; i < times; i++) {
			#pragma GCC unroll 24
			for (int k = 0; k < COUNT; k++) sum[k] = FMA(sum[k], a, b);
		}
		double seconds = (now() - start) / ((double)times * COUNT * LANES * 2);
		if (seconds < least) least = seconds;
		for (int k = 0; k < COUNT; k++) sink = sum[k][0];
	}
	(void)sink;
	printf("%.1f\n", 1e-9 / least);
}
