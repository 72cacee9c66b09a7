package operator

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"partnerapi/cmd/internal/cli"
	"partnerapi/cmd/internal/output"
	"partnerapi/db/dbtest"
	"partnerapi/db/dbtest/worldtest"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// console is where an operator types commands, for a database of a test's own.
type console struct {
	*worldtest.World
	t    *testing.T
	flag string
}

func newConsole(t *testing.T) *console {
	t.Helper()
	w := worldtest.New(t)
	return &console{w, t, "--database-url=" + w.Pool().Config().ConnString()}
}

// errUsage is what a command line is that makes no sense.
var errUsage = errors.New("usage")

// run runs a command.
func (c *console) run(ctx context.Context, in io.Reader, args ...string) (out, errs string, err error) {
	c.t.Helper()
	var commands struct {
		Partners      Partners      `cmd:""`
		Branding      Branding      `cmd:""`
		Keys          Keys          `cmd:""`
		Webhooks      Webhooks      `cmd:""`
		Admins        Admins        `cmd:""`
		Audit         Audit         `cmd:""`
		Mail          Mail          `cmd:""`
		Seed          Seed          `cmd:""`
		Breaches      Breaches      `cmd:""`
		Catalogue     Catalogue     `cmd:""`
		Export        Export        `cmd:""`
		Import        Import        `cmd:""`
		Ingest        Ingest        `cmd:""`
		Templates     Templates     `cmd:""`
		Directory     Directory     `cmd:""`
		EncryptionKey EncryptionKey `cmd:"" name:"encryption-key"`
	}
	var said, complaints bytes.Buffer
	visible := output.NewVisible(&complaints, false)
	parser, err := kong.New(&commands, kong.Writers(&said, visible), kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(cli.Env{In: in, Out: &said, Err: visible}), Vars)
	if err != nil {
		c.t.Fatal(err)
	}
	line, err := parser.Parse(append(args, c.flag))
	if err != nil {
		return "", "", fmt.Errorf("%w: %w", errUsage, err)
	}
	err = line.Run()
	visible.Finish()
	return said.String(), complaints.String(), err
}

// must runs a command that is to succeed, and returns what it printed.
func (c *console) must(args ...string) string {
	c.t.Helper()
	out, errs, err := c.run(c.t.Context(), nil, args...)
	if err != nil {
		c.t.Fatalf("%v: %v: %s", args, err, errs)
	}
	return out
}

// refused runs a command that is to fail, and wants what it says to hold all of the words. It
// is not to come to the database where usage is set.
func (c *console) refused(usage bool, args []string, words ...string) {
	c.t.Helper()
	_, errs, err := c.run(c.t.Context(), nil, args...)
	if err == nil || errors.Is(err, errUsage) != usage {
		c.t.Errorf("%v: %v", args, err)
	}
	for _, word := range words {
		if said := errs + fmt.Sprint(err); !strings.Contains(said, word) {
			c.t.Errorf("%v: the error does not say %q: %s", args, word, said)
		}
	}
}

// says runs a command that is to succeed, and wants it to print all of the words.
func (c *console) says(args []string, words ...string) {
	c.t.Helper()
	out := c.must(args...)
	for _, word := range words {
		if !strings.Contains(out, word) {
			c.t.Errorf("%v does not print %q:\n%s", args, word, out)
		}
	}
}

// fileOf is a file with a text.
func fileOf(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}
