package desk_test

import (
	"regexp"
	"testing"

	"vitrine/service/desk"
)

// The page loads what is embedded, and nothing from elsewhere.
func TestFiles(t *testing.T) {
	files := desk.Files()
	index, ok := files["index.html"]
	if !ok || index.Type != "text/html; charset=utf-8" {
		t.Fatalf("index.html is %q, there %t", index.Type, ok)
	}
	sources := regexp.MustCompile(`(?:src|href)="([^"]*)"`).FindAllSubmatch(index.Body, -1)
	if len(sources) < 3 {
		t.Errorf("index.html loads %d files", len(sources))
	}
	for _, m := range sources {
		if source := string(m[1]); source != "data:," && files[source[len("./"):]].Body == nil {
			t.Errorf("index.html loads %s, which is not there", source)
		}
	}
	tags := map[string]string{}
	for name, f := range files {
		if other, ok := tags[f.Tag]; ok {
			t.Errorf("%s and %s have the tag %s", name, other, f.Tag)
		}
		tags[f.Tag] = name
	}
}
