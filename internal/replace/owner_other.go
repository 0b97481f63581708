//go:build !(linux || darwin)

package replace

import "os"

func own(*os.File, string, os.FileInfo) error { return nil }
