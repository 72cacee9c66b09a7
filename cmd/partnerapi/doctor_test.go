package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"

	"partnerapi/platform/seal"
)

// doctorFinding is a finding as doctor prints it.
type doctorFinding struct{ Status, Check, Found, Remedy, Mend string }

// examined runs doctor and returns its findings by check. It wants no secret in
// what is printed: those of the tests are "sesame".
func examined(t *testing.T, code int, args ...string) map[string]doctorFinding {
	t.Helper()
	r := command(t, append([]string{"doctor", "--json", "--listen=127.0.0.1:0"}, args...)...)
	if r.code != code {
		t.Errorf("%v: exit %d, not %d: %s%s", args, r.code, code, r.out, r.err)
	}
	if text := r.out + r.err; strings.Contains(text, "sesame") || strings.Contains(text, "ses%61me") {
		t.Errorf("%v shows a secret: %s", args, text)
	}
	var report struct{ Checks []doctorFinding }
	if err := json.Unmarshal([]byte(r.out), &report); err != nil {
		t.Fatalf("%v: %v: %s%s", args, err, r.out, r.err)
	}
	found := map[string]doctorFinding{}
	for _, f := range report.Checks {
		found[f.Check] = f
		if (f.Status == "ok") != (f.Remedy == "") || f.Found == "" || f.Mend != f.Remedy {
			t.Errorf("%+v: a remedy, also as mend, goes with a warning or a failure", f)
		}
	}
	return found
}

// TestDoctorIsContent: all checks pass of what is as it should be, and leave nothing behind.
// The findings and their lines are the same.
func TestDoctorIsContent(t *testing.T) {
	t.Parallel()
	office, dir := openPostOffice(t, takeAll), t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "files"), 0o700); err != nil {
		t.Fatal(err)
	}
	args := []string{
		databaseFlag(t), "--listen=127.0.0.1:0", "--data-dir=" + dir, "--smtp-url=smtp://" + office.address, "--public-url=https://api.example.com",
		"--trusted-proxies=10.0.0.0/8", "--metrics-listen=127.0.0.1:0", "--redis-url=redis://" + miniredis.RunT(t).Addr(),
		"--encryption-key=" + seal.NewKey(), "--report-store=file://" + filepath.Join(dir, "files"),
	}
	for name, f := range examined(t, 0, args...) {
		if f.Status != "ok" && !slices.Contains([]string{"data directory", "connections", "durability", "role"}, name) { // of the machine
			t.Errorf("%s: %+v", name, f)
		}
	}
	lines := must(t, append([]string{"doctor"}, args...)...)
	if n := strings.Count(lines, "\n"); n != 27 || !strings.Contains(lines, "\nok    redis ") {
		t.Errorf("%d lines for 27 checks:\n%s", n, lines)
	}
	if left, err := os.ReadDir(filepath.Join(dir, "files")); err != nil || len(left) != 0 {
		t.Errorf("the store keeps %v (%v)", left, err)
	}
	if got := office.all(); len(got) > 0 {
		t.Errorf("mails were sent: %v", got)
	}
}

// TestDoctorReadsTheEnvironment is not parallel: it sets a variable.
func TestDoctorReadsTheEnvironment(t *testing.T) {
	t.Setenv("PARTNERAPI_WORKRES", "7")
	f := examined(t, 0, "--data-dir="+t.TempDir())["environment"]
	if f.Status != "warn" || !strings.Contains(f.Found, "PARTNERAPI_WORKRES (PARTNERAPI_WORKERS?)") {
		t.Errorf("%+v", f)
	}
}
