package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"partnerapi/domain"
	"partnerapi/platform/transfer"
)

type exportObjectsCmd struct {
	databaseFlags
	File    string `arg:"" optional:"" default:"-" help:"The file to write; - for the standard output."`
	Partner string `env:"-" placeholder:"NAME" help:"Write the objects of one partner. Default: of all."`
	Signals string `env:"-" placeholder:"FILE" help:"Write what users did beside, such as courses completed and policies signed, to this file: signals as the command ingest takes them."`
}

// Help says what is written.
func (exportObjectsCmd) Help() string {
	return "Writes all objects that the command import takes, a line of JSON each, so that an import of the lines into " +
		"another database makes the same objects there. The templates and breaches of the catalogue are not among " +
		"them: import those first, with the commands templates import and breaches import. Everything is of one " +
		"moment: the command reads in one transaction, which changes nothing and blocks nobody, and lasts as long " +
		"as the lines take to be written. A file has its name once it is complete. The guide under /docs/import " +
		"describes the lines."
}

// Run writes the objects, and says how many there are of each kind.
func (c exportObjectsCmd) Run(ctx context.Context, s streams) (err error) {
	d, shut, err := c.open(ctx, s.err)
	if err != nil {
		return err
	}
	defer closing(shut, &err)
	var partner domain.PartnerID
	if c.Partner != "" {
		if partner, err = partnerCalled(ctx, d, c.Partner); err != nil {
			return err
		}
	}

	objects, err := c.objects(s)
	if err != nil {
		return err
	}
	signals, err := newOutput(c.Signals, nil)
	if err != nil {
		return errors.Join(err, objects.drop())
	}

	start, lines := time.Now(), 0
	err = transfer.Export(ctx, d, partner, transfer.Output{Objects: objects.to, Signals: signals.to},
		func(object string, n int, done bool) {
			switch {
			case done:
				lines += n
				fmt.Fprintf(s.err, "%s: %d lines\n", object, n)
			case n%linesBetween == 0:
				fmt.Fprintf(s.err, "%s: %d lines so far\n", object, n)
			}
		})
	if err != nil {
		return errors.Join(err, objects.drop(), signals.drop())
	}
	if err := errors.Join(signals.keep(), objects.keep()); err != nil {
		return err
	}
	fmt.Fprintf(s.err, "%d lines in %s\n", lines, time.Since(start).Round(time.Millisecond))
	return nil
}

func (c exportObjectsCmd) objects(s streams) (*output, error) {
	if c.File == "-" {
		return newOutput("", s.out)
	}
	return newOutput(c.File, nil)
}

// output is what lines are written to: a file that gets its name when it is complete,
// another writer, or nothing.
type output struct {
	to   io.Writer
	file *os.File // nil for none
	path string
}

// newOutput begins a file for a path, which only its owner can read. Without a path the
// lines go to another writer, which may be nil.
func newOutput(path string, other io.Writer) (*output, error) {
	if path == "" {
		return &output{to: other}, nil
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() { // such as /dev/stdout
		return nil, fmt.Errorf("%s is no file", path)
	}
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-")
	if err != nil {
		return nil, err
	}
	return &output{file, file, path}, nil
}

// keep gives the complete file its name.
func (o *output) keep() error {
	if o.file == nil {
		return nil
	}
	if err := errors.Join(o.file.Sync(), o.file.Close()); err != nil {
		return errors.Join(err, os.Remove(o.file.Name()))
	}
	return os.Rename(o.file.Name(), o.path)
}

// drop removes a file that is not complete.
func (o *output) drop() error {
	if o.file == nil {
		return nil
	}
	return errors.Join(o.file.Close(), os.Remove(o.file.Name()))
}
