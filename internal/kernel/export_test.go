package kernel

// Paths returns the paths of this machine, generic first.
func Paths() []path {
	return []path{generic, avx2, avx512}[:best()+1]
}

// Choose chooses on a machine that has the first paths only: generic, avx2 and
// avx512.
func Choose(name string, paths int) (string, error) {
	p, err := choose(name, path(paths-1))
	return p.String(), err
}

// Use makes the kernels take a path and returns the function that undoes it.
func Use(p path) (restore func()) {
	previous := active
	active = p
	return func() { active = previous }
}
