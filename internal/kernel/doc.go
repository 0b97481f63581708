// Package kernel holds the inner loops of the module: plain functions on
// float64 slices and row-major matrices, which know nothing of choice models.
// They allocate nothing and keep nothing, and a result depends on the
// arguments alone, so that runs are repeatable bit for bit.
package kernel
