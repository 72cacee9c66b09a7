package embedded

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// What a process says of itself counts where its folder can't be seen.
func TestStartedFor(t *testing.T) {
	data := t.TempDir()
	for _, test := range []struct {
		name string
		args []string
		want bool
	}{
		{"its server", []string{"/bin/postgres", "-D", data}, true},
		{"a server whose folder was moved", []string{"/bin/postgres", "-D", data + "-moved"}, true},
		{"the server of another folder", []string{"/bin/postgres", "-D", t.TempDir()}, false},
		{"another program", []string{"/bin/other", "-D", data}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			cmd, in := child(t, "none", test.args)
			if got := startedFor(cmd.Process.Pid, data); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
			// A dead one says nothing any more.
			in.Close()
			if err := cmd.Wait(); err != nil {
				t.Fatal(err)
			}
			if startedFor(cmd.Process.Pid, data) {
				t.Error("a dead process serves")
			}
		})
	}
}

// TestEnvironmentOfServer verifies that the server has none of the service's secrets in its environment, which a
// superuser of the database could read.
func TestEnvironmentOfServer(t *testing.T) {
	t.Setenv("PARTNERAPI_SMTP_URL", "smtp://user:mail-secret@mail.example.test")
	t.Setenv("PARTNERAPI_ENCRYPTION_KEY", "key-secret")
	s := begin(t, Config{Dir: t.TempDir()})
	environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", s.pid))
	if err != nil {
		t.Fatal(err)
	}
	if text := string(environ); strings.Contains(text, "secret") || !strings.Contains(text, "PATH=") {
		t.Errorf("got the environment %q", text)
	}
}
