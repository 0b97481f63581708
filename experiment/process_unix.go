//go:build unix

package experiment

import (
	"os/exec"
	"syscall"
)

// ownGroup puts the program, and those that it starts, in a group of processes. Ctrl-C does not reach the group: the run ends it.
func ownGroup(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// killGroup kills the group of a program that has been started.
func killGroup(c *exec.Cmd) { _ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
