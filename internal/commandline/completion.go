package commandline

import (
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// Scripts are the completion scripts of the shells. Each asks the hidden command complete for
// the candidates, with the words up to the cursor; without candidates the shell
// completes files.
var Scripts = map[string]string{
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

// Sources return the possible values of a flag or an argument, by its tag complete.
type Sources map[string]func(root *kong.Node) []string

// Candidates returns the completions of the last word.
func (s Sources) Candidates(root *kong.Node, words []string) []string {
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
		return s.values(root, awaits.Value, last)
	}
	if name, value, ok := strings.Cut(last, "="); ok && strings.HasPrefix(name, "--") {
		f := flagOf(node, name)
		if f == nil {
			return nil
		}
		list := s.values(root, f.Value, value)
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
	list := matching(Names(Visible(node)), last)
	if n := len(node.Positional); n > 0 {
		at := node.Positional[min(position, n-1)]
		if position < n || at.IsSlice() {
			list = append(list, s.values(root, at, last)...)
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
func (s Sources) values(root *kong.Node, v *kong.Value, word string) []string {
	source, ok := s[v.Tag.Get("complete")]
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
		list = slices.DeleteFunc(slices.Clone(list), func(v string) bool { return slices.Contains(given, v) })
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
