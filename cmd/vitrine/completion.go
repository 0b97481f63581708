package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"vitrine/bandit/policy"
	"vitrine/figure"
	"vitrine/paper/experiments"
)

type completionCmd struct {
	Shell string `arg:"" help:"bash, zsh, fish or powershell." complete:"shells"`
}

func (completionCmd) Help() string {
	return "The script completes commands, flags, experiments, policies and other names; it calls vitrine for " +
		"them, which must be in the PATH.\n\n" + examples(
		"source <(vitrine completion bash)                                          in ~/.bashrc",
		"vitrine completion zsh > \"${fpath[1]}/_vitrine\"                            once, before compinit",
		"vitrine completion fish > ~/.config/fish/completions/vitrine.fish          once",
		"vitrine completion powershell | Out-String | Invoke-Expression             in $PROFILE",
	)
}

// shells are the completion scripts. Each asks the hidden command complete for
// the candidates, with the words up to the cursor; without candidates the shell
// completes files.
var shells = map[string]string{
	"bash": `# bash completion for vitrine
_vitrine() {
	local IFS=$'\n'
	COMPREPLY=($(vitrine complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _vitrine vitrine
`,
	"zsh": `#compdef vitrine
_vitrine() {
	local -a candidates
	candidates=(${(f)"$(vitrine complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)"})
	if (( $#candidates )); then
		compadd -a candidates
	else
		_files
	fi
}
if [[ $funcstack[1] == _vitrine ]]; then
	_vitrine "$@"
else
	compdef _vitrine vitrine
fi
`,
	"fish": `# fish completion for vitrine
function __vitrine_candidates
	set -l words (commandline -opc)
	vitrine complete -- $words[2..-1] (commandline -ct) 2>/dev/null
end
complete -c vitrine -a '(__vitrine_candidates)'
`,
	// Before 7.3, PowerShell drops empty arguments unless they are quoted twice.
	"powershell": `# PowerShell completion for vitrine
Register-ArgumentCompleter -Native -CommandName vitrine -ScriptBlock {
	param($last, $line, $cursor)
	$words = @($line.CommandElements | Select-Object -Skip 1 | Where-Object { $_.Extent.EndOffset -lt $cursor } | ForEach-Object { $_.Extent.Text })
	if ($last -eq '' -and ($PSVersionTable.PSVersion -lt [version]'7.3' -or $PSNativeCommandArgumentPassing -eq 'Legacy')) { $last = '""' }
	vitrine complete -- @words $last 2>$null | ForEach-Object { [System.Management.Automation.CompletionResult]::new($_) }
}
`,
}

func (c completionCmd) Run(t terminal) error {
	script, ok := shells[c.Shell]
	if !ok {
		return usageError{fmt.Errorf("completion %s: must be bash, zsh, fish or powershell", c.Shell)}
	}
	_, err := io.WriteString(t.out, script)
	return err
}

type completeCmd struct {
	Words []string `arg:"" optional:""`
}

func (c completeCmd) Run(t terminal, parser *kong.Kong) error {
	for _, word := range candidates(parser.Model.Node, c.Words) {
		fmt.Fprintln(t.out, word)
	}
	return nil
}

// sources return the possible values of a flag or an argument, by its tag complete.
var sources = map[string]func(root *kong.Node) []string{
	"bands":     func(*kong.Node) []string { return figure.Bands() },
	"baselines": func(*kong.Node) []string { return []string{"theory", "tuned", "both"} },
	"commands":  func(root *kong.Node) []string { return nodeNames(visible(root)) },
	"experiments": func(*kong.Node) []string {
		return slices.Concat([]string{"all"}, experiments.Groups(), experiments.WithoutFile(), experiments.Names())
	},
	"formats":  func(*kong.Node) []string { return []string{"svg", "png", "pdf", "tex"} },
	"files":    func(*kong.Node) []string { return append(experiments.Names(), experiments.Tunings()...) },
	"lists":    func(*kong.Node) []string { return lists },
	"namings":  func(*kong.Node) []string { return []string{"label", "paper"} },
	"names":    func(*kong.Node) []string { return describable() },
	"policies": func(*kong.Node) []string { return policy.Names() },
	"scales":   func(*kong.Node) []string { return []string{"linear", "log"} },
	"shells":   func(*kong.Node) []string { return []string{"bash", "zsh", "fish", "powershell"} },
	"tunings":  func(*kong.Node) []string { return experiments.Tunings() },
}

// candidates returns the completions of the last word.
func candidates(root *kong.Node, words []string) []string {
	words = slices.DeleteFunc(slices.Clone(words), func(w string) bool {
		return w == "="
	}) // bash splits --flag=value at it
	if len(words) == 0 {
		words = []string{""}
	}
	node, position := root, 0
	var awaits *kong.Flag // the flag that takes the next value
	for _, word := range words[:len(words)-1] {
		switch {
		case awaits != nil:
			awaits = nil
		case strings.HasPrefix(word, "-"):
			if f := flagOf(node, word); f != nil && !f.IsBool() && !strings.Contains(word, "=") {
				awaits = f
			}
		default:
			if i := slices.IndexFunc(node.Children, func(n *kong.Node) bool { return n.Name == word }); i >= 0 {
				node = node.Children[i]
			} else {
				position++
			}
		}
	}
	last := words[len(words)-1]
	if awaits != nil {
		return values(root, awaits.Value, last)
	}
	if name, value, ok := strings.Cut(last, "="); ok && strings.HasPrefix(name, "--") {
		f := flagOf(node, name)
		if f == nil {
			return nil
		}
		list := values(root, f.Value, value)
		for i := range list {
			list[i] = name + "=" + list[i]
		}
		return list
	}
	if strings.HasPrefix(last, "-") {
		var list []string
		for _, group := range node.AllFlags(true) {
			for _, f := range group {
				list = append(list, "--"+f.Name)
			}
		}
		return matching(list, last)
	}
	list := matching(nodeNames(visible(node)), last)
	if n := len(node.Positional); n > 0 {
		at := node.Positional[min(position, n-1)]
		if position < n || at.IsSlice() {
			list = append(list, values(root, at, last)...)
		}
	}
	return list
}

// flagOf returns the flag of a word such as --out or --out=DIR, or nil.
func flagOf(node *kong.Node, word string) *kong.Flag {
	name, _, _ := strings.Cut(strings.TrimPrefix(word, "--"), "=")
	for _, group := range node.AllFlags(false) {
		for _, f := range group {
			if f.Name == name {
				return f
			}
		}
	}
	return nil
}

// values returns the completions of a value. If a flag takes values separated by commas it completes the last
// one.
func values(root *kong.Node, v *kong.Value, word string) []string {
	source, ok := sources[v.Tag.Get("complete")]
	if !ok {
		return nil
	}
	list := source(root)
	before := ""
	if v.Flag != nil && v.IsSlice() {
		if i := strings.LastIndex(word, ","); i >= 0 {
			before, word = word[:i+1], word[i+1:]
		}
		given := strings.Split(before, ",")
		list = slices.DeleteFunc(slices.Clone(list), func(s string) bool { return slices.Contains(given, s) })
	}
	list = matching(list, word)
	for i := range list {
		list[i] = before + list[i]
	}
	return list
}

// matching returns the words with the prefix.
func matching(list []string, prefix string) (found []string) {
	for _, w := range list {
		if strings.HasPrefix(w, prefix) {
			found = append(found, w)
		}
	}
	return found
}
