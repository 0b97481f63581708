// Command notices prints the licences of everything that is linked into the program for systems and machines such as linux/amd64.
package main

import (
	"fmt"
	"os"

	"package/licences"
)

func main() {
	modules, err := licences.Linked("../..", os.Args[1:])
	if err == nil {
		err = licences.Notices(os.Stdout, "../..", modules)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
