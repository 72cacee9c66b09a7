package embedded

import "testing"

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
