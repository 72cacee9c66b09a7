package main

import (
	"strings"
	"testing"

	"partnerapi/cmd/internal/database"
	"partnerapi/v2/op"
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

// TestGreetingOfDemo verifies that the commands of a demonstration's greeting work as they are printed, and that it says
// where emails go.
func TestGreetingOfDemo(t *testing.T) {
	t.Parallel()
	r := serving(t, demonstration(t), "--demo", "--release=latest", "--no-work")
	says(t, r.out.String(), "  start page: "+r.address+"/\n  emails: sent by partnerapi work\n", " mcp --url "+r.address)
	tryCommands(t, r, true)
	for flags, want := range map[string]string{"--data-dir=/srv/data": "files in /srv/data/outbox", "--smtp-url=smtp://mail.example.com": "to the mail server of --smtp-url"} {
		s := builtService(t, opened(t, databaseFlag(t)), guideBase, resources{}, "serve", flags)
		if got := s.config.emailsGoTo(); got != want {
			t.Errorf("%s: got %q, want %q", flags, got, want)
		}
	}
}

// TestGreetingOfEmptyService verifies that the commands of the greeting of an empty service lead to a first client, and
// that a service with partners prints none.
func TestGreetingOfEmptyService(t *testing.T) {
	t.Parallel()
	database := databaseFlag(t)
	r := serving(t, database, "--release=latest", "--no-work")
	_, steps, found := strings.Cut(r.out.String(), "\nThe database is empty. To create a first client, run in another terminal:\n")
	if !found {
		t.Fatalf("got\n%s", r.out)
	}
	s, err := newShell(t.TempDir(), r.address)
	if err != nil {
		t.Fatal(err)
	}
	s.address = r.address
	got, err := s.run("PARTNERAPI_DATABASE_URL='" + strings.TrimPrefix(database, "--database-url=") + "'\nexport PARTNERAPI_DATABASE_URL\n" + steps)
	if err != nil || !strings.Contains(got, `"name":"First client"`) {
		t.Errorf("got %s (%v), want a client", got, err)
	}
	again := serving(t, database, "--release=2.0", "--no-work")
	if strings.Contains(again.out.String(), "is empty") {
		t.Errorf("a service with partners says\n%s", again.out)
	}
}

// TestFirstSteps verifies that the steps use the database of the service, without its password, and that they create a
// client only if the release can.
func TestFirstSteps(t *testing.T) {
	t.Parallel()
	steps := func(release op.Release, flags database.Flags) string {
		c := serveCmd{}
		c.Release, c.Flags = release, flags
		return strings.Join(c.firstSteps("http://127.0.0.1:8080"), "\n")
	}
	says(t, steps(op.V2_2, database.Flags{DataDir: "/srv/my data"}), "partners create 'First partner' --data-dir '/srv/my data'\n", `-d '{"name": "First client"}' 'http://127.0.0.1:8080/v2/clients'`)
	says(t, steps(op.V2_0, database.Flags{DatabaseURL: "postgres://me@db/x"}), "--scopes read,write --database-url postgres://me@db/x)\n", "# to create clients, serve --release 2.2 or later")
	secret := steps(op.V2_2, database.Flags{DatabaseURL: "postgres://me:sesame@db/x"})
	says(t, secret, ` --database-url "$PARTNERAPI_DATABASE_URL"`)
	if strings.Contains(secret, "sesame") {
		t.Errorf("the steps have the password:\n%s", secret)
	}
}
