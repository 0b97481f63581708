// Package inspect reads the log of a decision service without changing it. It checks a log, compares copies, replays
// it, exports its decisions and backs it up. The service may be running: what is read is a copy.
package inspect
