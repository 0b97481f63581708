// Package host runs the decision service: it opens the log, makes the state from a snapshot and the entries after it,
// serves requests, writes snapshots, keeps versions to roll back to, removes old entries, and opens the log again if it
// could not be written.
//
// [Run] is the whole service, and [Config] its configuration:
//
//	c, err := host.ReadConfig("service.toml")
//	...
//	err = host.Run(ctx, c, host.Options{Logger: slog.Default()})
package host
