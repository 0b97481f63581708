// Package layers holds the architecture as a test: imports only go down.
//
// A package imports packages of lower layers only, none of its own. Three kinds
// of code stand apart:
//
//   - internal/hint and internal/portable import nothing of ours, and layer 0 may import them.
//   - A contract battery x/xtest stands half a layer above x, and only tests
//     and other batteries import it.
//   - A _test.go file may import anything except a program of the highest layer, because
//     tests compare a package with what is built on it.
//
// The service and the workbench (experiment, figure, tune, config, paper) do not import each other,
// and the library imports neither.
//
// The vector code of internal/kernel is only for the numeric packages, which the test
// names.
//
// The table of the test has every directory with Go files. A new package goes to the lowest layer
// that its imports allow.
//
// The test reads the files itself. It does not ask the go command, so that a
// cached result never hides a file that has changed since.
package layers
