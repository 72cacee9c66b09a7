package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"partnerapi/domain"
	"partnerapi/platform/transfer"
)

type exportObjectsCmd struct {
	databaseFlags
	File    string `arg:"" optional:"" default:"-" help:"The file to write; - for the standard output."`
	Partner string `env:"-" help:"Write the objects of one partner: its id, UUID or name. Default: of all."`
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
		return newOutput("", jsonTo(s.out))
	}
	return newOutput(c.File, nil)
}
