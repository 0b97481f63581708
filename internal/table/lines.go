package table

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// IsObject reports whether the text of r starts with a JSON object, as JSON Lines do.
func IsObject(r *bufio.Reader) bool {
	start, _ := r.Peek(1 << 10) // the next read will return the same error
	return bytes.HasPrefix(bytes.TrimLeft(start, " \t\r\n"), []byte("{"))
}

// lineRecords reads the objects of JSON Lines. The member names form the columns. A value is the text of a string, the
// digits of a number, the JSON of a list or an object, and true or false, or, if numeric columns are detected, 1 or 0.
type lineRecords struct {
	r       *bufio.Reader
	bounded *Bounded
	line    int
	column  map[string]int
	record  []string
	strings []bool // by column: whether a value since the last call of bare was a string
	yes, no string
}

func newLines(r *bufio.Reader, names []string, texts bool) *lineRecords {
	bounded := NewBounded(r)
	l := &lineRecords{r: bufio.NewReaderSize(bounded, 1<<16), bounded: bounded, column: map[string]int{},
		record: make([]string, len(names)), strings: make([]bool, len(names)), yes: "1", no: "0"}
	if texts {
		l.yes, l.no = "true", "false"
	}
	for j, name := range names {
		l.column[name] = j
	}
	return l
}

// membersOf returns the names of all objects' members, in order of appearance.
func membersOf(r *bufio.Reader) (names []string, err error) {
	l := newLines(r, nil, false)
	for {
		err := l.object(func(name string, _ jsontext.Value) {
			if _, ok := l.column[name]; !ok {
				l.column[name] = len(names)
				names = append(names, name)
			}
		})
		if errors.Is(err, io.EOF) {
			return names, nil
		} else if err != nil {
			return nil, err
		}
	}
}

// object reads the next line that is not blank, and calls visit for each member.
func (l *lineRecords) object(visit func(name string, v jsontext.Value)) error {
	var text []byte
	for len(text) == 0 {
		l.bounded.Next()
		line, err := l.r.ReadBytes('\n')
		if len(line) == 0 && errors.Is(err, io.EOF) {
			return io.EOF
		} else if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("line %d: %w", l.line+1, Damaged(err))
		}
		l.line++
		text = bytes.TrimSpace(line)
	}
	wrong := func(err error) error { return fmt.Errorf("line %d: want a JSON object: %w", l.line, err) }
	in := jsontext.NewDecoder(bytes.NewReader(text))
	if token, err := in.ReadToken(); err != nil {
		return wrong(err)
	} else if token.Kind() != '{' {
		return wrong(fmt.Errorf("it is %.40q", text))
	}
	for in.PeekKind() == '"' {
		name, err := in.ReadToken()
		if err != nil {
			return wrong(err)
		}
		of := name.String()
		v, err := in.ReadValue()
		if err != nil {
			return wrong(err)
		}
		visit(of, v)
	}
	if _, err := in.ReadToken(); err != nil { // the closing brace
		return wrong(err)
	}
	if _, err := in.ReadToken(); !errors.Is(err, io.EOF) {
		return wrong(errors.New("there is text after it"))
	}
	return nil
}

func (l *lineRecords) next() (record []string, line int, err error) {
	clear(l.record)
	err = l.object(func(name string, v jsontext.Value) {
		j := l.column[name]
		switch v.Kind() {
		case 'n':
		case 't':
			l.record[j] = l.yes
		case 'f':
			l.record[j] = l.no
		case '"':
			text, _ := jsontext.AppendUnquote(nil, v)
			l.record[j], l.strings[j] = string(text), true
		default:
			_ = v.Compact() // it was read as a value
			l.record[j] = string(v)
		}
	})
	return l.record, l.line, err
}

func (l *lineRecords) bare(column int) bool {
	was := l.strings[column]
	l.strings[column] = false
	return !was
}
