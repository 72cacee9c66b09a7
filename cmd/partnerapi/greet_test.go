package main

import (
	"strings"
	"testing"
)

// TestGreetingOfPublicDemo verifies that a demonstration that other machines can reach says that its keys are public.
func TestGreetingOfPublicDemo(t *testing.T) {
	t.Parallel()
	d := opened(t, demonstration(t))
	for listen, public := range map[string]bool{
		"127.0.0.1:8080": false, "[::1]:8080": false, "[::ffff:127.0.0.1]:80": false,
		"0.0.0.0:8080": true, "[::]:8080": true, "192.0.2.7:443": true,
	} {
		s := builtService(t, d, guideBase, resources{}, "serve", "--demo")
		s.config.Listen = listen
		demo, err := s.config.loadDemo(t.Context(), d)
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		if err := greet(t.Context(), &text, s.log, s, guideBase, demo); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(text.String(), "WARNING: these keys are public") != public {
			t.Errorf("%s: got\n%s", listen, &text)
		}
	}
}
