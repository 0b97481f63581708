// Package layers tests the architecture: imports only go down.
//
// A package may import packages of lower layers only. There are three exceptions:
//
//   - internal/hint and internal/portable import no other package of the module, so even layer 0 may import them.
//   - A contract battery x/xtest is half a layer above x, and only tests and other batteries import it.
//   - A _test.go file may import anything except a program in the top layer, because tests compare a package with the
//     packages built on it.
//
// The service and the workbench (experiment, figure, tune, config, paper) do not import each other, and the library
// imports neither. Only the numeric packages listed in the test may import the vector code of internal/kernel.
//
// The test's table lists every directory with Go files. Put a new package in the lowest layer that its imports allow.
//
// The test reads the files itself instead of asking the go command, so that a cached result never hides a changed file.
package layers
