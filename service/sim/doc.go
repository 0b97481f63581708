// Package sim plays a cluster of the service in one process, in virtual time, from a seed: processes that lead and
// follow, their callers and learners, and the NATS servers of their log. Everything that a network, a disk or a clock
// may do happens often. All of it is in tests:
//
//	go test ./service/sim                    a few seeds
//	go test ./service/sim -run TestSeed -seed N   one seed again, with a short trace
//	bench/sim.sh                             until it is stopped
//
//	servers_test.go   the servers of the log, and the network between them and a process
//	world_test.go     processes, callers, operators and faults
//	ledger_test.go    what must be true of the log, and of answers
//	disk_test.go      the log in a directory, on a disk in memory
//
// Processes are [vitrine/service/host.Run] as it is, over the store of package natslog as it is.
// docs/simulation.md says why.
package sim
