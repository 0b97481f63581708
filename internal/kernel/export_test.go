package kernel

// Paths returns the paths of this machine, generic first.
func Paths() []path {
	return []path{generic, avx2, avx512}[:best()+1]
}

// ChooseWithoutVectors chooses on a machine that has the generic path alone.
func ChooseWithoutVectors(name string) (string, error) {
	p, err := choose(name, generic)
	return p.String(), err
}

// Use makes the kernels take a path and returns the function that undoes it.
func Use(p path) (restore func()) {
	previous := active
	active = p
	return func() { active = previous }
}
