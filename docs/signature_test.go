package docs_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"partnerapi/docs"
)

// program is how the code of a language is run with the arguments secret,
// header, body and now, to print true or false.
type program struct {
	file, main string
	// command runs or builds the file; it is looked for where it is optional.
	command  []string
	optional bool
}

var programs = map[string]program{
	"go": {file: "verify.go", command: []string{"go", "run", "."}, main: `package main

import (
	"fmt"
	"os"
	"strconv"
	"time"
)

func main() {
	for _, at := range []int{1, 5, 9, 13, 17, 21, 25, 29} {
		a := os.Args[at : at+4]
		now, _ := strconv.ParseInt(a[3], 10, 64)
		fmt.Println(Verify(a[0], a[1], []byte(a[2]), time.Unix(now, 0)))
	}
}
`},
	"python": {file: "verify.py", command: []string{"python3", "verify.py"}, optional: true, main: `
import sys

for at in range(1, len(sys.argv), 4):
    a = sys.argv[at : at + 4]
    print(str(verify(a[0], a[1] or None, a[2].encode(), int(a[3]))).lower())
`},
	"js": {file: "verify.mjs", command: []string{"node", "verify.mjs"}, optional: true, main: `
for (let at = 2; at < process.argv.length; at += 4) {
  const a = process.argv.slice(at, at + 4);
  console.log(verify(a[0], a[1] || undefined, Buffer.from(a[2]), Number(a[3])));
}
`},
	"php": {file: "verify.php", command: []string{"php", "verify.php"}, optional: true, main: `
foreach (array_chunk(array_slice($argv, 1), 4) as $a) {
    echo verify($a[0], $a[1] ?: null, $a[2], (int) $a[3]) ? 'true' : 'false', "\n";
}
`},
}

func signed(secret string, at int64, body string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(mac, "%d.%s", at, body)
	return hex.EncodeToString(mac.Sum(nil))
}

// TestSignatureCode runs the code of the guide about webhooks that verifies
// signatures. That of Go always runs; that of other languages runs where they
// are installed.
func TestSignatureCode(t *testing.T) {
	t.Parallel()
	guide, err := fs.ReadFile(docs.Guides(), "webhooks.md")
	if err != nil {
		t.Fatal(err)
	}
	const (
		secret, other = "whsec_c2VjcmV0IG9mIGEgdGVzdCwgMzMgYnl0ZXMgbG9uZy4uLg==", "whsec_b3RoZXI="
		body          = `{"id":"evt_1","data":{"name":"Énergie $x"}}`
		now           = 1_781_524_800
	)
	right := signed(secret, now, body)
	stamp := "t=" + strconv.Itoa(now)
	var args []string
	var want strings.Builder
	for _, c := range []struct {
		header, body string
		now          int64
		want         bool
	}{
		{stamp + ",v1=" + right, body, now + 299, true},
		{stamp + ",v1=" + signed(other, now, body) + ",v1=" + right, body, now, true},
		{stamp + ",v1=" + signed(other, now, body), body, now, false},
		{stamp + ",v1=" + right, body + " ", now, false},
		{stamp + ",v1=" + right, body, now + 301, false},
		{"t=x,v1=" + right, body, now, false},
		{"nonsense", body, now, false},
		{"", body, now, false}, // there is no header
	} {
		args = append(args, secret, c.header, c.body, strconv.FormatInt(c.now, 10))
		fmt.Fprintln(&want, c.want)
	}
	for language, p := range programs {
		if _, err := exec.LookPath(p.command[0]); err != nil && p.optional {
			t.Logf("%s is not installed", p.command[0])
			continue
		}
		code := ""
		for _, block := range regexp.MustCompile("(?s)\n```"+language+"\n(.*?)\n```\n").FindAllSubmatch(guide, -1) {
			if code == "" && regexp.MustCompile(`(?i)(func|function|def) verify\(`).Match(block[1]) {
				code = string(block[1])
			}
		}
		if code == "" {
			t.Errorf("the guide has no code in %s", language)
			continue
		}
		if got := runProgram(t, language, p, code+"\n", args); got != want.String() {
			t.Errorf("%s says\n%sand not\n%s", language, got, &want)
		}
	}
}

func runProgram(t *testing.T, language string, p program, code string, args []string) string {
	t.Helper()
	dir := t.TempDir()
	files := map[string]string{p.file: code + p.main}
	if language == "go" {
		files = map[string]string{
			p.file: strings.Replace(code, "package webhook", "package main", 1), "main.go": p.main,
			"go.mod": "module verify\n\ngo 1.26\n",
		}
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), p.command[0], append(p.command[1:len(p.command):len(p.command)], args...)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", language, err, out)
	}
	return string(out)
}
