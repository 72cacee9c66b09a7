package output_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"partnerapi/cmd/internal/output"
)

// TestLogHoldsNoSecrets: no line of the log has an API key or the password of an address,
// wherever it stands.
func TestLogHoldsNoSecrets(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"text", "json"} {
		var text strings.Builder
		log := output.NewLog(&text, slog.LevelInfo, format)
		for _, secret := range []string{
			"papi_00abcdefsesameSESAME0123456789", "https://someone:sesame@proxy.example.com:3128", "smtp://:ses/am@e@sesame@mail.example.com/x",
		} {
			log.Info("at "+secret, "to", secret, "error", errors.New("invalid proxy address \""+secret+"\": no"))
		}
		if said := text.String(); strings.Contains(said, "sesame") || !strings.Contains(said, "https://someone:xxxxx@proxy.example.com:3128") ||
			!strings.Contains(said, "papi_00abcdef…") {
			t.Error(said)
		}
	}
	for text, want := range map[string]string{
		`--report-store: "host=127.0.0.1,password=sesame": no scheme`: `--report-store: "host=127.0.0.1,password=xxxxx": no scheme`,
		"host=db password = 'open \\' sesame' user=u":                 "host=db password = xxxxx user=u",
		"PGPASSWORD=sesame, sslpassword=ses\"ame":                     "PGPASSWORD=xxxxx, sslpassword=xxxxx",
		"open /work/redis:/u:sesame@cache:6379: no such file":         "open /work/redis:/u:xxxxx@cache:6379: no such file",
		"the role needs a password":                                   "the role needs a password",
	} {
		if got := output.WithoutSecrets(text); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
	if got := output.WithoutSecrets("http://127.0.0.1 and a@example.com"); got != "http://127.0.0.1 and a@example.com" {
		t.Error(got)
	}
}

// TestVisibleWriter: characters may come in pieces.
func TestVisibleWriter(t *testing.T) {
	t.Parallel()
	var to bytes.Buffer
	w := output.NewVisible(&to, false)
	for _, b := range []byte("é\u202e\tx\n\xe2\x80") {
		if n, err := w.Write([]byte{b}); n != 1 || err != nil {
			t.Fatal(n, err)
		}
	}
	w.Finish()
	if got, want := to.String(), "é\\u{202e}\tx\n\\x{e2}\\x{80}"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
