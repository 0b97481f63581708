//go:build slow

package filelog_test

const crashes, damages = 100, 120
