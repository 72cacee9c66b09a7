// Package dbtest gives tests a real PostgreSQL: the server of TEST_DATABASE_URL
// if that is set, otherwise one in a container where a Docker engine answers, otherwise
// an embedded one. All test processes of a user share the container or the
// embedded server, and the last one out stops it; should a run be killed, the
// next one joins its server and cleans up after it. A test gets a database of
// its own, copied from a template that was migrated once.
//
// A package that uses it says so in its TestMain:
//
//	func TestMain(m *testing.M) { dbtest.Main(m) }
package dbtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// patience bounds what is done on the server for one test, migrations included.
const patience = 2 * time.Minute

// Schema is what a test's database holds.
type Schema struct {
	// Name distinguishes schemas that are tested on one server, in the names of databases;
	// lower-case letters and digits, at most 20.
	Name string
	// Key changes whenever Apply would make something else: the migrations'
	// text, or a hash of it.
	Key string
	// Apply makes the schema in an empty database. It must leave no connection
	// open. It runs once for all processes that share the server.
	Apply func(ctx context.Context, url string) error
}

// process is what this test process has of the server. It is global, for a
// test's function can be handed nothing by TestMain.
var process struct {
	sync.Mutex
	inMain bool
	server *server
	err    error // of the first attempt to reach a server: the next test need not try again
}

// Main runs the tests of a package, gives up its use of the server, and exits;
// goroutines that still run then are a failure. It is all that a TestMain needs
// to do.
func Main(m *testing.M) {
	// The clock of the regular expressions that mark code ends by itself.
	goleak.VerifyTestMain(runner{m},
		goleak.IgnoreAnyFunction("github.com/dlclark/regexp2/v2.runClock"))
}

// runner runs the tests of a package and gives the server up when they have run.
type runner struct{ tests *testing.M }

// garbage is how much the heap of tests, and of the processes that they start, grows
// between two collections, in percent. They are short, and the machine's processors are
// what they wait for.
const garbage = 400

// collectSeldom sets garbage, and no limit of memory, where the environment does not. The program's own limit is for
// one service: the process of the commands' tests holds several, and would collect garbage all the time.
func collectSeldom() error {
	if os.Getenv("GOMEMLIMIT") == "" {
		if err := os.Setenv("GOMEMLIMIT", "off"); err != nil {
			return err
		}
	}
	if os.Getenv("GOGC") != "" {
		return nil
	}
	debug.SetGCPercent(garbage)
	return os.Setenv("GOGC", strconv.Itoa(garbage))
}

// Run returns the exit code.
func (r runner) Run() int {
	if err := collectSeldom(); err != nil {
		fmt.Fprintln(os.Stderr, "dbtest:", err)
		return 1
	}
	process.Lock()
	process.inMain = true
	process.Unlock()
	code := r.tests.Run()
	process.Lock()
	defer process.Unlock()
	if process.server != nil {
		if err := process.server.close(); err != nil {
			fmt.Fprintln(os.Stderr, "dbtest:", err)
			code = max(code, 1)
		}
		process.server = nil
	}
	return code
}

// URL makes a database with the schema for this test alone, which is dropped at
// the test's end, and returns its postgres:// address. The user of the address
// may do everything in it. Connections that are open at the end are cut.
func URL(t testing.TB, schema Schema) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s, err := reach(ctx, t)
	if err != nil {
		t.Fatalf("dbtest: %v", err)
	}
	database, err := s.create(ctx, schema)
	if err != nil {
		t.Fatalf("dbtest: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := s.drop(ctx, database); err != nil {
			t.Errorf("dbtest: %v", err)
		}
	})
	return s.url(database)
}

// reach returns the server, found by the first test that asks.
func reach(ctx context.Context, t testing.TB) (*server, error) {
	process.Lock()
	defer process.Unlock()
	if !process.inMain {
		return nil, errors.New("this package needs a TestMain that calls dbtest.Main: the server would run on without it")
	}
	if process.server == nil && process.err == nil {
		process.server, process.err = find(ctx, t.Logf)
	}
	return process.server, process.err
}
