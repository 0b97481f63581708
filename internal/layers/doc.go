// Package layers holds the architecture as a test: imports only go down.
//
//	6  cmd/vitrine   bench   docs
//	5  config        figure
//	4  tune          choice   offpolicy   paper/theory   paper/tractability   service/server
//	3  bandit        experiment   paper/camera   paper/geometry   paper/imdb   service/decision   service/load
//	2  assortment    mle   env   service/eventlog/memlog   service/eventlog/natslog   internal/text
//	1  vitrine       utility   service/eventlog   internal/gram   internal/sparse
//	0  paper/experiments   service/client   internal/flock   internal/kernel   internal/replace   internal/state   internal/stream
//
// A package imports packages of lower layers only, none of its own. Two kinds
// of code stand apart:
//
//   - A contract battery x/xtest stands half a layer above x, and only tests
//     and other batteries import it.
//   - A _test.go file may import anything but the programs of layer 6, because
//     tests compare a package with what is built on it.
//
// The vector code of internal/kernel is for the numeric packages alone, which
// the test names.
//
// Every directory with Go files has a place in the table of the test: a new
// package goes to the lowest layer that its imports allow.
//
// The test reads the files itself. It does not ask the go command, so that a
// cached result never hides a file that has changed since.
package layers
