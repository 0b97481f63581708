package commandline

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/alecthomas/kong"
)

// Manual returns a program's page of the manual in the language of man(7).
func Manual(app *kong.Application, version string) []byte {
	var out bytes.Buffer
	fmt.Fprintf(&out, ".TH VITRINE 1 \"\" \"vitrine %s\"\n.SH NAME\nvitrine \\- multinomial-logit contextual "+
		"bandits\n", version)
	fmt.Fprintf(&out, ".SH SYNOPSIS\n.B vitrine\n.I command\n[\\fIargument\\fR ...] [\\fB\\-\\-flag\\fR ...]\n.SH "+
		"DESCRIPTION\n")
	prose(&out, app.Help)
	out.WriteString(".SH COMMANDS\n")
	for _, n := range Visible(app.Node) {
		manualSection(&out, n)
	}
	out.WriteString(".SH SEE ALSO\nThe directory docs of the source.\n")
	return out.Bytes()
}

// manualSection describes a command, and then its subcommands.
func manualSection(out *bytes.Buffer, n *kong.Node) {
	fmt.Fprintf(out, ".SS %s\n", roff(n.Summary()))
	prose(out, n.Help)
	for _, p := range n.Positional {
		entry(out, p.Summary(), p.Help)
	}
	for _, f := range n.Flags {
		if f.Hidden || f.Name == "help" {
			continue
		}
		name := "--" + f.Name
		if !f.IsBool() {
			name += "=" + f.FormatPlaceHolder()
		}
		entry(out, name, f.Help)
	}
	prose(out, n.Detail)
	for _, child := range Visible(n) {
		manualSection(out, child)
	}
}

func entry(out *bytes.Buffer, name, help string) {
	fmt.Fprintf(out, ".TP\n.B %s\n%s\n", roff(name), roff(help))
}

// prose writes paragraphs; indented ones keep their lines.
func prose(out *bytes.Buffer, text string) {
	for _, paragraph := range strings.Split(strings.TrimSpace(text), "\n\n") {
		switch {
		case paragraph == "":
		case strings.HasPrefix(paragraph, "    "):
			fmt.Fprintf(out, ".PP\n.RS 4\n.nf\n%s\n.fi\n.RE\n",
				roff(strings.ReplaceAll(strings.TrimPrefix(paragraph, "    "), "\n    ", "\n")))
		default:
			fmt.Fprintf(out, ".PP\n%s\n", roff(paragraph))
		}
	}
}

// roff escapes text: backslashes, hyphens, and lines that would be requests.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, `-`, `\-`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
