//go:build !unix

package experiment

import "os/exec"

func ownGroup(*exec.Cmd) {}

// killGroup kills a program that has been started, and not those that it has started itself.
func killGroup(c *exec.Cmd) { _ = c.Process.Kill() }
