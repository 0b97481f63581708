package desk_test

import (
	"bytes"
	"compress/gzip"
	"regexp"
	"testing"

	"vitrine/internal/fatal"
	"vitrine/service/desk"
)

// The page loads only embedded files.
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

// The first view, with its charts, loads less than 100 KB compressed.
func TestFirstPaint(t *testing.T) {
	files := desk.Files()
	loads := regexp.MustCompile("[\"`]\\./(?:desk/)?([\\w.-]+\\.(?:js|css))[\"`]")
	size, seen := 0, map[string]bool{}
	var visit func(name string, follow bool)
	visit = func(name string, follow bool) {
		if seen[name] {
			return
		}
		seen[name] = true
		f, ok := files[name]
		if !ok {
			t.Fatalf("%s is loaded, and not there", name)
		}
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		fatal.Or(w.Write(f.Body))(t)
		fatal.If(t, w.Close())
		size += b.Len()
		for _, m := range loads.FindAllSubmatch(f.Body, -1) {
			if follow {
				visit("desk/"+string(m[1]), true)
			}
		}
	}
	visit("index.html", false)
	visit("desk/index.js", false) // which names all views
	visit("desk/index.css", false)
	visit("desk/overview.js", true)
	if len(seen) < 6 || !seen["desk/chart.js"] {
		t.Fatalf("the overview loads only %d files", len(seen))
	}
	if size > 100_000 {
		t.Errorf("the first paint has %d bytes compressed", size)
	}
	t.Logf("%d files, %d bytes compressed", len(seen), size)
}
