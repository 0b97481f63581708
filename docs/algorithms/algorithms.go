// Package algorithms holds the pages of the algorithms, one Markdown file each.
package algorithms

import (
	"embed"
	"fmt"
)

//go:embed *.md
var pages embed.FS

// Page returns the text of a page, named without its ending.
func Page(name string) (string, error) {
	text, err := pages.ReadFile(name + ".md")
	if err != nil {
		return "", fmt.Errorf("there is no page %q in docs/algorithms", name)
	}
	return string(text), nil
}
