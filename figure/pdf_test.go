package figure

import (
	"bytes"
	"compress/zlib"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"

	"vitrine/internal/expect"
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
		expect.Contains(t, page, want, "the page lacks", what)
	}
}

// The built-in fonts lack 漢 and 🎉, and a PDF's table of glyphs ends at U+FFFF.
func TestCharactersWithoutAGlyph(t *testing.T) {
	var pdf, svg, boxes, blank bytes.Buffer
	picture := steep("漢 🎉", nine...)
	fatal.If(t, errors.Join(WritePDF(&pdf, picture), WriteSVG(&svg, picture), WritePNG(&boxes, picture),
		WritePNG(&blank, steep("  ", nine...))))
	expect.Contains(t, pdfPage(t, pdf.Bytes()), "\x25\xa1", "the PDF has no box for them")
	expect.Contains(t, svg.String(), "漢 🎉", "the SVG lacks them")
	if bytes.Equal(boxes.Bytes(), blank.Bytes()) {
		t.Error("the PNG is blank there")
	}
}

func TestWritePDFOfTractability(t *testing.T) {
	fatal.If(t, WritePDF(io.Discard, surveyed()))
}
