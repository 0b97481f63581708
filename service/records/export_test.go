package records

import (
	"strconv"

	"vitrine/service/api"
)

// Row returns the bytes of a row of texts.
func Row(texts []string) []byte {
	r, header := row{place: "line 2", fields: fields{}}, make([]string, len(texts))
	for j, text := range texts {
		header[j] = strconv.Itoa(j)
		r.fields[header[j]] = api.Text("", text)
	}
	return appendRow(nil, r, header)
}

// ReadRow returns the texts of a row of columns.
func ReadRow(data []byte, columns int) (map[string]string, error) {
	header := make([]string, columns)
	for j := range header {
		header[j] = strconv.Itoa(j)
	}
	r, err := readRow(data, header)
	texts := map[string]string{}
	for name, v := range r.fields {
		texts[name] = v.Text
	}
	return texts, err
}

// SortIn makes sorts keep rows in so many bytes, until the function that it returns is called.
func SortIn(bytes int) (undo func()) {
	before := sortMemory
	sortMemory = bytes
	return func() { sortMemory = before }
}
