package cli

import "testing"

func TestListenURL(t *testing.T) {
	t.Parallel()
	for listen, want := range map[string]string{
		"127.0.0.1:8080": "http://127.0.0.1:8080",
		"[::]:8080":      "http://localhost:8080",
		"0.0.0.0:80":     "http://localhost:80",
		"[::1]:8080":     "http://[::1]:8080",
	} {
		if got := ListenURL(listen); got != want {
			t.Errorf("%s is reached at %s", listen, got)
		}
	}
}

func TestOnLoopback(t *testing.T) {
	t.Parallel()
	for listen, want := range map[string]bool{
		"127.0.0.1:1": true, "127.9.9.9:1": true, "[::1]:1": true, "localhost:1": true, "[::ffff:127.0.0.1]:1": true,
		":1": false, "0.0.0.0:1": false, "[::]:1": false, "192.0.2.1:1": false, "example.com:1": false, "": false,
	} {
		if got := OnLoopback(listen); got != want {
			t.Errorf("%q is on loopback: %v", listen, got)
		}
	}
}
