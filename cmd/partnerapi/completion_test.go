package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"partnerapi/domain"
)

// completed is what a line may continue with, without the descriptions.
func completed(t *testing.T, words ...string) (found []string) {
	t.Helper()
	for line := range strings.Lines(must(t, append([]string{"__complete", "--"}, words...)...)) {
		word, _, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		found = append(found, word)
	}
	return found
}

func TestCompletion(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		words []string
		want  []string // all of them, or some where the last is …
	}{
		{[]string{""}, []string{"serve", "work", "migrate", "keys", "completion", "help", "…"}},
		{[]string{"ser"}, []string{"serve"}},
		{[]string{"keys", ""}, []string{"create", "list", "rotate", "revoke"}},
		{[]string{"help", "keys", "c"}, []string{"create"}},
		{[]string{"serve", "--rel"}, []string{"--release"}},
		{[]string{"serve", "--data-dir", "x", "--release", ""}, []string{"2.0", "2.1", "2.2", "2.3", "2.4", "2.5"}},
		{[]string{"serve", "--release=2."}, []string{"--release=2.0", "--release=2.1", "--release=2.2", "--release=2.3", "--release=2.4", "--release=2.5"}},
		{[]string{"serve", "--log-format", "j"}, []string{"json"}},
		{[]string{"work", "--log-level="}, []string{"--log-level=debug", "--log-level=info", "--log-level=warn", "--log-level=error"}},
		{[]string{"serve", "--data-dir", ""}, []string{":files"}},
		{[]string{"serve", "--postgres-bin="}, []string{":dirs"}},
		{[]string{"serve", "--demo", "--no-w"}, []string{"--no-work"}},
		{[]string{"serve", "--listen", ""}, nil},
		{[]string{"serve", "--nothing="}, nil},
		{[]string{"completion", ""}, []string{"bash", "zsh", "fish"}},
		{[]string{"completion", "bash", ""}, nil},
		{[]string{"mail", "enable", "Acme", ""}, []string{"certificate", "monthly-report", "webhook-failing", "…"}},
		{[]string{"reports", "make", "Acme", "exec"}, []string{"executive_summary"}},
		{[]string{"reports", "make", "--format", "xlsx", "Acme", ""}, domain.ReportType("").Values()},
		{[]string{"directory", "connect", "Acme", ""}, []string{"microsoft", "google"}},
		{[]string{"breaches", "import", ""}, []string{":files"}},
		{[]string{"keys", "create", "--", "--"}, nil},
		{[]string{"nothing", "--vers"}, []string{"--version"}},
	} {
		got := completed(t, tt.words...)
		if n := len(tt.want); n > 0 && tt.want[n-1] == "…" {
			for _, word := range tt.want[:n-1] {
				if !slices.Contains(got, word) {
					t.Errorf("%q: %q is not among %q", tt.words, word, got)
				}
			}
			continue
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%q: %q, not %q", tt.words, got, tt.want)
		}
	}
	if slices.Contains(completed(t, ""), "__complete") {
		t.Error("the hidden command is shown")
	}
	refused(t, 2, []string{"completion", "ksh"}, "bash")
}

// program puts this program on a path of its own, under its name.
func program(t *testing.T) (dir string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	script := "#!/bin/sh\n" + asCommand + "=1 exec '" + self + "' \"$@\"\n"
	if err := os.WriteFile(filepath.Join(dir, "partnerapi"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// inShell runs a script in a shell with the program on its path; "" where the shell
// is not installed.
func inShell(t *testing.T, script string, shell ...string) string {
	t.Helper()
	if _, err := exec.LookPath(shell[0]); err != nil {
		t.Logf("there is no %s: its script is not tried", shell[0])
		return ""
	}
	dir := program(t)
	cmd := exec.Command(shell[0], append(shell[1:], script)...)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "HOME="+cmd.Dir, "TERM=dumb")
	writeFile(t, filepath.Join(cmd.Dir, "passages.json"), "")
	got, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", shell[0], err, got)
	}
	return string(got)
}

// TestShells completes in each shell. In bash the words are taken apart at = and :, as readline
// does. Of zsh's completion system, _describe and _files are the test's own.
func TestShells(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		shell        []string
		script, want string
	}{
		{[]string{"bash", "--norc", "-c"}, `
source <(partnerapi completion bash)
try() {
    COMP_LINE=$1; shift
    COMP_POINT=${#COMP_LINE}; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
    _partnerapi
    echo "$COMP_LINE> ${COMPREPLY[*]}"
}
try 'partnerapi ser' partnerapi ser
try 'partnerapi serve --release=2.' partnerapi serve --release = 2.
try 'partnerapi serve --release=' partnerapi serve --release =
try 'partnerapi serve --smtp-url=smtp://a:b@c --log-format ' partnerapi serve --smtp-url = smtp : //a : b@c --log-format ''
try "partnerapi mail enable 'Acme Ltd' m" partnerapi mail enable "'Acme Ltd'" m
`, `partnerapi ser> serve
partnerapi serve --release=2.> 2.0 2.1 2.2 2.3 2.4 2.5
partnerapi serve --release=> 2.0 2.1 2.2 2.3 2.4 2.5
partnerapi serve --smtp-url=smtp://a:b@c --log-format > text json
partnerapi mail enable 'Acme Ltd' m> monthly-report
`},
		{[]string{"fish", "--no-config", "-c"}, `partnerapi completion fish | source
for line in 'partnerapi ser' 'partnerapi serve --release=2.' 'partnerapi serve --log-format ' 'partnerapi breaches import pass' 'partnerapi serve --report-font=pass'
    echo "$line>" (complete -C $line | string replace -r '\t.*' '')
end`, `partnerapi ser> serve
partnerapi serve --release=2.> --release=2.0 --release=2.1 --release=2.2 --release=2.3 --release=2.4 --release=2.5
partnerapi serve --log-format > text json
partnerapi breaches import pass> passages.json
partnerapi serve --report-font=pass> --report-font=passages.json
`},
		{[]string{"zsh", "-f", "-c"}, `
compdef() { :; }
_describe() { local -a all=("${(@P)2}"); print -rn -- "" ${all%%:*}; }
compset() { :; }
_files() { print -rn -- " files"; }
source <(partnerapi completion zsh)
try() { print -rn -- "$*>"; words=("$@"); CURRENT=$#; _partnerapi; print; }
try partnerapi ser
try partnerapi serve --release=2.
try partnerapi serve --log-format ''
try partnerapi breaches import pass
`, `partnerapi ser> serve
partnerapi serve --release=2.> --release=2.0 --release=2.1 --release=2.2 --release=2.3 --release=2.4 --release=2.5
partnerapi serve --log-format > text json
partnerapi breaches import pass> files
`},
	} {
		if got := inShell(t, tt.script, tt.shell...); got != "" && got != tt.want {
			t.Errorf("%s: %s", tt.shell[0], got)
		}
	}
}
