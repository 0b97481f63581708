// Package host runs the decision service as a library. It opens the log, restores the state from a
// snapshot and the entries after it, serves requests, writes snapshots, keeps versions to roll back
// to, and removes old entries. It opens the log again after a failed write.
//
// [Run] is the whole service and [Config] its configuration:
//
//	c, err := host.ReadConfig("service.toml")
//	...
//	err = host.Run(ctx, c, host.Options{Logger: slog.Default()})
package host
