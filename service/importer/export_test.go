package importer

import (
	"context"
	"slices"
	"strconv"

	codec "vitrine/internal/fields"
	"vitrine/service/api"
	"vitrine/service/page"
	"vitrine/service/setup"
)

func columnNames(n int) (header []string) {
	for j := range n {
		header = append(header, strconv.Itoa(j))
	}
	return header
}

// Row returns the bytes of a row of texts.
func Row(texts []string) []byte {
	r, header := row{place: "line 2", fields: fields{}}, columnNames(len(texts))
	for j, text := range texts {
		r.fields[header[j]] = api.Text("", text)
	}
	w := codec.Writer(nil)
	r.pass(&w, header)
	return w.Rest()
}

// ReadRow returns the texts of a row of columns.
func ReadRow(data []byte, columns int) (map[string]string, error) {
	r, err := decodeRow(data, columnNames(columns))
	texts := map[string]string{}
	for name, v := range r.fields {
		texts[name] = v.Text
	}
	return texts, err
}

// Seen returns how many of n columns a source notes.
func Seen(n int) int {
	s := &source{seen: map[string]bool{}}
	s.see(slices.Values(columnNames(n)))
	return len(s.seen)
}

// SortIn makes sorts keep rows in so many bytes, until the function that it returns is called.
func SortIn(bytes int) (undo func()) {
	before := sortMemory
	sortMemory = bytes
	return func() { sortMemory = before }
}

// Read opens a log and reads it once, for no placement: events of Personalizer keep their ids.
func Read(ctx context.Context, path string, m *Mapping, c *setup.Config,
	each func(d *page.Imported) error) (*Report, error) {
	l, err := Open(ctx, path, m)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	return l.Read(ctx, "", c, each)
}

// SetMaxRows changes the max number of rows of a decision, until the test ends.
func SetMaxRows(t interface{ Cleanup(func()) }, n int) {
	was := maxRows
	maxRows = n
	t.Cleanup(func() { maxRows = was })
}
