package figure

import (
	"bytes"
	"compress/zlib"
	"io"
	"regexp"
	"strings"
	"testing"

	"vitrine/internal/fatal"
)

// pdfPage returns the page's content from its compressed streams.
func pdfPage(t *testing.T, file []byte) string {
	t.Helper()
	var page strings.Builder
	for _, m := range regexp.MustCompile(`(?s)stream\n(.*?)\nendstream`).FindAllSubmatch(file, -1) {
		r, err := zlib.NewReader(bytes.NewReader(m[1]))
		if err != nil {
			continue
		}
		text, err := io.ReadAll(r)
		if err == nil && bytes.Contains(text, []byte(" Tf ET")) {
			page.Write(text)
		}
	}
	return page.String()
}

func TestWritePDF(t *testing.T) {
	picture := steep("β_T = 10 − ε", nine...).With(Look{Paper: true})
	var first, second bytes.Buffer
	for _, w := range []*bytes.Buffer{&first, &second} {
		fatal.If(t, WritePDF(w, picture))
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("the same picture has other bytes")
	}
	if n := bytes.Count(first.Bytes(), []byte("(D:19700101000000)")); n != 2 ||
		bytes.Count(first.Bytes(), []byte("(D:")) != 2 {
		t.Errorf("%d of its two dates are fixed", n)
	}
	for _, want := range []string{"%PDF-1.", "/FontFile2"} {
		if !bytes.Contains(first.Bytes(), []byte(want)) {
			t.Errorf("the file lacks %q", want)
		}
	}
	if size := first.Len(); size > 200_000 {
		t.Errorf("the file has %d bytes: are the fonts whole in it?", size)
	}
	if bytes.Contains(first.Bytes(), []byte("/Subtype /Image")) {
		t.Error("the file has an image")
	}
	page := pdfPage(t, first.Bytes())
	for what, want := range map[string]string{
		"the vermilion of ε-greedy-MNL": "0.835 0.369 0.000 RG",
		"its dashes":                    "[16.000 3.000] 0.000 d",
		"ε in UTF-16":                   "\x03\xb5",
		"a band that is transparent":    " gs",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s, %q", what, want)
		}
	}
}

func TestWritePDFOfTractability(t *testing.T) {
	fatal.If(t, WritePDF(io.Discard, surveyed()))
}
