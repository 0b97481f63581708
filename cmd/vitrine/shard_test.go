package main

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"os"
	"regexp"

	"github.com/rogpeppe/go-internal/testscript"
)

// unseconds replaces the seconds that were measured in a file of results by 0, and removes processor
// seconds and the checksums of a journal.
func unseconds(ts *testscript.TestScript, _ bool, args []string) {
	edit(ts, args[0], func(text []byte) []byte {
		text = regexp.MustCompile(`("seconds": ?)[0-9.e-]+`).ReplaceAll(text, []byte("${1}0"))
		text = regexp.MustCompile(`"processor_seconds": ?[0-9.e-]+,\s*`).ReplaceAll(text, nil)
		text = regexp.MustCompile(`"crc":"[0-9a-f]+"`).ReplaceAll(text, []byte(`"crc":""`))
		return regexp.MustCompile(`(?m)^([^{"\n]*),[0-9.e-]+,[0-9.e-]*$`).ReplaceAll(text, []byte("$1,0,"))
	})
}

// otherregret changes the regrets of a journal, and keeps its checksums right.
func otherregret(ts *testscript.TestScript, _ bool, args []string) {
	edit(ts, args[0], func(text []byte) []byte {
		var out []byte
		for line := range bytes.Lines(text) {
			body := regexp.MustCompile(`,"crc":"[0-9a-f]+"}\n`).ReplaceAll(line, []byte("}"))
			body = bytes.Replace(body, []byte(`"regret":[`), []byte(`"regret":[7,`), 1)
			sum := crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli))
			out = fmt.Appendf(append(out, body[:len(body)-1]...), ",\"crc\":\"%08x\"}\n", sum)
		}
		return out
	})
}

// otherbuild makes a shard one of another build of the program.
func otherbuild(ts *testscript.TestScript, _ bool, args []string) {
	edit(ts, args[0], func(text []byte) []byte {
		return regexp.MustCompile(`"version": "[^"]*"`).ReplaceAll(text, []byte(`"version": "9.9.9+0"`))
	})
}

func edit(ts *testscript.TestScript, name string, change func([]byte) []byte) {
	path := ts.MkAbs(name)
	text, err := os.ReadFile(path)
	ts.Check(err)
	changed := change(text)
	if bytes.Equal(text, changed) {
		ts.Fatalf("%s: nothing changed", name)
	}
	ts.Check(os.WriteFile(path, changed, 0o644))
}
