package v1cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"partnerapi/cmd/internal/cli"
	"partnerapi/cmd/internal/database"
	"partnerapi/cmd/internal/output"
	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/v1compat/retire"
)

type brownoutCmd struct {
	Add    addBrownoutCmd    `cmd:"" help:"Add windows during which requests with keys in phase brownout return 410." example:"v1 brownout add --start 2028-01-31T09:00:00Z --for 10m --every 168h --count 4"`
	List   listBrownoutsCmd  `cmd:"" help:"List the brownouts, oldest first." example:"v1 brownout list"`
	Cancel cancelBrownoutCmd `cmd:"" help:"Remove a brownout, even during one of its windows." example:"v1 brownout cancel 1"`
}

// brownoutObject returns a brownout as an audit object.
func brownoutObject(id int64) domain.AuditObject {
	return domain.AuditObject{Kind: "brownout", ID: strconv.FormatInt(id, 10)}
}

type addBrownoutCmd struct {
	database.Flags
	Start cli.Moment    `required:"" env:"-" placeholder:"TIME" help:"Start of the first window: 2027-01-31 (00:00 UTC) or 2027-01-31T12:00:00Z."`
	For   time.Duration `required:"" env:"-" placeholder:"10m" help:"Length of each window, from 1s to 744h."`
	Every time.Duration `env:"-" placeholder:"168h" help:"Time from the start of one window to the start of the next."`
	Count int           `default:"1" env:"-" help:"Number of windows, at most 1000."`
	Keys  []string      `env:"-" placeholder:"PREFIX,…" help:"Only the keys with these prefixes (at most 100), as shown by keys list. Default: all keys."`
}

// Help says whom a brownout is for.
func (addBrownoutCmd) Help() string {
	return `A brownout affects only keys in phase brownout: all of them, or the keys listed in --keys. To put a key in this phase, run partnerapi v1 phase KEY brownout. Each window includes its start but not its end.`
}

// Validate rejects a missing time, before kong reports the flag as missing.
func (c addBrownoutCmd) Validate() error {
	if c.Start.IsZero() {
		return errors.New("set --start TIME to the start of the first window, such as --start 2027-01-31T12:00:00Z, and " +
			"--for to its length, such as --for 10m")
	}
	return nil
}

// Run adds a brownout, for the keys of --keys or for all.
func (c addBrownoutCmd) Run(ctx context.Context, s cli.Env) error {
	return withRetirement(ctx, c.Flags, s, func(r retirement) error {
		all, err := r.db.Keys(ctx)
		if err != nil {
			return err
		}
		window := retire.Window{Start: c.Start.Time, For: c.For, Every: c.Every, Count: c.Count}
		for _, prefix := range c.Keys {
			key, err := findKey(all, strings.TrimSpace(prefix))
			if err != nil {
				return fmt.Errorf("--keys: %w", err)
			}
			if !slices.Contains(window.Keys, key.ID) {
				window.Keys = append(window.Keys, key.ID)
			}
		}
		entry := &domain.AuditEntry{Operation: "v1 brownout add", Fields: []string{"count", "every", "for", "keys", "start"}}
		err = r.change(ctx, entry, func(ctx context.Context) (string, error) {
			id, err := r.AddBrownout(ctx, window)
			entry.Object = brownoutObject(id)
			return fmt.Sprintf("brownout %d: %s.", id, describeWindows(window)), err
		})
		if err == nil {
			c.printHints(r, window, all)
		}
		return err
	})
}

// printHints prints which of the keys of --keys are not in phase brownout. Without --keys it prints that the brownout
// affects no key, if no key is in that phase.
func (c addBrownoutCmd) printHints(r retirement, window retire.Window, all []db.Key) {
	affectsKeys := len(window.Keys) > 0 // each of --keys that is not affected is named below
	for _, k := range all {
		phase, _ := r.state.PhaseOf(retire.Key{ID: k.ID, Partner: k.PartnerID}, r.db.Now())
		affectsKeys = affectsKeys || phase == retire.Brownout
		if phase != retire.Brownout && slices.Contains(window.Keys, k.ID) {
			fmt.Fprintf(r.Out, "%s is in phase %s, so the brownout does not affect it. To change its phase, run partnerapi v1 phase %s brownout.\n",
				k.Prefix, phase, k.Prefix)
		}
	}
	if !affectsKeys {
		fmt.Fprintln(r.Out, "No key is in phase brownout, so the brownout affects none. To put a key in this phase, run partnerapi v1 phase KEY brownout.")
	}
}

// describeWindows formats a schedule for people.
func describeWindows(w retire.Window) string {
	text := fmt.Sprintf("%v from %s", w.For, retire.FormatTime(w.Start))
	if w.Count > 1 {
		text += fmt.Sprintf(", every %v, %d times, the last until %s", w.Every, w.Count, retire.FormatTime(w.Ends()))
	}
	return text
}

type listBrownoutsCmd struct {
	database.Flags
	JSON bool `name:"json" env:"-" help:"Print the brownouts as a JSON array."`
}

// brownoutLine is a brownout as the command prints it in JSON.
type brownoutLine struct {
	ID           int64       `json:"id"`
	StartAt      domain.Time `json:"start_at"`
	ForSeconds   int64       `json:"for_seconds"`
	EverySeconds *int64      `json:"every_seconds"` // null for one window
	Count        int         `json:"count"`
	Keys         []string    `json:"keys"` // their prefixes; none for all in phase brownout

	row []any // what the table shows
}

// Run lists the brownouts.
func (c listBrownoutsCmd) Run(ctx context.Context, s cli.Env) error {
	return withRetirement(ctx, c.Flags, s, func(r retirement) error {
		keys, err := r.db.Keys(ctx)
		if err != nil {
			return err
		}
		prefixes := map[domain.KeyID]string{}
		for _, k := range keys {
			prefixes[k.ID] = k.Prefix
		}

		var lines []brownoutLine
		for _, w := range r.state.Windows {
			line := brownoutLine{
				ID: w.ID, StartAt: domain.At(w.Start), ForSeconds: int64(w.For / time.Second), Count: w.Count, Keys: []string{},
			}
			every := "-"
			if w.Count > 1 {
				line.EverySeconds, every = domain.OrNil(int64(w.Every/time.Second)), w.Every.String()
			}
			for _, key := range w.Keys {
				line.Keys = append(line.Keys, cmp.Or(prefixes[key], key.String()))
			}
			line.row = []any{
				fmt.Sprint(w.ID), retire.FormatTime(w.Start), w.For, every, w.Count, describeNext(w, r.db.Now()),
				cmp.Or(strings.Join(line.Keys, ","), "all in phase brownout"),
			}
			lines = append(lines, line)
		}
		columns := []any{"ID", "START", "FOR", "EVERY", "COUNT", "NEXT", "KEYS"}
		return output.List(s.Out, c.JSON, lines, columns, func(l brownoutLine) []any { return l.row })
	})
}

// describeNext returns when the next window begins, until when the open window lasts, or that all windows are over.
func describeNext(w retire.Window, now time.Time) string {
	from, to, ok := w.Next(now)
	switch {
	case !ok:
		return "over"
	case from.After(now):
		return retire.FormatTime(from)
	}
	return "now, until " + retire.FormatTime(to)
}

type cancelBrownoutCmd struct {
	database.Flags
	ID int64 `arg:"" help:"The brownout's ID, as shown by v1 brownout list."`
}

// Run removes a brownout.
func (c cancelBrownoutCmd) Run(ctx context.Context, s cli.Env) error {
	return withRetirement(ctx, c.Flags, s, func(r retirement) error {
		entry := &domain.AuditEntry{Operation: "v1 brownout cancel", Object: brownoutObject(c.ID)}
		return r.change(ctx, entry, func(ctx context.Context) (string, error) {
			return fmt.Sprintf("brownout %d is canceled.", c.ID), r.CancelBrownout(ctx, c.ID)
		})
	})
}
