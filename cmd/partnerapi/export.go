package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/platform/transfer"
)

type exportObjectsCmd struct {
	databaseFlags
	File    string `arg:"" optional:"" default:"-" help:"The file to write; - for the standard output."`
	Partner string `env:"-" placeholder:"NAME" help:"Write the objects of one partner. Default: of all."`
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

	start, lines := time.Now(), 0
	told := func(object string, n int, done bool) {
		switch {
		case done:
			lines += n
			fmt.Fprintf(s.err, "%s: %d lines\n", object, n)
		case n%linesBetween == 0:
			fmt.Fprintf(s.err, "%s: %d lines so far\n", object, n)
		}
	}
	if c.File == "-" {
		err = transfer.Export(ctx, d, partner, s.out, told)
	} else {
		err = exportFile(ctx, d, partner, c.File, told)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(s.err, "%d lines in %s\n", lines, time.Since(start).Round(time.Millisecond))
	return nil
}

// exportFile writes the objects to a file, which has its name once it is complete. Only
// its owner can read it.
func exportFile(
	ctx context.Context, d *db.DB, partner domain.PartnerID, path string, told func(string, int, bool),
) (err error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() { // such as /dev/stdout
		return fmt.Errorf("%s is no file: write to - and lead that there", path)
	}
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(file.Name()))
		}
	}()
	err = transfer.Export(ctx, d, partner, io.Writer(file), told)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}
