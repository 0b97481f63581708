package kernel

// Paths returns the paths of this machine, generic first.
func Paths() []path {
	return []path{generic, avx2, avx512}[:best()+1]
}

// Choose chooses a path for a machine that supports only the first paths of generic, avx2 and avx512.
func Choose(name string, paths int) (string, error) {
	p, err := choose(name, path(paths-1))
	return p.String(), err
}

// Use switches the kernels to a path and returns a function that switches back.
func Use(p path) (restore func()) {
	previous := active
	active = p
	return func() { active = previous }
}
