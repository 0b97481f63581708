// Package inspect reads the log of a decision service without changing it: it checks, compares,
// replays, exports and backs up logs. The service may be running, because a log in a directory is
// copied first.
package inspect
