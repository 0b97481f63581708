//go:build unix

package experiment

import (
	"os/exec"
	"syscall"
)

// ownGroup puts the program and its children into a separate process group. Ctrl-C does not reach the group; the run
// ends it.
func ownGroup(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// killGroup kills the process group of a started program.
func killGroup(c *exec.Cmd) { _ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
