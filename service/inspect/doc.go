// Package inspect reads the log of a decision service without changing it: [Open] opens a log, and the
// methods of [Log] check, compare, replay and export it. [Backup] copies it. The service may be
// running, because a log in a directory is copied first.
package inspect
