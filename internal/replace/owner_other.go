//go:build !unix

package replace

import "os"

func own(*os.File, os.FileInfo) error { return nil }
